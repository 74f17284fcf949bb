//! Operators that collect under names, or read what was collected.

mod aggregate;
mod cap;
mod fail;
mod side_effect;
mod subgraph;

pub use self::{
    aggregate::{Aggregate, AggregateEach},
    cap::Cap,
    fail::Fail,
    side_effect::SideEffect,
    subgraph::Subgraph,
};
