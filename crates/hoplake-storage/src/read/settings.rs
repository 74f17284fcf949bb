//! Settings of the reader: caches, coalescing, concurrency, hedging and retries.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{StorageError, read::cache::Policy};

/// How a process reads blocks, for all graphs that share its [`ReadPool`](super::ReadPool).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReadSettings {
    /// Budget of the memory cache, in bytes. Default 256 MiB. From 16 MiB on, an eighth of it is reserved for decoded property values.
    pub cache_bytes_max: u64,
    /// Which block the memory cache evicts when it is full.
    pub cache_policy: Policy,
    /// Whether the files of a graph in a folder are mapped into memory. Blocks are then slices of the map, the system's page cache is
    /// the cache, and queries send no requests for them. Off by default, because the process dies if the disk fails during a page
    /// fault or if another process truncates a file.
    pub mapped: bool,
    /// How many bytes of a mapped section a scan leaves in the page cache; it releases the rest as it advances. Default 1 GiB.
    pub scan_keeps_bytes: u64,
    /// The cache on the local disk; none by default.
    pub disk: Option<DiskSettings>,
    /// The price of an hour of waiting, in US dollars. The planner weighs time against requests and bytes by it when it decides which
    /// ranges to coalesce. Default 0.5: 0.25 for an hour of the machine (c7gn.xlarge), and as much for the caller that waits.
    pub waiting_usd_per_hour: f64,
    /// The maximum length of a coalesced request, in bytes; 0 disables coalescing. Default 4 MiB.
    pub request_bytes_max: u64,
    /// A segment of at most this many bytes (if it is longer, a section of at most this many) is read in full, in the background,
    /// when a query first reads part of it from the store, so that later queries find it in memory. The reader lowers the limit where
    /// bytes cost as much as requests, or where the cache is small. 0 disables it. Default 8 MiB: a few requests, 75 ms of two streams.
    pub full_read_bytes_max: u64,
    /// The maximum number of requests of one wave in flight at once. Default 128.
    pub parallel_requests_max: usize,
    /// The maximum number of bytes in flight at once, over all queries. A single request is always admitted. Default 256 MiB.
    pub in_flight_bytes_max: u64,
    /// When a slow request is sent a second time.
    pub hedge: HedgeSettings,
    /// How failed requests are retried.
    pub retry: RetrySettings,
}

/// A cache of blocks on the local disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskSettings {
    /// Its folder, which several processes may share.
    pub folder: PathBuf,
    /// Its budget, in bytes.
    pub bytes_max: u64,
}

/// When a slow request is sent a second time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HedgeSettings {
    /// A request is hedged once it has taken longer than this quantile of recent requests. Default 0.985: above 1 − `share_max`, so
    /// that budget is left for a wave with several slow requests.
    pub quantile: f64,
    /// The maximum number of hedges, as a share of all requests; 0 disables hedging. Default 0.02.
    pub share_max: f64,
    /// The maximum number of unused hedges that accumulate, and so of hedges at once. A process starts with one. Default 8.
    pub burst_max: f64,
}

/// How failed requests are retried.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetrySettings {
    /// The maximum number of attempts of one request, the first included. Default 5.
    pub attempts_max: u32,
    /// The maximum number of retries of one query. Default 64.
    pub query_retries_max: u64,
    /// The maximum pause before the first retry, in milliseconds. It doubles with each retry; the actual pause is uniformly random
    /// between 0 and this maximum. Default 50.
    pub backoff_ms: u64,
    /// The maximum pause before any retry, in milliseconds. Default 2,000.
    pub backoff_max_ms: u64,
    /// The timeout of one attempt, in milliseconds. Default 15,000.
    pub attempt_timeout_ms: u64,
    /// The seed of the random pauses, to reproduce a run. Random by default.
    pub seed: Option<u64>,
}

impl Default for ReadSettings {
    fn default() -> Self {
        Self {
            cache_bytes_max: 256 << 20,
            cache_policy: Policy::default(),
            mapped: false,
            scan_keeps_bytes: 1 << 30,
            disk: None,
            waiting_usd_per_hour: 0.5,
            request_bytes_max: 4 << 20,
            full_read_bytes_max: 8 << 20,
            parallel_requests_max: 128,
            in_flight_bytes_max: 256 << 20,
            hedge: HedgeSettings::default(),
            retry: RetrySettings::default(),
        }
    }
}

impl Default for HedgeSettings {
    fn default() -> Self {
        Self { quantile: 0.985, share_max: 0.02, burst_max: 8.0 }
    }
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            attempts_max: 5,
            query_retries_max: 64,
            backoff_ms: 50,
            backoff_max_ms: 2_000,
            attempt_timeout_ms: 15_000,
            seed: None,
        }
    }
}

impl ReadSettings {
    /// Rejects invalid settings.
    ///
    /// # Errors
    /// [`StorageError::Settings`] that names the field.
    pub fn validate(&self) -> Result<(), StorageError> {
        let invalid = |why: &str| Err(StorageError::Settings(why.to_owned()));
        match self {
            Self { parallel_requests_max: 0, .. } => invalid("parallel_requests_max is 0, but must be at least 1"),
            Self { retry: RetrySettings { attempts_max: 0, .. }, .. } => {
                invalid("retry.attempts_max is 0, but must be at least 1")
            }
            Self { retry: RetrySettings { attempt_timeout_ms: 0, .. }, .. } => {
                invalid("retry.attempt_timeout_ms is 0, but must be at least 1")
            }
            // Negated, so that NaN is rejected, too.
            Self { hedge, .. } if !(0.0..1.0).contains(&hedge.quantile) => {
                invalid("hedge.quantile is not between 0 and 1")
            }
            Self { hedge, .. } if !(0.0..=1.0).contains(&hedge.share_max) => {
                invalid("hedge.share_max is not between 0 and 1")
            }
            Self { waiting_usd_per_hour, .. } if !(0.0..f64::INFINITY).contains(waiting_usd_per_hour) => {
                invalid("waiting_usd_per_hour is negative, infinite or not a number")
            }
            // A log has 1/32 of the budget: with less than 1 MiB, it would hold only two blocks of 16 KiB.
            Self { disk: Some(disk), .. } if disk.bytes_max < 1 << 20 => invalid("disk.bytes_max is less than 1 MiB"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_invalid_setting() {
        assert!(ReadSettings::default().validate().is_ok());
        let settings = ReadSettings { parallel_requests_max: 0, ..Default::default() };
        assert!(settings.validate().unwrap_err().to_string().contains("parallel_requests_max"));
        let hedge = HedgeSettings { quantile: 1.5, ..Default::default() };
        let settings = ReadSettings { hedge, ..Default::default() };
        assert!(settings.validate().unwrap_err().to_string().contains("hedge.quantile"));
    }
}
