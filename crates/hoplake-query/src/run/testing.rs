//! See [`crate::testing`].

use hoplake_engine::Snapshot;
use hoplake_storage::QueryContext;

use super::Results;
use crate::{growth::Growth, operators, plan::Plan};

/// The units of work of a query so far.
pub fn work_done(results: &Results) -> u64 {
    results.run.growth.done()
}

/// Steps that might still be followed after those of a plan, to find the tables that it reads.
///
/// # Panics
/// Never: the query has no limits.
pub fn steps_left_to_follow(plan: &Plan, snapshot: &Snapshot) -> usize {
    let growth = Growth::new(&QueryContext::new()).expect("a query without limits");
    operators::left(&plan.steps, snapshot, &growth)
}
