//! Reading what may be written in several ways: vertices, keys and hops.
//!
//! By hand: serde tries the variants of an untagged enum one after the other, drops fields that are unknown to all of
//! them, and reports no more of a mistake than that no variant fits.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};

use super::requests::{FoundBody, HopBody, HopPartsBody, IdBody, KeyBody, LabelKeyBody, VertexBody};

/// The forms of a vertex, for every error about one.
const VERTEX: &str = r#""LABEL:KEY", {"label", "key"}, {"label", "where"} or {"id"}"#;

/// The optional parts of a vertex.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VertexParts {
    id: Option<String>,
    label: Option<String>,
    key: Option<KeyBody>,
    r#where: Option<String>,
}

/// Reads a vertex from text or from an object.
struct VertexVisitor;

impl<'de> Visitor<'de> for VertexVisitor {
    type Value = VertexBody;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(VERTEX)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<VertexBody, E> {
        Ok(VertexBody::Text(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<VertexBody, A::Error> {
        match VertexParts::deserialize(MapAccessDeserializer::new(map))? {
            VertexParts { id: None, label: Some(label), key: None, r#where: Some(r#where) } => {
                Ok(VertexBody::Found(FoundBody { label, r#where }))
            }
            VertexParts { id: Some(id), label: None, key: None, r#where: None } => Ok(VertexBody::Id(IdBody { id })),
            VertexParts { id: None, label: Some(label), key: Some(key), r#where: None } => {
                Ok(VertexBody::Key(LabelKeyBody { label, key }))
            }
            _ => Err(A::Error::custom(format!("write {VERTEX}, not other fields together"))),
        }
    }
}

impl<'de> Deserialize<'de> for VertexBody {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(VertexVisitor)
    }
}

/// Reads a key from text or from a whole number.
struct KeyVisitor;

impl Visitor<'_> for KeyVisitor {
    type Value = KeyBody;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number of 64 bits, or text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<KeyBody, E> {
        Ok(KeyBody::Text(text.to_owned()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<KeyBody, E> {
        Ok(KeyBody::Number(number))
    }

    // JSON's reader gives every number that is not negative as unsigned.
    fn visit_u64<E: Error>(self, number: u64) -> Result<KeyBody, E> {
        let wrong = || E::invalid_value(serde::de::Unexpected::Unsigned(number), &self);
        i64::try_from(number).map(KeyBody::Number).map_err(|_| wrong())
    }
}

impl<'de> Deserialize<'de> for KeyBody {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(KeyVisitor)
    }
}

/// Reads a hop from text or from an object.
struct HopVisitor;

impl<'de> Visitor<'de> for HopVisitor {
    type Value = HopBody;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(r#"a hop such as "out:LABEL", or {"direction", "labels", "condition"}"#)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<HopBody, E> {
        Ok(HopBody::Text(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<HopBody, A::Error> {
        HopPartsBody::deserialize(MapAccessDeserializer::new(map)).map(HopBody::Parts)
    }
}

impl<'de> Deserialize<'de> for HopBody {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(HopVisitor)
    }
}
