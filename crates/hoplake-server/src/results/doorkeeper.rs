//! Which keys were asked before: a Bloom filter of the last keys, so that what is asked once takes ten bits and not an entry.
//!
//! Two filters take turns. Keys go into the young one; when it is full it becomes the old one, and the old one is forgotten. So a key
//! is known for [`KEYS`] others at least and twice as many at most.
//!
//! A filter takes some new keys for known ones. How many is measured and not computed: of one key in [`SAMPLED`] the fingerprint
//! itself is remembered as long as the filters remember it.

use std::collections::HashSet;

use fastbloom::BloomFilter;

/// Keys of a filter.
const KEYS: usize = 1 << 16;
/// How many of the new keys a full filter takes for known ones, at most: 78 KiB a filter.
const FALSE_POSITIVES: f64 = 0.01;
/// Of this many keys one is remembered exactly.
const SAMPLED: u64 = 16;

/// Whether the filters contain a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Membership {
    Absent,
    Present,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DoorCounts {
    /// Keys that were new to the filters.
    pub(super) first_askings: u64,
    /// Keys of the sample that were new.
    pub(super) sampled: u64,
    /// Of these, those that the filters took for known ones.
    pub(super) false_positives: u64,
}

#[derive(Debug)]
struct Generation {
    filter: BloomFilter,
    keys: usize,
    sample: HashSet<u64>,
}

impl Generation {
    fn new() -> Self {
        // Fingerprints are hashes with a secret already, so that the filter needs none of its own.
        let filter = BloomFilter::with_false_pos(FALSE_POSITIVES).seed(&0).expected_items(KEYS);
        Self { filter, keys: 0, sample: HashSet::new() }
    }
}

/// Remembers keys by their fingerprints.
#[derive(Debug)]
pub(super) struct Doorkeeper {
    young: Generation,
    old: Generation,
    counts: DoorCounts,
}

impl Doorkeeper {
    pub(super) fn new() -> Self {
        Self { young: Generation::new(), old: Generation::new(), counts: DoorCounts::default() }
    }

    /// Whether the filters contain a key; inserts it.
    pub(super) fn ask(&mut self, fingerprint: u64) -> Membership {
        if self.young.keys >= KEYS {
            self.old = std::mem::replace(&mut self.young, Generation::new());
        }
        let is_young = self.young.filter.insert(&fingerprint);
        if !is_young {
            self.young.keys += 1;
        }
        let is_known = is_young || self.old.filter.contains(&fingerprint);
        if fingerprint.is_multiple_of(SAMPLED) {
            let is_new = self.young.sample.insert(fingerprint) && !self.old.sample.contains(&fingerprint);
            self.counts.sampled += u64::from(is_new);
            self.counts.false_positives += u64::from(is_new && is_known);
        }
        match is_known {
            true => Membership::Present,
            false => {
                self.counts.first_askings += 1;
                Membership::Absent
            }
        }
    }

    pub(super) fn counts(&self) -> DoorCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that are spread as hashes are.
    fn fingerprint(number: u64) -> u64 {
        let mixed = (number ^ (number >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) ^ (mixed >> 32)
    }

    #[test]
    fn a_key_is_known_for_a_while() {
        let mut door = Doorkeeper::new();
        assert_eq!(door.ask(fingerprint(1)), Membership::Absent);
        assert_eq!(door.ask(fingerprint(1)), Membership::Present);
        let others = KEYS as u64;
        for number in 10..10 + others {
            door.ask(fingerprint(number));
        }
        assert_eq!(door.ask(fingerprint(1)), Membership::Present);
        for number in 10 + others..10 + 4 * others {
            door.ask(fingerprint(number));
        }
        assert_eq!(door.ask(fingerprint(1)), Membership::Absent);
    }

    #[test]
    fn few_new_keys_are_taken_for_known_ones() {
        let mut door = Doorkeeper::new();
        let all = 4 * KEYS as u64;
        let known = (0..all).filter(|number| door.ask(fingerprint(*number)) == Membership::Present).count() as f64;
        let counts = door.counts();
        assert_eq!(counts.first_askings, all - known as u64);
        let expected = known / all as f64;
        let measured = counts.false_positives as f64 / counts.sampled as f64;
        // Two filters, the old one full: between one and two in a hundred.
        assert!((0.002..0.025).contains(&expected), "{expected}");
        assert!((measured - expected).abs() < 0.005, "{measured} of the sample, {expected} of all");
        assert!((counts.sampled as i64 - (all / SAMPLED) as i64).abs() < all as i64 / 200, "{counts:?}");
    }
}
