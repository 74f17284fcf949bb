//! A batch: changes that are applied together or not at all.

use std::{collections::BTreeMap, fmt, sync::Arc};

use hoplake_format::Key;

use super::{Columns, LogicalTypes, Name, Properties, Value};
use crate::{EngineError, vertex_text};

/// A vertex by the name of its label and its key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VertexRef {
    /// The label's name.
    pub label: Name,
    /// The key.
    pub key: Key,
}

impl VertexRef {
    /// The vertex of this label and key.
    pub fn new(label: impl Into<Name>, key: impl Into<Key>) -> Self {
        Self { label: label.into(), key: key.into() }
    }
}

impl fmt::Display for VertexRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&vertex_text(&self.label, &self.key))
    }
}

/// Which of several edges of a label between the same two vertices: the one whose property has this value.
#[derive(Debug, Clone, PartialEq)]
pub struct EdgeKey {
    /// The property's name.
    pub property: Name,
    /// Its value, which is not null.
    pub value: Value,
}

impl fmt::Display for EdgeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.property, self.value)
    }
}

/// One change.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// Adds or changes the vertex, with these properties.
    UpsertVertex {
        /// Which vertex.
        vertex: VertexRef,
        /// Its properties.
        properties: Properties,
        /// Whether properties that are not named become null; otherwise they keep their values.
        replace: bool,
    },
    /// Deletes the vertex and all its edges.
    DeleteVertex {
        /// Which vertex.
        vertex: VertexRef,
    },
    /// There is one edge of this label between the two, with these properties; if it has a key, one with this key,
    /// next to those with others.
    UpsertEdge {
        /// The edge label.
        label: Name,
        /// The vertex that it leaves.
        source: VertexRef,
        /// The vertex that it reaches.
        target: VertexRef,
        /// Its edge key, which distinguishes it from other edges between the two.
        key: Option<EdgeKey>,
        /// Its properties.
        properties: Properties,
        /// Whether properties that are not named become null; otherwise they keep their values.
        replace: bool,
    },
    /// There is no edge of this label between the two; if there is a key, none with this key.
    DeleteEdge {
        /// The edge label.
        label: Name,
        /// The vertex that it left.
        source: VertexRef,
        /// The vertex that it reached.
        target: VertexRef,
        /// Its edge key, which distinguishes it from other edges between the two.
        key: Option<EdgeKey>,
    },
    /// One of the edges of this label between the two, by its number among them, or one more.
    EditEdge {
        /// The edge label.
        label: Name,
        /// The vertex that it leaves.
        source: VertexRef,
        /// The vertex that it reaches.
        target: VertexRef,
        /// Which of them: its [number](hoplake_format::EdgeId::parallel) when the operation is applied. `None` adds one behind the last.
        number: Option<u32>,
        /// Its properties; `None` deletes it.
        properties: Option<Properties>,
        /// Whether properties that are not named become null; otherwise they keep their values.
        replace: bool,
    },
    /// One upsert after the other, as the rows of a record batch.
    UpsertColumns(Arc<Columns>),
}

impl Operation {
    /// How many changes it is: one for each row of columns.
    pub fn changes(&self) -> usize {
        match self {
            Self::UpsertColumns(columns) => columns.len(),
            _ => 1,
        }
    }

    /// The memory that it takes, without the names of labels and properties, which operations share.
    pub fn memory_bytes(&self) -> usize {
        let key = |vertex: &VertexRef| match &vertex.key {
            Key::Int64(_) => 0,
            Key::String(key) => key.capacity(),
        };
        let of_edge_key = |key: &Option<EdgeKey>| key.as_ref().map_or(0, |key| key.value.heap_bytes());
        let heap = match self {
            Self::UpsertVertex { vertex, properties, .. } => key(vertex) + properties.heap_bytes(),
            Self::DeleteVertex { vertex } => key(vertex),
            Self::UpsertEdge { source, target, key: edge, properties, .. } => {
                key(source) + key(target) + of_edge_key(edge) + properties.heap_bytes()
            }
            Self::DeleteEdge { source, target, key: edge, .. } => key(source) + key(target) + of_edge_key(edge),
            Self::EditEdge { source, target, properties, .. } => {
                key(source) + key(target) + properties.as_ref().map_or(0, Properties::heap_bytes)
            }
            Self::UpsertColumns(columns) => columns.memory_bytes(),
        };
        size_of::<Self>() + heap
    }

    /// The properties that a single upsert has.
    pub(crate) fn properties(&self) -> Option<&Properties> {
        match self {
            Self::UpsertVertex { properties, .. } | Self::UpsertEdge { properties, .. } => Some(properties),
            Self::EditEdge { properties, .. } => properties.as_ref(),
            Self::DeleteVertex { .. } | Self::DeleteEdge { .. } | Self::UpsertColumns(_) => None,
        }
    }

    /// The label whose properties it is about, of the vertex or of the edge.
    pub(crate) fn owner(&self) -> &Name {
        match self {
            Self::UpsertVertex { vertex, .. } | Self::DeleteVertex { vertex } => &vertex.label,
            Self::UpsertEdge { label, .. } | Self::DeleteEdge { label, .. } | Self::EditEdge { label, .. } => label,
            Self::UpsertColumns(columns) => columns.label(),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UpsertVertex { vertex, .. } => write!(f, "upsert of vertex {vertex}"),
            Self::DeleteVertex { vertex } => write!(f, "deletion of vertex {vertex}"),
            Self::UpsertEdge { label, source, target, key, .. } => {
                write!(f, "upsert of edge {source} -{label}-> {target}{}", Of(key))
            }
            Self::DeleteEdge { label, source, target, key } => {
                write!(f, "deletion of edge {source} -{label}-> {target}{}", Of(key))
            }
            Self::EditEdge { label, source, target, number, properties, .. } => {
                let what = if properties.is_some() { "change" } else { "deletion" };
                match number {
                    Some(number) => write!(f, "{what} of edge {source} -{label}-> {target} number {number}"),
                    None => write!(f, "addition of edge {source} -{label}-> {target}"),
                }
            }
            Self::UpsertColumns(columns) => columns.fmt(f),
        }
    }
}

/// The key of an edge that has one.
struct Of<'a>(&'a Option<EdgeKey>);

impl fmt::Display for Of<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |key| write!(f, " with {key}"))
    }
}

/// Changes that are applied together or not at all.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Batch {
    /// The changes. Those of vertices take effect before those of edges, and of either kind one after the other: the
    /// last change of an item wins.
    pub operations: Vec<Operation>,
    /// Why, to be kept with the version; at most [`MESSAGE_BYTES_MAX`].
    pub message: String,
    /// Up to where a source was read, by its name, once this is applied; those of a graph take at most [`POSITIONS_BYTES_MAX`].
    pub source_positions: BTreeMap<String, String>,
    /// Up to where sources have to have been read in the version before, by their names; `None` if nothing of a source
    /// may have been applied yet. Otherwise the batch is in conflict: another writer has read on from the source.
    pub if_positions: BTreeMap<String, Option<String>>,
    /// The version that the changes were decided on: they are in conflict with later changes of the same vertices and
    /// edges. Without one they go onto whatever is the newest.
    pub base: Option<u64>,
    /// Whether an end of an edge that is not there is made, without properties; otherwise it is an error. Its label has
    /// to be one of the graph, or of a vertex that the batch upserts.
    pub create_missing: bool,
    /// Whether a label, an edge type or a property that the graph does not have is an error; otherwise an upsert adds
    /// it.
    pub strict: bool,
    /// Whether a new vertex is an error if its key would end that [keys are unique](hoplake_format::Manifest::unique_keys): a vertex of
    /// another label has it, or it has another type than the other keys. Without effect on a graph whose keys are not unique.
    pub keep_unique_keys: bool,
    /// What values are beyond their types.
    pub logical_types: LogicalTypes,
    /// A name that its sender gives it: if one of the last [`IDEMPOTENCY_KEYS_MAX`](super::IDEMPOTENCY_KEYS_MAX) batches that had
    /// such a name had this one, the batch is not applied again, and the outcome is that of the first.
    pub idempotency_key: Option<String>,
}

/// The longest message of a batch, in bytes. Batches that are applied together share a version and its manifest.
pub const MESSAGE_BYTES_MAX: usize = 4 << 10;

/// The most bytes of the names and positions of all sources of a graph: every later manifest has them.
pub const POSITIONS_BYTES_MAX: usize = 64 << 10;

impl Batch {
    /// Rejects a message or positions that would make manifests long, after these positions.
    ///
    /// # Errors
    /// [`EngineError::Invalid`].
    pub(super) fn check_lengths(&self, before: &BTreeMap<String, String>) -> Result<(), EngineError> {
        if self.message.len() > MESSAGE_BYTES_MAX {
            let bytes = self.message.len();
            let why = format!("the message has {bytes} bytes, and at most {MESSAGE_BYTES_MAX} are kept with a version");
            return Err(EngineError::Invalid(why));
        }
        if self.source_positions.is_empty() {
            return Ok(());
        }
        let kept = before.iter().filter(|(name, _)| !self.source_positions.contains_key(*name));
        let all = kept.chain(&self.source_positions);
        let bytes: usize = all.map(|(name, position)| name.len() + position.len()).sum();
        if bytes > POSITIONS_BYTES_MAX {
            let why = format!(
                "the names and positions of all sources of the graph would take {bytes} bytes, more than {POSITIONS_BYTES_MAX}; every \
                 version keeps them, so name fewer sources, or shorter positions"
            );
            return Err(EngineError::Invalid(why));
        }
        Ok(())
    }

    /// How many changes there are: operations, and rows of columns.
    pub fn changes(&self) -> usize {
        self.operations.iter().map(Operation::changes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_manifests_keep_is_short() {
        let before = BTreeMap::from([("a".to_owned(), "x".repeat(POSITIONS_BYTES_MAX - 1))]);
        let with = |name: &str, position: usize| Batch {
            source_positions: [(name.to_owned(), "y".repeat(position))].into(),
            ..Batch::default()
        };
        // In place of the one before, and next to it.
        with("a", POSITIONS_BYTES_MAX - 1).check_lengths(&before).unwrap();
        let rejected = with("b", 0).check_lengths(&before).unwrap_err().to_string();
        assert!(rejected.contains("would take 65537 bytes, more than 65536"), "{rejected}");
        assert!(with("a", POSITIONS_BYTES_MAX).check_lengths(&BTreeMap::new()).is_err());
        let message = |bytes: usize| Batch { message: "m".repeat(bytes), ..Batch::default() };
        message(MESSAGE_BYTES_MAX).check_lengths(&before).unwrap();
        assert!(message(MESSAGE_BYTES_MAX + 1).check_lengths(&before).is_err());
    }
}
