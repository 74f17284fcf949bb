//! What holds for all steps of a query.

use std::{collections::HashSet, sync::Arc};

use crate::{tokens::BinaryOperator, value::Value};

/// A name that is shared by all that use it.
pub type Name = Arc<str>;

/// What a traversal's source says of all of its steps.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings {
    /// Which part of a traverser's path is kept.
    pub paths: Paths,
    /// What each traverser carries at the beginning.
    pub sack: Option<Value>,
    /// What becomes of two sacks when a barrier makes one traverser of two.
    pub sack_merge: Option<BinaryOperator>,
    /// Whether equal traversers count as one once a barrier has merged them.
    pub without_bulk: bool,
    /// Side effects that are there from the beginning.
    pub side_effects: Vec<SideEffect>,
    /// Why steps that write are rejected, if they are.
    pub read_only: Option<Name>,
    /// Side effects that steps collect: they are empty before the first value.
    pub collected: Vec<(Name, Collects)>,
    /// Whether a `by` without a value has `null`, but for properties of some names.
    pub productive: Option<HashSet<Name>>,
    /// What random steps begin with.
    pub seed: Option<i64>,
    /// Milliseconds.
    pub timeout_ms: Option<u64>,
    /// Bytes that the plan takes, and what runs it.
    pub plan_bytes: u64,
    /// Whether a step writes.
    pub writes: bool,
    /// Whether what each step took is the result, and not its results.
    pub profile: bool,
    /// Whether it may have another answer on the same version: random steps, the time.
    pub varies: bool,
}

/// Which part of a traverser's path is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Paths {
    /// None.
    #[default]
    Unused,
    /// The steps that have labels.
    Labelled,
    /// All of it.
    Whole,
}

/// What steps collect under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collects {
    /// Values.
    Values,
    /// Groups or counts.
    Map,
    /// A tree.
    Tree,
    /// A graph.
    Graph,
}

/// A side effect that is there from the beginning.
#[derive(Debug, Clone, PartialEq)]
pub struct SideEffect {
    /// Its name.
    pub name: Name,
    /// Its value.
    pub initial: Value,
    /// What is done with it and a value that a step adds.
    pub reduce: Option<BinaryOperator>,
}
