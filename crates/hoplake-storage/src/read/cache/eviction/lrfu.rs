//! Least recently and frequently used (Lee, Choi, Kim, Noh, Min, Cho, Kim: LRFU: A Spectrum of Policies that
//! Subsumes the Least Recently Used and Least Frequently Used Policies, IEEE Transactions on Computers 50(12), 2001).
//!
//! Every use of a block, x accesses ago, adds F(x) = (1/2)^(λx) to its *combined recency and frequency*. With λ = 0
//! each use counts 1 permanently, and the order is that of LFU; with λ = 1 the last use outweighs all before
//! it, and the order is that of LRU. In between, a use loses half its value in 1/λ accesses.
//!
//! All scores fade by the same factor at each access, so that the order of two blocks changes only when one of them is
//! used, and a heap needs nothing done to blocks that are not: O(log n) for an access.
//!
//! # Numbers
//! A score at time t is Σ 2^(-λ(t - tᵢ)), which would have to be brought up to date before any two are compared.
//! Taken times 2^(λt), it is S = Σ 2^(λtᵢ): the same order, and no time in it; but 2^(λt) overflows soon. So the
//! heap holds s = log₂ S. A use at t makes it log₂(2^s + 2^(λt)) = max + log₂(1 + 2^-|s - λt|), and a retention cost w,
//! which multiplies S, adds log₂ w. That s grows by λ with each access: after 10¹² accesses it still tells 1/8,000 of
//! an access apart, whatever λ, and it reaches the end of an f64 in no time that matters. It never overflows, and
//! nothing is ever rescaled. Scores too close to tell tie, and the block used least recently goes.
//!
//! # λ and shards
//! λ is per access to the entire cache. Of n shards, each sees one access in n, and takes n steps of time at
//! each.
//!
//! Evicted blocks are forgotten: a block that returns starts over, as in the paper's experiments without history.

use super::{
    Eviction, Incoming, Slot,
    heap::{Rank, RankHeap},
};

/// The policy.
#[derive(Debug)]
pub struct Lrfu {
    /// λ times the accesses to the entire cache per access to this shard.
    step: f64,
    heap: RankHeap,
    /// log₂ of the retention cost of each slot.
    retention_cost_log2: Vec<f32>,
    now: u64,
}

impl Lrfu {
    /// Tracks nothing yet. `lambda` is from 0 to 1; `shards` is how many parts the cache has, of which this
    /// policy sees one.
    pub fn new(lambda: f64, shards: usize) -> Self {
        Self { step: lambda * shards as f64, heap: RankHeap::default(), retention_cost_log2: Vec::new(), now: 0 }
    }

    /// The logarithm of what a use of the slot adds now.
    #[inline]
    fn use_now(&mut self, slot: Slot) -> f64 {
        self.now += 1;
        self.now as f64 * self.step + f64::from(self.retention_cost_log2[slot as usize])
    }
}

/// log₂(2^a + 2^b).
#[inline]
fn add_log2(a: f64, b: f64) -> f64 {
    let (high, low) = if a > b { (a, b) } else { (b, a) };
    // Adding a number that is 2^53 times smaller does not change an f64.
    if high - low > 53.0 { high } else { high + (1.0 + (low - high).exp2()).log2() }
}

impl Eviction for Lrfu {
    fn insert(&mut self, slot: Slot, block: Incoming) {
        if slot as usize >= self.retention_cost_log2.len() {
            self.retention_cost_log2.resize(slot as usize + 1, 0.0);
        }
        self.retention_cost_log2[slot as usize] = block.retention_cost.log2();
        let score = self.use_now(slot);
        self.heap.push(slot, Rank { score, used: self.now });
    }

    #[inline]
    fn hit(&mut self, slot: Slot) {
        let added = self.use_now(slot);
        let score = add_log2(self.heap.score(slot), added);
        self.heap.raise(slot, Rank { score, used: self.now });
    }

    fn remove(&mut self, slot: Slot) {
        self.heap.remove(slot);
    }

    fn evict(&mut self) -> Option<Slot> {
        self.heap.pop()
    }

    fn clear(&mut self) {
        self.heap.clear();
        self.retention_cost_log2.clear();
        self.now = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: Incoming = Incoming { hash: 0, weight: 1, retention_cost: 1.0 };

    #[test]
    fn a_long_run_neither_overflows_nor_loses_the_order() {
        let mut lrfu = Lrfu::new(1.0, 1);
        // As after 10¹² accesses: 2^(10¹²) is far beyond an f64.
        lrfu.now = 1_000_000_000_000;
        for slot in 0..3 {
            lrfu.insert(slot, BLOCK);
        }
        lrfu.hit(0);
        assert_eq!([lrfu.evict(), lrfu.evict(), lrfu.evict(), lrfu.evict()], [Some(1), Some(2), Some(0), None]);
    }

    #[test]
    fn lambda_weighs_an_old_habit_against_a_new_use() {
        // Block 0 is used four times, then 1 once. Uses count at least 1/2 for 1/λ accesses.
        let survivor = |lambda| {
            let mut lrfu = Lrfu::new(lambda, 1);
            lrfu.insert(0, BLOCK);
            (0..3).for_each(|_| lrfu.hit(0));
            lrfu.insert(1, BLOCK);
            lrfu.evict();
            lrfu.evict()
        };
        assert_eq!([survivor(0.0), survivor(0.1), survivor(1.0)], [Some(0), Some(0), Some(1)]);
    }
}
