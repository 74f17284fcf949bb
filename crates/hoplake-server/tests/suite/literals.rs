//! Values as Gremlin writes them, and texts with them in the place of names.

use hoplake::gremlin::{literal::Number, value::Value};

/// A value as Gremlin; `None` if only a driver can send it.
pub fn literal(value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => "null".to_owned(),
        Value::Boolean(boolean) => boolean.to_string(),
        Value::Number(number) => of_number(number),
        Value::Text(text) => quoted(text),
        Value::DateTime(moment) => format!("datetime(\"{}Z\")", moment.utc()),
        Value::Uuid(uuid) => format!("UUID(\"{uuid}\")"),
        Value::List(items) => format!("[{}]", joined(items)?),
        Value::Set(items) => format!("{{{}}}", joined(items)?),
        Value::Map(entries) if entries.is_empty() => "[:]".to_owned(),
        Value::Map(entries) => format!("[{}]", entries.iter().map(entry).collect::<Option<Vec<_>>>()?.join(", ")),
        Value::Token(token) => format!("{}.{}", token.enumeration(), token.name()),
        _ => return None,
    })
}

/// A text in quotes.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn of_number(number: &Number) -> String {
    match number {
        Number::Byte(_) => format!("{number}b"),
        Number::Short(_) => format!("{number}s"),
        Number::Int(_) => format!("{number}i"),
        Number::Long(_) => format!("{number}l"),
        Number::BigInteger(_) => format!("{number}n"),
        Number::Float(_) => format!("{number}f"),
        Number::Double(double) if double.is_nan() => "NaN".to_owned(),
        Number::Double(double) if double.is_infinite() => format!("{}Infinity", if *double < 0.0 { "-" } else { "" }),
        Number::Double(_) => format!("{number}d"),
        Number::BigDecimal(_) => format!("{number}m"),
    }
}

fn joined(values: &[Value]) -> Option<String> {
    Some(values.iter().map(literal).collect::<Option<Vec<_>>>()?.join(", "))
}

fn entry((key, value): &(Value, Value)) -> Option<String> {
    let value = literal(value)?;
    Some(match key {
        Value::Text(key) => format!("{}: {value}", quoted(key)),
        key => format!("({}): {value}", literal(key)?),
    })
}

/// The text with `literal` wherever `name` is a word of it, outside of its strings.
pub fn substitute(text: &str, name: &str, literal: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' | '\'' => length_of_string(rest, first),
            _ if is_of_word(first) => rest.find(|next| !is_of_word(next)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (piece, after) = rest.split_at(length);
        result.push_str(if piece == name { literal } else { piece });
        rest = after;
    }
    result
}

fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '$'
}

fn length_of_string(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (place, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return place + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use hoplake::gremlin::{
        script::{Argument, Statement},
        text,
        tokens::{T, Token},
    };

    use super::*;

    #[test]
    fn literals_are_gremlin() {
        let map = Value::Map(vec![("a\"b".into(), 1.into()), (Value::Token(Token::T(T::Id)), Value::Null)]);
        assert_eq!(literal(&map).unwrap(), r#"["a\"b": 1i, (T.id): null]"#);
        let list = Value::List(vec![0.5.into(), f64::NEG_INFINITY.into(), Value::Set(vec![]), Value::Map(vec![])]);
        assert_eq!(literal(&list).unwrap(), "[0.5d, -Infinity, {}, [:]]");
        assert_eq!(literal(&Value::BulkSet(vec![])), None);
        let script =
            text::parse(&format!("g.inject({}, {})", literal(&map).unwrap(), literal(&list).unwrap())).unwrap();
        let Statement::Traversal(traversal, _) = &script.statements[0] else { panic!("not a traversal") };
        assert!(matches!(traversal.steps[0].arguments[..], [Argument::Map(_), Argument::List(_)]));
    }

    #[test]
    fn names_are_whole_words_outside_of_strings() {
        let text = r#"g.V(xx1).has("xx1", xx10).is('\'xx1').out(xx1)"#;
        assert_eq!(substitute(text, "xx1", "7"), r#"g.V(7).has("xx1", xx10).is('\'xx1').out(7)"#);
    }
}
