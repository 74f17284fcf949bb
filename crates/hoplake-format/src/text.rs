//! Scalars from text, wherever text is: fields of files, changes, and values in conditions. One reading for all, so that the text
//! that was loaded is the text by which it is found.
//!
//! Errors say why it is not a value, as the end of a sentence.

use std::ops::RangeInclusive;

use jiff::{civil, fmt::temporal::DateTimeParser, tz::TimeZone};

static DATES: DateTimeParser = DateTimeParser::new();

/// Dates from -9999-01-01 to 9999-12-31, in the Gregorian calendar reckoned back: those that text has digits for.
pub const DATE_DAYS: RangeInclusive<i32> = -4_371_587..=2_932_896;

/// Moments from the first of these dates, in UTC, to the end of the last, in microseconds since 1970.
pub const TIMESTAMP_MICROS: RangeInclusive<i64> = -4_371_587 * MICROS_PER_DAY..=2_932_897 * MICROS_PER_DAY - 1;

const MICROS_PER_DAY: i64 = 86_400_000_000;
const SECONDS_PER_DAY: i32 = 86_400;

/// Below it, float64 has all integers; the next one becomes this.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// The error for a number beyond [`DATE_DAYS`] or [`TIMESTAMP_MICROS`].
pub const OUT_OF_RANGE: &str = "is not between -9999-01-01 and 9999-12-31";

/// The text of a field without white space around it; `None` if it is not UTF-8.
pub fn trimmed(field: &[u8]) -> Option<&str> {
    std::str::from_utf8(field.trim_ascii()).ok()
}

/// Reads `true`, `false`, `1` or `0`.
///
/// # Errors
/// As the module says.
pub fn boolean(field: &[u8]) -> Result<bool, &'static str> {
    match field.trim_ascii() {
        b"1" => Ok(true),
        b"0" => Ok(false),
        word if word.eq_ignore_ascii_case(b"true") => Ok(true),
        word if word.eq_ignore_ascii_case(b"false") => Ok(false),
        _ => Err("is not true or false"),
    }
}

/// Reads an integer.
///
/// # Errors
/// As the module says.
pub fn int64(field: &[u8]) -> Result<i64, &'static str> {
    trimmed(field).and_then(|text| text.parse().ok()).ok_or("is not an int64")
}

/// Reads a floating-point number.
///
/// # Errors
/// As the module says.
pub fn float64(field: &[u8]) -> Result<f64, &'static str> {
    let number: f64 = trimmed(field).and_then(|text| text.parse().ok()).ok_or("is not a float64")?;
    // Digits are never meant to be infinite; `Infinity` is.
    match number.is_infinite() && field.iter().any(u8::is_ascii_digit) {
        true => Err("is too large for a float64"),
        false => Ok(number),
    }
}

/// As [`float64`], of an integer that a float64 has without rounding. With a point or an exponent, the nearest is meant.
///
/// # Errors
/// As the module says.
pub fn exact_float64(field: &[u8]) -> Result<f64, &'static str> {
    let number = float64(field)?;
    let text = field.trim_ascii();
    let digits = |text: &[u8]| {
        let digits = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
        digits.iter().position(|digit| *digit != b'0').map_or_else(Vec::new, |first| digits[first..].to_vec())
    };
    let is_integer = digits(text).iter().all(u8::is_ascii_digit);
    // All digits of the number that was read: below 2^53 they are those that were written.
    match is_integer && number.abs() >= EXACT_MAX && digits(format!("{number:.0}").as_bytes()) != digits(text) {
        true => Err("has no exact float64; write a point behind it, as in 1.0, if the nearest is meant"),
        false => Ok(number),
    }
}

/// Reads an ISO 8601 date, as days since 1970-01-01. A time of day would be lost, so only midnight is taken.
///
/// # Errors
/// As the module says.
pub fn date(field: &[u8]) -> Result<i32, &'static str> {
    let why = "is not a date such as 2010-02-14";
    let pieces = DATES.parse_pieces(field.trim_ascii()).map_err(|_| why)?;
    if pieces.offset().is_some() || pieces.time_zone_annotation().is_some() {
        return Err("has an offset, and a date has none");
    }
    if pieces.time().is_some_and(|time| time != civil::Time::midnight()) {
        return Err("has a time of day, and a date has none");
    }
    days_of(pieces.date()).ok_or(why)
}

/// Reads an ISO 8601 moment, as microseconds since 1970; without an offset it is taken as UTC, and a date as its midnight. What is
/// finer than microseconds is rounded down.
///
/// # Errors
/// As the module says.
pub fn timestamp(field: &[u8]) -> Result<i64, &'static str> {
    moment(field, None).map(|(micros, _)| micros)
}

/// As [`timestamp`], but without an offset it is taken as the time of a zone. An hour that a clock skips is that much later, and of an hour that it
/// shows twice the first is taken.
///
/// # Errors
/// As the module says.
pub fn timestamp_in(field: &[u8], zone: &TimeZone) -> Result<i64, &'static str> {
    moment(field, Some(zone)).map(|(micros, _)| micros)
}

/// As [`timestamp`], of a moment that microseconds have without rounding.
///
/// # Errors
/// As the module says.
pub fn exact_timestamp(field: &[u8]) -> Result<i64, &'static str> {
    match moment(field, None)? {
        (micros, true) => Ok(micros),
        (_, false) => Err("is finer than the microseconds that are stored"),
    }
}

/// Microseconds since 1970, and whether that is all of it.
fn moment(field: &[u8], zone: Option<&TimeZone>) -> Result<(i64, bool), &'static str> {
    let why = "is not a timestamp such as 2010-02-14T15:32:10.447Z";
    let field = field.trim_ascii();
    let pieces = DATES.parse_pieces(field).map_err(|_| why)?;
    // The parser makes 59 of it.
    if pieces.time().is_some_and(|time| time.second() == 59) && has_second_60(field) {
        return Err("has the second 60, and a minute ends with 59");
    }
    let offset_seconds = match pieces.to_numeric_offset() {
        Some(offset) if offset.seconds().abs() >= SECONDS_PER_DAY => {
            return Err("has an offset of a day or more; an offset is at most 23:59");
        }
        Some(offset) => i64::from(offset.seconds()),
        // A zone alone leaves an hour of each year open.
        None if pieces.time_zone_annotation().is_some() => return Err(why),
        None => match zone {
            None => 0,
            Some(zone) => {
                let time = pieces.time().unwrap_or(civil::Time::midnight());
                // Without the fraction, since seconds before 1970 would be rounded up.
                let local = pieces.date().at(time.hour(), time.minute(), time.second(), 0);
                let moment = zone.to_ambiguous_timestamp(local).compatible().map_err(|_| OUT_OF_RANGE)?;
                let utc = TimeZone::UTC.to_timestamp(local).map_err(|_| OUT_OF_RANGE)?;
                utc.as_second() - moment.as_second()
            }
        },
    };
    let time = pieces.time().unwrap_or(civil::Time::midnight());
    // From the pieces, by hand: the library's timestamps need an offset, and here text without one is UTC.
    let seconds =
        (i64::from(time.hour()) * 60 + i64::from(time.minute())) * 60 + i64::from(time.second()) - offset_seconds;
    let nanos = i64::from(time.subsec_nanosecond());
    let micros = i64::from(days_of(pieces.date()).ok_or(why)?) * MICROS_PER_DAY + seconds * 1_000_000 + nanos / 1_000;
    if TIMESTAMP_MICROS.contains(&micros) { Ok((micros, nanos % 1_000 == 0)) } else { Err(OUT_OF_RANGE) }
}

/// Whether the time of a moment that was parsed has a leap second, which the calendar of timestamps does not.
fn has_second_60(field: &[u8]) -> bool {
    // `T23:59:60` or `T235960`: a date has none of the characters that may stand before a time.
    let time = field.iter().position(|byte| matches!(byte, b'T' | b't' | b' ')).map_or(&[][..], |at| &field[at + 1..]);
    let time = time.split(|byte| !(byte.is_ascii_digit() || *byte == b':')).next().unwrap_or_default();
    let mut digits = time.iter().filter(|byte| byte.is_ascii_digit()).skip(4);
    digits.next() == Some(&b'6') && digits.next() == Some(&b'0')
}

fn days_of(date: civil::Date) -> Option<i32> {
    date.since((jiff::Unit::Day, civil::date(1970, 1, 1))).ok().map(|since| since.get_days())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_moments_are_of_years_with_four_digits() {
        for (text, days) in
            [("-009999-01-01", *DATE_DAYS.start()), ("1989-12-03", 7276), ("9999-12-31", *DATE_DAYS.end())]
        {
            assert_eq!(date(text.as_bytes()), Ok(days));
        }
        let timestamp = |text: &str| timestamp(text.as_bytes());
        assert_eq!(timestamp("9999-12-31T23:59:59.999999Z"), Ok(*TIMESTAMP_MICROS.end()));
        assert_eq!(timestamp("-009999-01-01T00:00:00Z"), Ok(*TIMESTAMP_MICROS.start()));
        assert!(timestamp("9999-12-31T23:59:59-01:00").is_err() && timestamp("-009999-01-01T00:00:00+01:00").is_err());
        assert_eq!(timestamp("9999-12-31T23:59:59.999+01:00"), timestamp("9999-12-31T22:59:59.999Z"));
        assert_eq!(timestamp("1969-12-31T23:59:59.9999999Z"), Ok(-1));
        assert!(timestamp("2020-01-01T00:00:00[Europe/Berlin]").is_err());
        // Neither a second that no minute has nor an offset that no place has.
        for text in [
            "2016-12-31T23:59:60Z",
            "2016-12-31 23:59:60",
            "20161231T235960Z",
            "2016-12-31t23:59:60.5+01:00",
            "2020-01-01T00:00:00+24:00",
            "2020-01-01T00:00:00-25:59",
            "2020-01-01T00:00:00+24",
        ] {
            assert!(timestamp(text).is_err(), "{text}");
        }
        assert_eq!(timestamp("2020-01-01T00:00:59.60Z"), timestamp("2020-01-01T00:00:59.600Z"));
        assert_eq!(timestamp("2020-01-01T00:00+23:59"), timestamp("2019-12-31T00:01Z"));
    }

    #[test]
    fn nothing_is_lost_of_a_date_or_of_a_moment_that_is_compared() {
        assert_eq!(date(b" 1970-01-02 "), Ok(1));
        assert_eq!(date(b"1970-01-02T00:00:00"), Ok(1));
        for text in ["1970-01-02T23:00:00", "1970-01-02 23:00:00"] {
            assert_eq!(date(text.as_bytes()), Err("has a time of day, and a date has none"), "{text}");
        }
        for text in ["1970-01-02T00:00:00Z", "1970-01-02T00:00:00+00:00", "1970-01-02T23:00:00-05:00"] {
            assert_eq!(date(text.as_bytes()), Err("has an offset, and a date has none"), "{text}");
        }
        assert!(date(b"1970-1-2").is_err());
        assert_eq!(exact_timestamp(b"1970-01-01T00:00:00.5000010Z"), Ok(500_001));
        assert_eq!(
            exact_timestamp(b"1970-01-01T00:00:00.5000001Z"),
            Err("is finer than the microseconds that are stored")
        );
    }

    #[test]
    fn digits_are_never_infinite() {
        assert_eq!(float64(b"1e400"), Err("is too large for a float64"));
        assert_eq!(float64(b"-Infinity"), Ok(f64::NEG_INFINITY));
        assert!(float64(b"NaN").is_ok_and(f64::is_nan));
    }

    #[test]
    fn an_integer_without_an_exact_float64_is_none() {
        for text in [
            "0",
            "-0",
            "007",
            "+7",
            " 9007199254740992 ",
            "-9007199254740994",
            "9007199254740993.0",
            "9007199254740993e0",
            "18446744073709551616",
            "100000000000000000000",
            "0.1",
            "1e300",
            "NaN",
            "-Infinity",
        ] {
            assert_eq!(
                exact_float64(text.as_bytes()).map(f64::to_bits),
                float64(text.as_bytes()).map(f64::to_bits),
                "{text}"
            );
        }
        for text in
            ["9007199254740993", "-9007199254740993", "+9007199254740993", "09007199254740993", "18446744073709551617"]
        {
            assert!(exact_float64(text.as_bytes()).is_err(), "{text}");
        }
    }
}
