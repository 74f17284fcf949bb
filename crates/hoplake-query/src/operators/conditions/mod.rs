//! Operators that let some rows pass.

mod coin;
mod combined;
mod discard;
mod exists;
mod has;
mod has_part;
mod has_property;
mod has_steps;
mod is;
mod quantified;
mod where_predicate;

pub use self::{
    coin::Coin,
    combined::{And, Or},
    discard::Discard,
    exists::{Not, Where},
    has::Has,
    has_part::{HasKey, HasValue},
    has_property::{HasNot, HasProperty},
    has_steps::HasSteps,
    is::Is,
    quantified::Quantified,
    where_predicate::WherePredicate,
};
use crate::{operators::Output, run::Batch};

/// The rows for which `keep` is true.
fn keep(batch: Batch, keep: impl Fn(usize) -> bool) -> Output {
    Output::Same(batch.keep(keep))
}
