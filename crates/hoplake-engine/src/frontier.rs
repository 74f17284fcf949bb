//! Sets of vertices.

use std::collections::BTreeMap;

use hoplake_format::{LabelId, VertexId};

/// A set of vertices: for each label, distinct ordinals in ascending order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frontier(BTreeMap<LabelId, Vec<u64>>);

impl Frontier {
    /// How many vertices there are.
    pub fn len(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.values().all(Vec::is_empty)
    }

    /// The labels and their ordinals.
    pub fn by_label(&self) -> impl Iterator<Item = (LabelId, &[u64])> {
        self.0.iter().map(|(label, ordinals)| (*label, ordinals.as_slice()))
    }

    /// The ordinals of one label.
    pub fn ordinals(&self, label: LabelId) -> &[u64] {
        self.0.get(&label).map_or(&[], Vec::as_slice)
    }

    /// All vertices, by label and ordinal.
    pub fn vertices(&self) -> impl Iterator<Item = VertexId> + '_ {
        let vertex = |label, ordinal: &u64| VertexId::new(label, *ordinal);
        self.0.iter().flat_map(move |(label, ordinals)| ordinals.iter().filter_map(move |it| vertex(*label, it)))
    }

    /// Whether a vertex is in the set.
    pub fn contains(&self, vertex: VertexId) -> bool {
        self.ordinals(vertex.label()).binary_search(&vertex.ordinal()).is_ok()
    }

    /// Replaces the ordinals of a label; they ascend.
    pub(crate) fn set(&mut self, label: LabelId, ordinals: Vec<u64>) {
        debug_assert!(ordinals.is_sorted_by(|a, b| a < b));
        if ordinals.is_empty() {
            self.0.remove(&label)
        } else {
            self.0.insert(label, ordinals)
        };
    }

    /// Takes out whatever is in `other`.
    pub(crate) fn subtract(&mut self, other: &Self) {
        for (label, ordinals) in &mut self.0 {
            let mut others = other.ordinals(*label).iter().peekable();
            ordinals.retain(|ordinal| {
                while others.next_if(|other| *other < ordinal).is_some() {}
                others.peek() != Some(&ordinal)
            });
        }
        self.0.retain(|_, ordinals| !ordinals.is_empty());
    }

    /// Puts in whatever is in `other`.
    pub fn unite(&mut self, other: &Self) {
        for (label, ordinals) in &other.0 {
            let mine = self.0.entry(*label).or_default();
            mine.extend_from_slice(ordinals);
            // Two sorted runs: the stable sort merges them in one pass.
            mine.sort();
            mine.dedup();
        }
    }
}

impl FromIterator<VertexId> for Frontier {
    fn from_iter<I: IntoIterator<Item = VertexId>>(vertices: I) -> Self {
        let mut frontier = Self::default();
        for vertex in vertices {
            frontier.0.entry(vertex.label()).or_default().push(vertex.ordinal());
        }
        for ordinals in frontier.0.values_mut() {
            ordinals.sort_unstable();
            ordinals.dedup();
        }
        frontier
    }
}

/// Collects ordinals of one label, with repeats, into a set.
///
/// While there are few they are kept in a list and sorted at the end; when there are many for the size
/// of the label they become a bitmap, in which a repeat costs a bit set twice instead of a comparison.
#[derive(Debug)]
pub(crate) struct OrdinalCollector {
    universe: u64,
    few: Vec<u64>,
    many: Vec<u64>,
}

impl OrdinalCollector {
    /// An empty set of ordinals below `universe`.
    pub(crate) fn new(universe: u64) -> Self {
        Self { universe, few: Vec::new(), many: Vec::new() }
    }

    /// Adds ordinals; `false` if one is not below the universe.
    pub(crate) fn extend(&mut self, ordinals: &[u64]) -> bool {
        if !self.many.is_empty() {
            return set_bits(&mut self.many, ordinals, self.universe);
        }
        self.few.extend_from_slice(ordinals);
        // 64 ordinals in a list take as much memory as the bitmap of 4,096.
        if self.few.len() > 1024 && self.few.len() as u64 > self.universe / 64 {
            self.many = vec![0; self.universe.div_ceil(64) as usize];
            return set_bits(&mut self.many, &std::mem::take(&mut self.few), self.universe);
        }
        true
    }

    /// The ordinals, ascending; `None` if one is not below the universe.
    pub(crate) fn finish(mut self) -> Option<Vec<u64>> {
        if !self.many.is_empty() {
            return Some(bits(&self.many));
        }
        self.few.sort_unstable();
        self.few.dedup();
        self.few.last().is_none_or(|last| *last < self.universe).then_some(self.few)
    }

    /// Adds all of another set of the same universe.
    pub(crate) fn merge(&mut self, other: Self) -> bool {
        if other.many.is_empty() {
            return self.extend(&other.few);
        }
        if self.many.is_empty() {
            let few = std::mem::take(&mut self.few);
            self.many = other.many;
            return set_bits(&mut self.many, &few, self.universe);
        }
        self.many.iter_mut().zip(other.many).for_each(|(mine, theirs)| *mine |= theirs);
        true
    }
}

fn set_bits(words: &mut [u64], ordinals: &[u64], universe: u64) -> bool {
    let mut fits = true;
    for ordinal in ordinals {
        match words.get_mut((ordinal >> 6) as usize) {
            Some(word) => *word |= 1 << (ordinal & 63),
            None => fits = false,
        }
    }
    // The last word has room for a few ordinals too many.
    let spare = (words.len() as u64 * 64).saturating_sub(universe);
    fits && words.last().is_none_or(|last| spare == 0 || last >> (64 - spare) == 0)
}

fn bits(words: &[u64]) -> Vec<u64> {
    let count: u32 = words.iter().map(|word| word.count_ones()).sum();
    let mut ordinals = Vec::with_capacity(count as usize);
    for (position, word) in (0u64..).step_by(64).zip(words) {
        let mut rest = *word;
        while rest != 0 {
            ordinals.push(position + u64::from(rest.trailing_zeros()));
            rest &= rest - 1;
        }
    }
    ordinals
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn collected_in_parts_is_collected(
            parts in prop::collection::vec(prop::collection::vec(0u64..5000, 0..1500), 1..4), universe in 4000u64..70_000
        ) {
            let mut whole = OrdinalCollector::new(universe);
            let mut fits = true;
            for part in &parts {
                let mut collector = OrdinalCollector::new(universe);
                fits &= part.chunks(100).map(|chunk| collector.extend(chunk)).fold(true, |a, b| a & b);
                fits &= whole.merge(collector);
            }
            let expected: BTreeSet<_> = parts.into_iter().flatten().collect();
            let inside = expected.last().is_none_or(|last| *last < universe);
            let found = whole.finish().filter(|_| fits);
            prop_assert_eq!(found, inside.then(|| expected.into_iter().collect()));
        }

        #[test]
        fn sets_subtract_and_unite(a in prop::collection::btree_set(0u64..60, 0..40), b in prop::collection::btree_set(0u64..60, 0..40)) {
            let set = |ordinals: &BTreeSet<u64>| -> Frontier {
                ordinals.iter().filter_map(|ordinal| VertexId::new(LabelId((ordinal % 3) as u16), *ordinal)).collect()
            };
            let mut difference = set(&a);
            difference.subtract(&set(&b));
            prop_assert_eq!(difference, set(&a.difference(&b).copied().collect()));
            let mut union = set(&a);
            union.unite(&set(&b));
            prop_assert_eq!(union, set(&a.union(&b).copied().collect()));
        }
    }
}
