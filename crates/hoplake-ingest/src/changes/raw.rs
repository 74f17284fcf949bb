//! Changes as they are written, before the graph's schema gives their values a meaning.

use std::fmt;

use hoplake_engine::change::{Name, Value};

/// A value as it is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Raw {
    /// Text of a format without types.
    Untyped(String),
    /// A value whose type is known; text may still stand for a date or a moment.
    Typed(Value),
}

/// The operation of a change, the value of its `op`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeOp {
    UpsertVertex,
    DeleteVertex,
    UpsertEdge,
    DeleteEdge,
}

impl ChangeOp {
    const NAMES: [(&str, Self); 4] = [
        ("upsert_vertex", Self::UpsertVertex),
        ("delete_vertex", Self::DeleteVertex),
        ("upsert_edge", Self::UpsertEdge),
        ("delete_edge", Self::DeleteEdge),
    ];

    /// The kind of this name.
    pub(super) fn named(name: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
        found.ok_or_else(|| {
            format!("{name:?} is not an op; there are upsert_vertex, delete_vertex, upsert_edge and delete_edge")
        })
    }

    pub(super) fn is_edge(self) -> bool {
        matches!(self, Self::UpsertEdge | Self::DeleteEdge)
    }
}

impl fmt::Display for ChangeOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAMES.iter().find(|(_, kind)| kind == self).map_or("change", |(name, _)| name))
    }
}

/// A label and a key.
pub(super) type RawVertexRef = (Name, Raw);

/// A change as it is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RawChange {
    pub(super) kind: ChangeOp,
    pub(super) label: Name,
    /// Of a vertex.
    pub(super) key: Option<Raw>,
    /// Of an edge.
    pub(super) source: Option<RawVertexRef>,
    pub(super) target: Option<RawVertexRef>,
    /// A property that distinguishes parallel edges, and its value.
    pub(super) edge_key: Option<(Name, Raw)>,
    pub(super) properties: Vec<(Name, Raw)>,
    pub(super) replace: bool,
}
