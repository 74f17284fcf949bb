//! Replays a trace of accesses through the real policies at given sizes, and compares them with a bound.
//!
//! # What is replayed
//! Each access of the trace looks its block up in a cache of its own, which keeps the block if it was not there. The
//! cache is a [`Shard`](hoplake_storage::cache::Shard) of the memory cache, with the entire budget and the same
//! weights, so that what is measured is the code that runs. The product splits larger budgets into shards; on a
//! synthetic trace that moves hits by 0.4 per cent of them, 2.6 for LFU. Where a block was served from when the trace
//! was recorded plays no part: it is only [summed up](Workload::summary).
//!
//! # What is counted
//! - *Object hit ratio*: accesses that found their block, of all. *Byte hit ratio*: the same by bytes.
//! - *Requests*: the requests that the misses of one wave of one query would send. Ranges of one object that are closer
//!   together than a gap are one request. The reader weighs the gap for each wave; here it is one for all.
//!
//! # What no policy can beat
//! - *Belady* (`belady.rs`): the block whose next use is farthest away goes. The best there is if all blocks have one
//!   size (Belady, IBM Systems Journal 5(2), 1966); a good rule, not a bound, if they differ.
//! - *Bound* (`bound.rs`): no policy hits more often, whatever the sizes.
//!
//! # Prefetch
//! A trace has the blocks that were requested, not those that a prefetcher might have requested; the later entries are
//! unknown to the simulator. So the model here is *read-ahead*, the one kind that a trace can judge, and judges fairly:
//! a miss also reads up to some blocks that follow in the same object, if the gaps are such that it is still one
//! request. They are kept for that query alone, outside of the cache, up to [`PREFETCHED_BLOCKS_MAX`]. If the same
//! query asks for one in a later wave, it is served without a request, and enters the cache. "The blocks that follow"
//! are those the trace names anywhere: blocks that no query ever requested are invisible, so that wasted bytes are
//! underestimated. How much a traversal's own prefetcher served in the recorded run is in the summary.
//!
//! ```
//! use hoplake_cache_sim::{Contender, Plan, Workload};
//! use hoplake_storage::{Tier, trace::{Access, Recording, Trace}};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("trace.csv.zst");
//! let trace = Trace::create(&path)?;
//! for position in [0, 1, 2, 3].repeat(10) {
//!     let query = trace.next_query();
//!     trace.record(&Access { query, wave: 0, object: "a", position, bytes: 1, served: Tier::Store });
//! }
//! trace.finish()?;
//!
//! let workload = Workload::new(&Recording::read(&path)?);
//! let contenders = vec!["lru".parse()?, Contender::Belady];
//! // Room for three of the four.
//! let plan = Plan { sizes: vec![workload.summary().cache_bytes * 3 / 4], contenders, ..Plan::default() };
//! let hits: Vec<_> = plan.run(&workload, 1).iter().map(|outcome| outcome.hits).collect();
//! assert_eq!(hits, [0, 27]);
//! # Ok(())
//! # }
//! ```

mod belady;
mod bound;
mod replay;
mod requests;
mod workload;

use std::{
    fmt,
    str::FromStr,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use hoplake_storage::cache::{FetchCost, Policy, PolicyError};

pub use workload::{Summary, Workload};

/// Blocks that read-ahead keeps for one query; the oldest goes.
pub const PREFETCHED_BLOCKS_MAX: usize = 64;

/// Who decides what goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Contender {
    /// A policy, with or without retention costs.
    Policy {
        /// The policy.
        policy: Policy,
        /// What it costs to fetch a block again; `None` if all blocks are alike.
        fetch_cost: Option<FetchCost>,
    },
    /// One who knows the future, and lets go what is used farthest in it.
    Belady,
    /// More hits than anyone can have.
    Bound,
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy { policy, fetch_cost: None } => policy.fmt(f),
            Self::Policy { policy, fetch_cost: Some(_) } => f.pad(&format!("{policy}+retention-cost")),
            Self::Belady => f.pad("belady"),
            Self::Bound => f.pad("bound"),
        }
    }
}

impl FromStr for Contender {
    type Err = PolicyError;

    /// `belady`, `bound`, or a policy, with `+retention-cost` at the usual [`FetchCost`].
    fn from_str(text: &str) -> Result<Self, PolicyError> {
        Ok(match text {
            "belady" => Self::Belady,
            "bound" => Self::Bound,
            text => match text.strip_suffix("+retention-cost") {
                Some(policy) => Self::Policy { policy: policy.parse()?, fetch_cost: Some(FetchCost::STANDARD) },
                None => Self::Policy { policy: text.parse()?, fetch_cost: None },
            },
        })
    }
}

/// What to replay a trace against.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Budgets, in bytes.
    pub sizes: Vec<u64>,
    /// Who competes.
    pub contenders: Vec<Contender>,
    /// Blocks that a miss reads ahead; 0 for none. Policies are then replayed with and without.
    pub read_ahead_blocks: usize,
    /// Ranges of one object with a gap up to this many bytes are one request.
    pub coalesce_gap_bytes_max: u64,
    /// A joined request grows no longer than this.
    pub request_bytes_max: u64,
}

impl Default for Plan {
    /// Every policy, also with retention costs where it uses them, Belady and the bound; gaps up to 64 KiB and requests
    /// up to 4 MiB; no sizes and no read-ahead.
    fn default() -> Self {
        let policy = |policy, fetch_cost| Contender::Policy { policy, fetch_cost };
        let with_retention_cost =
            |name: Policy| name.heeds_retention_cost().then(|| policy(name, Some(FetchCost::STANDARD)));
        let policies =
            Policy::ALL.into_iter().flat_map(|name| [Some(policy(name, None)), with_retention_cost(name)]).flatten();
        Self {
            sizes: Vec::new(),
            contenders: policies.chain([Contender::Belady, Contender::Bound]).collect(),
            read_ahead_blocks: 0,
            coalesce_gap_bytes_max: 64 << 10,
            request_bytes_max: 4 << 20,
        }
    }
}

/// How a contender did with one budget.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Who.
    pub contender: Contender,
    /// The budget, in bytes.
    pub cache_bytes_max: u64,
    /// Blocks that a miss read ahead.
    pub read_ahead_blocks: usize,
    /// Accesses of the trace.
    pub accesses: u64,
    /// Those that found their block in the cache.
    pub hits: u64,
    /// Those that found it read ahead by their query.
    pub prefetched: u64,
    /// Bytes of all accesses.
    pub bytes: u64,
    /// Bytes of those that found their block, in the cache or read ahead.
    pub hit_bytes: u64,
    /// What would go to the store; unknown for the bound.
    pub fetched: Option<Fetched>,
}

/// What would go to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fetched {
    /// Requests, after joining.
    pub requests: u64,
    /// Bytes they bring, with gaps and what is read ahead.
    pub bytes: u64,
}

impl Outcome {
    /// Accesses served without the store, of all; 0 for an empty trace.
    pub fn object_hit_ratio(&self) -> f64 {
        ratio(self.hits + self.prefetched, self.accesses)
    }

    /// The same by bytes.
    pub fn byte_hit_ratio(&self) -> f64 {
        ratio(self.hit_bytes, self.bytes)
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// One replay.
#[derive(Debug, Clone, Copy)]
struct Job {
    contender: Contender,
    cache_bytes_max: u64,
    read_ahead_blocks: usize,
}

impl Plan {
    /// Replays the workload, on as many threads as asked, and returns the outcomes: by contender as listed, first
    /// without and then with read-ahead, by size as listed.
    pub fn run(&self, workload: &Workload, threads: usize) -> Vec<Outcome> {
        let jobs = self.jobs();
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            // Jobs are taken one by one: large caches and expensive policies take longer, and a fixed split would wait for them.
            while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                done.push(self.replay(workload, *job));
            }
            done
        };
        let mut outcomes: Vec<_> = thread::scope(|scope| {
            let workers: Vec<_> = (0..threads.clamp(1, jobs.len().max(1))).map(|_| scope.spawn(work)).collect();
            workers.into_iter().flat_map(|worker| worker.join().expect("a replay does not panic")).collect()
        });
        let rank = |outcome: &Outcome| {
            let Outcome { contender, cache_bytes_max, read_ahead_blocks, .. } = *outcome;
            jobs.iter().position(|job| {
                (job.contender, job.cache_bytes_max, job.read_ahead_blocks)
                    == (contender, cache_bytes_max, read_ahead_blocks)
            })
        };
        // Threads end in any order; the report has that of the plan.
        outcomes.sort_by_key(rank);
        outcomes
    }

    fn jobs(&self) -> Vec<Job> {
        let mut jobs = Vec::new();
        for contender in &self.contenders {
            let ahead = match contender {
                // Neither Belady nor the bound models read-ahead.
                Contender::Policy { .. } if self.read_ahead_blocks > 0 => &[0, self.read_ahead_blocks][..],
                _ => &[0],
            };
            for read_ahead_blocks in ahead {
                jobs.extend(self.sizes.iter().map(|size| Job {
                    contender: *contender,
                    cache_bytes_max: *size,
                    read_ahead_blocks: *read_ahead_blocks,
                }));
            }
        }
        jobs
    }

    fn replay(&self, workload: &Workload, job: Job) -> Outcome {
        match job.contender {
            Contender::Policy { policy, fetch_cost } => replay::replay(self, workload, job, policy, fetch_cost),
            Contender::Belady => belady::replay(self, workload, job),
            Contender::Bound => bound::bound(workload, job),
        }
    }
}

impl Job {
    /// Before the first access.
    fn outcome(self, workload: &Workload) -> Outcome {
        let Self { contender, cache_bytes_max, read_ahead_blocks } = self;
        let Summary { accesses, bytes, .. } = workload.summary();
        Outcome {
            contender,
            cache_bytes_max,
            read_ahead_blocks,
            accesses,
            hits: 0,
            prefetched: 0,
            bytes,
            hit_bytes: 0,
            fetched: None,
        }
    }
}

#[cfg(test)]
mod tests;
