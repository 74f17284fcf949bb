//! More hits than anyone can have (Berger, Beckmann, Harchol-Balter: Practical Bounds on Optimal Caching with Variable
//! Object Sizes, POMACS 2(2), 2018; there "PFOO-L").
//!
//! To hit at an access, a cache must have held the block ever since its previous use: its weight times the accesses
//! between. All that a cache has to give is its budget times the accesses of the trace. The cheapest hits that this
//! pays for are at least as many as any policy has, because a policy must also hold the budget at each moment, and here only
//! their sum counts. It is computed for hits and for bytes, each in its own favour. Prefetch is not under it.

use crate::{Job, Outcome, workload::Workload};

/// What a hit costs and brings.
struct Interval {
    /// Bytes times accesses.
    cost: u128,
    bytes: u64,
}

pub(crate) fn bound(workload: &Workload, job: Job) -> Outcome {
    let mut intervals = intervals(workload, job.cache_bytes_max);
    let budget = u128::from(job.cache_bytes_max) * workload.uses.len() as u128;
    let mut outcome = job.outcome(workload);
    intervals.sort_unstable_by_key(|interval| interval.cost);
    let mut left = budget;
    for interval in &intervals {
        let Some(rest) = left.checked_sub(interval.cost) else { break };
        left = rest;
        outcome.hits += 1;
    }
    // By bytes: the cheapest byte first, and of the last hit as much as can still be paid.
    intervals.sort_by(|a, b| (a.cost as f64 * b.bytes as f64).total_cmp(&(b.cost as f64 * a.bytes as f64)));
    let mut left = budget;
    for interval in &intervals {
        let Some(rest) = left.checked_sub(interval.cost) else {
            outcome.hit_bytes += (interval.bytes as f64 * (left as f64 / interval.cost as f64)).ceil() as u64;
            break;
        };
        left = rest;
        outcome.hit_bytes += interval.bytes;
    }
    outcome
}

fn intervals(workload: &Workload, bytes_max: u64) -> Vec<Interval> {
    let next_uses = workload.next_uses();
    let uses = workload.uses.iter().zip(&next_uses).enumerate();
    let interval = |(number, (access, next)): (usize, (&crate::workload::Use, &usize))| {
        let block = &workload.blocks[access.block as usize];
        let again = *next < workload.uses.len() && block.weight() <= bytes_max;
        again.then(|| Interval { cost: u128::from(block.weight()) * (next - number) as u128, bytes: block.bytes })
    };
    uses.filter_map(interval).collect()
}
