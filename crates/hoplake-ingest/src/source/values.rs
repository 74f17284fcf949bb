//! Single values and lists from text, as columns of text files have them.

use std::borrow::Cow;

use hoplake_format::{PropertyType, ScalarType, text as text_forms};
use serde_json::value::RawValue;

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
pub fn is_canonical_int64(text: impl AsRef<[u8]>) -> bool {
    let text = text.as_ref();
    // By shape first: most keys are decided without parsing a number.
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let has_shape = match digits {
        [b'0'] => text.len() == 1,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    // Up to 18 digits always fit.
    has_shape && (digits.len() <= 18 || text_forms::int64(text).is_ok())
}

/// The type that a header such as `age:int`, `tags:string[]` or `since:list<date>` names after its colon: the names
/// that all layouts of the loader know.
pub fn type_named(name: &str) -> Option<PropertyType> {
    let name = name.trim().to_ascii_lowercase();
    let scalar = |name: &str| ScalarType::from_name(name).or_else(|| scalar_named(name));
    match name.strip_suffix("[]") {
        Some(item) => scalar(item).map(PropertyType::List),
        None => PropertyType::from_name_by(&name, scalar),
    }
}

/// The type that a name in a header stands for, by the names that all layouts share. Each has names of its own in addition:
/// a `date` has a time in Gremlin CSV, and none elsewhere.
pub(crate) fn scalar_named(name: &str) -> Option<ScalarType> {
    Some(match name.to_ascii_lowercase().as_str() {
        "bool" | "boolean" => ScalarType::Bool,
        "byte" | "short" | "int" | "integer" | "long" => ScalarType::Int64,
        "float" | "double" => ScalarType::Float64,
        "string" | "char" => ScalarType::String,
        "datetime" | "localdatetime" => ScalarType::Timestamp,
        _ => return None,
    })
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

    #[test]
    fn integers_have_one_canonical_form() {
        for good in ["0", "7", "-7", "9223372036854775807", "-9223372036854775808"] {
            assert!(is_canonical_int64(good), "{good}");
        }
        for bad in ["", "-", "-0", "07", "+7", "7 ", "1e3", "9223372036854775808"] {
            assert!(!is_canonical_int64(bad), "{bad}");
        }
    }
}
