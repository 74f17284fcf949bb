//! The results of a plan, computed as they are taken.

use std::collections::VecDeque;

use hoplake_storage::{Branch, MemoryHold};

use super::{Batch, Run, Wanted, pipe::Pipe, profile::Profile, transaction::Transaction};
use crate::{
    error::QueryError,
    operators,
    plan::Plan,
    value::{Value, value_bytes},
};

/// Results, which are computed as they are taken.
#[derive(Debug)]
pub struct Results {
    pub(super) run: Run,
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
            return Err(QueryError::ReadOnly("the query writes, but the graph is open read-only".into()));
        }
        let hold = branch.context().hold(0)?;
        let plan_hold = branch.context().hold(plan.settings.plan_bytes)?;
        let mut run = Run::new(&plan.settings, transaction, wanted, branch)?;
        if !plan.settings.writes {
            run.expected = operators::expected(&plan.steps, &run.snapshot, wanted, &run.growth);
        }
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
            // From here on the caller accounts for its memory.
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

/// Callers see an entry of a map as a map of one entry.
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
