//! Dollars of the workload against the best plan in hindsight.
//!
//! The workload runs hop by hop, and the blocks that each wave asks the store for are noted. The best plan knows the
//! same waves and has the same caches; it only chooses into which ranges the sorted blocks of a wave are cut, so
//! that requests and bytes, gaps included, cost the least. It reads nothing in the background, so the waves are
//! those of a run that reads no small segment whole; a run that does is held against the same plan, all it reads in its
//! account. Blocks of one object ascend, so that the best plan for the first n of them is the best for some fewer plus
//! one range: dynamic programming.

use std::{collections::BTreeMap, ops::Range, time::Duration};

use anyhow::Result;
use hoplake::{ReadSettings, StoreProfile, Strategy, Traversal};
use serde::{Deserialize, Serialize};

use super::{
    queries::{self, Case},
    recorder::Sent,
    subject::{Opened, Setup, Subject},
};

/// Dollars an hour of c7gn.xlarge, whose network is what bytes cost within a region where the store takes
/// nothing for them; the instance table of `hoplake-costs`.
const INSTANCE_USD_PER_HOUR: f64 = 0.2496;

/// Dollars of the workload before one kind of store.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Figures {
    /// By store and by what waiting is worth.
    pub accounts: Vec<Account>,
}

/// What was paid, and the least that could have been.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Account {
    /// The kind of store.
    pub store: String,
    /// What an hour of waiting is worth to the planner, in dollars.
    pub waiting_usd_per_hour: f64,
    /// Whether small segments are read whole, as by default.
    pub small_whole: bool,
    /// Requests sent, with hedges.
    pub requests: u64,
    /// Bytes that came.
    pub bytes: u64,
    /// Dollars for requests.
    pub requests_usd: f64,
    /// Dollars for bytes: the store's and the network's.
    pub bytes_usd: f64,
    /// The best plan whose requests are no longer than the reader's may be.
    pub bounded: Best,
    /// The best plan whose requests may have any length.
    pub unbounded: Best,
    /// Milliseconds of store time.
    pub store_ms: f64,
}

/// A best plan.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Best {
    /// Its requests.
    pub requests: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Its dollars.
    pub usd: f64,
}

/// What a request and a byte cost.
#[derive(Debug, Clone, Copy)]
struct Prices {
    request_usd: f64,
    byte_usd: f64,
}

impl Account {
    /// All dollars.
    pub fn usd(&self) -> f64 {
        self.requests_usd + self.bytes_usd
    }
}

fn prices(profile: &StoreProfile) -> Prices {
    let network = INSTANCE_USD_PER_HOUR / 3600.0 / profile.network_bytes_per_second as f64;
    Prices {
        request_usd: profile.prices.get_usd_per_1000 / 1e3,
        byte_usd: profile.prices.read_usd_per_gb / 1e9 + network,
    }
}

/// Measures both kinds of store, with the default price of waiting and with none.
pub async fn measure(subject: &Subject) -> Result<Figures> {
    let cases = queries::workload(subject, &subject.open_local().await?, 1).await?;
    let mut accounts = Vec::new();
    for profile in [StoreProfile::s3_standard(), StoreProfile::s3_express()] {
        for waiting_usd_per_hour in [ReadSettings::default().waiting_usd_per_hour, 0.0] {
            let mut setup = Setup::standard(256 << 20).before(profile.clone());
            setup.read.waiting_usd_per_hour = waiting_usd_per_hour;
            let whole = account(subject, &setup, &cases).await?;
            setup.read.full_read_bytes_max = 0;
            let asked = account(subject, &setup, &cases).await?;
            let bounded = asked.bounded;
            let unbounded = asked.unbounded;
            accounts.extend([asked, Account { bounded, unbounded, ..whole }]);
        }
    }
    Ok(Figures { accounts })
}

/// Runs the workload and draws up its account.
pub async fn account(subject: &Subject, setup: &Setup, cases: &[Case]) -> Result<Account> {
    let opened = subject.open(setup).await?;
    opened.recorder.keep();
    opened.recorder.take();
    opened.sim.reset_counts();
    let begun = tokio::time::Instant::now();
    let mut waves = Vec::new();
    for case in cases {
        run_by_wave(&opened, case, &mut waves).await?;
    }
    let store_ms = begun.elapsed().as_secs_f64() * 1e3;
    // Background reads of the last queries count, too.
    tokio::time::sleep(Duration::from_secs(10)).await;
    let prices = prices(&setup.profile);
    let counts = opened.sim.counts();
    let best = |length_max| {
        waves.iter().map(|wave| best_plan(wave, prices, length_max)).fold(Best::default(), |sum, wave| Best {
            requests: sum.requests + wave.requests,
            bytes: sum.bytes + wave.bytes,
            usd: sum.usd + wave.usd,
        })
    };
    Ok(Account {
        store: setup.profile.name.clone(),
        waiting_usd_per_hour: setup.read.waiting_usd_per_hour,
        small_whole: setup.read.full_read_bytes_max > 0,
        requests: counts.requests.get,
        bytes: counts.bytes_read,
        requests_usd: counts.requests.get as f64 * prices.request_usd,
        bytes_usd: counts.bytes_read as f64 * prices.byte_usd,
        bounded: best(setup.read.request_bytes_max),
        unbounded: best(u64::MAX),
        store_ms,
    })
}

/// Runs a query as a breadth-first traversal does, and keeps what each wave asked for.
async fn run_by_wave(opened: &Opened, case: &Case, waves: &mut Vec<Vec<Sent>>) -> Result<()> {
    let mut query = opened.graph.query();
    let mut starts = query.named(std::slice::from_ref(&case.start)).await?;
    waves.push(opened.recorder.take());
    for hop in &case.hops {
        let traversal = Traversal { starts, hops: vec![hop.clone()], strategy: Strategy::Bfs, ..Traversal::default() };
        starts = query.traverse(traversal).await?.last().vertices().collect();
        waves.push(opened.recorder.take());
    }
    Ok(())
}

/// The cheapest ranges that hold the blocks of a wave.
fn best_plan(wave: &[Sent], prices: Prices, length_max: u64) -> Best {
    let mut objects: BTreeMap<&str, Vec<Range<u64>>> = BTreeMap::new();
    for sent in wave {
        objects.entry(&sent.object).or_default().extend(sent.blocks.iter().cloned());
    }
    let mut best = Best::default();
    for mut blocks in objects.into_values() {
        blocks.sort_unstable_by_key(|block| (block.start, block.end));
        blocks.dedup();
        let plan = best_ranges(&blocks, prices, length_max);
        best =
            Best { requests: best.requests + plan.requests, bytes: best.bytes + plan.bytes, usd: best.usd + plan.usd };
    }
    best
}

/// The same for one object. `plans[n]` is the best for the first n blocks. O(n · blocks in the longest range).
fn best_ranges(blocks: &[Range<u64>], prices: Prices, length_max: u64) -> Best {
    let mut plans = vec![Best::default()];
    for (last, block) in blocks.iter().enumerate() {
        let mut best = Best { usd: f64::INFINITY, ..Best::default() };
        for first in (0..=last).rev() {
            let length = block.end - blocks[first].start;
            // A block of its own may be longer than any range.
            if first < last && length > length_max {
                break;
            }
            let before = plans[first];
            let usd = before.usd + prices.request_usd + length as f64 * prices.byte_usd;
            if usd < best.usd {
                best = Best { requests: before.requests + 1, bytes: before.bytes + length, usd };
            }
            // Any range that begins earlier costs more than its bytes alone.
            if length as f64 * prices.byte_usd > best.usd {
                break;
            }
        }
        plans.push(best);
    }
    plans.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHEAP_BYTES: Prices = Prices { request_usd: 10.0, byte_usd: 0.1 };

    /// All partitions of the blocks, one by one.
    fn by_trying(blocks: &[Range<u64>], prices: Prices, length_max: u64) -> f64 {
        let cuts = blocks.len() - 1;
        let of = |mask: u32| {
            let mut usd = 0.0;
            let mut first = 0;
            for last in 0..blocks.len() {
                if last == cuts || mask >> last & 1 == 1 {
                    let length = blocks[last].end - blocks[first].start;
                    if first < last && length > length_max {
                        return f64::INFINITY;
                    }
                    usd += prices.request_usd + length as f64 * prices.byte_usd;
                    first = last + 1;
                }
            }
            usd
        };
        (0..1 << cuts).map(of).fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn the_best_plan_is_the_best_of_all() {
        let mut random = hoplake_testkit::generate::SplitMix64::new(3);
        for _ in 0..200 {
            let mut at = 0;
            let blocks: Vec<_> = (0..9)
                .map(|_| {
                    let start = at + random.below(250);
                    at = start + 1 + random.below(60);
                    start..at
                })
                .collect();
            for length_max in [120, 400, u64::MAX] {
                let (plan, least) =
                    (best_ranges(&blocks, CHEAP_BYTES, length_max), by_trying(&blocks, CHEAP_BYTES, length_max));
                assert!((plan.usd - least).abs() < 1e-9, "{blocks:?}, {length_max}: {plan:?}, {least}");
            }
        }
    }
}
