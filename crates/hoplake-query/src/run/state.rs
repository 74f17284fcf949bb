//! What all steps of a query share: the graph, its budget and pace, paths, side effects and changes.
//!
//! This is below the operators, which change it: it knows no step.

use std::sync::Arc;

use hoplake_engine::{Expected, Snapshot};
use hoplake_storage::{Branch, Pace};

use super::{
    batch::Batch,
    computed::Computed,
    paths::PathTree,
    properties::Kept,
    side_effects::SideEffects,
    transaction::{Transaction, UncommittedChanges},
};
use crate::{
    error::Done,
    growth::Growth,
    plan::{Name, Settings},
};

/// How results are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wanted {
    /// Whether elements come with their properties, and not with ids and labels alone.
    pub properties: bool,
}

/// What all steps of a query share.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) branch: Branch,
    pub(crate) settings: Arc<Settings>,
    pub(crate) paths: PathTree,
    pub(crate) side_effects: SideEffects,
    /// The loops that are under way, the innermost last, and how many times each has run.
    pub(crate) loops: Vec<(Option<Name>, u64)>,
    pub(crate) random: fastrand::Rng,
    pub(crate) changes: UncommittedChanges,
    /// Which parts of the results the caller asked for.
    pub(crate) wanted: Wanted,
    /// What was read for later steps, too.
    pub(crate) kept: Option<Kept>,
    /// Metadata that is read with the first look at the store.
    pub(crate) expected: Option<Expected>,
    /// Properties that were computed so far.
    pub(crate) computed: Vec<Arc<Computed>>,
    /// The memory and the work of the steps under way.
    pub(crate) growth: Growth,
    /// Gives way to other queries, from turn to turn.
    pub(crate) pace: Pace,
}

impl Run {
    pub(super) fn new(settings: &Settings, transaction: Transaction, wanted: Wanted, branch: Branch) -> Done<Self> {
        let settings = Arc::new(settings.clone());
        let random = settings.seed.map_or_else(fastrand::Rng::new, |seed| fastrand::Rng::with_seed(seed as u64));
        let Transaction { snapshot, changes } = transaction;
        Ok(Self {
            snapshot,
            paths: PathTree::new(settings.paths, branch.context())?,
            side_effects: SideEffects::new(&settings, branch.context())?,
            growth: Growth::new(branch.context())?,
            pace: branch.context().pace(),
            branch,
            settings,
            loops: Vec::new(),
            random,
            changes,
            wanted,
            kept: None,
            expected: None,
            computed: Vec::new(),
        })
    }

    /// Counts the memory of a batch.
    pub(crate) fn held(&self, batch: &mut Batch) -> Done<()> {
        let bytes = batch.bytes();
        self.growth.hand_over(&mut batch.hold, bytes)
    }
}
