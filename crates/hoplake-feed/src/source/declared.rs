//! What a database declares of a column's type, and the text of its decimals.

/// A type's name, and what stands between its parentheses.
pub(super) fn declaration(declared: &str) -> (String, Vec<String>) {
    let name: String = declared.chars().take_while(char::is_ascii_alphanumeric).collect();
    let inside = declared.find('(').and_then(|open| declared.get(open + 1..declared.rfind(')')?)).unwrap_or_default();
    let mut arguments = Vec::new();
    if !inside.starts_with('\'') {
        arguments.extend(inside.split(',').filter(|part| !part.is_empty()).map(str::to_owned));
        return (name, arguments);
    }
    // Labels: 'a','it''s'.
    let mut label: Option<String> = None;
    let mut characters = inside.chars().peekable();
    while let Some(character) = characters.next() {
        match (&mut label, character) {
            (None, '\'') => label = Some(String::new()),
            (None, _) => {}
            (Some(text), '\'') if characters.peek() == Some(&'\'') => {
                characters.next();
                text.push('\'');
            }
            (Some(_), '\'') => arguments.extend(label.take()),
            (Some(text), other) => text.push(other),
        }
    }
    (name, arguments)
}

/// With as many digits after the point as the column has.
pub(super) fn decimal(digits: &str, scale: usize) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let fraction = format!("{fraction:0<scale$}");
    let fraction = &fraction[..scale.min(fraction.len())];
    let is_zero = whole == "0" && fraction.bytes().all(|digit| digit == b'0');
    let sign = if is_zero { "" } else { sign };
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_read() {
        assert_eq!(declaration("decimal(10,2) unsigned"), ("decimal".into(), vec!["10".into(), "2".into()]));
        assert_eq!(declaration("enum('a','it''s','x,y')").1, ["a", "it's", "x,y"]);
        assert_eq!(declaration("bigint(20) unsigned").0, "bigint");
        assert_eq!(declaration("int)("), ("int".into(), vec![]));
    }

    #[test]
    fn decimals_have_the_digits_of_their_column() {
        for (digits, scale, expected) in [
            ("0.50", 2, "0.50"),
            (".5", 2, "0.50"),
            ("-.5", 1, "-0.5"),
            ("007", 0, "7"),
            ("-0.00", 2, "0.00"),
            ("12", 3, "12.000"),
        ] {
            assert_eq!(decimal(digits, scale), expected, "{digits}");
        }
    }
}
