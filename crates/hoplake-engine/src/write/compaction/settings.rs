//! How a graph is compacted, and how a compaction reads.

use hoplake_format::segment::SegmentSettings;
use hoplake_storage::{ReadSettings, RetrySettings, cache::Policy};

/// How a graph is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionSettings {
    /// Memory for it, in bytes.
    pub memory_bytes: u64,
    /// Whether all runs of each label and edge type become one; otherwise only what is due.
    pub everything: bool,
    /// Runs of less than this many bytes are all of the lowest tier. Default 64 KiB: smaller ones cost a request each,
    /// whatever they have.
    pub lowest_tier_bytes: u64,
    /// How long it may take, in milliseconds; it then takes its name out, and what it published stays. Without one, the
    /// default, as long as it takes.
    pub timeout_ms: Option<u64>,
    /// What pauses before repeated requests are drawn from, as [`RetrySettings::seed`]. By default another each time.
    pub retry_seed: Option<u64>,
    /// How segments are written.
    pub segments: SegmentSettings,
}

impl Default for CompactionSettings {
    fn default() -> Self {
        Self {
            memory_bytes: 256 << 20,
            everything: false,
            lowest_tier_bytes: 64 << 10,
            timeout_ms: None,
            retry_seed: None,
            segments: SegmentSettings::default(),
        }
    }
}

/// How a compaction reads within its memory.
pub(crate) fn read_settings(compaction: &CompactionSettings) -> ReadSettings {
    let memory = compaction.memory_bytes;
    ReadSettings {
        // Inputs of a group take a half of it; pages have their books, and shards are not all alike.
        cache_bytes_max: memory / 4,
        cache_policy: Policy::Lru,
        in_flight_bytes_max: memory / 4,
        // All of a group comes at once.
        parallel_requests_max: 512,
        // Nobody waits: what costs least is best.
        waiting_usd_per_hour: 0.0,
        // A merge reads everything once: nothing is worth reading before its turn.
        full_read_bytes_max: 0,
        // It reads as much as hundreds of queries.
        retry: RetrySettings { query_retries_max: 10_000, seed: compaction.retry_seed, ..RetrySettings::default() },
        ..ReadSettings::default()
    }
}
