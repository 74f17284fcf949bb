//! Queries of Gremlin, or parts of a transaction.
//!
//! * `request`: what a request says, and how each of its fields is read. Every protocol makes this request.
//! * `plan`: scripts are read and planned before they wait for their turn, so that a mistake in one takes no place in the queue.
//! * `run`: runs the statements of a script, one after the other.
//! * `transaction`: the transaction, and the graph that it is on.
//! * `results`: the results on their way to the client, bounded in number and memory, and those of the cache of results.
//! * `commit`: what a script changes is one version, at its end or when a session says so. A commit is a task of its own, as that of
//!   a batch of changes is.

mod commit;
mod plan;
mod request;
mod results;
mod run;
mod transaction;

pub(crate) use plan::{planning_context, planning_failure, read_script};
pub(crate) use request::{DriverOptions, GremlinOptions, GremlinRequest, named_value, names_of};
pub(crate) use results::{GremlinSink, ResultValues};
pub(crate) use run::{GremlinOutcome, run_gremlin};
pub(crate) use transaction::GremlinWork;
