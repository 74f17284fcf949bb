//! Words of a text, one at a time.

use hoplake_query::error::QueryError;

use super::syntax_error;

/// A word. Strings and numbers are read later, from their text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Word<'a> {
    /// A name, such as `out`.
    Name(&'a str),
    /// A number with its sign and suffix.
    Number(&'a str),
    /// What stands between quotes, with its escapes.
    String(&'a str),
    /// One of `( ) [ ] { } , . : ;`
    Sign(char),
    /// `..`
    Range,
    /// The end of the text.
    End,
}

#[derive(Debug, Clone)]
pub struct Lexer<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, position: 0 }
    }

    /// The next word, and where it begins.
    pub fn next(&mut self) -> Result<(Word<'a>, usize), QueryError> {
        self.skip_space();
        let begin = self.position;
        let rest = &self.text[begin..];
        let Some(first) = rest.chars().next() else { return Ok((Word::End, begin)) };
        let second = rest[first.len_utf8()..].chars().next();
        let word = match first {
            '.' if second == Some('.') => self.take(2, |_| Word::Range),
            '(' | ')' | '[' | ']' | '{' | '}' | ',' | '.' | ':' | ';' => self.take(1, |_| Word::Sign(first)),
            '"' | '\'' => return Ok((self.string(first)?, begin)),
            '0'..='9' => self.take(number_length(rest), Word::Number),
            '+' | '-' => match second {
                Some('0'..='9') => self.take(1 + number_length(&rest[1..]), Word::Number),
                _ if rest[1..].starts_with("Infinity") => self.take(1 + "Infinity".len(), Word::Number),
                _ => return Err(self.error(begin, format!("`{first}` is not followed by a number"))),
            },
            _ if is_name_start(first) => {
                let length = rest.find(|it| !is_name_part(it)).unwrap_or(rest.len());
                self.take(length, Word::Name)
            }
            _ => return Err(self.error(begin, format!("{first:?} has no meaning here"))),
        };
        Ok((word, begin))
    }

    pub fn error(&self, position: usize, message: impl AsRef<str>) -> QueryError {
        syntax_error(self.text, position, message.as_ref())
    }

    fn take(&mut self, length: usize, word: impl FnOnce(&'a str) -> Word<'a>) -> Word<'a> {
        let text = &self.text[self.position..self.position + length];
        self.position += length;
        word(text)
    }

    /// White space, and comments up to the end of their line.
    fn skip_space(&mut self) {
        loop {
            let rest = &self.text[self.position..];
            let trimmed = rest.trim_start_matches([' ', '\t', '\r', '\n', '\u{c}']);
            self.position += rest.len() - trimmed.len();
            if !trimmed.starts_with("//") {
                return;
            }
            self.position += trimmed.find(['\r', '\n']).unwrap_or(trimmed.len());
        }
    }

    fn string(&mut self, quote: char) -> Result<Word<'a>, QueryError> {
        let begin = self.position + 1;
        let mut escaped = false;
        for (offset, character) in self.text[begin..].char_indices() {
            if escaped {
                escaped = false;
            } else if character == '\\' {
                escaped = true;
            } else if character == quote {
                self.position = begin + offset + 1;
                return Ok(Word::String(&self.text[begin..begin + offset]));
            }
        }
        Err(self.error(self.position, format!("the string has no closing {quote}")))
    }
}

/// The length of a number without its sign, digits and all that may belong to it; whether it is a number is seen later.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    let mut length = 0;
    while let Some(byte) = bytes.get(length) {
        let belongs = match byte {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'_' => true,
            // Of `1..5` and `1.out` the number is 1.
            b'.' => !hexadecimal && bytes.get(length + 1).is_some_and(u8::is_ascii_digit),
            b'+' | b'-' => !hexadecimal && matches!(bytes[length - 1], b'e' | b'E'),
            _ => false,
        };
        if !belongs {
            break;
        }
        length += 1;
    }
    length
}

fn is_name_start(character: char) -> bool {
    character.is_alphabetic() || matches!(character, '_' | '$')
}

fn is_name_part(character: char) -> bool {
    is_name_start(character) || character.is_numeric()
}
