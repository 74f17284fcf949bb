//! A sample of vertices, for kernels whose exact result takes a search from every vertex (Knuth: *The art of computer programming*,
//! volume 2, 3.4.2, algorithm S).
//!
//! One pass decides on each vertex with the chance that the number still wanted has among those still left. So every set of this size
//! is as likely as any other, the sample ascends, and nothing is kept but the sample.

use hoplake_engine::Held;
use hoplake_storage::{QueryContext, StorageError};

use super::{CHUNK, held};

/// `count_max` different vertices of the ids below `vertices`, or all if there are fewer, ascending. Ids in `deleted`, which ascend, are
/// not vertices. The same seed chooses the same ones.
///
/// For [`closeness`](fn@super::closeness) and [`betweenness`](fn@super::betweenness) of large graphs. Betweenness from a sample, times the
/// number of vertices divided by that of the sample, is an estimate of the exact one (Brandes, Pich: *Centrality estimation in large
/// networks*, 2007).
///
/// Takes 4 bytes a vertex of the sample, and time linear in vertices.
///
/// # Errors
/// [`StorageError::Limit`] if the query's time is over, or its memory does not hold the sample.
///
/// # Panics
/// If an id in `deleted` is not below `vertices`, or is there twice.
pub fn sample_vertices(
    vertices: u32,
    deleted: &[u32],
    count_max: usize,
    seed: u64,
    context: &QueryContext,
) -> Result<Held<Vec<u32>>, StorageError> {
    assert!(deleted.last().is_none_or(|last| *last < vertices), "deleted ids are below the number of vertices");
    assert!(deleted.is_sorted_by(|a, b| a < b), "deleted ids ascend");
    let mut left = vertices - deleted.len() as u32;
    let mut wanted = count_max.min(left as usize) as u32;
    let bytes = wanted as usize * 4;
    let memory = context.hold(bytes as u64)?;
    let mut sample = Vec::with_capacity(wanted as usize);
    let mut random = SplitMix(seed);
    let mut deleted = deleted.iter().copied().peekable();
    for vertex in 0..vertices {
        if (vertex as usize).is_multiple_of(CHUNK) {
            context.check_time()?;
        }
        if deleted.next_if_eq(&vertex).is_some() {
            continue;
        }
        if random.below(left) < wanted {
            sample.push(vertex);
            wanted -= 1;
        }
        left -= 1;
    }
    Ok(held(sample, bytes, memory))
}

/// A generator of which each seed gives another sequence (Steele, Lea, Flood: *Fast splittable pseudorandom number generators*, 2014).
pub(super) struct SplitMix(pub(super) u64);

impl SplitMix {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a bound of 32 bits. The chances of two numbers differ by 2⁻³² of them at most, which no sample shows.
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u32
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

        #[test]
        fn a_sample_has_different_vertices_that_are_there(
            vertices in 0u32..200,
            gone in prop::collection::btree_set(0u32..200, 0..50),
            count_max in 0usize..250,
            seed in any::<u64>(),
        ) {
            let gone: BTreeSet<u32> = gone.into_iter().filter(|vertex| *vertex < vertices).collect();
            let deleted: Vec<u32> = gone.iter().copied().collect();
            let context = QueryContext::new();
            let sample = sample_vertices(vertices, &deleted, count_max, seed, &context).unwrap();
            prop_assert_eq!(sample.len(), count_max.min(vertices as usize - gone.len()));
            prop_assert!(sample.is_sorted_by(|a, b| a < b));
            prop_assert!(sample.iter().all(|vertex| *vertex < vertices && !gone.contains(vertex)));
            prop_assert_eq!(context.memory().used(), 4 * sample.len() as u64);
            prop_assert_eq!(&*sample_vertices(vertices, &deleted, count_max, seed, &context).unwrap(), &*sample);
        }
    }

    #[test]
    fn every_pair_is_as_likely_as_any_other() {
        // 10 pairs of five vertices, each expected 2,000 times with a deviation of 42. The seeds are fixed, and so is the outcome.
        let mut counts = std::collections::BTreeMap::<Vec<u32>, u32>::new();
        for seed in 0..20_000 {
            let sample = sample_vertices(6, &[2], 2, seed, &QueryContext::new()).unwrap();
            *counts.entry(sample.to_vec()).or_default() += 1;
        }
        assert_eq!(counts.len(), 10);
        assert!(counts.values().all(|count| count.abs_diff(2000) < 170), "{counts:?}");
    }

    #[test]
    fn numbers_are_those_of_the_paper() {
        // The first three of seed 1234567, as the reference code prints them.
        let mut random = SplitMix(1_234_567);
        let found = [random.next(), random.next(), random.next()];
        assert_eq!(found, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }
}
