//! Text forms of PostgreSQL as values.

use hoplake::{PropertyType, ScalarType, Value};

use crate::{Cell, value};

/// What values of a type become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decoder {
    One(Scalar),
    /// An array of one dimension.
    Array(Scalar),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scalar {
    Bool,
    Integer,
    Float4,
    Float8,
    Date,
    Timestamp,
    /// Fixed-length text, whose blanks at the end mean nothing.
    Padded,
    Bytes,
    /// Anything else, as it is written.
    Text,
}

impl Scalar {
    /// Of a type by its name in `pg_type`.
    pub(super) fn named(name: &str) -> Self {
        match name {
            "bool" => Self::Bool,
            "int2" | "int4" | "int8" | "oid" => Self::Integer,
            "float4" => Self::Float4,
            "float8" => Self::Float8,
            "date" => Self::Date,
            "timestamp" | "timestamptz" => Self::Timestamp,
            "bpchar" => Self::Padded,
            "bytea" => Self::Bytes,
            _ => Self::Text,
        }
    }

    fn kind(self) -> ScalarType {
        match self {
            Self::Bool => ScalarType::Bool,
            Self::Integer => ScalarType::Int64,
            Self::Float4 | Self::Float8 => ScalarType::Float64,
            Self::Date => ScalarType::Date,
            Self::Timestamp => ScalarType::Timestamp,
            Self::Padded | Self::Bytes | Self::Text => ScalarType::String,
        }
    }

    fn decode(self, text: &str) -> Result<Value, String> {
        let unread = || "it is not understood".to_owned();
        Ok(match self {
            Self::Bool => Value::Bool(value::bool_of_text(text).ok_or_else(unread)?),
            Self::Integer => Value::Int64(text.parse().map_err(|_| unread())?),
            // The shortest digits that name the number of 32 bits.
            Self::Float4 => Value::Float64(f64::from(text.parse::<f32>().map_err(|_| unread())?)),
            Self::Float8 => Value::Float64(text.parse().map_err(|_| unread())?),
            Self::Date => Value::Date(value::date_of_text(text).ok_or(BEYOND)?),
            Self::Timestamp => Value::Timestamp(timestamp(text).ok_or(BEYOND)?),
            Self::Padded => Value::String(text.trim_end_matches(' ').to_owned()),
            Self::Bytes => Value::String(text.strip_prefix("\\x").unwrap_or(text).to_owned()),
            Self::Text => Value::String(text.to_owned()),
        })
    }
}

/// What no calendar of properties has, such as infinity.
const BEYOND: &str = "it is beyond the dates and times of properties; give the column the type string, or ignore it";

/// `2026-03-01 09:30:00.5`, or with `+00` after it.
fn timestamp(text: &str) -> Option<i64> {
    value::timestamp_of_text(text.strip_suffix("+00").unwrap_or(text))
}

impl Decoder {
    /// The type of property that holds the values.
    pub(super) fn kind(self) -> PropertyType {
        match self {
            Self::One(scalar) => PropertyType::Scalar(scalar.kind()),
            Self::Array(scalar) => PropertyType::List(scalar.kind()),
        }
    }

    /// A value; `None` is null.
    pub(super) fn decode(self, text: Option<&[u8]>) -> Cell {
        let Some(bytes) = text else { return Cell::Value(Value::Null) };
        let Ok(text) = std::str::from_utf8(bytes) else { return Cell::Bad("it is not UTF-8".into()) };
        let decoded = match self {
            Self::One(scalar) => scalar.decode(text),
            Self::Array(scalar) => array(text).and_then(|items| {
                let item = |item: Option<String>| item.map_or(Ok(Value::Null), |item| scalar.decode(&item));
                items.into_iter().map(item).collect::<Result<Vec<_>, _>>().map(Value::List)
            }),
        };
        decoded.map_or_else(|why| Cell::Bad(why.into()), Cell::Value)
    }
}

/// The items of `{1,NULL,"a \"b\""}`.
fn array(text: &str) -> Result<Vec<Option<String>>, String> {
    let several = || "the array has not one dimension from 1 on; give the column the type string".to_owned();
    // Bounds that do not begin with 1 are written before it.
    let inside = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).ok_or_else(several)?;
    let mut items = Vec::new();
    if inside.is_empty() {
        return Ok(items);
    }
    let mut item = String::new();
    let mut was_quoted = false;
    let mut in_quotes = false;
    let mut characters = inside.chars();
    loop {
        match characters.next() {
            Some('\\') => item.extend(characters.next()),
            Some('"') => {
                in_quotes = !in_quotes;
                was_quoted = true;
            }
            Some('{') if !in_quotes => return Err(several()),
            end @ (Some(',') | None) if !in_quotes => {
                let is_null = !was_quoted && item.eq_ignore_ascii_case("null");
                items.push((!is_null).then(|| std::mem::take(&mut item)));
                item.clear();
                was_quoted = false;
                if end.is_none() {
                    return Ok(items);
                }
            }
            Some(character) => item.push(character),
            None => return Err(several()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_forms_are_values() {
        let one = |name: &str, text: &str| Decoder::One(Scalar::named(name)).decode(Some(text.as_bytes()));
        for (name, text, expected) in [
            ("bool", "t", Value::Bool(true)),
            ("int8", "-9223372036854775808", Value::Int64(i64::MIN)),
            ("float4", "0.1", Value::Float64(f64::from(0.1_f32))),
            ("float8", "-Infinity", Value::Float64(f64::NEG_INFINITY)),
            ("numeric", "1.50", Value::from("1.50")),
            ("date", "2026-03-01", Value::Date(20_513)),
            ("timestamptz", "2026-03-01 09:30:00.5+00", Value::Timestamp(1_772_357_400_500_000)),
            ("timestamp", "2026-03-01 09:30:00.5", Value::Timestamp(1_772_357_400_500_000)),
            ("bpchar", "ab  ", Value::from("ab")),
            ("bytea", "\\x00ff", Value::from("00ff")),
            ("jsonb", "{\"a\": 1}", Value::from("{\"a\": 1}")),
        ] {
            assert_eq!(one(name, text), Cell::Value(expected), "{name} {text}");
        }
        assert!(matches!(one("timestamp", "infinity"), Cell::Bad(_)));
        assert!(matches!(one("date", "0044-03-15 BC"), Cell::Bad(_)));
    }

    #[test]
    fn arrays_are_lists() {
        let texts = |text: &str| {
            array(text).map(|items| items.into_iter().map(|item| item.unwrap_or("-".into())).collect::<Vec<_>>())
        };
        assert_eq!(texts("{}").unwrap(), Vec::<String>::new());
        assert_eq!(texts(r#"{a,NULL,"NULL","b,\"c\\",""}"#).unwrap(), ["a", "-", "NULL", "b,\"c\\", ""]);
        assert!(texts("{{1,2},{3,4}}").is_err() && texts("[0:1]={1,2}").is_err());
    }
}
