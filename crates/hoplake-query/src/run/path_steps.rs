//! The steps of whole paths, and what is computed of them.

use super::{Batch, Run, paths::Labels};
use crate::{
    error::Done,
    plan::{By, PathPart},
    value::Value,
};

impl Run {
    /// The values of whole paths, changed by each `by` in turn; those without a value are left out.
    pub(crate) async fn productive_paths(&mut self, batch: &Batch, by: &[By]) -> Done<Vec<Vec<Value>>> {
        let paths = self.path_steps(batch, &PathPart { by: by.to_vec(), ..PathPart::default() }).await?;
        Ok(paths.into_iter().map(|path| path.into_iter().filter_map(|(value, _)| value).collect()).collect())
    }

    async fn parts_of_paths(&mut self, batch: &Batch, part: &PathPart) -> Done<Vec<Vec<(Option<Value>, Labels)>>> {
        let from = part.from.as_deref();
        let to = part.to.as_deref();
        let mut paths = self.growth.column(batch.len())?;
        for row in &batch.rows {
            let steps = self.paths.values(row.path, from, to, &self.growth)?;
            self.pace.rest(1 + steps.len() as u64).await?;
            paths.push(steps);
        }
        Ok(paths)
    }

    /// The steps of paths, changed by each `by` in turn.
    pub(crate) async fn path_steps(
        &mut self,
        batch: &Batch,
        part: &PathPart,
    ) -> Done<Vec<Vec<(Option<Value>, Labels)>>> {
        let mut paths = self.parts_of_paths(batch, part).await?;
        let longest = paths.iter().map(Vec::len).max().unwrap_or(0);
        for (number, by) in part.by.iter().enumerate().take(longest) {
            self.growth.work(paths.len() as u64)?;
            // All items that this `by` is of, over all paths.
            let places = paths
                .iter()
                .enumerate()
                .flat_map(|(at, path)| (number..path.len()).step_by(part.by.len()).map(move |step| (at, step)));
            let places: Vec<(usize, usize)> = places.collect();
            self.growth.take(places.len() * (size_of::<(usize, usize)>() + size_of::<Option<Value>>()))?;
            let parents: Vec<u32> = places.iter().map(|(at, _)| *at as u32).collect();
            let rows = batch.take_rows(&parents, &self.growth)?;
            let values = places.iter().map(|(at, step)| paths[*at][*step].0.take()).collect();
            let values = self.by_of(by, &rows, values).await?;
            places.into_iter().zip(values).for_each(|((at, step), value)| paths[at][step].0 = value);
        }
        Ok(paths)
    }

    /// The same, item by item: a path of which one has no value is not asked further, where a `by` may fail.
    pub(crate) async fn path_steps_in_turn(
        &mut self,
        batch: &Batch,
        part: &PathPart,
    ) -> Done<Vec<Vec<(Option<Value>, Labels)>>> {
        let mut paths = self.parts_of_paths(batch, part).await?;
        let mut left: Vec<u32> = (0..batch.len() as u32).collect();
        for (step, by) in (0..).zip(part.by.iter().cycle()) {
            left.retain(|at| step < paths[*at as usize].len());
            if left.is_empty() {
                break;
            }
            let rows = batch.take_rows(&left, &self.growth)?;
            let values = left.iter().map(|at| paths[*at as usize][step].0.take()).collect();
            let values = self.by_of(by, &rows, values).await?;
            let productive: Vec<bool> = values.iter().map(Option::is_some).collect();
            for (at, value) in left.iter().zip(values) {
                paths[*at as usize][step].0 = value;
            }
            let mut productive = productive.into_iter();
            left.retain(|_| productive.next().is_some_and(|productive| productive));
        }
        Ok(paths)
    }
}
