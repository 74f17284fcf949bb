//! Which vertices a scan looks for, and those that it found.

use std::ops::Range;

use arrow_array::RecordBatch;
use hoplake_format::LabelId;

use super::stretches::Vertices;
use crate::Condition;

/// Which vertices a scan looks for, and what it returns of them.
#[derive(Debug, Clone)]
pub struct VertexQuery {
    /// The label.
    pub label: LabelId,
    /// Which of its vertices; without, all. A property that the label does not have is absent.
    pub condition: Option<Condition>,
    /// Properties to return; `~key` is the key.
    pub columns: Vec<String>,
    /// How many the caller wants, if not all. It may return more.
    pub wanted: Option<usize>,
}

/// Some vertices of a scan.
#[derive(Debug, Clone)]
pub struct FoundVertices {
    pub(super) vertices: Vertices,
    /// The columns asked for, a row each.
    pub batch: RecordBatch,
}

impl FoundVertices {
    /// How many they are. At least one.
    #[expect(clippy::len_without_is_empty, reason = "a scan hands out none that is empty")]
    pub fn len(&self) -> usize {
        self.batch.num_rows()
    }

    /// Their ordinals, ascending.
    pub fn ordinals(&self) -> impl Iterator<Item = u64> + Send {
        self.vertices.ordinals()
    }

    /// A range that has all of their ordinals.
    pub fn bounds(&self) -> Range<u64> {
        self.vertices.bounds()
    }

    /// The first of them.
    #[must_use]
    pub fn first(&self, count: usize) -> Self {
        let batch = self.batch.slice(0, count.min(self.batch.num_rows()));
        Self { vertices: self.vertices.first(count), batch }
    }
}
