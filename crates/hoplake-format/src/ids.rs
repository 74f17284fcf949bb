//! Internal identifiers of vertices and edges.

use std::{fmt, str::FromStr};

use crate::FormatError;

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

impl FromStr for VertexId {
    type Err = FormatError;

    /// Reads what [`Display`](fmt::Display) writes.
    fn from_str(text: &str) -> Result<Self, FormatError> {
        let id = text
            .split_once(':')
            .and_then(|(label, ordinal)| Self::new(LabelId(label.parse().ok()?), ordinal.parse().ok()?));
        id.ok_or_else(|| FormatError::Invalid(format!("{text:?} is not a valid id of a vertex, such as 0:933")))
    }
}

/// An edge, seen from either of its ends.
///
/// An id is stable within a version. Later versions keep it as long as they keep the edges of its type between its two
/// vertices as they are, since commits and compactions keep the ordinals of vertices and the order of parallel edges. A
/// load that replaces the graph gives new ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EdgeId {
    /// Its type.
    pub edge_type: EdgeTypeId,
    /// Where it begins.
    pub source: VertexId,
    /// Where it ends.
    pub target: VertexId,
    /// Which of the edges of this type from this source to this target, from 0.
    pub parallel: u32,
}

/// `type/source/target/parallel`, in numbers: `2/0:933/0:1129/0`.
impl fmt::Display for EdgeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}/{}", self.edge_type.0, self.source, self.target, self.parallel)
    }
}

impl FromStr for EdgeId {
    type Err = FormatError;

    /// Reads what [`Display`](fmt::Display) writes.
    fn from_str(text: &str) -> Result<Self, FormatError> {
        let read = || {
            let mut fields = text.split('/');
            let edge_type = EdgeTypeId(fields.next()?.parse().ok()?);
            let source = fields.next()?.parse().ok()?;
            let target = fields.next()?.parse().ok()?;
            let parallel = fields.next()?.parse().ok()?;
            fields.next().is_none().then_some(Self { edge_type, source, target, parallel })
        };
        let wrong = || FormatError::Invalid(format!("{text:?} is not a valid id of an edge, such as 2/0:933/0:1129/0"));
        read().ok_or_else(wrong)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        let vertex = |label, ordinal| VertexId::new(LabelId(label), ordinal).unwrap();
        let source = vertex(0, 933);
        let target = vertex(u16::MAX, VertexId::ORDINAL_MAX);
        let edge = EdgeId { edge_type: EdgeTypeId(2), source, target, parallel: 7 };
        assert_eq!(edge.to_string(), "2/0:933/65535:281474976710655/7");
        assert_eq!(edge.to_string().parse::<EdgeId>().unwrap(), edge);
        assert_eq!(target.to_string().parse::<VertexId>().unwrap(), target);
        for wrong in
            ["", "2", "2/0:933/0:1", "2/0:933/0:1/0/", "2/0:933/0:1/-1", "65536/0:1/0:1/0", "2/0:281474976710656/0:1/0"]
        {
            let error = wrong.parse::<EdgeId>().unwrap_err().to_string();
            assert!(error.contains("is not a valid id of an edge"), "{error}");
        }
    }
}
