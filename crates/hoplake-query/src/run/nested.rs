//! Traversals within others: each runs once for a batch, and its rows are numbered by those of the batch.

use futures::future::BoxFuture;

use super::{Batch, Run, pipe::Pipe};
use crate::{error::Done, operators::traverser::EndAt, plan::Steps, value::Value};

impl Run {
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

    /// What a traversal gives for each traverser, after what those before it have collected.
    pub(crate) async fn one_by_one(&mut self, steps: &Steps, batch: &Batch) -> Done<Batch> {
        let mut all = Batch::default();
        for at in 0..batch.len() as u32 {
            self.branch.context().check_time()?;
            let row = batch.take(&[at], &self.growth)?;
            let mut found = self.child(steps, &row).await?;
            found.rows.iter_mut().for_each(|row| row.frame = at);
            all.append(found, &self.growth)?;
        }
        Ok(all)
    }
}
