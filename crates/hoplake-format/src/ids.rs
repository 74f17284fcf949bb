//! What a vertex and an edge are called inside.

use std::fmt;

/// The number of a vertex label: its position in [`Schema::vertex_labels`](crate::Schema).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelId(pub u16);

/// The number of an edge type: its position in [`Schema::edge_types`](crate::Schema).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EdgeTypeId(pub u16);

/// A vertex: its label (16 bits) and its ordinal (48 bits), which is dense within the label.
///
/// The order is by label, then by ordinal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VertexId(u64);

impl VertexId {
    /// The largest ordinal there is, 2⁴⁸ − 1.
    pub const ORDINAL_MAX: u64 = (1 << 48) - 1;

    /// A vertex by label and ordinal; `None` if the ordinal needs more than 48 bits.
    pub fn new(label: LabelId, ordinal: u64) -> Option<Self> {
        (ordinal <= Self::ORDINAL_MAX).then_some(Self(u64::from(label.0) << 48 | ordinal))
    }

    /// The label.
    pub fn label(self) -> LabelId {
        LabelId((self.0 >> 48) as u16)
    }

    /// The position within the label, from 0.
    pub fn ordinal(self) -> u64 {
        self.0 & Self::ORDINAL_MAX
    }
}

impl fmt::Display for VertexId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.label().0, self.ordinal())
    }
}

/// Along an edge or against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// From the source of an edge to its target.
    Out,
    /// From the target of an edge to its source.
    In,
}

impl Direction {
    /// Both directions, `Out` first.
    pub const ALL: [Self; 2] = [Self::Out, Self::In];

    /// The other way.
    pub fn reverse(self) -> Self {
        match self {
            Self::Out => Self::In,
            Self::In => Self::Out,
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Out => "out",
            Self::In => "in",
        })
    }
}
