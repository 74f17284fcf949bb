//! Single values from text, as columns of text files have them, and dates and moments back to text.

use hoplake_format::{PropertyType, ScalarType};
use std::ops::RangeInclusive;

use jiff::{SignedDuration, civil};

use super::{column, labelled::scalar_named};

/// Dates from -9999-01-01 to 9999-12-31, in the Gregorian calendar reckoned back: those that text has digits for.
pub const DATE_DAYS: RangeInclusive<i32> = -4_371_587..=2_932_896;

/// Moments from the first of these dates, in UTC, to the end of the last, in microseconds since 1970.
pub const TIMESTAMP_MICROS: RangeInclusive<i64> = -4_371_587 * MICROS_PER_DAY..=2_932_897 * MICROS_PER_DAY - 1;

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// Reads `true`, `false`, `1` or `0`.
///
/// # Errors
/// Why it is none of them, as the end of a sentence.
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
    text.trim_ascii().parse().map_err(|_| "is not a float64")
}

/// Reads an ISO 8601 date, as days since 1970-01-01.
///
/// # Errors
/// Why it is none, as the end of a sentence.
pub fn date(text: &str) -> Result<i32, &'static str> {
    column::date(text.as_bytes(), None)
}

/// Reads an ISO 8601 moment, as microseconds since 1970; without an offset it is taken as UTC, and a date as its midnight.
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

/// Days since 1970-01-01 as an ISO 8601 date; the number where no calendar has it.
pub fn date_text(days: i32) -> String {
    let date = civil::date(1970, 1, 1).checked_add(SignedDuration::from_hours(24 * i64::from(days)));
    date.map_or_else(|_| days.to_string(), |date| date.to_string())
}

/// Microseconds since 1970 as an ISO 8601 moment in UTC; the number where no calendar has it.
pub fn timestamp_text(micros: i64) -> String {
    let at = civil::date(1970, 1, 1).at(0, 0, 0, 0).checked_add(SignedDuration::from_micros(micros));
    at.map_or_else(|_| micros.to_string(), |at| format!("{at}Z"))
}

/// The type that a header such as `age:int`, `tags:string[]` or `since:list<date>` names behind its colon: the names
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
    fn dates_and_moments_come_back() {
        for days in [*DATE_DAYS.start(), -719_000, -1, 0, 7276, 20_000, *DATE_DAYS.end()] {
            assert_eq!(date(&date_text(days)), Ok(days));
        }
        for micros in [*TIMESTAMP_MICROS.start(), -1, 0, 1_266_161_530_447_001, *TIMESTAMP_MICROS.end()] {
            assert_eq!(timestamp(&timestamp_text(micros)), Ok(micros));
        }
        assert_eq!(date_text(7276), "1989-12-03");
        assert_eq!(timestamp_text(0), "1970-01-01T00:00:00Z");
        assert_eq!(timestamp_text(i64::MAX), i64::MAX.to_string());
        assert_eq!(timestamp_text(*TIMESTAMP_MICROS.end()), "9999-12-31T23:59:59.999999Z");
        assert_eq!(date_text(*DATE_DAYS.start()), "-009999-01-01");
        assert_eq!(date_text(*DATE_DAYS.end()), "9999-12-31");
        assert!(timestamp("9999-12-31T23:59:59-01:00").is_err() && timestamp("-009999-01-01T00:00:00+01:00").is_err());
        assert_eq!(timestamp("9999-12-31T23:59:59.999+01:00").map(timestamp_text).unwrap(), "9999-12-31T22:59:59.999Z");
        assert_eq!(timestamp("1969-12-31T23:59:59.9999999Z"), Ok(-1));
        assert!(timestamp("2020-01-01T00:00:00[Europe/Berlin]").is_err());
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
