//! Which lists a scan reads.

use std::{fmt, ops::Range, str::FromStr};

use hoplake_format::{Direction, EdgeTypeId, FormatError, VertexId, segment::SectionKind};

/// The lists of an edge type in one direction, of a range of sources.
///
/// Its text is short and says all, so that a whole-graph computation can be cut into ranges and each be sent to another machine
/// with the number of a version: ordinals, blocks and runs of a version never change.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ListRange {
    /// The edge type.
    pub edge_type: EdgeTypeId,
    /// The direction in which its edges are followed.
    pub direction: Direction,
    /// Ordinals of the label that the lists are of.
    pub sources: Range<u64>,
}

impl ListRange {
    /// All lists.
    pub fn all(edge_type: EdgeTypeId, direction: Direction) -> Self {
        Self { edge_type, direction, sources: 0..VertexId::ORDINAL_MAX + 1 }
    }

    /// The kinds of sections that have entries of them. Of a run that has both, the first decides.
    pub(crate) fn kinds(&self) -> [SectionKind; 2] {
        let Self { edge_type, direction, .. } = *self;
        [SectionKind::Adjacency(edge_type, direction), SectionKind::Removed(edge_type, direction)]
    }
}

/// `type/direction/first-end`, where `end` is the first source that is not in it: `2/out/0-1000`.
impl fmt::Display for ListRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { edge_type, direction, sources } = self;
        write!(f, "{}/{direction}/{}-{}", edge_type.0, sources.start, sources.end)
    }
}

impl FromStr for ListRange {
    type Err = FormatError;

    /// Reads what [`Display`](fmt::Display) writes.
    fn from_str(text: &str) -> Result<Self, FormatError> {
        let read = || {
            let (edge_type, rest) = text.split_once('/')?;
            let (direction, sources) = rest.split_once('/')?;
            let direction = Direction::ALL.into_iter().find(|it| it.to_string() == direction)?;
            let (start, end) = sources.split_once('-')?;
            let sources: Range<u64> = start.parse().ok()?..end.parse().ok()?;
            let fits = sources.start <= sources.end && sources.end <= VertexId::ORDINAL_MAX + 1;
            fits.then_some(Self { edge_type: EdgeTypeId(edge_type.parse().ok()?), direction, sources })
        };
        let wrong = || FormatError::Invalid(format!("{text:?} is not a valid range of lists, such as 2/out/0-1000"));
        read().ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_they_are_written() {
        let range = ListRange { edge_type: EdgeTypeId(2), direction: Direction::In, sources: 7..1000 };
        assert_eq!(range.to_string(), "2/in/7-1000");
        let all = ListRange::all(EdgeTypeId(u16::MAX), Direction::Out);
        for range in [range, all] {
            assert_eq!(range.to_string().parse::<ListRange>().unwrap(), range);
        }
        for wrong in
            ["", "2/out", "2/out/7", "2/out/8-7", "2/up/0-7", "65536/out/0-7", "2/out/0-281474976710657", "2/out/-1-7"]
        {
            let error = wrong.parse::<ListRange>().unwrap_err().to_string();
            assert!(error.contains("is not a valid range of lists"), "{wrong}: {error}");
        }
    }
}
