//! Which vertices have reason to collect, how much, and since when.
//!
//! A bit a vertex says that it waits, and a score how much. Threads add to both while others take vertices out. A signal is written
//! before it is added here, and a vertex is taken out before it looks its signals up: so either it sees the signal, or it waits
//! again.

use std::{
    ops::Range,
    sync::atomic::{
        AtomicU32, AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed},
    },
};

/// Vertices of a word of bits. They have one age: that of the one that has waited longest.
const WORD: u32 = 64;

/// Scores are put into buckets by their exponent and the first bits after it: a bucket ends a 16th above where it begins.
const BUCKET_SHIFT: u32 = 19;
const BUCKETS: usize = 1 << (31 - BUCKET_SHIFT);

/// Scores that count as reason: beyond these sums would be 0 or infinite.
pub(crate) const SCORE_MIN: f64 = 1e-30;
pub(crate) const SCORE_MAX: f64 = 1e30;

/// The vertices that have reason to collect, each with its score.
pub(crate) struct Worklist {
    /// As the bits of a 32-bit float, whose order is that of numbers.
    scores: Vec<AtomicU32>,
    bits: Vec<AtomicU64>,
    /// The step before which a vertex of the word was first seen to wait; 0 if none does.
    since: Vec<AtomicU32>,
    threshold: f32,
    staleness_max: u32,
}

impl Worklist {
    /// What `vertices` take.
    pub(crate) fn bytes(vertices: u32) -> u64 {
        u64::from(vertices) * 4 + u64::from(vertices.div_ceil(WORD)) * 12
    }

    pub(crate) fn new(vertices: u32, threshold: f64, staleness_max: usize) -> Self {
        let words = vertices.div_ceil(WORD);
        Self {
            scores: (0..vertices).map(|_| AtomicU32::new(0)).collect(),
            bits: (0..words).map(|_| AtomicU64::new(0)).collect(),
            since: (0..words).map(|_| AtomicU32::new(0)).collect(),
            threshold: threshold.clamp(0.0, SCORE_MAX) as f32,
            staleness_max: u32::try_from(staleness_max).unwrap_or(u32::MAX),
        }
    }

    /// A score that is reason enough.
    pub(crate) fn reason(&self) -> f64 {
        f64::from(self.threshold).max(1.0)
    }

    /// Adds to a vertex's reason to collect.
    #[inline]
    pub(crate) fn add(&self, vertex: u32, score: f64) {
        let score = score.clamp(SCORE_MIN, SCORE_MAX) as f32;
        let added = |before| Some((f32::from_bits(before) + score).min(SCORE_MAX as f32).to_bits());
        // Always `Ok`: the closure always has a value.
        let _ = self.scores[vertex as usize].fetch_update(AcqRel, Relaxed, added);
        let word = &self.bits[(vertex / WORD) as usize];
        let bit = 1 << (vertex % WORD);
        // One that takes the vertex out clears its bit before its score, which this thread has just changed: so a bit that is seen
        // here is seen by that thread, too, or is cleared before.
        if word.load(Acquire) & bit == 0 {
            word.fetch_or(bit, AcqRel);
        }
    }

    /// Takes a vertex out, which looks its signals up next.
    pub(crate) fn clear(&self, vertex: u32) {
        self.bits[(vertex / WORD) as usize].fetch_and(!(1 << (vertex % WORD)), AcqRel);
        self.scores[vertex as usize].swap(0, AcqRel);
    }

    /// The first vertex of a range that waits.
    pub(crate) fn first(&self, vertices: Range<u32>) -> Option<u32> {
        let mut at = vertices.start;
        while at < vertices.end {
            let left = self.bits[(at / WORD) as usize].load(Acquire) >> (at % WORD);
            if left != 0 {
                return Some(at + left.trailing_zeros()).filter(|found| *found < vertices.end);
            }
            at = (at / WORD + 1).saturating_mul(WORD);
        }
        None
    }

    /// The last vertex of a range that waits.
    pub(crate) fn last(&self, vertices: Range<u32>) -> Option<u32> {
        let mut end = vertices.end;
        while end > vertices.start {
            let last = end - 1;
            let left = self.bits[(last / WORD) as usize].load(Acquire) << (WORD - 1 - last % WORD);
            if left != 0 {
                return Some(last - left.leading_zeros()).filter(|found| *found >= vertices.start);
            }
            end = last / WORD * WORD;
        }
        None
    }

    /// Whether a vertex that waits collects in a step, in which those go that have at least the score `cut`.
    pub(crate) fn goes(&self, vertex: u32, cut: f32, step: u32) -> bool {
        let score = f32::from_bits(self.scores[vertex as usize].load(Acquire));
        let is_late = || {
            let since = self.since[(vertex / WORD) as usize].load(Relaxed);
            since != 0 && step - since >= self.staleness_max
        };
        self.has_reason(score) && (score >= cut || is_late())
    }

    fn has_reason(&self, score: f32) -> bool {
        score > 0.0 && score >= self.threshold
    }

    /// Looks at the vertices of whole words before a step, while nothing else does, and notes how long they have waited.
    pub(crate) fn survey(&self, vertices: Range<u32>, step: u32, masses: &mut Masses) -> Surveyed {
        let mut found = Surveyed { first: vertices.start, ..Surveyed::default() };
        for word in vertices.start / WORD..vertices.end.div_ceil(WORD) {
            let mut bits = self.bits[word as usize].load(Relaxed);
            let mut has_reason = false;
            while bits != 0 {
                let vertex = word * WORD + bits.trailing_zeros();
                bits &= bits - 1;
                let score = f32::from_bits(self.scores[vertex as usize].load(Relaxed));
                found.sum += f64::from(score);
                if self.has_reason(score) {
                    has_reason = true;
                    found.waiting += 1;
                    found.greatest = found.greatest.max(score);
                    masses.0[(score.to_bits() >> BUCKET_SHIFT) as usize] += f64::from(score);
                }
            }
            let since = &self.since[word as usize];
            let first = match since.load(Relaxed) {
                _ if !has_reason => 0,
                0 => step,
                // All of the word went in the step before.
                first if step > first && step - 1 - first >= self.staleness_max => step,
                first => first,
            };
            since.store(first, Relaxed);
            found.is_late |= first != 0 && step - first >= self.staleness_max;
        }
        found
    }
}

/// What waits among some vertices.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Surveyed {
    /// The first of the vertices.
    pub(crate) first: u32,
    /// How many wait with a score from the threshold on.
    pub(crate) waiting: u64,
    /// The scores of all that wait.
    pub(crate) sum: f64,
    pub(crate) greatest: f32,
    /// Whether some have waited as long as any may.
    pub(crate) is_late: bool,
}

/// The scores that wait, added up by bucket.
pub(crate) struct Masses(Vec<f64>);

impl Default for Masses {
    fn default() -> Self {
        Self(vec![0.0; BUCKETS])
    }
}

impl Masses {
    pub(crate) fn merge(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(&other.0).for_each(|(own, other)| *own += other);
        self
    }

    /// The score from which on vertices have half of all that waits.
    pub(crate) fn cut(&self) -> f32 {
        let half = self.0.iter().sum::<f64>() / 2.0;
        let mut above = 0.0;
        for (bucket, mass) in self.0.iter().enumerate().rev() {
            above += mass;
            if above >= half && above > 0.0 {
                return f32::from_bits((bucket as u32) << BUCKET_SHIFT);
            }
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vertices_are_found_in_both_directions() {
        let waiting = Worklist::new(1000, 0.0, 8);
        for vertex in [3, 63, 64, 700] {
            waiting.add(vertex, 1.0);
        }
        let forwards = |from| waiting.first(from..1000);
        assert_eq!([forwards(0), forwards(4), forwards(64), forwards(65)], [Some(3), Some(63), Some(64), Some(700)]);
        assert_eq!((forwards(701), waiting.first(65..700)), (None, None));
        let backwards = |end| waiting.last(0..end);
        assert_eq!([backwards(1000), backwards(700), backwards(64)], [Some(700), Some(64), Some(63)]);
        assert_eq!((backwards(3), waiting.last(65..700), waiting.last(5..5)), (None, None, None));
        waiting.clear(63);
        assert_eq!(forwards(4), Some(64));
    }

    #[test]
    fn the_greatest_go_first_and_the_late_with_them() {
        let waiting = Worklist::new(256, 0.5, 3);
        // Half of what waits is the first vertex's.
        for (vertex, score) in [(0, 60.0), (1, 25.0), (1, 10.0), (70, 8.0), (200, 0.25)] {
            waiting.add(vertex, score);
        }
        let survey = |step| {
            let mut masses = Masses::default();
            let found = waiting.survey(0..256, step, &mut masses);
            let cut = masses.cut();
            let goes: Vec<u32> = [0, 1, 70, 200].into_iter().filter(|it| waiting.goes(*it, cut, step)).collect();
            (found, goes)
        };
        let (found, goes) = survey(1);
        assert_eq!((found.waiting, found.sum, found.greatest), (3, 103.25, 60.0), "three from the threshold on");
        assert_eq!((found.is_late, goes), (false, vec![0]));
        assert_eq!(survey(3).1, [0]);
        let (found, goes) = survey(4);
        assert_eq!((found.is_late, goes), (true, vec![0, 1, 70]), "but not what is below the threshold");
        assert_eq!(survey(5).1, [0], "they went, and wait again");
        waiting.clear(0);
        assert_eq!(survey(6).1, [1]);
    }
}
