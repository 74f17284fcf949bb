//! A feed that runs, and what its operator does.
//!
//! ```text
//! check        source and mapping fit            feed         reads, collects, commits
//! read_ahead   the task that reads the source    schedule     reconciliations by the clock
//! retrying     dead letters, again               housekeeping, verifying    objects next to the graph
//! stopping     the end                           monitor      what can be seen over HTTP
//! ```

pub(crate) mod check;
mod collected;
pub(crate) mod feed;
pub(crate) mod housekeeping;
#[cfg(feature = "http")]
pub(crate) mod monitor;
mod read_ahead;
pub(crate) mod retrying;
mod schedule;
mod stopping;
pub(crate) mod verifying;
