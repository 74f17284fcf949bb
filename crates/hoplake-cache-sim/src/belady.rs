//! The one who knows the future (Belady: A study of replacement algorithms for a virtual-storage computer, IBM
//! Systems Journal 5(2), 1966; "MIN").
//!
//! The block whose next use is farthest away goes, and a newcomer whose own next use is farther than that of all others
//! is not kept. If all blocks have one size, no policy hits more often. If sizes differ, the best choice is NP-hard;
//! this rule then ignores sizes, lets go from the farthest until the newcomer fits, and is a yardstick, not a bound: a
//! policy that keeps small blocks can hit more often. [`bound`](crate::bound) is the bound.

use std::collections::BinaryHeap;

use crate::{Job, Outcome, Plan, requests::Misses, workload::Workload};

pub(crate) fn replay(plan: &Plan, workload: &Workload, job: Job) -> Outcome {
    let next_uses = workload.next_uses();
    let mut outcome = job.outcome(workload);
    let mut misses = Misses::default();
    let mut cache = Clairvoyant::new(workload, job.cache_bytes_max);
    for (access, next_use) in workload.uses.iter().zip(next_uses) {
        let block = &workload.blocks[access.block as usize];
        if cache.holds(access.block) {
            outcome.hits += 1;
            outcome.hit_bytes += block.bytes;
        } else {
            misses.add(*access, block.key.object, block.range());
        }
        cache.keep(access.block, next_use);
    }
    outcome.fetched = Some(misses.join(plan));
    outcome
}

struct Clairvoyant<'a> {
    workload: &'a Workload,
    bytes: u64,
    bytes_max: u64,
    /// The next use of each block that is held.
    held: Vec<Option<usize>>,
    /// Next uses and their blocks. Those that are not in `held` any more are old and pass.
    farthest: BinaryHeap<(usize, u32)>,
}

impl<'a> Clairvoyant<'a> {
    fn new(workload: &'a Workload, bytes_max: u64) -> Self {
        let held = vec![None; workload.blocks.len()];
        Self { workload, bytes: 0, bytes_max, held, farthest: BinaryHeap::new() }
    }

    fn holds(&self, block: u32) -> bool {
        self.held[block as usize].is_some()
    }

    /// Keeps a block that was used, if its next use deserves it.
    fn keep(&mut self, block: u32, next_use: usize) {
        let weight = self.workload.blocks[block as usize].weight();
        self.drop(block);
        // Never used again: there is no reason to keep it.
        if next_use == self.workload.uses.len() || weight > self.bytes_max {
            return;
        }
        while self.bytes + weight > self.bytes_max {
            let (farthest, victim) = *self.farthest.peek().expect("what is held has a next use");
            if self.held[victim as usize] != Some(farthest) {
                self.farthest.pop();
            } else if farthest < next_use {
                return;
            } else {
                self.farthest.pop();
                self.drop(victim);
            }
        }
        self.bytes += weight;
        self.held[block as usize] = Some(next_use);
        self.farthest.push((next_use, block));
    }

    fn drop(&mut self, block: u32) {
        if self.held[block as usize].take().is_some() {
            self.bytes -= self.workload.blocks[block as usize].weight();
        }
    }
}
