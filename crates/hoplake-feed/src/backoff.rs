//! Growing pauses between attempts.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};

/// Growing pauses between attempts, with jitter.
pub(crate) struct Backoff(backon::ExponentialBackoff);

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(30);

impl Backoff {
    pub(crate) fn new() -> Self {
        let builder = ExponentialBuilder::default().with_jitter().with_min_delay(Duration::from_millis(100));
        Self(builder.with_max_delay(PAUSE_MAX).without_max_times().build())
    }

    pub(crate) fn next(&mut self) -> Duration {
        self.0.next().unwrap_or(PAUSE_MAX)
    }

    pub(crate) fn reset(&mut self) {
        *self = Self::new();
    }
}
