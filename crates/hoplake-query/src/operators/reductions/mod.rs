//! Operators that order, limit and sum up rows.

mod barrier;
mod dedup;
mod fold;
mod group;
mod group_count;
mod order;
mod range;
mod reduce;
mod sample;
mod tail;
mod tree;

pub use self::{
    barrier::Barrier, dedup::Dedup, fold::Fold, group::Group, group_count::GroupCount, order::Order, range::Range,
    reduce::Reduce, sample::Sample, tail::Tail, tree::Tree,
};
pub(crate) use self::{range::write_range, reduce::Reducing};
