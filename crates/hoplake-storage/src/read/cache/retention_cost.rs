//! The retention cost of a block: what it would cost to fetch it again, per byte that it occupies.
//!
//! A block that is not in memory costs a request, whatever its size, and then its bytes. On S3 Standard
//! the request is 25 ms to the first byte, and a stream brings 55 MiB/s: a page of 300 bytes costs
//! 25.0 ms, a block of 16 KiB 25.3 ms, one of 256 KiB 29.5 ms. They do not differ in what a miss costs but in the
//! room they take, so that of two blocks used equally often the smaller should stay. GreedyDual-Size
//! (Cao, Irani, USENIX Symposium on Internet Technologies and Systems 1997) and its successor with
//! frequency, GDSF (Cherkasova, HP Labs report 98-69, 1998), rank by `frequency · cost / size`; this
//! module gives `cost / size`, and policies that have scores multiply theirs by it.

use serde::{Deserialize, Serialize};

use crate::StoreProfile;

/// The cost of fetching a block again.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FetchCost {
    /// Milliseconds from the request to its first byte.
    pub first_byte_ms: f64,
    /// Bytes per second of one stream, after the first byte.
    pub stream_bytes_per_second: f64,
}

impl FetchCost {
    /// A standard class of storage: 25 ms, 55 MiB/s.
    pub const STANDARD: Self = Self { first_byte_ms: 25.0, stream_bytes_per_second: (55 << 20) as f64 };

    /// The size whose retention cost is 1: nearly all blocks of keys and adjacency have it.
    const USUAL_BYTES: u64 = 16 << 10;

    /// The cost of a store: the median of its first bytes, and the bandwidth of a stream.
    pub fn of(profile: &StoreProfile) -> Self {
        Self {
            first_byte_ms: profile.get.quantile(0.5).as_secs_f64() * 1e3,
            stream_bytes_per_second: profile.stream_bytes_per_second as f64,
        }
    }

    /// Milliseconds to fetch `bytes`.
    pub fn fetch_ms(&self, bytes: u64) -> f64 {
        self.first_byte_ms + bytes as f64 / self.stream_bytes_per_second * 1e3
    }

    /// The retention cost of a block of `bytes` that occupies `weight` bytes in memory, relative to a block of
    /// 16 KiB: positive, without a unit. The overhead of an entry is in `weight`, so that tiny blocks
    /// do not cost infinitely much.
    pub fn retention_cost(&self, bytes: u64, weight: u64) -> f32 {
        let per_byte = self.fetch_ms(bytes) / weight.max(1) as f64;
        let usual = self.fetch_ms(Self::USUAL_BYTES) / Self::USUAL_BYTES as f64;
        // With an all-zero profile, the quotient is not a number: all blocks have the same retention cost.
        let retention_cost = (per_byte / usual) as f32;
        if retention_cost.is_finite() && retention_cost > 0.0 { retention_cost } else { 1.0 }
    }
}

impl Default for FetchCost {
    fn default() -> Self {
        Self::STANDARD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_block_costs_more_per_byte() {
        let retention_cost = |bytes: u64| FetchCost::STANDARD.retention_cost(bytes, bytes);
        assert_eq!(retention_cost(16 << 10), 1.0);
        // 25.005 ms for 300 bytes against 25.284 ms for 16,384: nearly the ratio of the sizes.
        assert!((retention_cost(300) - 54.0).abs() < 0.1, "{}", retention_cost(300));
        assert!((retention_cost(256 << 10) - 0.073).abs() < 0.001, "{}", retention_cost(256 << 10));
        let shipped = FetchCost::of(&StoreProfile::s3_standard());
        assert!((shipped.retention_cost(300, 300) / retention_cost(300) - 1.0).abs() < 1e-3, "{shipped:?}");
        // Without a first-byte latency, the cost per byte does not depend on the length.
        let stream = FetchCost { first_byte_ms: 0.0, stream_bytes_per_second: 1e6 };
        assert_eq!((stream.retention_cost(300, 300), stream.retention_cost(1 << 20, 1 << 20)), (1.0, 1.0));
        let free = FetchCost { first_byte_ms: 0.0, stream_bytes_per_second: f64::INFINITY };
        assert_eq!(free.retention_cost(300, 300), 1.0);
    }
}
