//! JSON as a tree that keeps the digits of big numbers.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::version::DecodeError;

#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    Null,
    Boolean(bool),
    Integer(i64),
    Float(f64),
    /// The digits of a number without a bound.
    Digits(Box<str>),
    Text(Box<str>),
    List(Vec<Json>),
    Object(Vec<(Box<str>, Json)>),
    /// A type and its value.
    Typed(Box<str>, Box<Json>),
}

pub fn parse(json: &[u8]) -> Result<Json, DecodeError> {
    serde_json::from_slice(json).map_err(|error| DecodeError {
        place: format!("line {}, column {}", error.line(), error.column()),
        message: error.to_string(),
    })
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Tree)
    }
}

struct Tree;

impl<'de> Visitor<'de> for Tree {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E: Error>(self, boolean: bool) -> Result<Json, E> {
        Ok(Json::Boolean(boolean))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Json, E> {
        Ok(Json::Integer(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Json, E> {
        Ok(i64::try_from(number).map_or_else(|_| Json::Digits(number.to_string().into()), Json::Integer))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Json, E> {
        Ok(Json::Float(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut object: Vec<(Box<str>, Json)> = Vec::new();
        while let Some(key) = entries.next_key::<Box<str>>()? {
            let is_big = matches!(&object[..], [(name, Json::Text(kind))]
                if &**name == "@type" && matches!(&**kind, "gx:BigInteger" | "gx:BigDecimal"));
            let value = match &*key == "@value" && is_big {
                true => digits(entries.next_value::<Box<RawValue>>()?.get()),
                false => entries.next_value()?,
            };
            object.push((key, value));
        }
        Ok(typed(object))
    }
}

/// Digits as a number or as text.
fn digits(raw: &str) -> Json {
    let digits = raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')).unwrap_or(raw);
    Json::Digits(digits.into())
}

fn typed(mut object: Vec<(Box<str>, Json)>) -> Json {
    let keys = match &object[..] {
        [(first, _), (second, _)] => (&**first, &**second),
        _ => return Json::Object(object),
    };
    if keys == ("@value", "@type") {
        object.swap(0, 1);
    } else if keys != ("@type", "@value") {
        return Json::Object(object);
    }
    match (object.pop(), object.pop()) {
        (Some((_, value)), Some((_, Json::Text(kind)))) => Json::Typed(kind, Box::new(value)),
        (second, first) => Json::Object(first.into_iter().chain(second).collect()),
    }
}
