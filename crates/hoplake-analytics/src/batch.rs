//! Lists of consecutive vertices: what a selection is read as, whatever its lists are used for.

use std::ops::Range;

/// Lists of consecutive vertices.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// The vertices, of which many may have no list.
    pub(crate) vertices: Range<u32>,
    /// Those that have one, ascending.
    pub(crate) with_lists: Vec<u32>,
    /// Where each list begins, and at the end where the last one ends.
    pub(crate) offsets: Vec<usize>,
    /// The other ends, each list ascending.
    pub(crate) targets: Vec<u32>,
    /// The weights of the edges, if they were asked for.
    pub(crate) weights: Vec<f64>,
}

impl Batch {
    /// The lists: a vertex, its neighbours, and the weights of its edges if they were asked for.
    pub(crate) fn lists(&self) -> impl DoubleEndedIterator<Item = (u32, &[u32], &[f64])> + ExactSizeIterator {
        let list = |ends: &[usize]| {
            let weights = self.weights.get(ends[0]..ends[1]).unwrap_or_default();
            (&self.targets[ends[0]..ends[1]], weights)
        };
        let lists = self.offsets.windows(2).map(list);
        self.with_lists.iter().zip(lists).map(|(vertex, (targets, weights))| (*vertex, targets, weights))
    }

    /// The lists of some vertices.
    pub(crate) fn lists_of(&self, vertices: &Range<u32>) -> impl DoubleEndedIterator<Item = (u32, &[u32], &[f64])> {
        let [first, end] = [vertices.start, vertices.end].map(|end| self.with_lists.partition_point(|it| *it < end));
        self.lists().skip(first).take(end - first)
    }

    /// The lists of a vertex and those after it.
    pub(crate) fn lists_from(&self, vertex: u32) -> impl Iterator<Item = (u32, &[u32], &[f64])> {
        self.lists().skip(self.with_lists.partition_point(|with_list| *with_list < vertex))
    }

    /// Makes it one without vertices, which keeps its memory.
    pub(crate) fn clear(&mut self) {
        self.vertices = 0..0;
        self.with_lists.clear();
        self.offsets.clear();
        self.offsets.push(0);
        self.targets.clear();
        self.weights.clear();
    }

    /// What its arrays take.
    pub(crate) fn bytes(&self) -> u64 {
        let Self { with_lists, offsets, targets, weights, .. } = self;
        let bytes = (with_lists.capacity() + targets.capacity()) * 4 + (offsets.capacity() + weights.capacity()) * 8;
        bytes as u64
    }

    /// How many edges some vertices have.
    pub(crate) fn edges_of(&self, vertices: &Range<u32>) -> usize {
        let [first, end] = [vertices.start, vertices.end].map(|end| self.with_lists.partition_point(|it| *it < end));
        self.offsets[end] - self.offsets[first]
    }

    /// Merges two ascending parts of the last list, which begin there.
    pub(crate) fn merge(&mut self, begin: usize, middle: usize) {
        let is_before = |a: usize, b: usize| self.targets[a] <= self.targets[b];
        let end = self.targets.len();
        if middle == begin || middle == end || is_before(middle - 1, middle) {
            return;
        }
        // Edges of both directions, where ids ascend along edges: one part is before the other.
        if is_before(end - 1, begin) {
            self.targets[begin..].rotate_left(middle - begin);
            if let Some(weights) = self.weights.get_mut(begin..).filter(|weights| !weights.is_empty()) {
                weights.rotate_left(middle - begin);
            }
            return;
        }
        let targets = &mut self.targets[begin..];
        // Each part ascends: the stable sort merges such runs, where the unstable one would begin from scratch.
        let Some(weights) = self.weights.get_mut(begin..).filter(|weights| !weights.is_empty()) else {
            return targets.sort();
        };
        let mut edges: Vec<(u32, f64)> = targets.iter().copied().zip(weights.iter().copied()).collect();
        edges.sort_by_key(|(target, _)| *target);
        for ((target, weight), edge) in targets.iter_mut().zip(weights).zip(edges) {
            (*target, *weight) = edge;
        }
    }
}
