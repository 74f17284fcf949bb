//! Runs a plan: batches of traversers move from step to step.
//!
//! ```text
//! Plan ── Pipe: a chain of steps, each pulls batches from the one before ──▶ Batch ── elements are read ──▶ values
//! ```
//! A step sees a whole batch: it reads what its rows need in one wave. **A traversal within another runs once for a batch and not
//! once for a traverser**: its rows are numbered by the rows of the batch (`frame`), and steps that reduce, limit, sort or
//! remove duplicates do so within each frame (`Run::child`).

pub(crate) mod batch;
pub(crate) mod by;
pub(crate) mod by_value;
pub(crate) mod change;
pub(crate) mod conditions;
pub(crate) mod elements;
pub(crate) mod growth;
pub(crate) mod kept;
pub(crate) mod numbers_of_texts;
mod path_steps;
pub(crate) mod paths;
pub(crate) mod pipe;
mod profile;
pub(crate) mod programs;
mod reach;
pub(crate) mod reduce;
mod rows;
pub(crate) mod sampling;
mod side_by_side;
pub(crate) mod side_effects;
pub(crate) mod sort;
pub(crate) mod stored;
#[cfg(feature = "testing")]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::{collections::VecDeque, sync::Arc};

use futures::future::BoxFuture;
use hoplake_engine::{
    Expected, Snapshot,
    change::{Committed, Committer},
};
use hoplake_format::PreparedQueries;
use hoplake_storage::{Branch, MemoryHold, Pace};

pub use self::{
    batch::value_bytes,
    reach::{Elements, Reach},
};
pub(crate) use self::{
    batch::{Batch, Element, Items, ROWS_MAX, Row},
    growth::{Growth, units_of},
    pipe::{Frames, Pipe},
    reduce::copies,
};
use self::{change::Changes, kept::Kept, paths::PathTree, profile::Profile, side_effects::SideEffects};
use crate::{
    error::QueryError,
    operators::{moves::Computed, traverser::EndAt},
    plan::{Name, Plan, Settings, Steps},
    value::Value,
};

pub(crate) type Done<T> = Result<T, QueryError>;

/// A graph that plans run on.
#[derive(Debug, Clone)]
pub struct Graph {
    /// The version that is read.
    pub snapshot: Arc<Snapshot>,
    /// What commits changes; without, steps that write are refused.
    pub committer: Option<Arc<Committer>>,
}

/// What queries have changed together and not committed yet, and the graph as they see it.
#[derive(Debug, Clone)]
pub struct Transaction {
    snapshot: Arc<Snapshot>,
    changes: Changes,
}

impl Transaction {
    /// A transaction that has changed nothing.
    pub fn new(graph: &Graph) -> Self {
        Self { snapshot: graph.snapshot.clone(), changes: Changes::new(graph) }
    }

    /// Whether it has changed something.
    pub fn has_changes(&self) -> bool {
        self.changes.any()
    }

    /// How many changes a commit would have.
    pub fn changes(&self) -> usize {
        self.changes.count()
    }

    /// The prepared queries of the graph.
    pub fn queries(&self) -> &PreparedQueries {
        &self.snapshot.manifest().queries
    }

    /// Commits what was changed, as one version. Without changes nothing happens, and there is no version.
    ///
    /// # Errors
    /// [`QueryError::Engine`]: a [conflict](hoplake_engine::EngineError::Conflict) if another writer changed the same elements since
    /// the transaction began, or the store's; nothing was changed then, but if it is
    /// [unknown](hoplake_engine::EngineError::Unknown).
    pub async fn commit(self) -> Result<Option<Committed>, QueryError> {
        self.changes.commit().await
    }
}

/// How results are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wanted {
    /// Whether elements come with their properties, and not with ids and labels alone.
    pub properties: bool,
}

/// Results, which are computed as they are taken.
#[derive(Debug)]
pub struct Results {
    run: Run,
    pipe: Pipe,
    /// Values that were read and not taken yet.
    ready: VecDeque<(Value, u64)>,
    hold: MemoryHold,
    /// The memory of the steps.
    _plan_hold: MemoryHold,
    /// What each step takes, if that is the result.
    profile: Option<Profile>,
    ended: bool,
}

impl Results {
    /// Begins a plan. Nothing is read before the first result is taken.
    ///
    /// # Errors
    /// [`QueryError::ReadOnly`] if the plan writes and the graph may not be changed.
    pub fn begin(plan: &Plan, transaction: Transaction, wanted: Wanted, branch: Branch) -> Result<Self, QueryError> {
        if plan.settings.writes && !transaction.changes.are_allowed() {
            return Err(QueryError::ReadOnly("the query writes, and the graph is open for reading alone".into()));
        }
        let hold = branch.context().hold(0)?;
        let plan_hold = branch.context().hold(plan.settings.plan_bytes)?;
        let mut run = Run::new(plan, transaction, wanted, branch)?;
        run.expected = reach::of(plan, &run.snapshot, wanted, &run.growth);
        let sack = run.settings.sack.clone();
        let mut pipe = Pipe::new(&plan.steps);
        pipe.feed(Batch::start(sack));
        pipe.go_in_portions();
        let profile = plan.settings.profile.then(|| Profile::begin(&mut pipe));
        Ok(Self { run, pipe, ready: VecDeque::new(), hold, _plan_hold: plan_hold, profile, ended: false })
    }

    /// The next results, each with how many times it stands there; up to `most` of them, and none at the end.
    ///
    /// # Errors
    /// [`QueryError`]; the transaction is of no use then.
    pub async fn next(&mut self, most: usize) -> Result<Vec<(Value, u64)>, QueryError> {
        while self.ready.len() < most && !self.ended {
            // Steps that read nothing never look at it.
            self.run.branch.context().check_time()?;
            match self.pipe.next(&mut self.run).await? {
                Some(mut batch) => {
                    let growth = self.run.growth.clone();
                    let mark = growth.begin();
                    growth.absorb(batch.hold.take());
                    let bulks: Vec<u64> = batch.rows.iter().map(|row| row.bulk).collect();
                    let values = batch.items.into_values(&growth)?;
                    let values = self.run.finished(values, self.run.wanted.properties).await?;
                    if self.profile.is_some() {
                        growth.end(&mark)?;
                        continue;
                    }
                    let values: Vec<Value> = values.into_iter().map(without_entries).collect();
                    let bytes: usize = values.iter().map(value_bytes).sum();
                    let mut hold = None;
                    growth.hand_over(&mut hold, bytes as u64)?;
                    growth.end(&mark)?;
                    if let Some(hold) = hold {
                        self.hold.join(hold);
                    }
                    self.ready.extend(values.into_iter().zip(bulks));
                }
                None => {
                    self.ended = true;
                    if let Some(profile) = self.profile.take() {
                        let prices = self.run.snapshot.reader().store().prices();
                        self.ready.push_back((profile.end(&self.pipe, &self.run.branch, prices), 1));
                    }
                }
            }
        }
        let taken: Vec<_> = self.ready.drain(..most.min(self.ready.len())).collect();
        if self.ready.is_empty() {
            // What was taken counts for whoever has it now.
            self.run.branch.context().resize(&mut self.hold, 0)?;
        }
        Ok(taken)
    }

    /// The transaction with what the query has changed, when all results were taken.
    pub fn into_transaction(self) -> Transaction {
        Transaction { snapshot: self.run.snapshot, changes: self.run.changes }
    }

    /// The line of work that the results were computed on: what they cost, and what bounds them.
    pub fn branch(&self) -> &Branch {
        &self.run.branch
    }
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
    pub(crate) changes: Changes,
    /// What whoever takes the results wants of them.
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
    fn new(plan: &Plan, transaction: Transaction, wanted: Wanted, branch: Branch) -> Done<Self> {
        let settings = Arc::new(plan.settings.clone());
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

    /// Runs a traversal within another on each row of a batch: a row's results have its number as their frame.
    pub(crate) fn child<'a>(&'a mut self, steps: &'a Steps, batch: &'a Batch) -> BoxFuture<'a, Done<Batch>> {
        Box::pin(async move {
            let places: Vec<u32> = (0..batch.len() as u32).collect();
            let mut input = batch.take(&places, &self.growth)?;
            for (row, frame) in input.rows.iter_mut().zip(0u32..) {
                row.frame = frame;
                row.bulk = 1;
            }
            let (steps, end) = match steps.split_last() {
                Some((last, before)) if let Some(end) = last.get::<EndAt>() => (before, Some(end)),
                _ => (&steps[..], None),
            };
            // Of the rows that it begins with: a step in it that reduces forgets what was met.
            let met = match end {
                Some(end) => Some(self.needed(&end.name, "where", batch).await?),
                None => None,
            };
            let mut pipe = Pipe::new(steps);
            pipe.feed(input);
            let found = self.drain(&mut pipe).await?;
            match met {
                Some(met) => self.ended_at(&met, found).await,
                None => Ok(found),
            }
        })
    }

    /// All that comes out of a pipe.
    pub(crate) async fn drain(&mut self, pipe: &mut Pipe) -> Done<Batch> {
        let mut all = Batch::default();
        let mut pieces = 0;
        while let Some(batch) = pipe.next(self).await? {
            all.append(batch, &self.growth)?;
            // A hold for each batch is joined: to look at all that came after each of them would take longer and longer.
            pieces += 1;
        }
        if pieces > 1 {
            self.held(&mut all)?;
        }
        Ok(all)
    }

    /// As [`Run::drain`], of a pipe that another one runs.
    pub(crate) fn drain_boxed<'a>(&'a mut self, pipe: &'a mut Pipe) -> BoxFuture<'a, Done<Batch>> {
        Box::pin(self.drain(pipe))
    }

    /// What a traversal gives first for each row.
    pub(crate) async fn firsts(&mut self, steps: &Steps, batch: &Batch) -> Done<Vec<Option<Value>>> {
        let mut found = self.child(steps, batch).await?;
        self.growth.absorb(found.hold.take());
        let mut firsts: Vec<Option<Value>> = self.growth.column(batch.len())?;
        firsts.resize_with(batch.len(), || None);
        for (row, value) in found.rows.iter().zip(found.items.into_values(&self.growth)?) {
            firsts[row.frame as usize].get_or_insert(value);
        }
        Ok(firsts)
    }

    /// For which rows a traversal gives something.
    pub(crate) async fn exists(&mut self, steps: &Steps, batch: &Batch) -> Done<Vec<bool>> {
        let found = self.child(steps, batch).await?;
        Ok(found.frames(batch.len()))
    }

    /// Counts the memory of a batch.
    pub(crate) fn held(&self, batch: &mut Batch) -> Done<()> {
        let bytes = batch.bytes();
        self.growth.hand_over(&mut batch.hold, bytes)
    }
}

/// Entries of maps are maps of one entry to whoever gets them.
fn without_entries(value: Value) -> Value {
    match value {
        Value::Entry(entry) => {
            let (key, value) = *entry;
            Value::Map(vec![(without_entries(key), without_entries(value))])
        }
        Value::List(items) => Value::List(items.into_iter().map(without_entries).collect()),
        Value::Set(items) => Value::Set(items.into_iter().map(without_entries).collect()),
        Value::BulkSet(items) => {
            Value::BulkSet(items.into_iter().map(|(item, bulk)| (without_entries(item), bulk)).collect())
        }
        Value::Map(entries) => {
            Value::Map(entries.into_iter().map(|(key, value)| (without_entries(key), without_entries(value))).collect())
        }
        other => other,
    }
}
