//! The name of a policy, as settings and command lines write it.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Eviction, lfu::Lfu, lrfu::Lrfu, lru::Lru, s3_fifo::S3Fifo, w_tiny_lfu::WTinyLfu};

/// Which block goes when room is needed.
///
/// Written and read as text: `lru`, `lfu`, `lrfu:0.0001`, `s3-fifo`, `w-tiny-lfu`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Policy {
    /// Least recently used.
    Lru,
    /// Least frequently used.
    Lfu,
    /// Least recently and frequently used (Lee et al. 2001).
    Lrfu {
        /// From 0, which is LFU, to 1, which is LRU: a use counts half after 1/λ accesses.
        lambda: f64,
    },
    /// S3-FIFO (Yang et al. 2023).
    S3Fifo,
    /// W-TinyLFU (Einziger et al. 2017).
    WTinyLfu,
}

/// The λ of `lrfu` without a number: a use counts half after 10,000 accesses.
const LAMBDA: f64 = 0.0001;

impl Policy {
    /// One of each, with the usual λ.
    pub const ALL: [Self; 5] = [Self::Lru, Self::Lfu, Self::Lrfu { lambda: LAMBDA }, Self::S3Fifo, Self::WTinyLfu];

    /// Whether it keeps a block longer that costs more to fetch (see [`FetchCost`](crate::read::cache::FetchCost)).
    pub fn heeds_retention_cost(self) -> bool {
        matches!(self, Self::Lfu | Self::Lrfu { .. } | Self::WTinyLfu)
    }

    /// The policy of one shard of `shards`, which holds up to `bytes_max`.
    pub fn build(self, bytes_max: u64, shards: usize) -> Box<dyn Eviction> {
        match self {
            Self::Lru => Box::new(Lru::new()),
            Self::Lfu => Box::new(Lfu::new()),
            Self::Lrfu { lambda } => Box::new(Lrfu::new(lambda, shards)),
            Self::S3Fifo => Box::new(S3Fifo::new(bytes_max)),
            Self::WTinyLfu => Box::new(WTinyLfu::new(bytes_max)),
        }
    }
}

impl Default for Policy {
    /// LRFU with λ = 0.0001: with retention costs, it sends the fewest requests on recorded traversals (see
    /// [`cache`](crate::read::cache)).
    fn default() -> Self {
        Self::Lrfu { lambda: LAMBDA }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lru => f.pad("lru"),
            Self::Lfu => f.pad("lfu"),
            Self::Lrfu { lambda } => f.pad(&format!("lrfu:{lambda}")),
            Self::S3Fifo => f.pad("s3-fifo"),
            Self::WTinyLfu => f.pad("w-tiny-lfu"),
        }
    }
}

/// A text that is not a policy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text:?} is not a cache policy: write lru, lfu, lrfu:LAMBDA with LAMBDA from 0 to 1, s3-fifo or w-tiny-lfu")]
pub struct PolicyError {
    text: String,
}

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let wrong = || PolicyError { text: text.into() };
        match text {
            "lru" => Ok(Self::Lru),
            "lfu" => Ok(Self::Lfu),
            "lrfu" => Ok(Self::Lrfu { lambda: LAMBDA }),
            "s3-fifo" => Ok(Self::S3Fifo),
            "w-tiny-lfu" => Ok(Self::WTinyLfu),
            _ => {
                let lambda = text.strip_prefix("lrfu:").ok_or_else(wrong)?.parse().map_err(|_| wrong())?;
                // NaN is in no range, so it is rejected, too.
                if (0.0..=1.0).contains(&lambda) { Ok(Self::Lrfu { lambda }) } else { Err(wrong()) }
            }
        }
    }
}

impl From<Policy> for String {
    fn from(policy: Policy) -> Self {
        policy.to_string()
    }
}

impl TryFrom<String> for Policy {
    type Error = PolicyError;

    fn try_from(text: String) -> Result<Self, PolicyError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_written() {
        for policy in Policy::ALL.into_iter().chain([Policy::Lrfu { lambda: 0.25 }, Policy::Lrfu { lambda: 1e-7 }]) {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        assert_eq!("lrfu".parse(), Ok(Policy::default()));
        assert_eq!(Policy::default().to_string(), "lrfu:0.0001");
        for wrong in ["", "LRU", "lrfu:", "lrfu:2", "lrfu:-0.1", "lrfu:NaN", "lru:1"] {
            let error = wrong.parse::<Policy>().unwrap_err();
            assert!(error.to_string().starts_with(&format!("{wrong:?} is not a cache policy")), "{error}");
        }
    }
}
