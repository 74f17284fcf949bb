//! How blocks are read.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{StorageError, read::cache::Policy};

/// How a process reads blocks, from whichever graphs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReadSettings {
    /// Budget of the memory cache, in bytes. Default 256 MiB. From 16 MiB on, an eighth of it is for values of properties that were
    /// decoded from blocks in memory.
    pub cache_bytes_max: u64,
    /// Which block leaves the memory cache when room is needed.
    pub cache_policy: Policy,
    /// Whether the files of a graph in a folder are mapped into memory. Blocks are then slices of the map, the system's page cache is
    /// the cache, and a query makes no requests there. Off by default: a disk that fails while a page is read, or a
    /// file that somebody cuts, ends the process.
    pub mapped: bool,
    /// Of a section that is mapped and scanned, this many bytes stay in the page cache; the rest is given back behind the
    /// scan. Default 1 GiB.
    pub scan_keeps_bytes: u64,
    /// A cache on the local disk; none by default.
    pub disk: Option<DiskSettings>,
    /// The price of an hour of waiting, in US dollars: weighs time against requests and bytes when it
    /// is decided which ranges to read as one. Default 0.5: an hour of a machine that could serve someone
    /// else (c7gn.xlarge, 0.25), and as much for the caller that waits for its answer.
    pub waiting_usd_per_hour: f64,
    /// A joined request grows no longer than this, in bytes; 0 joins nothing. Default 4 MiB.
    pub request_bytes_max: u64,
    /// A segment of at most this many bytes, or else a section, is read in full in the background of the first query
    /// that reads a part of it from the store, and the next queries find it in memory; less where bytes cost as much as
    /// requests, or the cache is small. 0 switches it off. Default 8 MiB: a few requests, 75 ms of two streams.
    pub full_read_bytes_max: u64,
    /// Requests of one wave that are in flight at once. Default 128.
    pub parallel_requests_max: usize,
    /// Bytes of all queries that are in flight at once; one request may always go. Default 256 MiB.
    pub in_flight_bytes_max: u64,
    /// When a request is sent a second time because the first is slow.
    pub hedge: HedgeSettings,
    /// How failed requests are repeated.
    pub retry: RetrySettings,
}

/// A cache of blocks on the local disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskSettings {
    /// Where it is. Several processes may name the same folder.
    pub folder: PathBuf,
    /// Its budget, in bytes.
    pub bytes_max: u64,
}

/// When a slow request is sent a second time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HedgeSettings {
    /// Which share of recent requests was faster than one must be slow to be sent again. Default 0.985: above
    /// 1 − `share_max`, so that budget is left when a wave has several slow ones.
    pub quantile: f64,
    /// How many requests more this may cost, as a share of all; 0 switches it off. Default 0.02.
    pub share_max: f64,
    /// How many of them may be saved up and sent at once. A process begins with one. Default 8.
    pub burst_max: f64,
}

/// How failed requests are repeated.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetrySettings {
    /// How often one request is sent at most. Default 5.
    pub attempts_max: u32,
    /// How many repetitions one query may make in all. Default 64.
    pub query_retries_max: u64,
    /// The longest pause before the first repetition, in milliseconds; it doubles each time, and the
    /// pause taken is drawn evenly below it. Default 50.
    pub backoff_ms: u64,
    /// The longest pause of all, in milliseconds. Default 2,000.
    pub backoff_max_ms: u64,
    /// A request that has not been answered by then has failed, in milliseconds. Default 15,000.
    pub attempt_timeout_ms: u64,
    /// The seed of pauses; set it to repeat them. By default a different one each time.
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
        let wrong = |why: &str| Err(StorageError::Settings(why.to_owned()));
        match self {
            Self { parallel_requests_max: 0, .. } => wrong("parallel_requests_max is 0; at least 1 request must go"),
            Self { retry: RetrySettings { attempts_max: 0, .. }, .. } => wrong("retry.attempts_max is 0; at least 1"),
            Self { retry: RetrySettings { attempt_timeout_ms: 0, .. }, .. } => {
                wrong("retry.attempt_timeout_ms is 0; no request could be answered in time")
            }
            // Written so that a NaN is rejected, too.
            Self { hedge, .. } if !(0.0..1.0).contains(&hedge.quantile) => {
                wrong("hedge.quantile is not between 0 and 1")
            }
            Self { hedge, .. } if !(0.0..=1.0).contains(&hedge.share_max) => {
                wrong("hedge.share_max is not between 0 and 1")
            }
            Self { waiting_usd_per_hour, .. } if !(0.0..f64::INFINITY).contains(waiting_usd_per_hour) => {
                wrong("waiting_usd_per_hour is no price")
            }
            // A log is 1/32 of the budget: below this it would hold two blocks of 16 KiB.
            Self { disk: Some(disk), .. } if disk.bytes_max < 1 << 20 => wrong("disk.bytes_max is less than 1 MiB"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_cannot_work_are_rejected_by_name() {
        assert!(ReadSettings::default().validate().is_ok());
        let settings = ReadSettings { parallel_requests_max: 0, ..Default::default() };
        assert!(settings.validate().unwrap_err().to_string().contains("parallel_requests_max"));
        let hedge = HedgeSettings { quantile: 1.5, ..Default::default() };
        let settings = ReadSettings { hedge, ..Default::default() };
        assert!(settings.validate().unwrap_err().to_string().contains("hedge.quantile"));
    }
}
