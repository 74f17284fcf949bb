//! Numbers of the vertices of several labels, for computations that keep an array over all of them.
//!
//! Ordinals are dense within a label. A label that takes part gets a *base*, the number of ordinals of the labels before it, and
//! base + ordinal is a vertex's dense id. Dense ids ascend with vertex ids, so what is sorted by one is sorted by the other. A
//! deleted vertex keeps its ordinal, and so its dense id: it has no edges, and results leave it out. A dense id means something in
//! one version only, as an ordinal does in what a commit may renumber.

use std::ops::Range;

use hoplake_format::{LabelId, VertexId};

use crate::Snapshot;

/// The dense ids of the vertices of some labels, from 0 on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DenseIds {
    /// Labels, and where their ids begin; both ascend.
    bases: Vec<(LabelId, u64)>,
    len: u64,
}

impl DenseIds {
    /// The ids of labels, each with its number of ordinals.
    pub fn new(counts: impl IntoIterator<Item = (LabelId, u64)>) -> Self {
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_unstable();
        counts.dedup_by_key(|(label, _)| *label);
        let mut len = 0;
        let bases = counts.into_iter().map(|(label, count)| {
            let base = len;
            len += count;
            (label, base)
        });
        Self { bases: bases.collect(), len }
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The labels and their ids.
    pub fn by_label(&self) -> impl Iterator<Item = (LabelId, Range<u64>)> + '_ {
        let ends = self.bases.iter().skip(1).map(|(_, base)| *base).chain([self.len]);
        self.bases.iter().zip(ends).map(|((label, base), end)| (*label, *base..end))
    }

    /// The ids of a label; `None` if it does not take part.
    pub fn of_label(&self, label: LabelId) -> Option<Range<u64>> {
        self.by_label().find(|(other, _)| *other == label).map(|(_, ids)| ids)
    }

    /// The id of a vertex; `None` if its label does not take part or has no such ordinal.
    pub fn of_vertex(&self, vertex: VertexId) -> Option<u64> {
        let ids = self.of_label(vertex.label())?;
        let id = ids.start.checked_add(vertex.ordinal())?;
        ids.contains(&id).then_some(id)
    }

    /// The vertex of an id; `None` behind the last.
    pub fn vertex(&self, id: u64) -> Option<VertexId> {
        // The last label that begins at most there; labels without vertices begin where the next one does.
        let at = self.bases.partition_point(|(_, base)| *base <= id).checked_sub(1)?;
        let (label, base) = self.bases[at];
        (id < self.len).then(|| VertexId::new(label, id - base))?
    }
}

impl Snapshot {
    /// The dense ids of the vertices of some labels in this version.
    pub fn dense_ids(&self, labels: impl IntoIterator<Item = LabelId>) -> DenseIds {
        DenseIds::new(labels.into_iter().map(|label| (label, self.ordinal_count(label))))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ids_are_dense_and_ascend_with_vertices(counts in prop::collection::btree_map(0u16..9, 0u64..5, 0..6)) {
            let ids = DenseIds::new(counts.iter().map(|(label, count)| (LabelId(*label), *count)));
            let vertices: Vec<_> = counts
                .iter()
                .flat_map(|(label, count)| (0..*count).filter_map(|ordinal| VertexId::new(LabelId(*label), ordinal)))
                .collect();
            prop_assert_eq!(ids.len(), vertices.len() as u64);
            prop_assert_eq!(ids.is_empty(), vertices.is_empty());
            for (id, vertex) in (0..).zip(&vertices) {
                prop_assert_eq!(ids.of_vertex(*vertex), Some(id));
                prop_assert_eq!(ids.vertex(id), Some(*vertex));
            }
            prop_assert_eq!(ids.vertex(ids.len()), None);
            for label in (0..10).map(LabelId) {
                let count = counts.get(&label.0).copied();
                prop_assert_eq!(ids.of_label(label).map(|ids| ids.end - ids.start), count);
                let behind = VertexId::new(label, count.unwrap_or(0)).unwrap();
                prop_assert_eq!(ids.of_vertex(behind), None);
            }
        }
    }
}
