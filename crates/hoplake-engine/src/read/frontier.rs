//! Sets of vertices.

use std::collections::BTreeMap;

use hoplake_format::{FormatError, LabelId, VertexId};
use hoplake_storage::{MemoryHold, Pace, QueryContext, StorageError};

use crate::{
    EngineError, Held,
    memory::bytes_of,
    pieces::{STEP, sort_by_key},
    read::ordinals::{NONE, Ordinals},
};

/// A set of vertices: for each label, its ordinals.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frontier(BTreeMap<LabelId, Ordinals>);

impl Frontier {
    /// The set of some vertices, in any order and with repeats; its memory counts before it is taken.
    ///
    /// # Errors
    /// [`StorageError::Limit`] if the query's memory has no room for it, or its time is over.
    pub async fn held(vertices: &[VertexId], context: &QueryContext) -> Result<Held<Self>, StorageError> {
        let sorted = sorted(vertices, context).await?;
        // Lists double as they grow.
        let mut memory = context.hold(bytes_of::<[u64; 3]>(sorted.len()))?;
        let set = Self::of_sorted(&sorted, &mut context.pace()).await?;
        context.resize(&mut memory, set.bytes())?;
        Ok(Held::new(set, memory))
    }

    /// How many vertices there are.
    pub fn len(&self) -> usize {
        self.0.values().map(Ordinals::len).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.values().all(Ordinals::is_empty)
    }

    /// The labels and their ordinals.
    pub fn by_label(&self) -> impl Iterator<Item = (LabelId, &Ordinals)> {
        self.0.iter().map(|(label, ordinals)| (*label, ordinals))
    }

    /// The ordinals of one label.
    pub fn ordinals(&self, label: LabelId) -> &Ordinals {
        self.0.get(&label).unwrap_or(&NONE)
    }

    /// All vertices, by label and ordinal.
    pub fn vertices(&self) -> impl Iterator<Item = VertexId> + '_ {
        self.0.iter().flat_map(|(label, ordinals)| ordinals.iter().filter_map(|it| VertexId::new(*label, it)))
    }

    /// Whether a vertex is in the set.
    pub fn contains(&self, vertex: VertexId) -> bool {
        self.ordinals(vertex.label()).contains(vertex.ordinal())
    }

    /// Replaces the ordinals of a label.
    pub(crate) fn set(&mut self, label: LabelId, ordinals: Ordinals) {
        if ordinals.is_empty() {
            self.0.remove(&label)
        } else {
            self.0.insert(label, ordinals)
        };
    }

    /// Takes out the vertices of `other`.
    pub(crate) async fn subtract(&mut self, other: &Self, pace: &mut Pace) -> Result<(), StorageError> {
        for (label, ordinals) in &mut self.0 {
            ordinals.subtract(other.ordinals(*label), pace).await?;
        }
        self.0.retain(|_, ordinals| !ordinals.is_empty());
        Ok(())
    }

    /// Puts in the vertices of `other`.
    ///
    /// # Errors
    /// [`StorageError::Limit`] if the query's time is over.
    pub async fn unite(&mut self, other: &Self, pace: &mut Pace) -> Result<(), StorageError> {
        for (label, ordinals) in &other.0 {
            self.0.entry(*label).or_insert_with(|| NONE.clone()).unite(ordinals, pace).await?;
        }
        Ok(())
    }

    /// The set of sorted vertices, which may repeat.
    pub(crate) async fn of_sorted(vertices: &[VertexId], pace: &mut Pace) -> Result<Self, StorageError> {
        let mut lists: BTreeMap<LabelId, Vec<u64>> = BTreeMap::new();
        for step in vertices.chunks(STEP) {
            for vertex in step {
                let ordinals = lists.entry(vertex.label()).or_default();
                if ordinals.last() != Some(&vertex.ordinal()) {
                    ordinals.push(vertex.ordinal());
                }
            }
            pace.rest(step.len() as u64).await?;
        }
        Ok(Self::of_lists(lists))
    }

    fn of_lists(lists: BTreeMap<LabelId, Vec<u64>>) -> Self {
        Self(lists.into_iter().map(|(label, ordinals)| (label, Ordinals::list(ordinals))).collect())
    }

    /// The memory that it takes.
    pub fn bytes(&self) -> u64 {
        self.0.values().map(Ordinals::bytes).sum()
    }
}

impl FromIterator<VertexId> for Frontier {
    fn from_iter<I: IntoIterator<Item = VertexId>>(vertices: I) -> Self {
        let mut lists: BTreeMap<LabelId, Vec<u64>> = BTreeMap::new();
        for vertex in vertices {
            lists.entry(vertex.label()).or_default().push(vertex.ordinal());
        }
        for ordinals in lists.values_mut() {
            ordinals.sort_unstable();
            ordinals.dedup();
        }
        Self::of_lists(lists)
    }
}

/// Some vertices in order, each once.
pub(crate) async fn sorted(vertices: &[VertexId], context: &QueryContext) -> Result<Held<Vec<VertexId>>, StorageError> {
    let memory = context.hold(bytes_of::<VertexId>(vertices.len()))?;
    let mut sorted = vertices.to_vec();
    sort_by_key(&mut sorted, |vertex| *vertex, context).await?;
    sorted.dedup();
    Ok(Held::new(sorted, memory))
}

/// Collects ordinals of one label, with repeats, into a set.
///
/// While there are few they are kept in a list and sorted at the end; when there are many for the size
/// of the label they become a bitmap, in which a repeat costs a bit set twice instead of a comparison.
/// The list moves into the bitmap a step at a time, so that no block waits long.
#[derive(Debug)]
pub(crate) struct OrdinalCollector {
    universe: u64,
    few: Vec<u64>,
    many: Vec<u64>,
    memory: MemoryHold,
    context: QueryContext,
}

impl OrdinalCollector {
    /// An empty set of ordinals below `universe`.
    pub(crate) fn new(universe: u64, context: &QueryContext) -> Result<Self, StorageError> {
        let memory = context.hold(0)?;
        Ok(Self { universe, few: Vec::new(), many: Vec::new(), memory, context: context.clone() })
    }

    /// Adds ordinals.
    pub(crate) fn extend(&mut self, ordinals: &[u64]) -> Result<(), SinkError> {
        if !self.many.is_empty() {
            set_bits(&mut self.many, ordinals, self.universe)?;
            return self.move_few();
        }
        let length = self.few.len() + ordinals.len();
        // 64 ordinals in a list take as much memory as the bitmap of 4,096.
        let many = length > 1024 && length as u64 > self.universe / 64;
        let words = if many { self.universe.div_ceil(64) as usize } else { 0 };
        self.reserve(length, words)?;
        self.few.extend_from_slice(ordinals);
        if many {
            self.many = vec![0; words];
            self.move_few()?;
        }
        Ok(())
    }

    /// Counts the memory of a list of some length and of a bitmap, then makes room in the list.
    fn reserve(&mut self, length: usize, words: usize) -> Result<(), StorageError> {
        let before = self.few.capacity();
        let after = if length > before { length.max(before * 2) } else { before };
        // While the list moves to a larger allocation, both are there.
        let moving = if after > before { before } else { 0 };
        self.context.resize(&mut self.memory, bytes_of::<u64>(after + moving + words))?;
        self.few.reserve_exact(after - self.few.len());
        self.context.resize(&mut self.memory, bytes_of::<u64>(after + words))
    }

    /// Moves a step of the list into the bitmap.
    fn move_few(&mut self) -> Result<(), SinkError> {
        if self.few.capacity() == 0 {
            return Ok(());
        }
        let left = self.few.len().saturating_sub(STEP);
        set_bits(&mut self.many, &self.few[left..], self.universe)?;
        self.few.truncate(left);
        if left == 0 {
            self.few = Vec::new();
            self.context.resize(&mut self.memory, bytes_of::<u64>(self.many.len()))?;
        }
        Ok(())
    }

    /// The set, and the memory that it takes.
    pub(crate) async fn finish(mut self, pace: &mut Pace) -> Result<(Ordinals, MemoryHold), SinkError> {
        if self.many.is_empty() {
            sort_by_key(&mut self.few, |ordinal| *ordinal, &self.context).await?;
            self.few.dedup();
            if self.few.last().is_some_and(|last| *last >= self.universe) {
                return Err(outside().into());
            }
            return Ok((Ordinals::list(self.few), self.memory));
        }
        while !self.few.is_empty() {
            self.move_few()?;
            pace.rest(STEP as u64).await?;
        }
        let bitmap = Ordinals::bitmap(self.many, pace).await?;
        if (bitmap.len() as u64) >= self.universe / 64 {
            return Ok((bitmap, self.memory));
        }
        // Most were repeats.
        let (list, memory) = bitmap.to_list(&self.context).await?;
        Ok((Ordinals::list(list), memory))
    }

    /// Adds all of another set of the same universe.
    pub(crate) async fn merge(&mut self, mut other: Self, pace: &mut Pace) -> Result<(), SinkError> {
        if self.many.is_empty() {
            // A list can be added to a bitmap, so the side that may have one stays.
            std::mem::swap(self, &mut other);
        }
        for (mine, theirs) in self.many.chunks_mut(STEP).zip(other.many.chunks(STEP)) {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine |= theirs);
            pace.rest(STEP as u64).await?;
        }
        for step in other.few.chunks(STEP) {
            self.extend(step)?;
            pace.rest(step.len() as u64).await?;
        }
        Ok(())
    }
}

/// Why a set could not take ordinals.
#[derive(Debug)]
pub(crate) enum SinkError {
    /// They are not what a graph can have.
    Format(FormatError),
    /// The query has no memory or time left.
    Limit(StorageError),
}

impl From<FormatError> for SinkError {
    fn from(error: FormatError) -> Self {
        Self::Format(error)
    }
}

impl From<StorageError> for SinkError {
    fn from(error: StorageError) -> Self {
        Self::Limit(error)
    }
}

impl SinkError {
    /// As the engine's, which names the place of what is damaged.
    pub(crate) fn at(self, location: impl Into<String>) -> EngineError {
        match self {
            Self::Format(source) => EngineError::Format { location: location.into(), source },
            Self::Limit(error) => error.into(),
        }
    }
}

/// That an adjacency names a vertex that is not there.
pub(crate) fn outside() -> FormatError {
    FormatError::corrupt("adjacency block", "it names a vertex that the label does not have")
}

fn set_bits(words: &mut [u64], ordinals: &[u64], universe: u64) -> Result<(), FormatError> {
    let mut fits = true;
    for ordinal in ordinals {
        match words.get_mut((ordinal >> 6) as usize) {
            Some(word) => *word |= 1 << (ordinal & 63),
            None => fits = false,
        }
    }
    // The last word has room for a few ordinals too many.
    let spare = (words.len() as u64 * 64).saturating_sub(universe);
    let fits = fits && words.last().is_none_or(|last| spare == 0 || last >> (64 - spare) == 0);
    fits.then_some(()).ok_or_else(outside)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use futures::executor::block_on;
    use hoplake_storage::ReadLimits;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn collected_in_parts_is_collected(
            parts in prop::collection::vec(prop::collection::vec(0u64..5000, 0..1500), 1..4), universe in 4000u64..70_000
        ) {
            let context = QueryContext::new();
            let found = block_on(async {
                let mut pace = context.pace();
                let mut whole = OrdinalCollector::new(universe, &context)?;
                for part in &parts {
                    let mut collector = OrdinalCollector::new(universe, &context)?;
                    part.chunks(100).try_for_each(|chunk| collector.extend(chunk))?;
                    whole.merge(collector, &mut pace).await?;
                }
                whole.finish(&mut pace).await
            });
            let expected: BTreeSet<_> = parts.into_iter().flatten().collect();
            let inside = expected.last().is_none_or(|last| *last < universe);
            prop_assert_eq!(found.ok().map(|(found, _)| found), inside.then(|| Ordinals::list(expected.into_iter().collect())));
            prop_assert_eq!(context.memory().used(), 0);
        }

        #[test]
        fn sets_subtract_and_unite(a in prop::collection::btree_set(0u64..60, 0..40), b in prop::collection::btree_set(0u64..60, 0..40)) {
            let set = |ordinals: &BTreeSet<u64>| -> Frontier {
                ordinals.iter().filter_map(|ordinal| VertexId::new(LabelId((ordinal % 3) as u16), *ordinal)).collect()
            };
            let context = QueryContext::new();
            let mut difference = set(&a);
            block_on(difference.subtract(&set(&b), &mut context.pace())).unwrap();
            prop_assert_eq!(&difference, &set(&a.difference(&b).copied().collect()));
            let mut union = set(&b);
            block_on(union.unite(&difference, &mut context.pace())).unwrap();
            prop_assert_eq!(&union, &set(&a.union(&b).copied().collect()));
            let sorted: Vec<_> = union.vertices().collect();
            prop_assert_eq!(block_on(Frontier::of_sorted(&sorted, &mut context.pace())).unwrap(), union);
        }
    }

    #[test]
    fn a_set_counts_its_memory_before_it_takes_it() {
        let context = QueryContext::new();
        context.limit(ReadLimits { memory_bytes_max: Some(100 << 10), ..ReadLimits::default() });
        // A bitmap of 1 M vertices takes 122 KiB; a list of the few below takes less.
        let mut collector = OrdinalCollector::new(1_000_000, &context).unwrap();
        let few: Vec<_> = (0..4_000).collect();
        collector.extend(&few).unwrap();
        assert!(context.memory().used() >= 32_000);
        let rejected = (1..10).find_map(|_| collector.extend(&few).err());
        assert!(matches!(rejected, Some(SinkError::Limit(_))), "{rejected:?}");
        assert!(context.memory().peak() <= 100 << 10);
    }
}
