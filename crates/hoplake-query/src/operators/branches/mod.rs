//! Operators that run traversals within them.

mod apply;
mod choose;
mod coalesce;
mod optional;
mod repeat;
mod union;

pub use self::{
    apply::{FlatMap, Local, Map},
    choose::Choose,
    coalesce::Coalesce,
    optional::Optional,
    repeat::Repeat,
    union::Union,
};
use crate::{
    operators::prelude::*,
    plan::acts,
    run::{Pipe, copies},
};

/// One of several traversals from the same rows. It is not run anew for each row: what it counts, it counts over all that come.
#[derive(Debug)]
struct Branch {
    steps: Steps,
    pipe: Pipe,
}

impl Branch {
    fn new(steps: &Steps) -> Self {
        Self { steps: steps.clone(), pipe: Pipe::new(steps) }
    }
}

impl Run {
    /// Runs each branch on its rows. If no branch depends on other rows than the one that it began with, results come in the order of
    /// the rows.
    async fn branches_with(
        &mut self,
        branches: &mut [Branch],
        batch: &Batch,
        parts: Vec<Vec<u32>>,
        waits: bool,
        unmoved: Vec<u32>,
    ) -> Done<Batch> {
        let mut all = Batch::default();
        // The row of the batch that each result comes from.
        let mut origins: Vec<u32> = Vec::new();
        let taken = branches.iter_mut().zip(parts).filter(|(_, places)| !places.is_empty());
        let growth = self.growth.clone();
        let taken = taken.map(|(branch, places)| Ok((branch, batch.take(&places, &growth)?, places)));
        let mut taken = taken.collect::<Done<Vec<_>>>()?;
        if waits {
            let pipes = taken.iter_mut().map(|(branch, rows, _)| {
                branch.pipe.feed(std::mem::take(rows));
                &mut branch.pipe
            });
            let pipes = pipes.collect();
            for found in self.drain_all(pipes).await? {
                all.append(found, &growth)?;
            }
        } else {
            let asked: Vec<_> = taken.iter().map(|(branch, rows, _)| (&branch.steps, rows)).collect();
            let found = self.children(&asked).await?;
            for (found, (_, rows, places)) in found.into_iter().zip(&taken) {
                let (found, parents) = restored(found, rows);
                origins.extend(parents.into_iter().map(|parent| places[parent as usize]));
                all.append(found, &growth)?;
            }
        }
        origins.extend(&unmoved);
        if !unmoved.is_empty() {
            all.append(batch.take(&unmoved, &growth)?, &growth)?;
        }
        if waits {
            return Ok(all);
        }
        let mut order: Vec<u32> = (0..all.len() as u32).collect();
        order.sort_by_key(|at| origins[*at as usize]);
        // In that order already, where there is one branch.
        if order.is_sorted() {
            return Ok(all);
        }
        growth.absorb(all.hold.take());
        all.take(&order, &growth)
    }

    /// A row for each of equal traversers, if it matters how many times a traversal within another runs.
    fn one_by_one_if_it_acts(&self, mut batch: Batch, steps: &Steps) -> Done<Batch> {
        if batch.rows.iter().all(|row| row.bulk == 1) || !acts(steps) {
            return Ok(batch);
        }
        self.growth.absorb(batch.hold.take());
        let count = batch.rows.iter().map(|row| row.bulk).fold(0, u64::saturating_add);
        let mut places = self.growth.column(copies(count)?)?;
        for (place, row) in (0u32..).zip(&batch.rows) {
            places.extend(std::iter::repeat_n(place, copies(row.bulk)?));
        }
        let mut all = batch.take(&places, &self.growth)?;
        all.rows.iter_mut().for_each(|row| row.bulk = 1);
        Ok(all)
    }

    /// The results of a traversal within another, on the paths of the rows that it began with.
    fn flat_mapped(&mut self, batch: &Batch, mut found: Batch) -> Done<Output> {
        self.growth.absorb(found.hold.take());
        let parents: Vec<u32> = found.rows.iter().map(|row| row.frame).collect();
        let bulks: Vec<u64> = found.rows.iter().map(|row| row.bulk).collect();
        let mut derived = self.derived(batch, &parents, found.items)?;
        derived.rows.iter_mut().zip(bulks).for_each(|(row, bulk)| row.bulk = row.bulk.saturating_mul(bulk));
        Ok(Output::Next(derived))
    }
}

/// What a traversal within another gave, in the frames of the rows that it began with, and which row that was.
pub(crate) fn restored(mut found: Batch, rows: &Batch) -> (Batch, Vec<u32>) {
    let mut parents = Vec::with_capacity(found.len());
    for row in &mut found.rows {
        let parent = &rows.rows[row.frame as usize];
        parents.push(row.frame);
        row.bulk = row.bulk.saturating_mul(parent.bulk);
        row.frame = parent.frame;
    }
    (found, parents)
}
