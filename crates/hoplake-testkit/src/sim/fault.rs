//! Faults of requests.

use crate::{RequestKind, generate::SplitMix64};

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// The request is answered with 503, and nothing is done.
    Reject,
    /// No answer ever arrives, and the request has no effect.
    Hang,
    /// The connection breaks when this many bytes of a get's content have arrived, or all of them. Of other
    /// requests, the store does what was asked and the connection breaks before the answer: the client
    /// cannot know.
    Reset {
        /// Bytes that arrive.
        after_bytes: u64,
    },
    /// The answer to a get ends after this many bytes, as if that were all.
    Truncate {
        /// Bytes that arrive.
        bytes: u64,
    },
    /// One bit of the answer to a get, chosen by chance, is wrong.
    Flip,
}

/// A rule: which requests go wrong, and how.
///
/// ```
/// use hoplake_testkit::{Fault, FaultKind, RequestKind};
///
/// // The first time that a range below data/ is read, in one of ten cases, no answer arrives.
/// let fault = Fault::new(FaultKind::Hang).on(RequestKind::Get).below("data/").first_attempts(1).share(0.1);
/// # let _ = fault;
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    kind: FaultKind,
    on: Option<RequestKind>,
    below: String,
    first_attempts: u32,
    share: f64,
}

impl Fault {
    /// Every request goes wrong in this way.
    pub fn new(kind: FaultKind) -> Self {
        Self { kind, on: None, below: String::new(), first_attempts: u32::MAX, share: 1.0 }
    }

    /// Only requests of this kind.
    pub fn on(self, kind: RequestKind) -> Self {
        Self { on: Some(kind), ..self }
    }

    /// Only requests on objects whose path contains this.
    pub fn below(self, part_of_path: impl Into<String>) -> Self {
        Self { below: part_of_path.into(), ..self }
    }

    /// Only the first `attempts` at the same request.
    pub fn first_attempts(self, attempts: u32) -> Self {
        Self { first_attempts: attempts, ..self }
    }

    /// Only this share of the requests, chosen by chance.
    pub fn share(self, share: f64) -> Self {
        Self { share, ..self }
    }

    /// The fault of this request by this rule.
    pub(super) fn of(&self, kind: RequestKind, path: &str, attempt: u32, random: &mut SplitMix64) -> Option<FaultKind> {
        // Drawn in any case, so that no rule changes what the next one draws. unit() is above 0.
        let chosen = random.unit() <= self.share;
        let meant = self.on.is_none_or(|on| on == kind) && path.contains(&self.below) && attempt < self.first_attempts;
        (chosen && meant).then_some(self.kind)
    }
}
