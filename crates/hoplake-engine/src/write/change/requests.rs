//! Idempotency keys: a batch that is sent again is known, and not applied again.
//!
//! A version's manifest has the keys of the last batches that had one. A delta is checked against the manifest that it is built on, and
//! the create of the next one is conditional: of two servers that were sent the same batch, one finds the key of the other.

use std::collections::HashSet;

use hoplake_format::{Applied, ChangeCounts, RequestDigest};

use super::Batch;

/// Keys that a manifest keeps. At 16 bytes each they are 64 KiB, which two PUTs of a commit send in about 2 ms at 55 MiB/s.
pub const IDEMPOTENCY_KEYS_MAX: usize = 4_096;

/// Whether a batch was applied before, by its idempotency key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RequestStatus {
    /// It has none, or one that is new.
    New,
    /// Another batch of this delta has it.
    InDelta,
    /// A version has it already.
    Applied(u64, ChangeCounts),
}

/// The keys of a version, and of the batches that go into the next one.
pub(super) struct Requests<'a> {
    applied: &'a [Applied],
    in_delta: HashSet<RequestDigest>,
}

impl<'a> Requests<'a> {
    pub(super) fn of(applied: &'a [Applied]) -> Self {
        Self { applied, in_delta: HashSet::new() }
    }

    pub(super) fn look(&self, batch: &Batch) -> RequestStatus {
        let Some(request) = digest(batch) else { return RequestStatus::New };
        // From the newest back: a batch that is repeated was mostly sent a moment ago.
        match self.applied.iter().rev().find(|applied| applied.requests.contains(&request)) {
            Some(applied) => RequestStatus::Applied(applied.version, applied.counts),
            None if self.in_delta.contains(&request) => RequestStatus::InDelta,
            None => RequestStatus::New,
        }
    }

    /// Notes a batch that goes into the delta.
    pub(super) fn add(&mut self, batch: &Batch) {
        self.in_delta.extend(digest(batch));
    }
}

fn digest(batch: &Batch) -> Option<RequestDigest> {
    batch.idempotency_key.as_deref().map(RequestDigest::of)
}

/// Adds the batches of a version to what the versions before applied, of which the oldest are forgotten.
pub(super) fn extend<'a>(
    applied: &mut Vec<Applied>,
    version: u64,
    counts: ChangeCounts,
    batches: impl Iterator<Item = &'a Batch>,
) {
    let requests: Vec<_> = batches.filter_map(digest).collect();
    if requests.is_empty() {
        return;
    }
    applied.push(Applied { version, counts, requests });
    let mut kept = 0;
    // The newest version keeps all of its own, however many they are.
    let from = applied.iter().rposition(|of| {
        kept += of.requests.len();
        kept > IDEMPOTENCY_KEYS_MAX && kept > of.requests.len()
    });
    applied.drain(..from.map_or(0, |last_that_goes| last_that_goes + 1));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(key: &str) -> Batch {
        Batch { idempotency_key: Some(key.into()), ..Batch::default() }
    }

    #[test]
    fn a_key_is_known_from_its_delta_on() {
        let counts = ChangeCounts { vertices_added: 3, ..ChangeCounts::default() };
        let mut applied = Vec::new();
        extend(&mut applied, 7, counts, [batch("a"), Batch::default()].iter());
        let mut requests = Requests::of(&applied);
        assert_eq!(requests.look(&batch("a")), RequestStatus::Applied(7, counts));
        assert_eq!(
            (requests.look(&batch("b")), requests.look(&Batch::default())),
            (RequestStatus::New, RequestStatus::New)
        );
        requests.add(&batch("b"));
        requests.add(&Batch::default());
        assert_eq!(
            (requests.look(&batch("b")), requests.look(&Batch::default())),
            (RequestStatus::InDelta, RequestStatus::New)
        );
    }

    #[test]
    fn the_oldest_keys_are_forgotten() {
        let mut applied = Vec::new();
        let all: Vec<_> = (0..IDEMPOTENCY_KEYS_MAX).map(|key| batch(&format!("first {key}"))).collect();
        extend(&mut applied, 1, ChangeCounts::default(), all.iter());
        extend(&mut applied, 2, ChangeCounts::default(), std::iter::empty());
        assert_eq!(applied.len(), 1);
        extend(&mut applied, 3, ChangeCounts::default(), [batch("one more")].iter());
        assert_eq!(applied.iter().map(|of| of.version).collect::<Vec<_>>(), [3]);
        // More than are kept, of one version: all stay until another one has some.
        let many: Vec<_> = (0..=IDEMPOTENCY_KEYS_MAX).map(|key| batch(&format!("many {key}"))).collect();
        extend(&mut applied, 4, ChangeCounts::default(), many.iter());
        assert_eq!((applied.len(), applied[0].requests.len()), (1, IDEMPOTENCY_KEYS_MAX + 1));
    }
}
