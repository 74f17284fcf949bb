//! The random draws of a request.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{RequestKind, generate::SplitMix64};

/// Chance of one seed, which knows how often each request was made.
#[derive(Debug)]
pub(super) struct Chance {
    seed: u64,
    attempts: HashMap<u64, u32>,
}

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, attempts: HashMap::new() }
    }

    /// The random numbers of the next attempt at a request, and how many attempts were before it. `detail`
    /// distinguishes requests of one kind on one object.
    pub(super) fn of(&mut self, kind: RequestKind, path: &str, detail: &str) -> (SplitMix64, u32) {
        let what = xxh3_64_with_seed(format!("{kind:?}\n{path}\n{detail}").as_bytes(), self.seed);
        let attempts = self.attempts.entry(what).or_default();
        let attempt = *attempts;
        *attempts += 1;
        // Seeds next to each other would give the same sequence, shifted: a step apart is hashed apart.
        (SplitMix64::new(xxh3_64_with_seed(&attempt.to_le_bytes(), what)), attempt)
    }
}
