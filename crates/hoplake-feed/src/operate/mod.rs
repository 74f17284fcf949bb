//! A feed that runs, and what its operator does.
//!
//! ```text
//! check          source, mapping and graph fit
//! feed           opens, reads, collects, commits
//! read_ahead     the task that reads the source
//! pending_batch  transactions that wait for a commit
//! schedule       reconciliations by the clock
//! stopping       the end, within a grace
//! retrying       dead letters, again
//! housekeeping, verifying   objects next to the graph
//! monitor        metrics, probes and state over HTTP
//! ```

pub(crate) mod check;
pub(crate) mod feed;
pub(crate) mod housekeeping;
#[cfg(feature = "http")]
pub(crate) mod monitor;
mod pending_batch;
mod read_ahead;
pub(crate) mod retrying;
mod schedule;
mod stopping;
pub(crate) mod verifying;
