//! Where lists are decoded to.

use std::ops::Range;

/// Lists of several sources, in buffers that can be used again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lists {
    /// The sources.
    pub sources: Vec<u64>,
    /// The position in the section of each list's first edge.
    pub first_edges: Vec<u64>,
    /// Where each list starts in `targets`, and at the end where the last one ends.
    pub offsets: Vec<usize>,
    /// The targets of all lists.
    pub targets: Vec<u64>,
}

impl Default for Lists {
    fn default() -> Self {
        Self { sources: Vec::new(), first_edges: Vec::new(), offsets: vec![0], targets: Vec::new() }
    }
}

impl Lists {
    /// Forgets the lists and keeps the memory.
    pub fn clear(&mut self) {
        self.sources.clear();
        self.first_edges.clear();
        self.offsets.truncate(1);
        self.targets.clear();
    }

    /// Adds an edge. It becomes part of the last list if it may go on and the edge follows its last one; or else it begins another.
    pub fn push(&mut self, source: u64, position: u64, target: u64, may_go_on: bool) {
        let goes_on = may_go_on
            && self.sources.last().zip(self.first_edges.last()).is_some_and(|(last, first)| {
                let length = self.targets.len() - self.offsets[self.len() - 1];
                (*last, first + length as u64) == (source, position)
            });
        if goes_on {
            self.offsets.pop();
        } else {
            self.sources.push(source);
            self.first_edges.push(position);
        }
        self.targets.push(target);
        self.offsets.push(self.targets.len());
    }

    /// Keeps the lists of some sources; sources ascend.
    pub fn keep_sources(&mut self, sources: &Range<u64>) {
        let end = self.sources.partition_point(|source| *source < sources.end);
        let start = self.sources.partition_point(|source| *source < sources.start).min(end);
        if (start, end) == (0, self.len()) {
            return;
        }
        let edges = self.offsets[start]..self.offsets[end];
        self.sources = self.sources[start..end].to_vec();
        self.first_edges = self.first_edges[start..end].to_vec();
        self.offsets = self.offsets[start..=end].iter().map(|offset| offset - edges.start).collect();
        self.targets = self.targets[edges].to_vec();
    }

    /// How many lists there are.
    pub fn len(&self) -> usize {
        self.sources.len()
    }

    /// Whether it has no lists.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Each list's source, position of its first edge, and targets.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64, &[u64])> {
        let targets = self.offsets.windows(2).map(|pair| &self.targets[pair[0]..pair[1]]);
        self.sources.iter().zip(&self.first_edges).zip(targets).map(|((&source, &edge), list)| (source, edge, list))
    }
}
