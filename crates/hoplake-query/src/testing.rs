//! What tests of languages see of how a query runs: they count work, and measure no time.

pub use crate::{
    run::testing::{steps_left_to_follow, work_done},
    value::alike::compared::count as comparisons,
};
