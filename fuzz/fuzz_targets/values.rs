//! Single values: any text is a value of a type or an error, a value's text is read as the value, and its JSON, too.

#![no_main]

use hoplake::{
    Value,
    changes::{plain_text, value_from_json, value_to_json},
};
use hoplake_fuzz::{begin, bounded};
use hoplake_ingest::source::values;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: begin(), |text: &str| bounded((64 << 10) + 256 * text.len(), || {
    let parsed = [
        values::boolean(text).ok().map(Value::Bool),
        values::int64(text).ok().map(Value::Int64),
        values::float64(text).ok().map(Value::Float64),
        values::date(text).ok().map(Value::Date),
        values::timestamp(text).ok().map(Value::Timestamp),
        value_from_json(text).ok(),
    ];
    for value in parsed.into_iter().flatten() {
        in_text(&value);
        in_json(&value);
    }
    if let Ok(items) = values::list_items(text) {
        let list = Value::List(items.iter().map(|item| item.as_deref().map_or(Value::Null, Value::from)).collect());
        let written = plain_text(&list).expect("a list has a text");
        assert_eq!(values::list_items(&written), Ok(items), "{written}");
    }
    let _ = values::type_named(text);
    if values::is_canonical_int64(text) {
        assert_eq!(values::int64(text).map(|number| number.to_string()).as_deref(), Ok(text));
    }
}));

fn in_text(value: &Value) {
    let Some(text) = plain_text(value) else { return };
    let read = match value {
        Value::Bool(_) => values::boolean(&text).map(Value::Bool),
        Value::Int64(_) => values::int64(&text).map(Value::Int64),
        Value::Float64(_) => values::float64(&text).map(Value::Float64),
        Value::Date(_) => values::date(&text).map(Value::Date),
        Value::Timestamp(_) => values::timestamp(&text).map(Value::Timestamp),
        _ => return,
    };
    assert!(read.as_ref().is_ok_and(|read| is_same(read, value)), "{text}: {value:?} and {read:?}");
    assert!(!value.to_string().is_empty());
}

fn in_json(value: &Value) {
    let json = value_to_json(value).to_string();
    let read = value_from_json(&json);
    assert!(read.as_ref().is_ok_and(|read| is_same(read, value)), "{json}: {value:?} and {read:?}");
}

/// Bit for bit, but for the bits of a NaN, which have no text.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Float64(a), Value::Float64(b)) if a.is_nan() => b.is_nan(),
        (Value::List(a), Value::List(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b)),
        (a, b) => a.is_same(b),
    }
}
