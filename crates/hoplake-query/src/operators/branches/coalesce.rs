//! The first of several traversals that gives something.

use std::collections::HashSet;

use crate::operators::prelude::*;

/// All that the first of some traversals gives that gives something.
#[derive(Debug, Clone, PartialEq)]
pub struct Coalesce {
    /// The traversals.
    pub branches: Vec<Steps>,
}

impl Operator for Coalesce {
    nested!(branches);

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        reach.branches(self.branches.iter(), &input)
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Coalesce {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        run.coalesce(batch, &self.branches).await
    }
}

impl Run {
    async fn coalesce(&mut self, batch: Batch, branches: &[Steps]) -> Done<Output> {
        let mut left: Vec<u32> = (0..batch.len() as u32).collect();
        let mut all = Batch::default();
        let mut parents: Vec<u32> = Vec::new();
        for steps in branches {
            if left.is_empty() {
                break;
            }
            let rows = batch.take(&left, &self.growth)?;
            let mut found = self.child(steps, &rows).await?;
            self.growth.absorb(found.hold.take());
            found.rows.iter_mut().for_each(|row| row.frame = left[row.frame as usize]);
            let productive: HashSet<u32> = found.rows.iter().map(|row| row.frame).collect();
            parents.extend(found.rows.iter().map(|row| row.frame));
            left.retain(|at| !productive.contains(at));
            all.append(found, &self.growth)?;
        }
        let mut order: Vec<u32> = (0..all.len() as u32).collect();
        order.sort_by_key(|at| parents[*at as usize]);
        let all = all.take(&order, &self.growth)?;
        self.flat_mapped(&batch, all)
    }
}
