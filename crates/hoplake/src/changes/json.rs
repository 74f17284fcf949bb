//! A change as a line of JSON, and values to and from JSON.
//!
//! Numbers are read from their digits as they stand: an integer that int64 lacks is an error and never a rounded
//! float64, and a float64 arrives bit for bit. Types that JSON lacks are an object with one member: `{"date":
//! "2026-01-02"}`, `{"timestamp": "2026-01-02T03:04:05Z"}`, `{"float64": "NaN"}`. No member may stand twice in an
//! object: which of the two counts is anybody's guess.
//!
//! A line is read piece by piece, each from its own text, and nothing in it may nest deeper than a list in the
//! properties. So its depth needs no bound of its own: that of its length suffices.

use std::{
    borrow::Cow,
    collections::HashSet,
    fmt,
    io::{BufRead, Read},
    sync::Arc,
};

use hoplake_engine::{
    change::{Name, Value, date_text, timestamp_text},
    float,
};
use hoplake_ingest::source::values;
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, Visitor},
};
use serde_json::{Value as Json, json, value::RawValue};

use super::{
    ChangeSettings, Piece, Source, SourceLocation, columns,
    resolved::{Kind, Raw, RawChange, RawVertexRef},
};

/// The changes of a text, a line each; blank lines mean nothing.
pub(super) fn lines(file: Arc<str>, mut text: impl BufRead + Send + 'static, settings: &ChangeSettings) -> Source {
    let bytes_max = settings.line_bytes_max;
    let mut number = 0;
    let mut line = Vec::new();
    Box::new(std::iter::from_fn(move || {
        loop {
            number += 1;
            let location = || SourceLocation { file: file.clone(), unit: "line", number };
            line.clear();
            // The longest line, its end and one byte more: enough to see that a line is too long, without reading all of it.
            match (&mut text).take(bytes_max as u64 + 2).read_until(b'\n', &mut line) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => return Some(Err(location().invalid(format!("it cannot be read: {error}")))),
            }
            match written_line(&line, bytes_max) {
                Ok(None) => {}
                Ok(Some(written)) => return Some(Ok(Piece::One(location(), written))),
                Err(why) => return Some(Err(location().invalid(why))),
            }
        }
    }))
}

fn written_line(line: &[u8], bytes_max: usize) -> Result<Option<RawChange>, String> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    if line.len() > bytes_max {
        return Err(format!("it is longer than {bytes_max} bytes, the bound of a line"));
    }
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Ok(None);
    }
    let line =
        std::str::from_utf8(line).map_err(|error| format!("byte {} is not UTF-8 text", error.valid_up_to() + 1))?;
    written(line).map(Some)
}

fn written(line: &str) -> Result<RawChange, String> {
    if !line.starts_with('{') {
        return Err("it is not a JSON object".into());
    }
    let mut line: Members<'_> = read(line)?;
    let Some(op) = line.take("op") else {
        if line.0.iter().any(|(name, _)| name == "properties") {
            return Err("it has no op".into());
        }
        // As `get` prints it: each member has the meaning of the CSV column of that name.
        return columns::json_row(line.0);
    };
    let op = if op.get().starts_with('"') { text(op)? } else { Cow::Borrowed("") };
    let kind = Kind::named(&op)?;
    let written = RawChange {
        kind,
        label: match line.take("label").filter(|label| label.get().starts_with('"')) {
            Some(label) => text(label)?.into(),
            None => return Err(format!("the {kind} has no label that is text")),
        },
        key: line.take("key").map(raw).transpose()?,
        source: line.take("source").map(|end| raw_end("source", end)).transpose()?,
        target: line.take("target").map(|end| raw_end("target", end)).transpose()?,
        edge_key: line.take("edge_key").map(edge_key).transpose()?,
        properties: line.take("properties").map(properties).transpose()?.unwrap_or_default(),
        replace: match line.take("replace").map(value).transpose()? {
            None => false,
            Some(Value::Bool(replace)) => replace,
            Some(other) => return Err(format!("replace is {other}; it is true or false")),
        },
    };
    match line.0.first() {
        None => Ok(written),
        Some((name, _)) => Err(format!("the {kind} has {name:?}, which means nothing; is it one of its properties?")),
    }
}

fn properties(json: &RawValue) -> Result<Vec<(Name, Raw)>, String> {
    if !json.get().starts_with('{') {
        return Err(format!("properties is {}; it is an object of names and values", shown(json)));
    }
    let members: Members<'_> = read(json.get())?;
    let property = |(name, json): (Cow<'_, str>, &RawValue)| {
        let value = raw(json).map_err(|why| format!("property {name}: {why}"))?;
        Ok((name.into(), value))
    };
    members.0.into_iter().map(property).collect()
}

pub(super) fn raw(json: &RawValue) -> Result<Raw, String> {
    value(json).map(Raw::Typed)
}

fn raw_end(name: &str, json: &RawValue) -> Result<RawVertexRef, String> {
    let wrong = || format!("{name} is {}; it is [label, key]", shown(json));
    // What it is made of was checked with the line: only another shape fails.
    let [label, key]: [&RawValue; 2] = serde_json::from_str(json.get()).map_err(|_| wrong())?;
    match label.get().starts_with('"') {
        true => Ok((text(label)?.into(), raw(key)?)),
        false => Err(wrong()),
    }
}

fn edge_key(json: &RawValue) -> Result<(Name, Raw), String> {
    if !json.get().starts_with('{') {
        return Err(format!("edge_key is {}; it is {{property: value}}", shown(json)));
    }
    let members: Members<'_> = read(json.get())?;
    match <[_; 1]>::try_from(members.0) {
        Ok([(property, value)]) => Ok((property.into(), raw(value)?)),
        Err(_) => Err("edge_key is one property and its value".into()),
    }
}

/// The members of an object in their order, each as its text.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

/// Text without a copy, unless there are escapes in it.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The text of a value that begins as one.
fn text(json: &RawValue) -> Result<Cow<'_, str>, String> {
    read(json.get()).map(|Text(text)| text)
}

impl<'a> Members<'a> {
    /// Takes a member out; null counts as absent.
    fn take(&mut self, name: &str) -> Option<&'a RawValue> {
        let at = self.0.iter().position(|(resolved, _)| resolved == name)?;
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
fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
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
fn shown(json: &RawValue) -> String {
    const CHARS_MAX: usize = 60;
    let text = json.get();
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Reads a value from a text of JSON: `true`, `3`, `3.0`, `"text"`, `[1, 2]`, `{"date": "2026-01-02"}`, `{"timestamp":
/// "2026-01-02T03:04:05Z"}` or `{"float64": "NaN"}`. Whether a text stands for a date is for the graph's schema to say.
///
/// ```
/// use hoplake::{Value, changes::value_from_json};
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

fn value(json: &RawValue) -> Result<Value, String> {
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
            let refused = value_from_json(text).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
        // Depth is refused where it begins.
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
        fn an_integer_is_itself_or_refused(number in any::<i128>().prop_map(|number| number >> 62)) {
            let read = value_from_json(&number.to_string());
            prop_assert_eq!(read.ok(), i64::try_from(number).ok().map(Value::Int64));
        }
    }
}
