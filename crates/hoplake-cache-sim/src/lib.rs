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
mod plan;
mod replay;
mod requests;
mod workload;

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use plan::Job;
pub use plan::{Contender, Fetched, Outcome, PREFETCHED_BLOCKS_MAX, Plan};
pub use workload::{Summary, Workload};

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

#[cfg(test)]
mod tests;
