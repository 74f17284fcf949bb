//! Runs a plan: batches of traversers move from step to step.
//!
//! ```text
//! Plan ── Pipe: a chain of steps, each pulls batches from the one before ──▶ Batch ── elements are read ──▶ values
//! ```
//! A step sees a whole batch: it reads what its rows need in one wave. **A traversal within another runs once for a batch and not
//! once for a traverser**: its rows are numbered by the rows of the batch (`frame`), and steps that reduce, limit, sort or
//! remove duplicates do so within each frame (`Run::child`).
//!
//! Files here are of two floors. What operators work on is below them and knows no step: `Run` (`state`) with batches, bindings (`paths`), side
//! effects, groups, properties that were read, and changes. What runs operators is above them: `pipe`, `nested`, `grouping`, `side_by_side` and
//! `results`.

pub(crate) mod batch;
pub(crate) mod by;
pub(crate) mod by_value;
pub(crate) mod change;
mod computed;
pub(crate) mod conditions;
pub(crate) mod elements;
mod grouping;
mod groups;
pub(crate) mod kept;
mod nested;
pub(crate) mod numbers_of_texts;
mod path_steps;
pub(crate) mod paths;
pub(crate) mod pipe;
mod profile;
pub(crate) mod programs;
pub(crate) mod properties;
pub(crate) mod reduce;
mod results;
mod rows;
pub(crate) mod sampling;
mod side_by_side;
pub(crate) mod side_effects;
pub(crate) mod sort;
mod state;
pub(crate) mod stored;
#[cfg(feature = "testing")]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub(crate) mod to_stored;
mod transaction;

pub(crate) use self::{
    batch::{Batch, Element, Items, ROWS_MAX, Row},
    computed::{Column, Computed, Names},
    pipe::Pipe,
    reduce::copies,
    state::Run,
};
pub use self::{
    results::Results,
    state::Wanted,
    transaction::{Graph, Transaction},
};
