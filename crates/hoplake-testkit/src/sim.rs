//! A simulated object store: the published latencies, limits and prices of a [`StoreProfile`], from a seed.
//!
//! **What it is.** A [`Sim`] decides the outcome of each request: when its first byte arrives, how fast the
//! rest follows, whether it is rejected or goes wrong, and what it costs. [`SimStore`] puts one before any
//! [`ObjectStore`](object_store::ObjectStore), [`SimProxy`] before the endpoint of a real S3 server.
//!
//! **Time is tokio's.** Under a paused clock a bench of minutes takes seconds and its latencies repeat; with
//! a running clock the same code takes real time. Processor work does not move a paused clock: it is to be
//! measured by itself. The timers have ticks of a millisecond and round up; all waits here end at the
//! *nearest* tick, so that no mean is off, and a wait continues where the one before it should have ended,
//! so that a request is off by half a tick and not by one for each of its waits.
//!
//! **Chance repeats.** The random draw of a request is a function of the seed, of its target (kind, object,
//! range, page or part) and of how often the same was asked before. An ordinal over all requests would
//! make the draws depend on the order in which parallel requests happen to be sent; this does not. A range
//! asked again, by a hedge or a retry, is another attempt and draws anew.
//!
//! **What it needs.** For virtual time, an inner store in memory, as for [`WaveStore`](crate::WaveStore).
//!
//! [`StoreProfile`]: hoplake_storage::StoreProfile

mod bucket;
mod chance;
mod counts;
mod errors;
mod fault;
mod link;
pub(crate) mod proxy;
mod request;
mod service;
mod store;

pub use counts::SimCounts;
pub use fault::{Fault, FaultKind};
pub use proxy::SimProxy;
pub use service::Sim;
pub use store::SimStore;

use std::time::Duration;

use tokio::time::Instant;

/// Half a tick of tokio's timers.
const HALF_TICK: Duration = Duration::from_micros(500);

/// Waits until the tick that is nearest to `deadline`.
async fn sleep_until_nearest(deadline: Instant) {
    // A timer fires at the first tick from its deadline on: half a tick earlier, that is the nearest.
    if let Some(early) = deadline.checked_sub(HALF_TICK).filter(|early| *early > Instant::now()) {
        tokio::time::sleep_until(early).await;
    }
}

#[cfg(test)]
mod tests;
