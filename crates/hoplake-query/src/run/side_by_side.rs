//! Traversals that need nothing of each other run side by side: together they take as many waves as the longest.

use futures::future::{try_join, try_join_all};

use super::{Pipe, Run, batch::Batch, kept::distinct, paths::PathTree, side_effects::SideEffects};
use crate::{
    error::{Done, QueryError},
    growth::Growth,
    plan::{By, Name, Paths, Settings, Steps},
    value::Value,
};

/// Rows for which more is begun than one might need, at most.
const ROWS_MAX: usize = 4_096;

/// What a line takes, with the traversal that runs on it.
const LINE_BYTES: usize = size_of::<Run>() + (4 << 10);

impl Settings {
    /// Whether traversals can run side by side: nothing that one does can be seen by another.
    fn are_apart(&self) -> bool {
        self.paths == Paths::Unused
            && self.collected.is_empty()
            && self.side_effects.is_empty()
            && self.seed.is_none()
            && !self.writes
    }
}

impl Run {
    /// A line of the same query that goes on from here; `None` if there can be none.
    fn fork(&self) -> Done<Option<Self>> {
        if !self.settings.are_apart() {
            return Ok(None);
        }
        Ok(Some(Self {
            snapshot: self.snapshot.clone(),
            branch: self.branch.clone(),
            settings: self.settings.clone(),
            paths: PathTree::new(Paths::Unused, self.branch.context())?,
            side_effects: SideEffects::new(&self.settings, self.branch.context())?,
            loops: self.loops.clone(),
            random: fastrand::Rng::new(),
            changes: self.changes.clone(),
            wanted: self.wanted,
            kept: self.kept.clone(),
            expected: None,
            computed: self.computed.clone(),
            // Of its own: turns of several lines do not nest.
            growth: Growth::new(self.branch.context())?,
            pace: self.branch.context().pace(),
        }))
    }

    /// Lines for some traversals, which run next to `own` work of this line; `None` if nothing runs side by side.
    fn forks(&self, count: usize, own: usize) -> Done<Option<Vec<Self>>> {
        if count + own < 2 {
            return Ok(None);
        }
        if self.settings.are_apart() {
            self.growth.take(count * LINE_BYTES)?;
        }
        (0..count).map(|_| self.fork()).collect()
    }

    /// Runs traversals within another, each on rows of its own, as [`Run::child`] does.
    pub(crate) async fn children(&mut self, asked: &[(&Steps, &Batch)]) -> Done<Vec<Batch>> {
        let Some(mut forks) = self.forks(asked.len(), 0)? else {
            let mut found = Vec::with_capacity(asked.len());
            for (steps, batch) in asked {
                found.push(self.child(steps, batch).await?);
            }
            return Ok(found);
        };
        let runs = forks.iter_mut().zip(asked).map(|(run, (steps, batch))| run.child(steps, batch));
        let found = try_join_all(runs).await?;
        self.branch.join(forks.iter().map(|fork| &fork.branch));
        Ok(found)
    }

    /// All that comes out of some pipes.
    pub(crate) async fn drain_all(&mut self, pipes: Vec<&mut Pipe>) -> Done<Vec<Batch>> {
        let Some(mut forks) = self.forks(pipes.len(), 0)? else {
            let mut found = Vec::with_capacity(pipes.len());
            for pipe in pipes {
                found.push(self.drain(pipe).await?);
            }
            return Ok(found);
        };
        let runs = forks.iter_mut().zip(pipes).map(|(run, pipe)| run.drain(pipe));
        let found = try_join_all(runs).await?;
        self.branch.join(forks.iter().map(|fork| &fork.branch));
        Ok(found)
    }

    /// For which rows each of some traversals gives something; `None` if that has to be asked of one after the other: a traversal may
    /// fail on rows that one before it would have kept from it.
    pub(crate) async fn exists_all(&mut self, all: &[Steps], batch: &Batch) -> Done<Option<Vec<Vec<bool>>>> {
        if batch.len() > ROWS_MAX || !self.settings.are_apart() {
            return Ok(None);
        }
        let asked: Vec<_> = all.iter().map(|steps| (steps, batch)).collect();
        let found = match self.children(&asked).await {
            Err(error @ QueryError::Engine(_)) => return Err(error),
            Err(_) => return Ok(None),
            Ok(found) => found,
        };
        Ok(Some(found.iter().map(|found| found.frames(batch.len())).collect()))
    }

    /// Whether what failed may be asked once more in another order: the store did not fail, and nothing was collected.
    pub(crate) fn may_ask_again(&self, error: &QueryError) -> bool {
        let collects = !self.settings.collected.is_empty() || !self.settings.side_effects.is_empty();
        !matches!(error, QueryError::Engine(_)) && !collects && !self.settings.writes
    }

    /// What several `by` compute of each row, one after the other: a row for which one has nothing is not asked of those behind it, which
    /// may fail on it.
    pub(crate) async fn by_in_turn(&mut self, all: &[&By], batch: &Batch) -> Done<Vec<Vec<Option<Value>>>> {
        let mut left = self.own_values(batch)?;
        let mut columns = Vec::with_capacity(all.len());
        for by in all {
            let own = self.copied(&left)?;
            let column = self.by_of(by, batch, own).await?;
            left.iter_mut().zip(&column).filter(|(_, found)| found.is_none()).for_each(|(left, _)| *left = None);
            columns.push(column);
        }
        Ok(columns)
    }

    /// What several `by` compute of each row, as [`Run::by`] does: properties are read together, and while traversals run.
    pub(crate) async fn by_all(&mut self, all: &[&By], batch: &Batch) -> Done<Vec<Vec<Option<Value>>>> {
        let names: Vec<Name> = distinct(all.iter().filter_map(|by| match by {
            By::Property(name) => Some(name),
            _ => None,
        }));
        let steps: Vec<usize> = (0..all.len()).filter(|at| matches!(all[*at], By::Steps(_))).collect();
        let elements = if names.is_empty() || batch.len() > ROWS_MAX {
            Vec::new()
        } else {
            (0..batch.len()).filter_map(|at| batch.items.element(at)).collect()
        };
        let mut columns: Vec<Option<Vec<Option<Value>>>> = vec![None; all.len()];
        match self.forks(steps.len(), 1)? {
            Some(mut forks) => {
                let runs = forks.iter_mut().zip(&steps).map(|(run, at)| run.by(all[*at], batch));
                let runs = try_join_all(runs);
                let (found, ()) = try_join(runs, self.keep_ready(elements, Some(&names))).await?;
                self.branch.join(forks.iter().map(|fork| &fork.branch));
                steps.iter().zip(found).for_each(|(at, column)| columns[*at] = Some(column));
            }
            None => self.keep_ready(elements, Some(&names)).await?,
        }
        let mut found = Vec::with_capacity(all.len());
        for (by, column) in all.iter().zip(columns) {
            found.push(match column {
                Some(column) => column,
                None => self.by(by, batch).await?,
            });
        }
        Ok(found)
    }
}
