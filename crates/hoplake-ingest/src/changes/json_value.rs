//! Values to and from JSON.
//!
//! Numbers are read from their digits as they stand: an integer that int64 lacks is an error and never a rounded
//! float64, and a float64 arrives bit for bit. Types that JSON lacks are an object with one member: `{"date":
//! "2026-01-02"}`, `{"timestamp": "2026-01-02T03:04:05Z"}`, `{"float64": "NaN"}`. A member that occurs twice in an
//! object is an error: readers of JSON disagree about which of the two counts.

use std::{borrow::Cow, collections::HashSet, fmt};

use hoplake_engine::{
    change::{Value, date_text, timestamp_text},
    float,
};
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, Visitor},
};
use serde_json::{Value as Json, json, value::RawValue};

use super::raw::Raw;
use crate::source::values;

/// The members of an object in their order, each as its text.
pub(super) struct Members<'a>(pub(super) Vec<(Cow<'a, str>, &'a RawValue)>);

/// Text without a copy, unless there are escapes in it.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The text of a value that begins as one.
pub(super) fn text(json: &RawValue) -> Result<Cow<'_, str>, String> {
    read(json.get()).map(|Text(text)| text)
}

impl<'a> Members<'a> {
    /// Takes a member out; null counts as absent.
    pub(super) fn take(&mut self, name: &str) -> Option<&'a RawValue> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.remove(at).1).filter(|json| json.get() != "null")
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_map(MembersOf)
    }
}

struct MembersOf;

impl<'de> Visitor<'de> for MembersOf {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Members<'de>, M::Error> {
        let mut members: Vec<(Cow<'de, str>, &RawValue)> = Vec::with_capacity(FEW_MEMBERS);
        while let Some((Text(name), value)) = map.next_entry()? {
            members.push((name, value));
        }
        let twice = match members.len() <= FEW_MEMBERS {
            true => {
                members.iter().enumerate().find(|(at, (name, _))| members[..*at].iter().any(|(other, _)| other == name))
            }
            // By hash, since a line of 16 MiB may have a million members: comparing all pairs would be quadratic.
            false => {
                let mut names = HashSet::with_capacity(members.len());
                members.iter().enumerate().find(|(_, (name, _))| !names.insert(name))
            }
        };
        match twice {
            Some((_, (name, _))) => Err(M::Error::custom(format_args!("{TWICE}{name:?} occurs twice"))),
            None => Ok(Members(members)),
        }
    }
}

/// As many as a change has.
const FEW_MEMBERS: usize = 8;

/// Marks a message that is complete.
const TWICE: &str = "the member ";

/// Parses JSON; the error has its position.
pub(super) fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| {
        let why = error.to_string();
        // This rewords the position within the line; the caller knows the line of the file.
        let why = why.rsplit_once(" at line ").map_or(why.as_str(), |(why, _)| why);
        match error.is_eof() {
            _ if why.starts_with(TWICE) => why.to_owned(),
            true => "it is not valid JSON: it ends too early".into(),
            false => format!("it is not valid JSON: {why} at byte {}", error.column()),
        }
    })
}

/// Some JSON for a message, cut where it is long.
pub(super) fn shown(json: &RawValue) -> String {
    const CHARS_MAX: usize = 60;
    let text = json.get();
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A value whose type the JSON shows.
pub(super) fn raw(json: &RawValue) -> Result<Raw, String> {
    value(json).map(Raw::Typed)
}

/// Reads a value from a text of JSON: `true`, `3`, `3.0`, `"text"`, `[1, 2]`, `{"date": "2026-01-02"}`, `{"timestamp":
/// "2026-01-02T03:04:05Z"}` or `{"float64": "NaN"}`. Whether a text stands for a date is for the graph's schema to say.
///
/// ```
/// use hoplake_engine::change::Value;
/// use hoplake_ingest::changes::value_from_json;
///
/// assert_eq!(value_from_json("0.1"), Ok(Value::Float64(0.1)));
/// assert_eq!(value_from_json(r#"{"date": "1970-01-02"}"#), Ok(Value::Date(1)));
/// assert!(value_from_json("9223372036854775808").is_err()); // an int64 ends one before
/// ```
///
/// # Errors
/// Why it is none, as a sentence.
pub fn value_from_json(text: &str) -> Result<Value, String> {
    read(text).and_then(value)
}

pub(super) fn value(json: &RawValue) -> Result<Value, String> {
    let text = json.get();
    // The parser has checked the text already, so its first byte decides what it is.
    match text.as_bytes().first() {
        Some(b'[') => {
            let items: Vec<&RawValue> = read(text)?;
            let item = |item: &RawValue| match item.get().starts_with('[') {
                true => Err("a list cannot contain lists".to_owned()),
                false => value(item),
            };
            items.into_iter().map(item).collect::<Result<_, _>>().map(Value::List)
        }
        Some(b'{') => typed(json),
        Some(b'"') => read(text).map(Value::String),
        Some(b'n') => Ok(Value::Null),
        Some(b't' | b'f') => Ok(Value::Bool(text == "true")),
        _ => number(text),
    }
}

/// A number: with a point or an exponent it is a float64, else an int64.
fn number(text: &str) -> Result<Value, String> {
    if text.contains(['.', 'e', 'E']) {
        return float64(text).map(Value::Float64);
    }
    let wide = || format!("{text} does not fit an int64; as a float64 it is written {text}.0");
    text.parse().map(Value::Int64).map_err(|_| wide())
}

fn float64(text: &str) -> Result<f64, String> {
    values::float64(text).map_err(|why| format!("{text} {why}"))
}

/// A value in an object that names its type.
fn typed(json: &RawValue) -> Result<Value, String> {
    let wrong = |why: &str| format!("{} {why}", shown(json));
    let unknown = || wrong(r#"is not a value; objects are {"date": …}, {"timestamp": …} and {"float64": …}"#);
    let members: Members<'_> = read(json.get())?;
    let [(name, of)] = &members.0[..] else { return Err(unknown()) };
    let text = of.get().starts_with('"').then(|| text(of)).transpose()?;
    match (&**name, text) {
        ("date", Some(text)) => values::date(&text).map(Value::Date).map_err(wrong),
        ("timestamp", Some(text)) => values::timestamp(&text).map(Value::Timestamp).map_err(wrong),
        ("float64", Some(text)) => beyond_numbers(&text).map(Value::Float64).ok_or_else(unknown),
        ("float64", None) if of.get().starts_with(|first: char| first == '-' || first.is_ascii_digit()) => {
            float64(of.get()).map(Value::Float64)
        }
        _ => Err(unknown()),
    }
}

/// The float64 values that are not numbers in JSON.
pub(super) fn beyond_numbers(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// A value in the JSON that [`value_from_json`] reads, with its type.
pub fn value_to_json(value: &Value) -> Json {
    match value {
        Value::Float64(number) if !number.is_finite() => json!({"float64": float::text(*number)}),
        Value::Date(days) => json!({"date": date_text(*days)}),
        Value::Timestamp(micros) => json!({"timestamp": timestamp_text(*micros)}),
        Value::List(items) => items.iter().map(value_to_json).collect(),
        other => plain_json(other),
    }
}

/// A value in JSON, as in rows: types that JSON lacks are text, such as `"2026-01-02"` and `"NaN"`. Changes read
/// it back where the graph has the property.
pub fn plain_json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => json!(value),
        Value::Int64(value) => json!(value),
        Value::Float64(number) if !number.is_finite() => json!(float::text(*number)),
        Value::Float64(value) => json!(value),
        Value::String(value) => json!(value),
        Value::Date(days) => json!(date_text(*days)),
        Value::Timestamp(micros) => json!(timestamp_text(*micros)),
        Value::List(items) => items.iter().map(plain_json).collect(),
    }
}

/// A value as text, as CSV has it: a list is an array of JSON; null is nothing.
pub fn plain_text(value: &Value) -> Option<String> {
    match plain_json(value) {
        Json::Null => None,
        Json::String(text) => Some(text),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_come_back() {
        let values = [
            Value::Null,
            Value::Bool(true),
            Value::Int64(i64::MIN),
            Value::Int64(i64::MAX),
            Value::Float64(3.0),
            Value::Float64(-0.0),
            Value::Float64(f64::NAN),
            Value::Float64(f64::NEG_INFINITY),
            Value::Float64(5e-324),
            Value::String("2026-01-02".into()),
            Value::Date(20_455),
            Value::Timestamp(1_266_161_530_447_001),
            Value::List(vec![Value::Date(-1), Value::Null, Value::Float64(f64::INFINITY)]),
        ];
        for value in values {
            let text = value_to_json(&value).to_string();
            let read = value_from_json(&text).unwrap();
            assert!(read.is_same(&value), "{text} is read as {read}");
        }
    }

    #[test]
    fn what_is_not_a_value_says_why() {
        for (text, why) in [
            (r#"{"date": "soon"}"#, r#"{"date": "soon"} is not a date"#),
            (r#"{"a": 1}"#, "is not a value; objects are"),
            (r#"{"float64": "soon"}"#, "is not a value"),
            (r#"{"date": "2026-01-02", "date": "2026-01-03"}"#, "the member \"date\" occurs twice"),
            ("[[1]]", "a list cannot contain lists"),
            (
                "9223372036854775808",
                "9223372036854775808 does not fit an int64; as a float64 it is written 9223372036854775808.0",
            ),
            ("18446744073709551616", "does not fit an int64"),
            ("-9223372036854775809", "does not fit an int64"),
            ("1e400", "1e400 is too large for a float64"),
            (r#"{"float64": -1e400}"#, "-1e400 is too large for a float64"),
            ("[1,", "it is not valid JSON: it ends too early"),
            ("nan", "it is not valid JSON: expected ident at byte 2"),
        ] {
            let rejected = value_from_json(text).unwrap_err();
            assert!(rejected.contains(why), "{text}: {rejected}");
        }
        // Depth is rejected where it begins.
        let deep = "[".repeat(1 << 20) + &"]".repeat(1 << 20);
        assert_eq!(value_from_json(&deep), Err("a list cannot contain lists".into()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn a_double_arrives_bit_for_bit(bits: u64) {
            let value = Value::Float64(f64::from_bits(bits));
            let read = value_from_json(&value_to_json(&value).to_string()).unwrap();
            let Value::Float64(number) = read else { return Err(TestCaseError::fail("another type")) };
            prop_assert!(number.to_bits() == bits || number.is_nan() && f64::from_bits(bits).is_nan());
        }

        #[test]
        fn an_integer_is_itself_or_rejected(number in any::<i128>().prop_map(|number| number >> 62)) {
            let read = value_from_json(&number.to_string());
            prop_assert_eq!(read.ok(), i64::try_from(number).ok().map(Value::Int64));
        }
    }
}
