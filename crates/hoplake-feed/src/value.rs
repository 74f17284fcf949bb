//! Values of columns as values of properties and keys, and keys of several columns as text.

use bigdecimal::{BigDecimal, ToPrimitive};
use hoplake::{Key, KeyType, PropertyType, Value};
use jiff::{Timestamp, civil};

use hoplake::ScalarType;

/// Between the columns of a key.
const SEPARATOR: char = ':';
/// Before a separator, or itself, within a column.
const ESCAPE: char = '\\';

/// A value in another type, if it is exactly one of that.
///
/// # Errors
/// Why it is not, as the end of a sentence, without the value: see `showing`.
pub(crate) fn converted(value: &Value, kind: PropertyType) -> Result<Value, String> {
    let PropertyType::Scalar(scalar) = kind else {
        return match value {
            Value::Null => Ok(Value::Null),
            list @ Value::List(_) => list.clone().conform(kind).ok_or_else(|| format!("it is not {kind}")),
            _ => Err("it is not a list".into()),
        };
    };
    let rejected = || format!("it is not {scalar}");
    let found = match (value, scalar) {
        (Value::Null, _) => Some(Value::Null),
        (value, ScalarType::String) => hoplake::changes::plain_text(value).map(Value::String),
        (Value::Int64(number), ScalarType::Bool) => match number {
            0 => Some(Value::Bool(false)),
            1 => Some(Value::Bool(true)),
            _ => None,
        },
        (Value::Bool(it), ScalarType::Int64) => Some(Value::Int64(i64::from(*it))),
        (Value::String(text), ScalarType::Bool) => bool_of_text(text).map(Value::Bool),
        (Value::String(text), ScalarType::Int64) => text
            .parse::<BigDecimal>()
            .ok()
            .and_then(|number| number.is_integer().then(|| number.to_i64()).flatten().map(Value::Int64)),
        // The nearest one, as the user asks for by giving a decimal this type.
        (Value::String(text), ScalarType::Float64) => text.parse().ok().map(Value::Float64),
        (Value::Float64(number), ScalarType::Int64) => {
            let exact = *number as i64;
            (exact as f64 == *number && exact != i64::MAX).then_some(Value::Int64(exact))
        }
        (Value::String(text), ScalarType::Date) => date_of_text(text).map(Value::Date),
        (Value::Timestamp(micros), ScalarType::Date) => {
            let day = micros.div_euclid(86_400_000_000);
            (micros.rem_euclid(86_400_000_000) == 0).then(|| i32::try_from(day).ok()).flatten().map(Value::Date)
        }
        (Value::String(text), ScalarType::Timestamp) => timestamp_of_text(text).map(Value::Timestamp),
        (Value::Date(days), ScalarType::Timestamp) => Some(Value::Timestamp(i64::from(*days) * 86_400_000_000)),
        (other, _) => other.clone().conform(kind),
    };
    found.ok_or_else(rejected)
}

/// What databases write for true and false.
pub(crate) fn bool_of_text(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "true" | "TRUE" => Some(true),
        "0" | "f" | "false" | "FALSE" => Some(false),
        _ => None,
    }
}

/// Days since 1970 of `2026-03-01`.
pub(crate) fn date_of_text(text: &str) -> Option<i32> {
    date(text.parse::<civil::Date>().ok()?)
}

/// Days since 1970.
pub(crate) fn date(date: civil::Date) -> Option<i32> {
    let days = civil::date(1970, 1, 1).until(date).ok()?.get_days();
    Some(days)
}

/// Microseconds since 1970 of a moment in ISO 8601, also with a blank in place of the T; without an offset in UTC.
pub(crate) fn timestamp_of_text(text: &str) -> Option<i64> {
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Some(moment.as_microsecond());
    }
    civil_micros(text.parse::<civil::DateTime>().ok()?)
}

/// Microseconds since 1970 of a civil time in UTC.
pub(crate) fn civil_micros(at: civil::DateTime) -> Option<i64> {
    let since = civil::date(1970, 1, 1).at(0, 0, 0, 0).duration_until(at);
    i64::try_from(since.as_micros()).ok()
}

/// A key as a value.
pub(crate) fn of_key(key: &Key) -> Value {
    match key {
        Key::Int64(key) => Value::Int64(*key),
        Key::String(key) => Value::String(key.clone()),
    }
}

/// A value as a key, if it has the type of one.
pub(crate) fn as_key(value: Value) -> Option<Key> {
    match value {
        Value::Int64(key) => Some(Key::Int64(key)),
        Value::String(key) => Some(Key::String(key)),
        _ => None,
    }
}

/// A key of the values of its columns.
///
/// # Errors
/// Why it is none, as the end of a sentence.
pub(crate) fn key(parts: &[Value], key_type: KeyType) -> Result<Key, String> {
    if parts.contains(&Value::Null) {
        return Err("a column of the key is null".into());
    }
    match (key_type, parts) {
        (KeyType::Int64, [Value::Int64(number)]) => Ok(Key::Int64(*number)),
        (KeyType::Int64, [value]) => match converted(value, PropertyType::Scalar(ScalarType::Int64))? {
            Value::Int64(number) => Ok(Key::Int64(number)),
            _ => Err("it is not an int64 key".into()),
        },
        (KeyType::Int64, _) => Err("several columns are not an int64 key".into()),
        (KeyType::String, parts) => Ok(Key::String(joined(parts)?)),
    }
}

/// One column as it is; several with separators.
pub(crate) fn joined(parts: &[Value]) -> Result<String, String> {
    let text =
        |value: &Value| hoplake::changes::plain_text(value).ok_or_else(|| "a column of the key is null".to_owned());
    if let [one] = parts {
        return text(one);
    }
    let mut key = String::new();
    for (number, part) in parts.iter().enumerate() {
        if number > 0 {
            key.push(SEPARATOR);
        }
        for character in text(part)?.chars() {
            if character == SEPARATOR || character == ESCAPE {
                key.push(ESCAPE);
            }
            key.push(character);
        }
    }
    Ok(key)
}

/// The columns of a key of several.
pub(crate) fn parts(key: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut escaped = false;
    for character in key.chars() {
        let last = parts.last_mut().expect("there is one from the beginning");
        match character {
            _ if escaped => {
                last.push(character);
                escaped = false;
            }
            ESCAPE => escaped = true,
            SEPARATOR => parts.push(String::new()),
            other => last.push(other),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_keys_are_one_text() {
        let key = |parts: &[&str]| joined(&parts.iter().map(|part| Value::from(*part)).collect::<Vec<_>>()).unwrap();
        assert_eq!(key(&["a", "b"]), "a:b");
        assert_eq!(key(&["a:b"]), "a:b");
        assert_eq!(key(&["a:b", "c"]), "a\\:b:c");
        assert_ne!(key(&["a:b", "c"]), key(&["a", "b:c"]));
        for all in [vec!["a:b", "c\\", ""], vec!["", ""], vec!["\\:", ":\\"]] {
            assert_eq!(parts(&key(&all)), all);
        }
    }

    #[test]
    fn values_change_type_exactly_or_not() {
        let scalar = |kind| PropertyType::Scalar(kind);
        for (value, kind, expected) in [
            (Value::from("12.00"), ScalarType::Int64, Some(Value::Int64(12))),
            (Value::from("12.50"), ScalarType::Int64, None),
            (Value::from("12.50"), ScalarType::Float64, Some(Value::Float64(12.5))),
            (Value::Int64(1), ScalarType::Bool, Some(Value::Bool(true))),
            (Value::Int64(2), ScalarType::Bool, None),
            (Value::Int64(7), ScalarType::String, Some(Value::from("7"))),
            (Value::Float64(1e19), ScalarType::Int64, None),
            (
                Value::from("2026-03-01 09:30:00.5"),
                ScalarType::Timestamp,
                Some(Value::Timestamp(1_772_357_400_500_000)),
            ),
            (
                Value::from("2026-03-01T09:30:00.5Z"),
                ScalarType::Timestamp,
                Some(Value::Timestamp(1_772_357_400_500_000)),
            ),
            (Value::Timestamp(86_400_000_000), ScalarType::Date, Some(Value::Date(1))),
            (Value::Timestamp(1), ScalarType::Date, None),
            (Value::Null, ScalarType::Date, Some(Value::Null)),
        ] {
            assert_eq!(converted(&value, scalar(kind)).ok(), expected, "{value} as {kind}");
        }
    }
}
