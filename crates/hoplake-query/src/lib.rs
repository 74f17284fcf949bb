//! Queries of a graph, whatever language they are written in: values, plans, and what runs them.
//!
//! | room | what it has |
//! | --- | --- |
//! | [`value`] | what a query returns: types, their relations, arithmetic |
//! | [`literal`], [`moment`], [`tokens`] | numbers with their types, points in time, names that stand for themselves |
//! | [`plan`] | what a query means, rules that make a plan wait less, `explain` |
//! | [`operators`] | what a step does, a file for each |
//! | [`run`] | what runs a plan on batches, within its memory and its time (`growth`) |
//!
//! A language becomes a plan in a crate of its own. `docs/rfcs/0012-operators.md` has the reasons. *The reference* in comments is the
//! implementation that `docs/gremlin.md` names: types, their relations and arithmetic are as it has them.

mod deep;
pub mod error;
mod growth;
pub mod literal;
pub mod moment;
pub mod operators;
pub mod plan;
pub mod run;
#[cfg(feature = "testing")]
pub mod testing;
pub mod tokens;
pub mod value;

pub use deep::{block_in_place_if, mark_worker_thread, with_stack};
