//! A policy's replay, with read-ahead if wanted.

use std::collections::VecDeque;

use foldhash::HashMap;
use hoplake_storage::cache::{Arrival, FetchCost, Policy, Shard};

use crate::{
    Job, Outcome, PREFETCHED_BLOCKS_MAX, Plan,
    requests::Misses,
    workload::{Use, Workload},
};

pub(crate) fn replay(
    plan: &Plan,
    workload: &Workload,
    job: Job,
    policy: Policy,
    fetch_cost: Option<FetchCost>,
) -> Outcome {
    let bytes_max = job.cache_bytes_max;
    let mut cache = Shard::new(bytes_max, policy.build(bytes_max, 1));
    let mut ahead = ReadAhead { plan, workload, count: job.read_ahead_blocks, by_query: HashMap::default() };
    let mut misses = Misses::default();
    let mut outcome = job.outcome(workload);
    for access in &workload.uses {
        let block = &workload.blocks[access.block as usize];
        if cache.get(block.hash, block.key).is_some() {
            outcome.hits += 1;
            outcome.hit_bytes += block.bytes;
        } else {
            if ahead.serves(*access) {
                outcome.prefetched += 1;
                outcome.hit_bytes += block.bytes;
            } else {
                let end = ahead.fetch(*access, &cache);
                misses.add(*access, block.key.object, block.key.position..end);
            }
            cache.insert(Arrival::new(block.key, block.hash, block.bytes, fetch_cost.as_ref()), ());
        }
        if access.last {
            ahead.by_query.remove(&access.query);
        }
    }
    outcome.fetched = Some(misses.join(plan));
    outcome
}

/// What was read ahead for each query.
struct ReadAhead<'a> {
    plan: &'a Plan,
    workload: &'a Workload,
    /// Blocks that a miss reads ahead.
    count: usize,
    /// Oldest first, each with the wave that brought it.
    by_query: HashMap<u64, VecDeque<Use>>,
}

impl ReadAhead<'_> {
    /// Notes what the request for this block brings, too, and returns where it ends.
    fn fetch(&mut self, missed: Use, cache: &Shard<()>) -> u64 {
        let blocks = &self.workload.blocks;
        let first = blocks[missed.block as usize];
        let mut end = first.range().end;
        for next in (missed.block + 1..blocks.len() as u32).take(self.count) {
            let block = blocks[next as usize];
            let near = block.key.position <= end.saturating_add(self.plan.coalesce_gap_bytes_max);
            let longer = end.max(block.range().end);
            let short = longer - first.key.position <= self.plan.request_bytes_max;
            if block.key.object != first.key.object || !near || !short {
                break;
            }
            end = longer;
            if !cache.contains(block.hash, block.key) {
                self.keep(Use { block: next, ..missed });
            }
        }
        end
    }

    fn keep(&mut self, ahead: Use) {
        let kept = self.by_query.entry(ahead.query).or_default();
        if kept.iter().all(|other| other.block != ahead.block) {
            kept.push_back(ahead);
        }
        if kept.len() > PREFETCHED_BLOCKS_MAX {
            kept.pop_front();
        }
    }

    /// Whether the block is here for this query, since an earlier wave; then it leaves.
    fn serves(&mut self, access: Use) -> bool {
        let Some(kept) = self.by_query.get_mut(&access.query) else { return false };
        // What the same wave brings is not here yet: it is part of the same request.
        let here = |other: &Use| other.block == access.block && other.wave < access.wave;
        kept.iter().position(here).and_then(|index| kept.remove(index)).is_some()
    }
}
