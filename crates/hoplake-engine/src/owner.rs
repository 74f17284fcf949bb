//! What runs belong to: a label, an edge type or a property index.
//!
//! A leaf: compaction merges the runs of one owner, and a snapshot can be cut down to some owners' runs.

use hoplake_format::{EdgeTypeId, IndexId, LabelId, TableOwner, segment::SectionKind};

/// What runs belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// Keys and properties of its vertices.
    Label(LabelId),
    /// Its edges and their properties.
    EdgeType(EdgeTypeId),
    /// The values of its property.
    Index(IndexId),
}

impl Owner {
    pub(crate) fn of_section(kind: SectionKind) -> Self {
        match kind {
            SectionKind::Keys(label) | SectionKind::Tombstones(label) | SectionKind::Rows(label) => Self::Label(label),
            SectionKind::Adjacency(edge_type, _) | SectionKind::Removed(edge_type, _) => Self::EdgeType(edge_type),
            SectionKind::Values(index) | SectionKind::RemovedValues(index) => Self::Index(index),
        }
    }

    pub(crate) fn of_table(owner: TableOwner) -> Self {
        match owner {
            TableOwner::Vertices(label) | TableOwner::Changed(label) => Self::Label(label),
            TableOwner::Edges(edge_type, _) => Self::EdgeType(edge_type),
        }
    }
}
