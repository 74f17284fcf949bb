//! The words of a statement of MariaDB or MySQL.
//!
//! Not a parser of SQL: a server has more clauses than any parser knows, and what a statement does to rows shows in its first words. A
//! comment that the server executes (`/*!40000 … */`) is a part of the statement; all others are not.

use crate::TableName;

/// A word, a quoted name, a text, or a sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A keyword, a name or a number.
    Word(String),
    /// A name in quotes.
    Name(String),
    /// A text in quotes.
    Text,
    Sign(char),
}

/// The tokens of a statement; `None` if a quote or a comment has no end. A backslash in a text may be an escape, or stand for itself.
pub(super) fn tokens(statement: &str) -> Option<Vec<Token>> {
    tokens_with(statement, true).or_else(|| tokens_with(statement, false))
}

fn tokens_with(statement: &str, has_escapes: bool) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = statement;
    while let Some(first) = rest.chars().next() {
        let after = &rest[first.len_utf8()..];
        rest = match first {
            _ if first.is_whitespace() => after,
            '#' => after_line(rest),
            '-' if is_comment(after) => after_line(rest),
            '/' if after.starts_with('*') => after_comment(after)?,
            '*' if after.starts_with('/') => &after[1..],
            '\'' => {
                let (_, rest) = quoted(after, first, has_escapes)?;
                tokens.push(Token::Text);
                rest
            }
            // A name or a text, by the mode of the session.
            '`' | '"' => {
                let (name, rest) = quoted(after, first, has_escapes && first == '"')?;
                tokens.push(Token::Name(name));
                rest
            }
            _ if is_of_word(first) => {
                let end = rest.find(|it| !is_of_word(it)).unwrap_or(rest.len());
                tokens.push(Token::Word(rest[..end].to_owned()));
                &rest[end..]
            }
            _ => {
                tokens.push(Token::Sign(first));
                after
            }
        };
    }
    Some(tokens)
}

fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$') || character >= '\u{80}'
}

fn is_comment(after_dash: &str) -> bool {
    let Some(rest) = after_dash.strip_prefix('-') else { return false };
    rest.chars().next().is_none_or(char::is_whitespace)
}

fn after_line(text: &str) -> &str {
    text.find('\n').map_or("", |end| &text[end..])
}

/// What follows `/` of a comment: its content if the server executes it, or else what comes after it.
fn after_comment(text: &str) -> Option<&str> {
    let content = &text[1..];
    let executed = content.strip_prefix('!').or_else(|| content.strip_prefix("M!"));
    match executed {
        Some(content) => Some(content.trim_start_matches(|it: char| it.is_ascii_digit())),
        None => content.find("*/").map(|end| &content[end + 2..]),
    }
}

/// The content of a quote, and what comes after it.
fn quoted(text: &str, quote: char, has_escapes: bool) -> Option<(String, &str)> {
    let mut content = String::new();
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' if has_escapes => content.push(characters.next()?.1),
            _ if character != quote => content.push(character),
            _ if characters.peek().is_some_and(|(_, next)| *next == quote) => {
                characters.next();
                content.push(quote);
            }
            _ => return Some((content, &text[at + quote.len_utf8()..])),
        }
    }
    None
}

/// A statement with `'…'` in the place of its texts, and without comments. What is about rows has their values: of it there is the first
/// word alone.
pub(super) fn without_values(statement: &str, of_rows: &[&str]) -> String {
    const TEXT: &str = "'…'";
    let first = tokens(statement).and_then(|all| all.into_iter().next());
    match first {
        Some(Token::Word(verb)) if !of_rows.iter().any(|it| verb.eq_ignore_ascii_case(it)) => {}
        Some(Token::Word(verb)) => return format!("{verb} …"),
        // What is not understood may have anything.
        _ => return "…".to_owned(),
    }
    let mut shown = String::new();
    let mut rest = statement;
    while let Some(first) = rest.chars().next() {
        let after = &rest[first.len_utf8()..];
        rest = match first {
            '\'' | '"' => {
                shown.push_str(TEXT);
                // Without an end as one of the two kinds of text, nothing more is shown.
                [true, false].into_iter().find_map(|escapes| quoted(after, first, escapes)).map_or("", |(_, rest)| rest)
            }
            '`' => {
                let end = quoted(after, first, false).map_or("", |(_, rest)| rest);
                shown.push_str(&rest[..rest.len() - end.len()]);
                end
            }
            '#' => after_line(rest),
            '-' if is_comment(after) => after_line(rest),
            '/' if after.starts_with('*') => after_comment(after).unwrap_or_default(),
            '*' if after.starts_with('/') => &after[1..],
            _ => {
                shown.push(first);
                after
            }
        };
    }
    shown.trim().to_owned()
}

/// Reads tokens from left to right.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words<'a>(&'a [Token]);

impl<'a> Words<'a> {
    pub(super) fn new(tokens: &'a [Token]) -> Self {
        Self(tokens)
    }

    pub(super) fn is_at_end(self) -> bool {
        self.0.is_empty()
    }

    /// Whether a keyword is next.
    pub(super) fn is(self, keyword: &str) -> bool {
        matches!(self.0.first(), Some(Token::Word(word)) if word.eq_ignore_ascii_case(keyword))
    }

    /// Whether one of these keywords is next.
    pub(super) fn is_one_of(self, keywords: &[&str]) -> bool {
        keywords.iter().any(|keyword| self.is(keyword))
    }

    /// Passes over a token.
    pub(super) fn skip(&mut self) {
        self.0 = self.0.get(1..).unwrap_or_default();
    }

    /// Passes over a keyword, if it is next.
    pub(super) fn take(&mut self, keyword: &str) -> bool {
        let is_next = self.is(keyword);
        if is_next {
            self.skip();
        }
        is_next
    }

    /// Passes over keywords, if all of them are next.
    pub(super) fn take_all(&mut self, keywords: &[&str]) -> bool {
        let mut words = *self;
        let are_next = keywords.iter().all(|keyword| words.take(keyword));
        if are_next {
            *self = words;
        }
        are_next
    }

    pub(super) fn take_sign(&mut self, sign: char) -> bool {
        let is_next = self.0.first() == Some(&Token::Sign(sign));
        if is_next {
            self.skip();
        }
        is_next
    }

    /// The name that is next.
    pub(super) fn name(&mut self) -> Option<&'a str> {
        let (Token::Word(name) | Token::Name(name)) = self.0.first()? else { return None };
        self.skip();
        Some(name)
    }

    /// The table that is next, of a database unless it names another one.
    pub(super) fn table(&mut self, database: &str) -> Option<TableName> {
        let first = self.name()?;
        if !self.take_sign('.') {
            return Some(TableName::new(database, first));
        }
        Some(TableName::new(first, self.name()?))
    }

    /// Whether a keyword is anywhere but in parentheses.
    pub(super) fn has(self, keyword: &str) -> bool {
        self.after(keyword).is_some()
    }

    /// What comes after a keyword that is not in parentheses.
    pub(super) fn after(self, keyword: &str) -> Option<Self> {
        let mut words = self;
        let mut depth = 0_usize;
        while let Some(token) = words.0.first() {
            match token {
                Token::Sign('(') => depth += 1,
                Token::Sign(')') => depth = depth.saturating_sub(1),
                _ if depth == 0 && words.is(keyword) => {
                    words.skip();
                    return Some(words);
                }
                _ => {}
            }
            words.skip();
        }
        None
    }

    /// What is between commas that are not in parentheses.
    pub(super) fn split(self) -> Vec<Self> {
        let mut depth = 0_usize;
        let is_comma = |token: &Token| {
            match token {
                Token::Sign('(') => depth += 1,
                Token::Sign(')') => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && *token == Token::Sign(',')
        };
        self.0.split(is_comma).map(Words).collect()
    }

    /// What is inside of the parentheses that are next.
    pub(super) fn inside(self) -> Option<Self> {
        let [Token::Sign('('), inside @ .., Token::Sign(')')] = self.0 else { return None };
        Some(Words(inside))
    }

    /// Whether a name is among the tokens.
    pub(super) fn mentions(self, wanted: &str) -> bool {
        self.0
            .iter()
            .any(|token| matches!(token, Token::Word(name) | Token::Name(name) if name.eq_ignore_ascii_case(wanted)))
    }

    /// The first tokens, as text.
    pub(super) fn shown(self) -> String {
        let text = |token: &Token| match token {
            Token::Word(word) => word.clone(),
            Token::Name(name) => format!("`{name}`"),
            Token::Text => "'…'".to_owned(),
            Token::Sign(sign) => sign.to_string(),
        };
        self.0.iter().take(6).map(text).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_of_a_statement_has_no_values() {
        for (statement, expected) in [
            ("ALTER TABLE t DROP `a``'b'`, COMMENT='secret \\' it''s'", "ALTER TABLE t DROP `a``'b'`, COMMENT='…'"),
            (
                "alter table t add a text default \"secret\" -- secret\n, drop b",
                "alter table t add a text default '…' \n, drop b",
            ),
            ("/* secret */ ALTER /* secret */ TABLE t DROP a # secret", "ALTER  TABLE t DROP a"),
            ("/*!40000 ALTER TABLE t DROP a */", "ALTER TABLE t DROP a"),
            ("INSERT INTO t VALUES (1, 'secret', 5)", "INSERT …"),
            ("update t set a = 5", "update …"),
            ("ALTER TABLE t COMMENT 'secret", "…"),
            (r"ALTER TABLE t COMMENT 'secret\', DROP a", "ALTER TABLE t COMMENT '…', DROP a"),
            ("'secret'", "…"),
        ] {
            assert_eq!(without_values(statement, &["INSERT", "UPDATE"]), expected, "{statement}");
        }
    }

    #[test]
    fn comments_and_quotes_hide_what_is_in_them() {
        let shown = |text: &str| tokens(text).map(|all| Words::new(&all).shown());
        for (text, expected) in [
            ("alter -- not this\n table t", "alter table t"),
            ("/* x */ a # b\n /*!40000 c */ /*M!100100 d */", "a c d"),
            ("`a``b`.c 'it''s' \"d\"", "`a`b` . c '…' `d`"),
            (r"'a\'b' c", "'…' c"),
            (r"'a\' c", "'…' c"),
            ("ä_1$ 5--3", "ä_1$ 5 - - 3"),
        ] {
            assert_eq!(shown(text).as_deref(), Some(expected), "{text}");
        }
        for endless in ["`a", "'a", "/* a", r"'a\"] {
            assert_eq!(shown(endless), None, "{endless}");
        }
    }
}
