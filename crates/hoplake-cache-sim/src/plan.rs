//! What is replayed, and how it went.

use std::{fmt, str::FromStr};

use hoplake_storage::cache::{FetchCost, Policy, PolicyError};

use crate::workload::{Summary, Workload};

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
pub(crate) struct Job {
    pub(crate) contender: Contender,
    pub(crate) cache_bytes_max: u64,
    pub(crate) read_ahead_blocks: usize,
}

impl Job {
    /// Before the first access.
    pub(crate) fn outcome(self, workload: &Workload) -> Outcome {
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
