//! Which chunks are in a cache, and which leaves next.
//!
//! A superstep visits all chunks in order. So what was visited last comes up last again, and least recently used first is the worst
//! rule: with room for nine chunks of ten, no visit of the next pass finds its chunk. Scores do better, since a chunk that has just come
//! has the lowest: new chunks replace each other, and all others are found in each pass.

use std::{cmp::Reverse, collections::BTreeSet};

use super::{CHUNK, chunks::length};

/// Which chunk leaves a cache that is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CachePolicy {
    /// What was visited least recently.
    Lru,
    /// What has the lowest score, so that all below the average leave before the others; of equals the one that came last. A chunk's
    /// score is the number of visits since it came. All are halved now and then, so that chunks that are no longer visited leave.
    #[default]
    Score,
}

/// The lowest leaves first: the last visit and nothing, or the score and when it came.
type Rank = (u64, Reverse<u64>);

/// Scores are halved after this many visits of each chunk. A run visits twice a pass, to take and to put: a chunk that is found in
/// each pass keeps a score of 16 to 32, above those that have just come.
const VISITS_UNTIL_HALVED: u64 = 16;

/// The chunks in a cache.
#[derive(Debug)]
pub(super) struct Residents {
    policy: CachePolicy,
    /// By chunk; none if it is not there.
    ranks: Vec<Option<Rank>>,
    order: BTreeSet<(Rank, usize)>,
    visits: u64,
    bytes: u64,
    bytes_max: u64,
    vertices: u32,
    state_bytes: u64,
}

impl Residents {
    pub(super) fn new(policy: CachePolicy, vertices: u32, state_bytes: usize, bytes_max: u64) -> Self {
        let ranks = vec![None; vertices.div_ceil(CHUNK) as usize];
        let order = BTreeSet::new();
        let state_bytes = state_bytes as u64;
        Self { policy, ranks, order, visits: 0, bytes: 0, bytes_max, vertices, state_bytes }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn bytes_of(&self, chunk: usize) -> u64 {
        length(self.vertices, chunk) as u64 * self.state_bytes
    }

    /// Counts a visit of a chunk, which is in the cache from now on.
    pub(super) fn visit(&mut self, chunk: usize) {
        self.visits += 1;
        let before = self.ranks.get(chunk).copied().flatten();
        let rank = match (self.policy, before) {
            (CachePolicy::Lru, _) => (self.visits, Reverse(0)),
            (CachePolicy::Score, Some((score, came))) => (score + 1, came),
            (CachePolicy::Score, None) => (1, Reverse(self.visits)),
        };
        self.set(chunk, Some(rank));
        let until_halved = VISITS_UNTIL_HALVED * self.ranks.len() as u64;
        if self.policy == CachePolicy::Score && self.visits.is_multiple_of(until_halved) {
            let halved = |rank: &Option<Rank>| rank.map(|(score, came)| (score / 2, came));
            self.ranks = self.ranks.iter().map(halved).collect();
            let ranked = self.ranks.iter().enumerate();
            self.order = ranked.filter_map(|(chunk, rank)| Some(((*rank)?, chunk))).collect();
        }
    }

    /// The chunk that has to leave for another, which stays; none if all have room.
    pub(super) fn leave_for(&mut self, newest: usize) -> Option<usize> {
        if self.bytes <= self.bytes_max {
            return None;
        }
        let (_, chunk) = *self.order.iter().find(|(_, chunk)| *chunk != newest)?;
        self.set(chunk, None);
        Some(chunk)
    }

    fn set(&mut self, chunk: usize, rank: Option<Rank>) {
        let bytes = self.bytes_of(chunk);
        let Some(slot) = self.ranks.get_mut(chunk) else { return };
        if let Some(before) = std::mem::replace(slot, rank) {
            self.order.remove(&(before, chunk));
            self.bytes -= bytes;
        }
        if let Some(rank) = rank {
            self.order.insert((rank, chunk));
            self.bytes += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CHUNKS: usize = 10;

    /// A cache with room for some chunks of a byte a state.
    fn residents(policy: CachePolicy, room: u64) -> Residents {
        Residents::new(policy, CHUNKS as u32 * CHUNK, 1, room * u64::from(CHUNK))
    }

    /// Visits chunks, and returns which of them were found.
    fn found(residents: &mut Residents, visits: impl IntoIterator<Item = usize>) -> Vec<usize> {
        let mut found = Vec::new();
        for chunk in visits {
            if residents.ranks[chunk].is_some() {
                found.push(chunk);
            }
            residents.visit(chunk);
            while residents.leave_for(chunk).is_some() {}
        }
        found
    }

    #[test]
    fn passes_in_order_find_all_but_two_by_score_and_nothing_least_recently_used_first() {
        let pass = || 0..CHUNKS;
        let mut lru = residents(CachePolicy::Lru, 9);
        assert!(found(&mut lru, pass().chain(pass()).chain(pass())).is_empty());
        let mut scores = residents(CachePolicy::Score, 9);
        assert!(found(&mut scores, pass()).is_empty());
        // Scores are halved in the course of so many passes.
        for _ in 0..100 {
            assert_eq!(found(&mut scores, pass()).len(), 8);
        }
    }

    #[test]
    fn what_is_no_longer_visited_leaves_in_the_end() {
        let mut scores = residents(CachePolicy::Score, 4);
        for _ in 0..20 {
            found(&mut scores, 0..4);
        }
        let found_again = |scores: &mut Residents| found(scores, 6..9).len();
        assert_eq!(found_again(&mut scores), 0);
        let passes = (1..1000).find(|_| found_again(&mut scores) == 3);
        assert!(passes.is_some_and(|passes| passes > 10), "{passes:?}");
    }

    proptest! {
        #[test]
        fn the_one_that_leaves_is_the_one_of_a_model(
            policy in prop_oneof![Just(CachePolicy::Lru), Just(CachePolicy::Score)],
            room in 1..CHUNKS as u64,
            visits in prop::collection::vec(0..CHUNKS, 1..1000),
        ) {
            let mut residents = residents(policy, room);
            // Chunk, score, when it came, last visit.
            let mut model: Vec<(usize, u64, usize, usize)> = Vec::new();
            for (now, chunk) in (1..).zip(visits) {
                match model.iter_mut().find(|(there, ..)| *there == chunk) {
                    Some((_, score, _, last)) => {
                        *score += 1;
                        *last = now;
                    }
                    None => model.push((chunk, 1, now, now)),
                }
                if now % (CHUNKS * VISITS_UNTIL_HALVED as usize) == 0 {
                    model.iter_mut().for_each(|(_, score, ..)| *score /= 2);
                }
                residents.visit(chunk);
                let mut expected = None;
                if model.len() as u64 > room {
                    let others = model.iter().filter(|(there, ..)| *there != chunk);
                    let leaving = match policy {
                        CachePolicy::Lru => others.min_by_key(|(.., last)| *last),
                        CachePolicy::Score => others.clone().min_by_key(|(_, score, came, _)| (*score, Reverse(*came))),
                    };
                    expected = leaving.map(|(chunk, ..)| *chunk);
                    model.retain(|(chunk, ..)| Some(*chunk) != expected);
                }
                prop_assert_eq!(residents.leave_for(chunk), expected);
                prop_assert_eq!(residents.leave_for(chunk), None);
                prop_assert_eq!(residents.bytes(), model.len() as u64 * u64::from(CHUNK));
            }
        }
    }
}
