//! A change as a line of JSON, and values to and from JSON.
//!
//! What JSON has no type for is an object with one member: `{"date": "2026-01-02"}`, `{"timestamp": "2026-01-02T03:04:05Z"}`.

use std::{io::BufRead, sync::Arc};

use hoplake_engine::change::{Name, Value};
use hoplake_ingest::source::values;
use serde_json::{Map, Value as Json, json};

use super::{
    Place, Source,
    known::{Kind, Raw, RawEnd, Written},
};

/// The changes of a text, a line each; blank lines mean nothing.
pub(super) fn lines(file: Arc<str>, text: impl BufRead + Send + 'static) -> Source {
    let lines = text.split(b'\n').zip(1..).map(move |(line, number)| {
        let place = Place { file: file.clone(), unit: "line", number };
        let line = line.map_err(|error| place.invalid(format!("it cannot be read: {error}")))?;
        let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&line).trim_ascii();
        if line.is_empty() {
            return Ok(None);
        }
        let json = serde_json::from_slice(line).map_err(|error| place.invalid(format!("it is no JSON: {error}")))?;
        let written = written(json).map_err(|why| place.invalid(why))?;
        Ok(Some((place, written)))
    });
    Box::new(lines.filter_map(Result::transpose))
}

fn written(json: Json) -> Result<Written, String> {
    let Json::Object(mut line) = json else { return Err("it is no JSON object".into()) };
    let op = line.remove("op").ok_or("it has no op")?;
    let kind = Kind::named(op.as_str().unwrap_or_default())?;
    let member = |line: &mut Map<String, Json>, name| line.remove(name).filter(|value| !value.is_null());
    let written = Written {
        kind,
        label: match member(&mut line, "label") {
            Some(Json::String(label)) => label.into(),
            _ => return Err(format!("the {kind} has no label that is text")),
        },
        key: member(&mut line, "key").map(raw).transpose()?,
        source: member(&mut line, "source").map(|end| raw_end("source", end)).transpose()?,
        target: member(&mut line, "target").map(|end| raw_end("target", end)).transpose()?,
        edge_key: member(&mut line, "edge_key").map(edge_key).transpose()?,
        properties: match member(&mut line, "properties") {
            None => Vec::new(),
            Some(Json::Object(properties)) => {
                let read = |(name, value): (String, Json)| Ok((name.into(), raw(value)?));
                properties.into_iter().map(read).collect::<Result<_, String>>()?
            }
            Some(other) => return Err(format!("properties is {other}; it is an object of names and values")),
        },
        whole: match member(&mut line, "whole") {
            None => false,
            Some(Json::Bool(whole)) => whole,
            Some(other) => return Err(format!("whole is {other}; it is true or false")),
        },
    };
    match line.keys().next() {
        None => Ok(written),
        Some(name) => Err(format!("the {kind} has {name:?}, which means nothing; is it one of its properties?")),
    }
}

fn raw(json: Json) -> Result<Raw, String> {
    value_from_json(&json).map(Raw::Typed)
}

fn raw_end(name: &str, json: Json) -> Result<RawEnd, String> {
    match json {
        Json::Array(parts) => match <[Json; 2]>::try_from(parts) {
            Ok([Json::String(label), key]) => Ok((label.into(), raw(key)?)),
            _ => Err(format!("{name} is no [label, key]")),
        },
        other => Err(format!("{name} is {other}; it is [label, key]")),
    }
}

fn edge_key(json: Json) -> Result<(Name, Raw), String> {
    let Json::Object(members) = json else { return Err(format!("edge_key is {json}; it is {{property: value}}")) };
    let mut members = members.into_iter();
    match (members.next(), members.next()) {
        (Some((property, value)), None) => Ok((property.into(), raw(value)?)),
        _ => Err("edge_key is one property and its value".into()),
    }
}

/// A value as JSON writes it: `true`, `3`, `3.0`, `"text"`, `[1, 2]`, `{"date": "2026-01-02"}` or
/// `{"timestamp": "2026-01-02T03:04:05Z"}`. Whether a text stands for a date is for the graph's schema to say.
///
/// # Errors
/// Why it is no value, as a sentence.
pub fn value_from_json(json: &Json) -> Result<Value, String> {
    Ok(match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match (number.as_i64(), number.as_f64().filter(|_| number.is_f64())) {
            (Some(integer), _) => Value::Int64(integer),
            (None, Some(float)) => Value::Float64(float),
            (None, None) => return Err(format!("{number} is too large for an int64")),
        },
        Json::String(text) => Value::String(text.clone()),
        Json::Array(items) => {
            let items = items.iter().map(|item| match value_from_json(item)? {
                Value::List(_) => Err("a list has no lists in it".to_owned()),
                item => Ok(item),
            });
            Value::List(items.collect::<Result<_, _>>()?)
        }
        Json::Object(members) => {
            let mut members = members.iter();
            let told = |why| format!("{json} {why}");
            match (members.next(), members.next()) {
                (Some((name, Json::String(text))), None) if name == "date" => {
                    Value::Date(values::date(text).map_err(told)?)
                }
                (Some((name, Json::String(text))), None) if name == "timestamp" => {
                    Value::Timestamp(values::timestamp(text).map_err(told)?)
                }
                (Some((name, number @ Json::Number(_))), None) if name == "float64" => {
                    Value::Float64(number.as_f64().ok_or_else(|| told("is not a float64"))?)
                }
                _ => return Err(told(r#"is no value; objects are {"date": …} and {"timestamp": …}"#)),
            }
        }
    })
}

/// A value in the JSON that [`value_from_json`] reads. Numbers that JSON has no digits for are null.
pub fn value_to_json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => json!(value),
        Value::Int64(value) => json!(value),
        Value::Float64(value) => json!(value),
        Value::String(value) => json!(value),
        Value::Date(days) => json!({"date": values::date_text(*days)}),
        Value::Timestamp(micros) => json!({"timestamp": values::timestamp_text(*micros)}),
        Value::List(items) => items.iter().map(value_to_json).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back() {
        let values = [
            Value::Null,
            Value::Bool(true),
            Value::Int64(i64::MIN),
            Value::Float64(3.0),
            Value::String("2026-01-02".into()),
            Value::Date(20_455),
            Value::Timestamp(1_266_161_530_447_001),
            Value::List(vec![Value::Date(-1), Value::Null]),
        ];
        for value in values {
            let text = value_to_json(&value).to_string();
            assert_eq!(value_from_json(&serde_json::from_str(&text).unwrap()), Ok(value), "{text}");
        }
        for bad in [r#"{"date": "soon"}"#, r#"{"a": 1}"#, "[[1]]", "9223372036854775808"] {
            assert!(value_from_json(&serde_json::from_str(bad).unwrap()).is_err(), "{bad}");
        }
    }
}
