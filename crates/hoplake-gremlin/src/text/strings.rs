//! Strings from what stands between their quotes.

/// A string; the error is the offset of an escape that is none, and what is wrong with it.
pub fn unescaped(text: &str) -> Result<Box<str>, (usize, String)> {
    if !text.contains('\\') {
        return Ok(text.into());
    }
    let mut plain = String::with_capacity(text.len());
    // A character beyond 16 bits is two escapes.
    let mut units: Vec<u16> = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let offset = text.len() - rest.len();
        if first != '\\' {
            flush(&mut units, &mut plain).map_err(|why| (offset, why))?;
            let length = rest.find('\\').unwrap_or(rest.len());
            plain.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        }
        let (escaped, length) = escape(&rest[1..]).map_err(|why| (offset, why))?;
        match escaped {
            Escaped::Unit(unit) => units.push(unit),
            Escaped::Character(character) => {
                flush(&mut units, &mut plain).map_err(|why| (offset, why))?;
                plain.extend(character);
            }
        }
        rest = &rest[1 + length..];
    }
    flush(&mut units, &mut plain).map_err(|why| (text.len(), why))?;
    Ok(plain.into())
}

enum Escaped {
    /// A character, or none: a line that goes on in the next one.
    Character(Option<char>),
    /// A unit of UTF-16.
    Unit(u16),
}

/// What follows a backslash, and how long it is.
fn escape(text: &str) -> Result<(Escaped, usize), String> {
    let Some(first) = text.chars().next() else { return Err("the string ends with a backslash".into()) };
    let character = match first {
        'b' => '\u{8}',
        't' => '\t',
        'n' => '\n',
        'f' => '\u{c}',
        'r' => '\r',
        '"' | '\'' | '\\' => first,
        '\n' => return Ok((Escaped::Character(None), 1)),
        '\r' if text[1..].starts_with('\n') => return Ok((Escaped::Character(None), 2)),
        '0'..='7' => {
            let most = if first <= '3' { 3 } else { 2 };
            let length = text.bytes().take(most).take_while(|it| matches!(it, b'0'..=b'7')).count();
            let code = u32::from_str_radix(&text[..length], 8).map_err(|error| error.to_string())?;
            return Ok((Escaped::Character(char::from_u32(code)), length));
        }
        'u' => {
            let begin = text.find(|it| it != 'u').unwrap_or(text.len());
            let digits = text.get(begin..begin + 4).filter(|it| it.bytes().all(|it| it.is_ascii_hexdigit()));
            let unit = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
            let unit = unit.ok_or("`\\u` is not followed by four hexadecimal digits")?;
            return Ok((Escaped::Unit(unit), begin + 4));
        }
        other => return Err(format!("`\\{other}` has no meaning; a backslash is `\\\\`")),
    };
    Ok((Escaped::Character(Some(character)), 1))
}

fn flush(units: &mut Vec<u16>, plain: &mut String) -> Result<(), String> {
    for character in char::decode_utf16(units.drain(..)) {
        plain.push(character.map_err(|_| "an escape is half of a pair (a surrogate)".to_owned())?);
    }
    Ok(())
}
