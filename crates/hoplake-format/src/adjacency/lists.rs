//! Where lists are decoded to.

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
