//! Some vertices of a label, as a scan comes to know them.

use std::ops::Range;

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};

use crate::memory::bytes_of;

/// Rows whose bits are a word of a mask.
const WORD_ROWS: usize = 64;

/// If at least one in 16 rows is chosen, the rows between are decoded too: skipping a few takes longer.
const DENSE_ROWS: usize = 16;

/// Some vertices, by their ordinals, ascending.
#[derive(Debug, Clone)]
pub(super) enum Vertices {
    /// All of a stretch, which are not listed: most parts are of these.
    Stretch(Range<u64>),
    /// Those of a stretch, from an ordinal on, whose bit is set.
    Chosen(u64, BooleanBuffer),
    /// These.
    These(Vec<u64>),
}

/// Stretches of rows that have all of some vertices.
pub(super) struct Stretches {
    pub(super) rows: Vec<Range<u64>>,
    /// Which of their rows are of the vertices; `None` if all are.
    pub(super) chosen: Option<BooleanBuffer>,
}

impl Vertices {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Stretch(ordinals) => (ordinals.end - ordinals.start) as usize,
            Self::Chosen(_, mask) => mask.count_set_bits(),
            Self::These(ordinals) => ordinals.len(),
        }
    }

    /// The memory that they take.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Stretch(_) => 0,
            Self::Chosen(_, mask) => mask.len() as u64 / 8,
            Self::These(ordinals) => bytes_of::<u64>(ordinals.len()),
        }
    }

    /// A range that has all of their ordinals.
    pub(super) fn bounds(&self) -> Range<u64> {
        match self {
            Self::Stretch(ordinals) => ordinals.clone(),
            Self::Chosen(start, mask) => *start..*start + mask.len() as u64,
            Self::These(ordinals) => match (ordinals.first(), ordinals.last()) {
                (Some(first), Some(last)) => *first..*last + 1,
                _ => 0..0,
            },
        }
    }

    pub(super) fn ordinals(&self) -> Box<dyn Iterator<Item = u64> + Send + '_> {
        match self {
            Self::Stretch(ordinals) => Box::new(ordinals.clone()),
            Self::Chosen(start, mask) => Box::new(mask.set_indices().map(|at| *start + at as u64)),
            Self::These(ordinals) => Box::new(ordinals.iter().copied()),
        }
    }

    pub(super) fn into_vec(self) -> Vec<u64> {
        match self {
            Self::These(ordinals) => ordinals,
            others => others.ordinals().collect(),
        }
    }

    /// Those whose bit is set, of a mask with a bit for each.
    pub(super) fn filtered(self, mask: BooleanBuffer) -> Self {
        match self {
            Self::Stretch(ordinals) => Self::Chosen(ordinals.start, mask),
            others => {
                let ordinals = others.into_vec();
                Self::These(mask.set_indices().map(|at| ordinals[at]).collect())
            }
        }
    }

    /// The first of them.
    pub(super) fn first(&self, count: usize) -> Self {
        match self {
            Self::Stretch(ordinals) => Self::Stretch(ordinals.start..ordinals.end.min(ordinals.start + count as u64)),
            Self::Chosen(start, mask) => {
                let end = mask.set_indices().nth(count).unwrap_or(mask.len());
                Self::Chosen(*start, mask.slice(0, end))
            }
            Self::These(ordinals) => Self::These(ordinals[..count.min(ordinals.len())].to_vec()),
        }
    }

    /// Where their rows are if no run has changed them.
    pub(super) fn stretches(&self) -> Stretches {
        match self {
            Self::Stretch(ordinals) => Stretches { rows: vec![ordinals.clone()], chosen: None },
            Self::Chosen(start, mask) if mask.count_set_bits() * DENSE_ROWS < mask.len() => {
                let rows = mask.set_slices().map(|(from, until)| start + from as u64..start + until as u64);
                Stretches { rows: rows.collect(), chosen: None }
            }
            Self::Chosen(start, mask) => dense(*start, mask),
            Self::These(ordinals) => {
                let runs = ordinals.chunk_by(|a, b| a + 1 == *b);
                let rows = runs.map(|run| run[0]..run[0] + run.len() as u64).collect();
                Stretches { rows, chosen: None }
            }
        }
    }
}

/// A stretch ends only where no row of a word is chosen.
fn dense(start: u64, mask: &BooleanBuffer) -> Stretches {
    let mut rows: Vec<Range<u64>> = Vec::new();
    let mut chosen = BooleanBufferBuilder::new(mask.len());
    let words = mask.bit_chunks();
    let mut take = |from: usize, until: usize| chosen.append_buffer(&mask.slice(from, until - from));
    // The stretch so far, within the mask.
    let mut stretch: Option<Range<usize>> = None;
    let mut end = |stretch: Range<usize>| {
        take(stretch.start, stretch.end);
        rows.push(start + stretch.start as u64..start + stretch.end as u64);
    };
    for (number, word) in words.iter_padded().enumerate().filter(|(_, word)| *word != 0) {
        let first = number * WORD_ROWS;
        let bounds = first + word.trailing_zeros() as usize..first + WORD_ROWS - word.leading_zeros() as usize;
        // It goes on if the word before has a row, too.
        match &mut stretch {
            Some(before) if before.end + WORD_ROWS > first => before.end = bounds.end,
            _ => {
                stretch.replace(bounds).into_iter().for_each(&mut end);
            }
        }
    }
    stretch.into_iter().for_each(&mut end);
    Stretches { rows, chosen: Some(chosen.finish()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn vertices() -> impl Strategy<Value = (Vertices, Vec<u64>)> {
        // Few, many, or all of some rows; long gaps and long runs too.
        let runs = prop::collection::vec((any::<bool>(), 1usize..200), 0..6);
        let bits = prop::collection::vec(any::<u8>(), 0..700);
        (100u64..200, 0u8..=255, runs, bits, 0..3).prop_map(|(start, most, runs, bits, kind)| {
            let of_runs = runs.into_iter().flat_map(|(set, rows)| std::iter::repeat_n(set, rows));
            let mask: Vec<bool> = bits.into_iter().map(|bit| bit <= most).chain(of_runs).collect();
            let listed: Vec<u64> = (start..).zip(&mask).filter_map(|(ordinal, set)| set.then_some(ordinal)).collect();
            match kind {
                0 => (Vertices::Stretch(start..start + mask.len() as u64), (start..).take(mask.len()).collect()),
                1 => (Vertices::Chosen(start, BooleanBuffer::from(mask)), listed),
                _ => (Vertices::These(listed.clone()), listed),
            }
        })
    }

    fn rows_of(stretches: &Stretches) -> Vec<u64> {
        let rows: Vec<u64> = stretches.rows.iter().cloned().flatten().collect();
        match &stretches.chosen {
            Some(chosen) => {
                assert_eq!(chosen.len(), rows.len());
                chosen.set_indices().map(|at| rows[at]).collect()
            }
            None => rows,
        }
    }

    proptest! {
        #[test]
        fn vertices_are_the_same_in_every_form((vertices, listed) in vertices(), bits in prop::collection::vec(any::<bool>(), 2_000), count in 0usize..900) {
            prop_assert_eq!(vertices.len(), listed.len());
            prop_assert_eq!(&vertices.ordinals().collect::<Vec<_>>(), &listed);
            let bounds = vertices.bounds();
            prop_assert!(listed.iter().all(|ordinal| bounds.contains(ordinal)));
            prop_assert_eq!(vertices.first(count).into_vec(), &listed[..count.min(listed.len())]);
            let stretches = vertices.stretches();
            prop_assert_eq!(rows_of(&stretches), &listed[..]);
            prop_assert!(stretches.rows.is_sorted_by(|a, b| a.end < b.start));
            // No stretch begins or ends with a row that nobody wants.
            prop_assert!(stretches.rows.iter().all(|rows| listed.binary_search(&rows.start).is_ok() && listed.binary_search(&(rows.end - 1)).is_ok()) || matches!(vertices, Vertices::Stretch(_)));
            let mask = BooleanBuffer::from(&bits[..listed.len()]);
            let kept: Vec<u64> = listed.iter().zip(&bits).filter_map(|(ordinal, set)| set.then_some(*ordinal)).collect();
            prop_assert_eq!(vertices.filtered(mask).into_vec(), kept);
        }
    }
}
