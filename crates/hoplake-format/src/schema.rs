//! Labels, edge types and properties of a graph.
//!
//! An *edge type* is a triple (source label, edge label, target label). `person likes post` and
//! `person likes comment` share an edge label and are two types; adjacency is kept per type, so
//! that a target is a plain ordinal.

use std::{collections::HashSet, fmt, sync::Arc};

use arrow_schema::{DataType, Field, TimeUnit};

use crate::{Direction, EdgeTypeId, FormatError, LabelId};

/// The time zone of timestamps: UTC, as the offset that Arrow reads without a table of time zones.
pub const TIMESTAMP_ZONE: &str = "+00:00";

/// The type of one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScalarType {
    /// True or false.
    Bool,
    /// A signed integer of 64 bits.
    Int64,
    /// A floating-point number of 64 bits.
    Float64,
    /// UTF-8 text.
    String,
    /// A calendar day, as days since 1970-01-01.
    Date,
    /// A moment, as microseconds since 1970-01-01T00:00:00Z.
    Timestamp,
}

/// The type of a property: a value, or a list of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PropertyType {
    /// One value.
    Scalar(ScalarType),
    /// A list of values of one type.
    List(ScalarType),
}

/// The type of a vertex label's keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyType {
    /// A signed integer of 64 bits.
    Int64,
    /// UTF-8 text.
    String,
}

/// A property of a vertex label or an edge type. Every property may be absent (null).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Property {
    /// Its name, unique within its owner; never starts with `~`.
    pub name: String,
    /// Its type.
    pub kind: PropertyType,
    /// What its values are to the languages that have more types than are stored.
    pub logical: LogicalType,
}

/// What values of a property are to those who write and read them, where a [`PropertyType`] says less: an `int64` whose values were
/// all written as integers of 32 bits is read as such. Values are stored, compared and indexed by their [`PropertyType`] alone.
///
/// It holds for every value of the property. A change that writes one of another kind takes it away, and it does not come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct LogicalType {
    /// What a value is, or an item of a list.
    pub item: Option<ItemType>,
    /// What a list as a whole is; without it, a list of a vertex is several values of one property.
    pub collection: Option<CollectionType>,
}

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ItemType {
    /// An `int64` that was a signed integer of 8 bits.
    Int8,
    /// An `int64` that was a signed integer of 16 bits.
    Int16,
    /// An `int64` that was a signed integer of 32 bits.
    Int32,
    /// A `float64` that was a floating-point number of 32 bits, and has the shortest decimal form of it.
    Float32,
    /// A `string` that is a UUID in its canonical form: lower case, with hyphens.
    Uuid,
}

/// What a list is as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CollectionType {
    /// One value that is a list.
    List,
    /// One value that is a set.
    Set,
}

/// The most vertex labels of a graph, and the most edge types: their numbers have 16 bits.
pub const LABELS_MAX: usize = u16::MAX as usize;

/// The most properties of a vertex label or of an edge type. Each is a column of a Parquet file, whose footer describes it in every
/// row group and is read whole.
pub const PROPERTIES_MAX: usize = 10_000;

/// A vertex label: the class of its vertices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VertexLabel {
    /// Its name, unique in the graph.
    pub name: String,
    /// The type of its keys.
    pub key_type: KeyType,
    /// The properties of its vertices.
    pub properties: Vec<Property>,
}

/// An edge type: an edge label between two vertex labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgeType {
    /// The edge label.
    pub label: String,
    /// The label of the vertices it leaves.
    pub source: LabelId,
    /// The label of the vertices it reaches.
    pub target: LabelId,
    /// The properties of its edges.
    pub properties: Vec<Property>,
}

/// All labels, edge types and properties of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Schema {
    /// The vertex labels, by [`LabelId`].
    pub vertex_labels: Vec<VertexLabel>,
    /// The edge types, by [`EdgeTypeId`].
    pub edge_types: Vec<EdgeType>,
}

impl Schema {
    /// The label called `name`.
    pub fn label_id(&self, name: &str) -> Option<LabelId> {
        let position = self.vertex_labels.iter().position(|label| label.name == name)?;
        u16::try_from(position).ok().map(LabelId)
    }

    /// The label with this number.
    pub fn label(&self, id: LabelId) -> Option<&VertexLabel> {
        self.vertex_labels.get(usize::from(id.0))
    }

    /// The edge type with this number.
    pub fn edge_type(&self, id: EdgeTypeId) -> Option<&EdgeType> {
        self.edge_types.get(usize::from(id.0))
    }

    /// All edge types with their numbers.
    pub fn edge_types(&self) -> impl Iterator<Item = (EdgeTypeId, &EdgeType)> {
        (0u16..).map(EdgeTypeId).zip(&self.edge_types)
    }

    /// Checks that names are unique and usable and that edge types name labels that exist.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] with the name at fault.
    pub fn validate(&self) -> Result<(), FormatError> {
        let invalid = |message: String| Err(FormatError::Invalid(message));
        if self.vertex_labels.len() > LABELS_MAX || self.edge_types.len() > LABELS_MAX {
            return invalid(format!("a graph has at most {LABELS_MAX} vertex labels and as many edge types"));
        }
        let mut labels = HashSet::new();
        for label in &self.vertex_labels {
            if label.name.is_empty() {
                return invalid("a vertex label has an empty name".into());
            }
            if !labels.insert(&label.name) {
                return invalid(format!("vertex label {:?} occurs twice", label.name));
            }
            validate_properties(&label.name, &label.properties)?;
        }
        let mut edge_types = HashSet::new();
        for edge in &self.edge_types {
            if edge.label.is_empty() {
                return invalid("an edge label has an empty name".into());
            }
            if self.label(edge.source).is_none() || self.label(edge.target).is_none() {
                return invalid(format!("edge type {:?} names a vertex label that does not exist", edge.label));
            }
            if !edge_types.insert((&edge.label, edge.source, edge.target)) {
                return invalid(format!("edge type {:?} occurs twice", edge.label));
            }
            validate_properties(&edge.label, &edge.properties)?;
        }
        Ok(())
    }
}

fn validate_properties(owner: &str, properties: &[Property]) -> Result<(), FormatError> {
    if properties.len() > PROPERTIES_MAX {
        let count = properties.len();
        return Err(FormatError::Invalid(format!(
            "{owner:?} has {count} properties; there are at most {PROPERTIES_MAX}"
        )));
    }
    let mut names = HashSet::new();
    for property in properties {
        if property.name.is_empty() || property.name.starts_with('~') {
            return Err(FormatError::Invalid(format!(
                "{owner:?} has a property named {:?}; a name is not empty and does not start with ~",
                property.name
            )));
        }
        if !names.insert(&property.name) {
            return Err(FormatError::Invalid(format!("{owner:?} has property {:?} twice", property.name)));
        }
    }
    Ok(())
}

impl EdgeType {
    /// The label that a hop in this direction starts from.
    pub fn near(&self, direction: Direction) -> LabelId {
        match direction {
            Direction::Out => self.source,
            Direction::In => self.target,
        }
    }

    /// The label that a hop in this direction leads to.
    pub fn far(&self, direction: Direction) -> LabelId {
        self.near(direction.reverse())
    }
}

impl ScalarType {
    /// The Arrow type of a value.
    pub fn arrow(self) -> DataType {
        match self {
            Self::Bool => DataType::Boolean,
            Self::Int64 => DataType::Int64,
            Self::Float64 => DataType::Float64,
            Self::String => DataType::Utf8,
            Self::Date => DataType::Date32,
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some(TIMESTAMP_ZONE.into())),
        }
    }
}

impl ScalarType {
    /// In the order of their numbers in a manifest.
    pub const ALL: [Self; 6] = [Self::Bool, Self::Int64, Self::Float64, Self::String, Self::Date, Self::Timestamp];

    /// The name of the type, as schemas, settings and files have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int64 => "int64",
            Self::Float64 => "float64",
            Self::String => "string",
            Self::Date => "date",
            Self::Timestamp => "timestamp",
        }
    }

    /// The type of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scalar| scalar.name() == name)
    }
}

impl PropertyType {
    /// The type of a name such as `int64` or `list<string>`, as [`Display`](fmt::Display) writes it.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::from_name_by(name, ScalarType::from_name)
    }

    /// The same where scalars have other names, or more of them.
    pub fn from_name_by(name: &str, scalar: impl FnOnce(&str) -> Option<ScalarType>) -> Option<Self> {
        match name.strip_prefix("list<").and_then(|rest| rest.strip_suffix('>')) {
            Some(item) => scalar(item).map(Self::List),
            None => scalar(name).map(Self::Scalar),
        }
    }

    /// The Arrow type of a value; a list has nullable items in a field named `item`.
    pub fn arrow(self) -> DataType {
        match self {
            Self::Scalar(scalar) => scalar.arrow(),
            Self::List(scalar) => DataType::List(Arc::new(Field::new("item", scalar.arrow(), true))),
        }
    }
}

impl KeyType {
    /// The Arrow type of a key.
    pub fn arrow(self) -> DataType {
        match self {
            Self::Int64 => DataType::Int64,
            Self::String => DataType::Utf8,
        }
    }
}

impl LogicalType {
    /// What both have in common.
    pub fn meet(self, other: Self) -> Self {
        Self {
            item: self.item.filter(|item| other.item == Some(*item)),
            collection: self.collection.filter(|collection| other.collection == Some(*collection)),
        }
    }

    /// Whether values of a type can be all that it says.
    pub fn suits(self, kind: PropertyType) -> bool {
        let (scalar, is_list) = match kind {
            PropertyType::Scalar(scalar) => (scalar, false),
            PropertyType::List(scalar) => (scalar, true),
        };
        let stored = self.item.map(|item| match item {
            ItemType::Int8 | ItemType::Int16 | ItemType::Int32 => ScalarType::Int64,
            ItemType::Float32 => ScalarType::Float64,
            ItemType::Uuid => ScalarType::String,
        });
        stored.is_none_or(|stored| stored == scalar) && (is_list || self.collection.is_none())
    }
}

impl Property {
    /// A property of a type, of which no more is known.
    pub fn new(name: impl Into<String>, kind: PropertyType) -> Self {
        Self { name: name.into(), kind, logical: LogicalType::default() }
    }

    /// The Arrow field of a column of this property.
    pub fn arrow(&self) -> Field {
        Field::new(&self.name, self.kind.arrow(), true)
    }
}

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for PropertyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(scalar) => write!(f, "{scalar}"),
            Self::List(scalar) => write!(f, "list<{scalar}>"),
        }
    }
}

impl fmt::Display for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Int64 => "int64",
            Self::String => "string",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_by_the_names_that_they_are_written_with() {
        for scalar in ScalarType::ALL {
            for kind in [PropertyType::Scalar(scalar), PropertyType::List(scalar)] {
                assert_eq!(PropertyType::from_name(&kind.to_string()), Some(kind));
            }
        }
        for unknown in ["", "int", "Int64", "list<>", "list<list<int64>>", "list<int64"] {
            assert_eq!(PropertyType::from_name(unknown), None, "{unknown}");
        }
    }
}
