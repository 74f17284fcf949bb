//! The time and unique names, as a writer gets them from its environment.
//!
//! The [`Store`](crate::Store) has them, since every writer needs them, and a simulation provides its own. No
//! read depends on them.

use std::{
    fmt::Debug,
    sync::LazyLock,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// The time, and names.
pub trait Clock: Debug + Send + Sync {
    /// Milliseconds since 1970, as far as the machine knows: it may be wrong, and may jump either way.
    fn unix_ms(&self) -> u64;

    /// How long the process has been running: it never goes back, but may stand still while the machine is suspended.
    fn running(&self) -> Duration;

    /// A unique name: a ULID, 26 characters that begin with the time.
    fn ulid(&self) -> String;
}

/// The machine's.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);

impl Clock for SystemClock {
    fn unix_ms(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
    }

    fn running(&self) -> Duration {
        BEGUN.elapsed()
    }

    fn ulid(&self) -> String {
        ulid::Ulid::generate().to_string()
    }
}
