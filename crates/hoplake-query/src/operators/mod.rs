//! Operators: what a step of a plan does, a file for each.
//!
//! | family | what it does |
//! | --- | --- |
//! | [`sources`] | begins with elements or values |
//! | [`moves`] | goes from elements to others |
//! | [`conditions`] | lets some rows pass |
//! | [`maps`] | makes values of elements and maps |
//! | [`scalars`] | makes a value of a value: text, numbers, dates, lists |
//! | [`within`] | does to the items of one collection what a reduction does to rows |
//! | [`traverser`] | reads or changes what a traverser carries: its path, its sack, its loops |
//! | [`reductions`] | orders, limits and sums up rows |
//! | [`branches`] | runs traversals within it |
//! | [`side_effects`] | collects under names, and reads what was collected |
//! | [`writes`] | changes the graph |
//!
//! To add one, write a file with a type that implements [`Operator`] and, if it turns each batch into another, `Each`. Examples:
//! [`constant`](maps::Constant) is small, [`barrier`](reductions::Barrier) needs all its input, and [`range`](reductions::Range) keeps a
//! state between batches. Then the step needs a name, an arm that builds it from a call, tests and documentation: `ARCHITECTURE.md`,
//! *Where would I add something?*, lists the files.

mod adapters;
pub mod branches;
pub mod conditions;
pub mod maps;
pub mod moves;
mod nested;
mod operator;
mod reach;
pub mod reductions;
pub mod scalars;
pub mod side_effects;
pub mod sources;
mod stage;
pub mod traverser;
pub mod within;
pub mod writes;

/// What almost every operator needs.
pub(crate) mod prelude {
    pub(crate) use std::{
        fmt::{self, Formatter},
        sync::Arc,
    };

    pub(crate) use futures::future::BoxFuture;

    pub(crate) use super::{
        All, AllInput, Each, Elements, Frames, Operator, Output, PerBatch, Reach, Running, Stage, nested, of_steps,
    };
    pub(crate) use crate::{
        error::{Done, QueryError},
        growth::Growth,
        plan::{By, Collects, Given, Name, Predicate, Steps},
        run::{Batch, Items, Run},
        value::Value,
    };
}

#[cfg(feature = "testing")]
pub(crate) use self::reach::left;
pub(crate) use self::{
    adapters::{All, Barrier as AllInput, Each, PerBatch},
    nested::{nested, of_steps},
    reach::{Reads, expected, hop_along},
    stage::{Demand, Frames, Output, Stage, of_frames, slots},
};
pub use self::{
    nested::Nested,
    operator::{Common, Operator},
    reach::{Elements, Reach},
    stage::Running,
};
