//! Time, and keys that grow with it.

/// Creation dates count from here: 2010-01-01, in milliseconds since 1970.
pub const START_UNIX_MS: i64 = 1_262_304_000_000;

pub const DAY_MS: u64 = 86_400_000;
pub const HOUR_MS: u64 = 3_600_000;

/// Everything happens within this: SNB's three years without the last tenth, which is its update stream.
pub const SPAN_MS: u64 = 990 * DAY_MS;

/// Keys of one period are higher than all of the period before.
const PERIOD_MS: u64 = 60 * DAY_MS;

/// Bits of a key that number what was made within a period.
const NUMBER_BITS: u32 = 40;

/// Bits of that for the things of one person.
pub const OWN_BITS: u32 = 20;

/// The key of what was made at a time: the period, then a number, as in SNB.
pub fn key(created_ms: u64, number: u64) -> i64 {
    debug_assert!(number >> NUMBER_BITS == 0, "{number} has {NUMBER_BITS} bits at most");
    ((created_ms / PERIOD_MS) << NUMBER_BITS | number) as i64
}

/// The key of a person's own thing of this number.
pub fn own_key(created_ms: u64, person: u32, number: u64) -> i64 {
    debug_assert!(number >> OWN_BITS == 0, "a person has at most 2^{OWN_BITS} things, not {number}");
    key(created_ms, u64::from(person) << OWN_BITS | number)
}
