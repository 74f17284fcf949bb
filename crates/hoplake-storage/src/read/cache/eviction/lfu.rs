//! Least frequently used: a heap by the number of uses since the block was inserted, times its retention cost.
//!
//! The count restarts when a block is inserted again, and never fades while it stays: a block that was popular once
//! stays for long. It is LRFU with λ = 0, kept apart because it needs no logarithms, and because counts are exact.

use super::{
    Eviction, Incoming, Slot,
    heap::{Rank, RankHeap},
};

/// The policy.
#[derive(Debug, Default)]
pub struct Lfu {
    heap: RankHeap,
    uses: Vec<Uses>,
    now: u64,
}

#[derive(Debug, Clone, Default)]
struct Uses {
    count: u64,
    retention_cost: f64,
}

impl Lfu {
    /// Tracks nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a use of the slot and returns its new rank.
    fn use_now(&mut self, slot: Slot) -> Rank {
        self.now += 1;
        let uses = &mut self.uses[slot as usize];
        uses.count += 1;
        // Multiplied rather than added up, so that equal counts at equal retention cost tie exactly.
        Rank { score: uses.count as f64 * uses.retention_cost, used: self.now }
    }
}

impl Eviction for Lfu {
    fn insert(&mut self, slot: Slot, block: Incoming) {
        if slot as usize >= self.uses.len() {
            self.uses.resize(slot as usize + 1, Uses::default());
        }
        self.uses[slot as usize] = Uses { count: 0, retention_cost: block.retention_cost.into() };
        let rank = self.use_now(slot);
        self.heap.push(slot, rank);
    }

    #[inline]
    fn hit(&mut self, slot: Slot) {
        let rank = self.use_now(slot);
        self.heap.raise(slot, rank);
    }

    fn remove(&mut self, slot: Slot) {
        self.heap.remove(slot);
    }

    fn evict(&mut self) -> Option<Slot> {
        self.heap.pop()
    }

    fn clear(&mut self) {
        *self = Self::new();
    }
}
