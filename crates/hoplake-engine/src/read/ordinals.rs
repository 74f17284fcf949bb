//! Ordinals of one label: a list while they are few, a bitmap when they are many.
//!
//! A list takes 64 bits an ordinal, a bitmap one bit for each ordinal of the label. A traversal that reaches a large part of a
//! label keeps the bitmap from hop to hop: sets are united and subtracted 64 vertices at a time, and a plan seeks in it the first
//! source of each block instead of passing every source.

use std::{fmt, ops::Range};

use hoplake_storage::{MemoryHold, Pace, QueryContext, StorageError};

use crate::{
    memory::bytes_of,
    pieces::{STEP, merge, position_of},
};

/// Distinct ordinals of one label, ascending.
#[derive(Clone)]
pub struct Ordinals(OrdinalContainer);

/// The ordinals as a sorted list, or as a bitmap.
#[derive(Clone)]
enum OrdinalContainer {
    List(Vec<u64>),
    Bitmap { words: Vec<u64>, len: usize },
}

/// No ordinals.
pub(crate) static NONE: Ordinals = Ordinals(OrdinalContainer::List(Vec::new()));

impl Ordinals {
    /// Of a list, whose items ascend.
    pub(crate) fn list(ordinals: Vec<u64>) -> Self {
        debug_assert!(ordinals.is_sorted_by(|a, b| a < b));
        Self(OrdinalContainer::List(ordinals))
    }

    /// Of the positions of the bits that are set.
    pub(crate) async fn bitmap(words: Vec<u64>, pace: &mut Pace) -> Result<Self, StorageError> {
        let mut ordinals = Self(OrdinalContainer::Bitmap { words, len: 0 });
        ordinals.count(pace).await?;
        Ok(ordinals)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match &self.0 {
            OrdinalContainer::List(ordinals) => ordinals.len(),
            OrdinalContainer::Bitmap { len, .. } => *len,
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether an ordinal is one of them.
    pub fn contains(&self, ordinal: u64) -> bool {
        match &self.0 {
            OrdinalContainer::List(ordinals) => ordinals.binary_search(&ordinal).is_ok(),
            OrdinalContainer::Bitmap { words, .. } => has_bit(words, ordinal),
        }
    }

    /// All of them, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.view().cursor(0..u64::MAX)
    }

    pub(crate) fn view(&self) -> View<'_> {
        match &self.0 {
            OrdinalContainer::List(ordinals) => View::List(ordinals),
            OrdinalContainer::Bitmap { words, .. } => View::Bitmap(words),
        }
    }

    /// As a list, whose memory is counted.
    pub(crate) async fn to_list(&self, context: &QueryContext) -> Result<(Vec<u64>, MemoryHold), StorageError> {
        let memory = context.hold(bytes_of::<u64>(self.len()))?;
        let mut list = Vec::with_capacity(self.len());
        let mut pace = context.pace();
        let mut cursor = self.view().cursor(0..u64::MAX);
        while cursor.take_into(STEP, &mut list) {
            pace.rest(STEP as u64).await?;
        }
        Ok((list, memory))
    }

    /// The memory that they take.
    pub(crate) fn bytes(&self) -> u64 {
        match &self.0 {
            OrdinalContainer::List(ordinals) => bytes_of::<u64>(ordinals.capacity()),
            OrdinalContainer::Bitmap { words, .. } => bytes_of::<u64>(words.capacity()),
        }
    }

    /// Takes out those of `other`.
    pub(crate) async fn subtract(&mut self, other: &Self, pace: &mut Pace) -> Result<(), StorageError> {
        match (&mut self.0, &other.0) {
            (OrdinalContainer::List(list), _) => subtract_from_list(list, other.view(), pace).await,
            (OrdinalContainer::Bitmap { words, .. }, OrdinalContainer::Bitmap { words: others, .. }) => {
                combine(words, others, |word, other| *word &= !other, pace).await?;
                self.count(pace).await
            }
            (OrdinalContainer::Bitmap { words, len }, OrdinalContainer::List(others)) => {
                for step in others.chunks(STEP) {
                    for ordinal in step {
                        if has_bit(words, *ordinal) {
                            words[word_of(*ordinal)] &= !bit_of(*ordinal);
                            *len -= 1;
                        }
                    }
                    pace.rest(step.len() as u64).await?;
                }
                Ok(())
            }
        }
    }

    /// Puts in those of `other`.
    pub(crate) async fn unite(&mut self, other: &Self, pace: &mut Pace) -> Result<(), StorageError> {
        match (&mut self.0, &other.0) {
            (OrdinalContainer::List(mine), OrdinalContainer::List(others)) => {
                let mut both = Vec::with_capacity(mine.len() + others.len());
                merge(mine, others, &mut both, &|ordinal| *ordinal, pace).await?;
                both.dedup();
                *mine = both;
                Ok(())
            }
            (OrdinalContainer::List(list), OrdinalContainer::Bitmap { words, len }) => {
                // The result is as large as the bitmap, so it becomes one. Copied in steps, since a clone could not rest.
                let list = std::mem::take(list);
                let mut copy = Vec::with_capacity(words.len());
                for step in words.chunks(STEP) {
                    copy.extend_from_slice(step);
                    pace.rest(step.len() as u64).await?;
                }
                self.0 = OrdinalContainer::Bitmap { words: copy, len: *len };
                self.set(&list, pace).await
            }
            (OrdinalContainer::Bitmap { words, .. }, OrdinalContainer::Bitmap { words: others, .. }) => {
                words.resize(words.len().max(others.len()), 0);
                combine(words, others, |word, other| *word |= other, pace).await?;
                self.count(pace).await
            }
            (OrdinalContainer::Bitmap { .. }, OrdinalContainer::List(others)) => self.set(others, pace).await,
        }
    }

    /// Sets the bits of a list, which ascends.
    async fn set(&mut self, list: &[u64], pace: &mut Pace) -> Result<(), StorageError> {
        let OrdinalContainer::Bitmap { words, len } = &mut self.0 else { return Ok(()) };
        // The last ordinal is the greatest, so the bitmap grows once.
        let needed = list.last().map_or(0, |last| word_of(*last) + 1);
        words.resize(words.len().max(needed), 0);
        for step in list.chunks(STEP) {
            for ordinal in step {
                *len += usize::from(!has_bit(words, *ordinal));
                words[word_of(*ordinal)] |= bit_of(*ordinal);
            }
            pace.rest(step.len() as u64).await?;
        }
        Ok(())
    }

    async fn count(&mut self, pace: &mut Pace) -> Result<(), StorageError> {
        let OrdinalContainer::Bitmap { words, len } = &mut self.0 else { return Ok(()) };
        *len = 0;
        for step in words.chunks(STEP) {
            *len += step.iter().map(|word| word.count_ones() as usize).sum::<usize>();
            pace.rest(step.len() as u64).await?;
        }
        Ok(())
    }
}

/// The same ordinals, in whichever form.
impl PartialEq for Ordinals {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Ordinals {}

/// Shows the ordinals.
impl fmt::Debug for Ordinals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

async fn subtract_from_list(list: &mut Vec<u64>, others: View<'_>, pace: &mut Pace) -> Result<(), StorageError> {
    let mut kept = 0;
    let mut others = others.cursor(0..u64::MAX);
    // In place: at most as many are kept as were looked at, so no ordinal is overwritten before its turn.
    for start in (0..list.len()).step_by(STEP) {
        let end = (start + STEP).min(list.len());
        for index in start..end {
            let ordinal = list[index];
            others.seek(ordinal);
            if others.peek() != Some(ordinal) {
                list[kept] = ordinal;
                kept += 1;
            }
        }
        pace.rest((end - start) as u64 * 4).await?;
    }
    list.truncate(kept);
    Ok(())
}

/// Changes words by those at the same places of others.
async fn combine(
    words: &mut [u64],
    others: &[u64],
    change: impl Fn(&mut u64, u64),
    pace: &mut Pace,
) -> Result<(), StorageError> {
    // Words beyond the shorter bitmap stay as they are: nothing is to be subtracted there, and `unite` has made room before.
    for (mine, theirs) in words.chunks_mut(STEP).zip(others.chunks(STEP)) {
        mine.iter_mut().zip(theirs).for_each(|(word, other)| change(word, *other));
        pace.rest(mine.len() as u64).await?;
    }
    Ok(())
}

fn word_of(ordinal: u64) -> usize {
    (ordinal >> 6) as usize
}

fn bit_of(ordinal: u64) -> u64 {
    1 << (ordinal & 63)
}

fn has_bit(words: &[u64], ordinal: u64) -> bool {
    words.get(word_of(ordinal)).is_some_and(|word| word & bit_of(ordinal) != 0)
}

/// Ordinals where they lie.
#[derive(Debug, Clone, Copy)]
pub(crate) enum View<'a> {
    List(&'a [u64]),
    Bitmap(&'a [u64]),
}

impl<'a> View<'a> {
    /// A cursor over those in a range.
    pub(crate) fn cursor(self, range: Range<u64>) -> Cursor<'a> {
        let state = match self {
            Self::List(list) => State::List { list, at: list.partition_point(|ordinal| *ordinal < range.start) },
            Self::Bitmap(words) => State::Bitmap(Bits::from(words, range.start)),
        };
        Cursor { state, end: range.end }
    }

    /// Whether all ordinals of a range that is not empty are there.
    pub(crate) fn has_all(self, range: Range<u64>) -> bool {
        match self {
            Self::List(list) => {
                let start = list.partition_point(|ordinal| *ordinal < range.start);
                // Distinct and ascending: as many as the range has can only be the range.
                let last = start as u64 + (range.end - range.start) - 1;
                list.get(start) == Some(&range.start) && list.get(last as usize) == Some(&(range.end - 1))
            }
            Self::Bitmap(words) => {
                let first = word_of(range.start);
                let last = word_of(range.end - 1);
                let Some(covered) = words.get(first..=last) else { return false };
                (first..).zip(covered).all(|(number, word)| {
                    // The range covers its first and its last word in part, which may be the same word.
                    let low = if number == first { u64::MAX << (range.start & 63) } else { u64::MAX };
                    let high = if number == last { u64::MAX >> (63 - ((range.end - 1) & 63)) } else { u64::MAX };
                    word & low & high == low & high
                })
            }
        }
    }
}

/// The bits of a bitmap that are still to come.
#[derive(Debug, Clone)]
struct Bits<'a> {
    words: &'a [u64],
    /// The word of the next bit, and what is left of it; 0 at the end.
    number: usize,
    rest: u64,
}

impl<'a> Bits<'a> {
    /// Those from a position on.
    fn from(words: &'a [u64], position: u64) -> Self {
        let number = word_of(position);
        // A position beyond the last word leaves 0, as the end does.
        let rest = words.get(number).map_or(0, |word| word & (u64::MAX << (position & 63)));
        Self { words, number, rest }.at_a_bit()
    }

    fn at_a_bit(mut self) -> Self {
        self.skip();
        self
    }

    /// Passes words without bits.
    fn skip(&mut self) {
        while self.rest == 0 && self.number + 1 < self.words.len() {
            self.number += 1;
            self.rest = self.words[self.number];
        }
    }

    fn peek(&self) -> Option<u64> {
        (self.rest != 0).then(|| self.number as u64 * 64 + u64::from(self.rest.trailing_zeros()))
    }

    fn pass(&mut self) {
        // Clears the lowest bit that is set.
        self.rest &= self.rest.wrapping_sub(1);
        self.skip();
    }
}

/// A place among ordinals, which moves forward only.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    state: State<'a>,
    end: u64,
}

#[derive(Debug, Clone)]
enum State<'a> {
    List { list: &'a [u64], at: usize },
    Bitmap(Bits<'a>),
}

impl Cursor<'_> {
    /// The ordinal at this place; `None` at the end.
    pub(crate) fn peek(&self) -> Option<u64> {
        let next = match &self.state {
            State::List { list, at } => list.get(*at).copied(),
            State::Bitmap(bits) => bits.peek(),
        };
        next.filter(|ordinal| *ordinal < self.end)
    }

    /// Moves to the first that is not below `bound`. Near ones are found at once, and far ones of a list without a look at all
    /// between.
    pub(crate) fn seek(&mut self, bound: u64) {
        match &mut self.state {
            State::List { list, at } => *at = position_of(list, *at, bound),
            State::Bitmap(bits) => {
                // A jump to the word of `bound`, whatever lies between; a bound that was passed must not move the cursor back.
                if bits.peek().is_some_and(|next| next < bound) {
                    *bits = Bits::from(bits.words, bound);
                }
            }
        }
    }

    /// Appends up to `count` ordinals; whether there were any.
    pub(crate) fn take_into(&mut self, count: usize, into: &mut Vec<u64>) -> bool {
        let before = into.len();
        into.extend(self.by_ref().take(count));
        into.len() > before
    }
}

impl Iterator for Cursor<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let ordinal = self.peek()?;
        match &mut self.state {
            State::List { at, .. } => *at += 1,
            State::Bitmap(bits) => bits.pass(),
        }
        Some(ordinal)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use futures::executor::block_on;
    use proptest::prelude::*;

    use super::*;

    /// The same ordinals in both forms.
    fn forms(ordinals: &BTreeSet<u64>) -> [Ordinals; 2] {
        let mut words = vec![0u64; ordinals.last().map_or(0, |last| word_of(*last) + 1)];
        ordinals.iter().for_each(|ordinal| words[word_of(*ordinal)] |= bit_of(*ordinal));
        let bitmap = block_on(Ordinals::bitmap(words, &mut QueryContext::new().pace())).unwrap();
        [Ordinals::list(ordinals.iter().copied().collect()), bitmap]
    }

    fn sets() -> impl Strategy<Value = BTreeSet<u64>> {
        prop_oneof![
            prop::collection::btree_set(0u64..300, 0..200),
            prop::collection::btree_set(0u64..100_000, 0..20),
            (0u64..200, 0u64..300).prop_map(|(first, count)| (first..first + count).collect()),
        ]
    }

    proptest! {
        #[test]
        fn both_forms_are_the_set(a in sets(), b in sets(), range in (0u64..400, 1u64..200), bound in 0u64..500) {
            let context = QueryContext::new();
            let mut pace = context.pace();
            let range = range.0..range.0 + range.1;
            for mine in forms(&a) {
                prop_assert_eq!(mine.len(), a.len());
                prop_assert_eq!(mine.contains(bound), a.contains(&bound));
                prop_assert!(mine.iter().eq(a.iter().copied()));
                prop_assert!(mine.view().cursor(range.clone()).eq(a.range(range.clone()).copied()));
                prop_assert_eq!(mine.view().has_all(range.clone()), a.range(range.clone()).count() as u64 == range.end - range.start);
                let mut cursor = mine.view().cursor(range.clone());
                cursor.seek(bound);
                prop_assert_eq!(cursor.peek(), a.range(range.start.max(bound)..range.end.max(bound)).next().copied());
                prop_assert_eq!(block_on(mine.to_list(&context)).unwrap().0, a.iter().copied().collect::<Vec<_>>());
                for other in forms(&b) {
                    prop_assert_eq!(mine == other, a == b);
                    let mut difference = mine.clone();
                    block_on(difference.subtract(&other, &mut pace)).unwrap();
                    prop_assert!(difference.iter().eq(a.difference(&b).copied()));
                    prop_assert_eq!(difference.len(), a.difference(&b).count());
                    let mut union = mine.clone();
                    block_on(union.unite(&other, &mut pace)).unwrap();
                    prop_assert!(union.iter().eq(a.union(&b).copied()));
                    prop_assert_eq!(union.len(), a.union(&b).count());
                }
            }
        }
    }
}
