//! What a query returns and takes.
//!
//! A [`Value`] has the types that the reference sends over the wire. Values compare in four ways, and each has its own name,
//! so that none is used by accident:
//!
//! | relation | used by | number types | `NaN` | across types |
//! | --- | --- | --- | --- | --- |
//! | [`equals`] | `eq`, `within`, `has(key, value)` | promoted: `1` is `1.0` | equal to nothing | not equal |
//! | [`compare`] | `lt`, `gt`, `between` | promoted | incomparable | incomparable |
//! | [`order`] | `order()` | by exact value | last of the numbers | by type, `null` first |
//! | [`Key`] | `dedup`, `group`, keys of maps | told apart | equal to itself | not equal |
//!
//! `==` on a `Value` compares the representation, with properties of elements and order of maps; it is for tests.
//! Arithmetic is in [`arithmetic`]: sums and products promote to the wider type.

pub(crate) mod alike;
pub mod arithmetic;
mod display;
mod json;
mod key;
mod number;
mod relations;
mod size;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use hoplake_engine::Neighbour;
use hoplake_format::VertexId;
use jiff::SignedDuration;
use uuid::Uuid;

pub(crate) use self::{
    display::kind_of,
    number::to_big_decimal,
    size::{ALLOCATION_BYTES, ELEMENT_BYTES, tree_bytes},
};
pub use self::{
    key::{BULK_SET_TABLES, Hashed, Key, TABLES_MAX},
    number::{to_f64, to_i64},
    relations::{compare, equals, order},
    size::value_bytes,
};
use crate::{
    literal::{Literal, Number},
    moment::Moment,
    tokens::Token,
};

/// A value of any type.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Boolean(bool),
    /// A number of any type.
    Number(Number),
    /// A text.
    Text(Box<str>),
    /// A character.
    Char(char),
    /// A point in time, and the offset from UTC in which it was written.
    DateTime(Moment),
    /// A length of time.
    Duration(SignedDuration),
    /// A UUID.
    Uuid(Uuid),
    /// Bytes.
    Bytes(Box<[u8]>),
    /// Values in their order.
    List(Vec<Value>),
    /// Values, each once. Who builds one removes duplicates by [`Key`].
    Set(Vec<Value>),
    /// Values and how many of each: what `aggregate` and `store` collect.
    BulkSet(Vec<(Value, u64)>),
    /// Keys and values in their order. Who builds one removes duplicate keys by [`Key`].
    Map(Vec<(Value, Value)>),
    /// A key and its value, of a map whose entries go on one by one. Drivers get it as a map of one entry.
    Entry(Box<(Value, Value)>),
    /// A vertex.
    Vertex(Box<Vertex>),
    /// An edge.
    Edge(Box<Edge>),
    /// A property of a vertex.
    VertexProperty(Box<VertexProperty>),
    /// A property of an edge, or of a property of a vertex.
    Property(Box<Property>),
    /// A path.
    Path(Box<Path>),
    /// What `tree` collects.
    Tree(Tree),
    /// What `subgraph` collects.
    Graph(Box<Graph>),
    /// A name that stands for itself, such as `T.id`.
    Token(Token),
    /// A value and how many times it stands in the result.
    Traverser(Box<Traverser>),
    /// What `profile` measured.
    Metrics(Box<TraversalMetrics>),
    /// An element of a graph of which nothing was read yet. Values within a query alone have it.
    Unread(Box<Unread>),
}

/// An element of a graph as a query carries it: which one it is, and not its id, label and properties, which would have to be read.
#[derive(Debug, Clone, PartialEq)]
pub enum Unread {
    /// A vertex.
    Vertex(VertexId),
    /// An edge, and from which end it was reached.
    Edge(Neighbour),
    /// A property of a vertex.
    VertexProperty(UnreadProperty<VertexId>),
    /// A property of an edge.
    Property(UnreadProperty<Neighbour>),
}

/// A property, and the element that has it.
#[derive(Debug, Clone, PartialEq)]
pub struct UnreadProperty<E> {
    /// Whose it is.
    pub element: E,
    /// Its name.
    pub key: Arc<str>,
    /// Its value.
    pub value: Value,
    /// Which of the properties of that name.
    pub number: u32,
}

/// A vertex. A reference to one has no properties.
#[derive(Debug, Clone, PartialEq)]
pub struct Vertex {
    /// Its id.
    pub id: Value,
    /// Its label.
    pub label: Box<str>,
    /// Its properties; `None` if they were not asked for.
    pub properties: Option<Vec<VertexProperty>>,
}

/// An edge. A reference to one has no properties.
#[derive(Debug, Clone, PartialEq)]
pub struct Edge {
    /// Its id.
    pub id: Value,
    /// Its label.
    pub label: Box<str>,
    /// The id and label of its source.
    pub out_vertex: (Value, Box<str>),
    /// The id and label of its target.
    pub in_vertex: (Value, Box<str>),
    /// Its properties; `None` if they were not asked for.
    pub properties: Option<Vec<Property>>,
}

/// A property of a vertex.
#[derive(Debug, Clone, PartialEq)]
pub struct VertexProperty {
    /// Its id.
    pub id: Value,
    /// Its name.
    pub key: Arc<str>,
    /// Its value.
    pub value: Value,
    /// Properties of this property; `None` if they were not asked for.
    pub properties: Option<Vec<Property>>,
}

/// A property of an edge, or of a property of a vertex.
#[derive(Debug, Clone, PartialEq)]
pub struct Property {
    /// Its name.
    pub key: Arc<str>,
    /// Its value.
    pub value: Value,
}

/// Where a traverser has been: values, each with the labels of its step.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Path {
    /// What was met, and under which labels.
    pub steps: Vec<(Value, Vec<Box<str>>)>,
}

/// Values, and below each what followed it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tree {
    /// A value and the tree below it.
    pub branches: Vec<(Value, Tree)>,
}

/// Some vertices of a graph, and edges between them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Graph {
    /// Vertices, each once.
    pub vertices: Vec<Value>,
    /// Edges, each once.
    pub edges: Vec<Value>,
}

/// A value and how many times it stands in a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Traverser {
    /// The value.
    pub value: Value,
    /// How many equal traversers it is.
    pub bulk: u64,
}

/// What a traversal took.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TraversalMetrics {
    /// In nanoseconds.
    pub duration_nanos: i64,
    /// Of each step.
    pub steps: Vec<Metrics>,
}

/// What a step took.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Metrics {
    /// Its id within the traversal.
    pub id: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// In nanoseconds.
    pub duration_nanos: i64,
    /// Numbers such as `traverserCount`.
    pub counts: Vec<(Box<str>, i64)>,
    /// Anything else.
    pub annotations: Vec<(Box<str>, Value)>,
    /// Of the steps within it.
    pub nested: Vec<Metrics>,
}

impl Tree {
    /// Its first level as a map: to the reference a tree is one.
    pub(crate) fn entries(&self) -> Vec<(Value, Value)> {
        self.branches.iter().map(|(value, below)| (value.clone(), Value::Tree(below.clone()))).collect()
    }
}

impl From<Literal> for Value {
    fn from(literal: Literal) -> Self {
        match literal {
            Literal::Null => Self::Null,
            Literal::Boolean(boolean) => Self::Boolean(boolean),
            Literal::Number(number) => Self::Number(number),
            Literal::Text(text) => Self::Text(text),
            Literal::DateTime(moment) => Self::DateTime(moment),
            Literal::Uuid(uuid) => Self::Uuid(uuid),
            Literal::Char(character) => Self::Char(character),
            Literal::Duration(duration) => Self::Duration(duration),
            Literal::Bytes(bytes) => Self::Bytes(bytes),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<bool> for Value {
    fn from(boolean: bool) -> Self {
        Self::Boolean(boolean)
    }
}

impl From<i32> for Value {
    fn from(number: i32) -> Self {
        Self::Number(Number::Int(number))
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(Number::Long(number))
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(Number::Double(number))
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        Self::Number(number)
    }
}

impl From<VertexId> for Value {
    fn from(vertex: VertexId) -> Self {
        Self::Unread(Box::new(Unread::Vertex(vertex)))
    }
}

impl From<Neighbour> for Value {
    fn from(edge: Neighbour) -> Self {
        Self::Unread(Box::new(Unread::Edge(edge)))
    }
}
