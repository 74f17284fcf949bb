//! Single values and lists from text, as columns of text files have them.

use std::borrow::Cow;

use hoplake_format::{PropertyType, ScalarType, text as text_forms};
use serde_json::value::RawValue;

use super::{column, labelled::scalar_named};

/// Reads `true`, `false`, `1` or `0`.
///
/// # Errors
/// Why it is not a value, as the end of a sentence.
pub fn boolean(text: &str) -> Result<bool, &'static str> {
    text_forms::boolean(text.as_bytes())
}

/// Reads an integer.
///
/// # Errors
/// Why it is none, as the end of a sentence.
pub fn int64(text: &str) -> Result<i64, &'static str> {
    text_forms::int64(text.as_bytes())
}

/// Reads a floating-point number.
///
/// # Errors
/// Why it is none, as the end of a sentence.
pub fn float64(text: &str) -> Result<f64, &'static str> {
    text_forms::float64(text.as_bytes())
}

/// As [`float64`], of an integer that a float64 has without rounding.
///
/// # Errors
/// Why it is none, as the end of a sentence.
pub fn exact_float64(text: &str) -> Result<f64, &'static str> {
    text_forms::exact_float64(text.as_bytes())
}

/// The items of a list that is written as text: an array of JSON, `["a", null, "b;c"]`, in which items may also be
/// numbers, true and false; or with `;` between items, without empty ones. Null is `None`.
///
/// # Errors
/// Why it is none, as the end of a sentence.
pub fn list_items(text: &str) -> Result<Vec<Option<Cow<'_, str>>>, &'static str> {
    let text = text.trim_ascii();
    if !(text.starts_with('[') && text.ends_with(']')) {
        return Ok(text.split(';').filter(|item| !item.is_empty()).map(|item| Some(item.into())).collect());
    }
    let wrong = "is not a list; an array of JSON is, such as [\"a\", \"b\"]";
    let items: Vec<&RawValue> = serde_json::from_str(text).map_err(|_| wrong)?;
    let item = |item: &'_ RawValue| match item.get().as_bytes().first() {
        Some(b'n') => Ok(None),
        Some(b'"') => serde_json::from_str::<String>(item.get()).map(|text| Some(Cow::Owned(text))).map_err(|_| wrong),
        Some(b'[' | b'{') => Err("is a list with an item that is not a single value"),
        _ => Ok(Some(Cow::Owned(item.get().to_owned()))),
    };
    items.into_iter().map(item).collect()
}

/// Reads an ISO 8601 date, as days since 1970-01-01.
///
/// # Errors
/// Why it is none, as the end of a sentence.
pub fn date(text: &str) -> Result<i32, &'static str> {
    text_forms::date(text.as_bytes())
}

/// Reads an ISO 8601 moment, as microseconds since 1970; without an offset it is taken as UTC, and a date as its
/// midnight.
///
/// # Errors
/// Why it is none, as the end of a sentence.
pub fn timestamp(text: &str) -> Result<i64, &'static str> {
    text_forms::timestamp(text.as_bytes())
}

/// Whether an integer is written in its one canonical way, so that keys `7` and `07` stay two keys.
pub fn is_canonical_int64(text: &str) -> bool {
    column::is_canonical_int64(text.as_bytes())
}

/// The type that a header such as `age:int`, `tags:string[]` or `since:list<date>` names after its colon: the names
/// that all layouts of the loader know.
pub fn type_named(name: &str) -> Option<PropertyType> {
    let name = name.trim().to_ascii_lowercase();
    let item = name.strip_suffix("[]").or_else(|| name.strip_prefix("list<").and_then(|rest| rest.strip_suffix('>')));
    let scalar = match item.unwrap_or(&name) {
        "int64" => ScalarType::Int64,
        "float64" => ScalarType::Float64,
        "date" => ScalarType::Date,
        "timestamp" => ScalarType::Timestamp,
        other => scalar_named(other)?,
    };
    Some(if item.is_some() { PropertyType::List(scalar) } else { PropertyType::Scalar(scalar) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn items_of_lists_are_told_apart() {
        let some = |items: &[&str]| items.iter().map(|item| Some((*item).to_owned().into())).collect::<Vec<_>>();
        assert_eq!(list_items("a;;b").unwrap(), some(&["a", "b"]));
        assert_eq!(list_items("[a;b").unwrap(), some(&["[a", "b"]));
        assert_eq!(list_items("[]").unwrap(), []);
        let mut items = some(&["a;b", "", "1.5", "true"]);
        items.push(None);
        assert_eq!(list_items(r#" ["a;b", "", 1.5, true, null] "#).unwrap(), items);
        for wrong in ["[a;b]", "[[1]]", "[{}]"] {
            assert!(list_items(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn headers_name_types() {
        assert_eq!(type_named("Int"), Some(PropertyType::Scalar(ScalarType::Int64)));
        assert_eq!(type_named("String[]"), Some(PropertyType::List(ScalarType::String)));
        assert_eq!(type_named("list<date>"), Some(PropertyType::List(ScalarType::Date)));
        assert_eq!(type_named("datetime"), Some(PropertyType::Scalar(ScalarType::Timestamp)));
        assert_eq!(type_named("colour"), None);
    }
}
