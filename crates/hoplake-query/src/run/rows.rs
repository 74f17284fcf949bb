//! What operators do with the rows of a batch: keep some, give them other items, go back to where they came from.

use super::{
    Batch, Items, Run,
    batch::Row,
    paths::{Labels, NO_PATH},
};
use crate::{
    error::Done,
    growth::Growth,
    operators::Output,
    plan::units,
    value::{Value, equals, value_bytes},
};

impl Run {
    /// Rows on other items, each from one of a batch.
    pub(crate) fn derived(&self, from: &Batch, parents: &[u32], items: Items) -> Done<Batch> {
        Ok(from.take_rows(parents, &self.growth)?.on(items))
    }

    /// The same rows on other values; those without one go.
    pub(crate) fn mapped_if(&mut self, batch: &Batch, values: Vec<Option<Value>>) -> Done<Output> {
        let mut parents = self.growth.column(values.len())?;
        let mut items = self.growth.column(values.len())?;
        for (at, value) in values.into_iter().enumerate() {
            if let Some(value) = value {
                parents.push(at as u32);
                items.push(value);
            }
        }
        Ok(Output::Next(self.derived(batch, &parents, Items::of_values(items))?))
    }

    /// Rows that begin here, each in its frame.
    pub(crate) fn begun(&mut self, values: Vec<(u32, Value)>) -> Done<Output> {
        let rows = values.iter().map(|(frame, _)| Row { bulk: 1, frame: *frame, path: NO_PATH }).collect::<Vec<_>>();
        let sacks = match &self.settings.sack {
            Some(sack) => Some(self.growth.copies(sack, value_bytes(sack), rows.len())?),
            None => None,
        };
        let items = Items::of_values(values.into_iter().map(|(_, value)| value).collect());
        Ok(Output::Next(Batch { items, rows, sacks, hold: None }))
    }

    /// What comes out of a step, with paths that go on to it, and bound to the step's names.
    pub(crate) fn placed(&mut self, output: Output, labels: &Labels) -> Done<Batch> {
        let context = self.branch.context();
        let is_labelled = !labels.is_empty();
        let batch = match output {
            Output::Next(mut batch) => {
                if self.paths.keeps(is_labelled) {
                    self.paths.push(&mut batch.rows, &batch.items, labels, context)?;
                }
                batch
            }
            Output::Same(mut batch) => {
                if is_labelled && self.paths.keeps(true) {
                    self.paths.relabel(&mut batch.rows, &batch.items, labels, context)?;
                }
                batch
            }
        };
        Ok(batch)
    }

    /// For which rows a test is true that may be much work. Other queries have their turns between rows.
    pub(crate) async fn tested(&mut self, rows: usize, test: impl Fn(usize, &Growth) -> Done<bool>) -> Done<Vec<bool>> {
        let growth = self.growth.clone();
        let mut matching = Vec::with_capacity(rows);
        for at in 0..rows {
            let before = growth.done();
            matching.push(test(at, &growth)?);
            self.rest_since(before).await?;
        }
        Ok(matching)
    }

    /// Lets other queries run, if much work was done since.
    pub(crate) async fn rest_since(&mut self, before: u64) -> Done<()> {
        Ok(self.pace.rest(1 + self.growth.done().wrapping_sub(before)).await?)
    }

    pub(crate) async fn keep_values(
        &mut self,
        batch: Batch,
        test: impl Fn(&Value, &Growth) -> Done<bool>,
    ) -> Done<Output> {
        let kept = match &batch.items {
            Items::Values(values) => self.tested(values.len(), |at, growth| test(&values[at], growth)).await?,
            items => self.tested(batch.len(), |at, growth| test(&items.get(at), growth)).await?,
        };
        Ok(Output::Same(batch.keep(|at| kept[at])))
    }

    /// Another value for each; those without one go.
    pub(crate) async fn each_value(
        &mut self,
        batch: Batch,
        change: impl Fn(&Value) -> Done<Option<Value>>,
    ) -> Done<Output> {
        let mut values = self.growth.column(batch.len())?;
        for at in 0..batch.len() {
            let taken = self.growth.taken();
            let done = self.growth.done();
            let value = change(&batch.items.get(at))?;
            let bytes = value.as_ref().map_or(0, value_bytes);
            self.growth.at_least(taken, bytes)?;
            values.push(value);
            self.rest_since(done).await?;
        }
        self.mapped_if(&batch, values)
    }

    /// Those results of a traversal within another that are what was met under a label by the row that they come from.
    pub(crate) async fn ended_at(&mut self, met: &[Value], found: Batch) -> Done<Batch> {
        let same = |at: usize, growth: &Growth| {
            let met = &met[found.rows[at].frame as usize];
            let item = found.items.get(at);
            growth.work(units(met, &item))?;
            Ok(equals(met, &item))
        };
        let kept = self.tested(found.len(), same).await?;
        Ok(found.keep(|at| kept[at]))
    }
}
