//! Digests of ranges of elements.
//!
//! The range of an element is the beginning of a hash of its name, so that all ranges have about as many elements, whatever the keys.
//! The digest of a range is the sum of the hashes of its elements: the order in which they come does not matter, and neither side has to
//! sort anything. Two ranges that differ have the same digest once in 2^64 cases.

use hoplake::{EdgeKey, Key, Properties, Value, VertexRef};
use xxhash_rust::xxh3::Xxh3;

use crate::Element;

/// Ranges, as a power of two. With ten million elements and a thousand differences some 40,000 elements are in ranges that differ.
const BITS: u32 = 18;

/// The digests of all ranges of one side.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Digests(Vec<u64>);

impl Digests {
    pub(super) fn new() -> Self {
        Self(vec![0; 1 << BITS])
    }

    pub(super) fn add(&mut self, element: &Element, properties: &Properties) {
        let mut hash = Xxh3::new();
        hash_element(&mut hash, element);
        let range = range_of(hash.digest());
        hash_properties(&mut hash, properties);
        self.0[range] = self.0[range].wrapping_add(hash.digest());
    }

    /// The ranges in which the other side has something else.
    pub(super) fn differing(&self, other: &Self) -> Ranges {
        Ranges(self.0.iter().zip(&other.0).map(|(here, there)| here != there).collect())
    }
}

/// Some of the ranges.
pub(super) struct Ranges(Vec<bool>);

impl Ranges {
    pub(super) fn is_empty(&self) -> bool {
        !self.0.contains(&true)
    }

    pub(super) fn count(&self) -> usize {
        self.0.iter().filter(|differs| **differs).count()
    }

    /// The number of an element's range, if it is one of these.
    pub(super) fn range(&self, element: &Element) -> Option<usize> {
        let mut hash = Xxh3::new();
        hash_element(&mut hash, element);
        let range = range_of(hash.digest());
        self.0[range].then_some(range)
    }
}

fn range_of(hash: u64) -> usize {
    (hash >> (u64::BITS - BITS)) as usize
}

fn hash_element(hash: &mut Xxh3, element: &Element) {
    match element {
        Element::Vertex(vertex) => hash_vertex(hash, vertex),
        Element::Edge(id) => {
            hash_text(hash, &id.label);
            hash_vertex(hash, &id.source);
            hash_vertex(hash, &id.target);
            if let Some(EdgeKey { property, value }) = id.key.as_ref().map(EdgeKey::from) {
                hash_text(hash, &property);
                hash_value(hash, &value);
            }
        }
    }
}

fn hash_vertex(hash: &mut Xxh3, vertex: &VertexRef) {
    hash_text(hash, &vertex.label);
    match &vertex.key {
        Key::Int64(number) => hash_number(hash, b'i', *number),
        Key::String(text) => hash_text(hash, text),
    }
}

fn hash_properties(hash: &mut Xxh3, properties: &Properties) {
    for (name, value) in properties.iter() {
        hash_text(hash, name);
        hash_value(hash, value);
    }
}

/// With its length, so that no two texts in a row are two others.
fn hash_text(hash: &mut Xxh3, text: &str) {
    hash_number(hash, b's', text.len() as i64);
    hash.update(text.as_bytes());
}

fn hash_number(hash: &mut Xxh3, kind: u8, number: i64) {
    let mut bytes = [kind; 9];
    bytes[1..].copy_from_slice(&number.to_le_bytes());
    hash.update(&bytes);
}

fn hash_value(hash: &mut Xxh3, value: &Value) {
    match value {
        Value::Null => hash.update(b"n"),
        Value::Bool(it) => hash_number(hash, b'b', i64::from(*it)),
        Value::Int64(number) => hash_number(hash, b'i', *number),
        // Values that are equal have one hash: all that are no numbers, and both zeros.
        Value::Float64(number) if number.is_nan() => hash_number(hash, b'f', -1),
        Value::Float64(number) => hash_number(hash, b'f', (number + 0.0).to_bits().cast_signed()),
        Value::String(text) => hash_text(hash, text),
        Value::Date(days) => hash_number(hash, b'd', i64::from(*days)),
        Value::Timestamp(micros) => hash_number(hash, b't', *micros),
        Value::List(items) => {
            hash_number(hash, b'l', items.len() as i64);
            items.iter().for_each(|item| hash_value(hash, item));
        }
    }
}
