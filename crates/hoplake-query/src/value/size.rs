//! The memory that values take.

use super::{Edge, Property, Tree, Unread, Value, Vertex, VertexProperty};
use crate::literal::Number;

/// What an allocation takes besides its bytes: its size and what it is rounded up by. The least that glibc's takes is 32 bytes, as for a text of
/// four letters.
pub(crate) const ALLOCATION_BYTES: usize = 28;

/// What a vertex or an edge takes as a value.
pub(crate) const ELEMENT_BYTES: usize = size_of::<Value>() + size_of::<Unread>() + ALLOCATION_BYTES;

/// What a step of a path takes besides its value.
const STEP_BYTES: usize = size_of::<Vec<Box<str>>>();

/// What a label of such a step takes besides its name.
const LABEL_BYTES: usize = size_of::<Box<str>>() + ALLOCATION_BYTES;

/// What a value takes, with all that it has within.
pub fn value_bytes(value: &Value) -> usize {
    let all = |values: &[Value]| values.iter().map(value_bytes).sum::<usize>();
    let plain = |properties: &Option<Vec<Property>>| properties.iter().flatten().map(property_bytes).sum::<usize>();
    size_of::<Value>()
        + match value {
            Value::Text(text) => ALLOCATION_BYTES + text.len(),
            Value::Bytes(bytes) => ALLOCATION_BYTES + bytes.len(),
            Value::Number(Number::BigInteger(number)) => ALLOCATION_BYTES + number.bits() as usize / 8,
            Value::Number(Number::BigDecimal(number)) => {
                ALLOCATION_BYTES + number.as_bigint_and_scale().0.bits() as usize / 8
            }
            Value::List(items) | Value::Set(items) => ALLOCATION_BYTES + all(items) + room(items),
            Value::BulkSet(items) => {
                ALLOCATION_BYTES + room(items) + items.iter().map(|(item, _)| value_bytes(item) + 8).sum::<usize>()
            }
            Value::Map(entries) => {
                let bytes = |(key, value): &(Value, Value)| value_bytes(key) + value_bytes(value);
                ALLOCATION_BYTES + room(entries) + entries.iter().map(bytes).sum::<usize>()
            }
            Value::Entry(entry) => ALLOCATION_BYTES + value_bytes(&entry.0) + value_bytes(&entry.1),
            Value::Path(path) => {
                let labels = |labels: &[Box<str>]| labels.iter().map(|label| LABEL_BYTES + label.len()).sum::<usize>();
                let bytes = |(item, all): &(Value, Vec<Box<str>>)| STEP_BYTES + value_bytes(item) + labels(all);
                ALLOCATION_BYTES + room(&path.steps) + path.steps.iter().map(bytes).sum::<usize>()
            }
            Value::Tree(tree) => tree_bytes(tree),
            Value::Graph(graph) => ALLOCATION_BYTES + all(&graph.vertices) + all(&graph.edges),
            Value::Unread(unread) => {
                let within = match &**unread {
                    Unread::VertexProperty(property) => value_bytes(&property.value),
                    Unread::Property(property) => value_bytes(&property.value),
                    Unread::Vertex(_) | Unread::Edge(_) => 0,
                };
                ALLOCATION_BYTES + size_of::<Unread>() + within
            }
            Value::Vertex(vertex) => {
                let properties = vertex.properties.iter().flatten().map(vertex_property_bytes).sum::<usize>();
                size_of::<Vertex>() + value_bytes(&vertex.id) + vertex.label.len() + properties
            }
            Value::Edge(edge) => {
                let ends = [&edge.out_vertex, &edge.in_vertex].map(|(id, label)| value_bytes(id) + label.len());
                let own = value_bytes(&edge.id) + edge.label.len() + plain(&edge.properties);
                size_of::<Edge>() + own + ends[0] + ends[1]
            }
            Value::VertexProperty(property) => vertex_property_bytes(property),
            Value::Property(property) => property_bytes(property),
            Value::Traverser(traverser) => value_bytes(&traverser.value),
            _ => 0,
        }
}

/// What a list has room for besides its items: one that grew item by item may be half empty.
fn room<T>(items: &Vec<T>) -> usize {
    (items.capacity() - items.len()) * size_of::<T>()
}

fn property_bytes(property: &Property) -> usize {
    size_of::<Property>() + property.key.len() + value_bytes(&property.value)
}

fn vertex_property_bytes(property: &VertexProperty) -> usize {
    let properties = property.properties.iter().flatten().map(property_bytes).sum::<usize>();
    let own = value_bytes(&property.id) + property.key.len() + value_bytes(&property.value);
    size_of::<VertexProperty>() + own + properties
}

/// What a tree takes.
pub(crate) fn tree_bytes(tree: &Tree) -> usize {
    let bytes = |(item, below): &(Value, Tree)| size_of_val(below) + value_bytes(item) + tree_bytes(below);
    tree.branches.iter().map(bytes).sum::<usize>() + ALLOCATION_BYTES
}
