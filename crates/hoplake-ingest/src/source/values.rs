//! Single values and lists from text, as columns of text files have them.

use std::{borrow::Cow, ops::RangeInclusive};

use hoplake_format::{PropertyType, ScalarType};
use serde_json::value::RawValue;

use super::{column, labelled::scalar_named};

/// Dates from -9999-01-01 to 9999-12-31, in the Gregorian calendar reckoned back: those that text has digits for.
pub const DATE_DAYS: RangeInclusive<i32> = -4_371_587..=2_932_896;

/// Moments from the first of these dates, in UTC, to the end of the last, in microseconds since 1970.
pub const TIMESTAMP_MICROS: RangeInclusive<i64> = -4_371_587 * MICROS_PER_DAY..=2_932_897 * MICROS_PER_DAY - 1;

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// Reads `true`, `false`, `1` or `0`.
///
/// # Errors
/// Why it is not a value, as the end of a sentence.
pub fn boolean(text: &str) -> Result<bool, &'static str> {
    column::boolean(text.as_bytes())
}

/// Reads an integer.
///
/// # Errors
/// Why it is none, as the end of a sentence.
pub fn int64(text: &str) -> Result<i64, &'static str> {
    column::int64(text.as_bytes())
}

/// Reads a floating-point number.
///
/// # Errors
/// Why it is none, as the end of a sentence.
pub fn float64(text: &str) -> Result<f64, &'static str> {
    let number: f64 = text.trim_ascii().parse().map_err(|_| "is not a float64")?;
    // Digits are never meant to be infinite; `Infinity` is.
    match number.is_infinite() && text.contains(|it: char| it.is_ascii_digit()) {
        true => Err("is too large for a float64"),
        false => Ok(number),
    }
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
    column::date(text.as_bytes(), None)
}

/// Reads an ISO 8601 moment, as microseconds since 1970; without an offset it is taken as UTC, and a date as its
/// midnight.
///
/// # Errors
/// Why it is none, as the end of a sentence.
pub fn timestamp(text: &str) -> Result<i64, &'static str> {
    column::timestamp(text.as_bytes(), None)
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
    fn dates_and_moments_are_of_years_with_four_digits() {
        for (text, days) in
            [("-009999-01-01", *DATE_DAYS.start()), ("1989-12-03", 7276), ("9999-12-31", *DATE_DAYS.end())]
        {
            assert_eq!(date(text), Ok(days));
        }
        assert_eq!(timestamp("9999-12-31T23:59:59.999999Z"), Ok(*TIMESTAMP_MICROS.end()));
        assert_eq!(timestamp("-009999-01-01T00:00:00Z"), Ok(*TIMESTAMP_MICROS.start()));
        assert!(timestamp("9999-12-31T23:59:59-01:00").is_err() && timestamp("-009999-01-01T00:00:00+01:00").is_err());
        assert_eq!(timestamp("9999-12-31T23:59:59.999+01:00"), timestamp("9999-12-31T22:59:59.999Z"));
        assert_eq!(timestamp("1969-12-31T23:59:59.9999999Z"), Ok(-1));
        assert!(timestamp("2020-01-01T00:00:00[Europe/Berlin]").is_err());
    }

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
    fn digits_are_never_infinite() {
        assert_eq!(float64("1e400"), Err("is too large for a float64"));
        assert_eq!(float64("-Infinity"), Ok(f64::NEG_INFINITY));
        assert!(float64("NaN").unwrap().is_nan());
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
