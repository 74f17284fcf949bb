//! What runs belong to: a label or an edge type.
//!
//! A leaf: compaction merges the runs of one owner, and a snapshot can be cut down to some owners' runs.

use hoplake_format::{EdgeTypeId, LabelId, TableOwner, segment::SectionKind};

/// What runs belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// Keys and properties of its vertices.
    Label(LabelId),
    /// Its edges and their properties.
    EdgeType(EdgeTypeId),
}

impl Owner {
    pub(crate) fn of_section(kind: SectionKind) -> Self {
        match kind {
            SectionKind::Keys(label) | SectionKind::Tombstones(label) | SectionKind::Rows(label) => Self::Label(label),
            SectionKind::Adjacency(edge_type, _) | SectionKind::Removed(edge_type, _) => Self::EdgeType(edge_type),
        }
    }

    pub(crate) fn of_table(owner: TableOwner) -> Self {
        match owner {
            TableOwner::Vertices(label) | TableOwner::Changed(label) => Self::Label(label),
            TableOwner::Edges(edge_type, _) => Self::EdgeType(edge_type),
        }
    }
}
