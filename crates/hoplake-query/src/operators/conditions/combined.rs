//! Rows for which all, or some, of several traversals give something.

use super::keep;
use crate::operators::prelude::*;

/// Rows for which all of some traversals give something.
#[derive(Debug, Clone, PartialEq)]
pub struct And {
    /// The traversals.
    pub all: Vec<Steps>,
}

/// Rows for which one of some traversals gives something.
#[derive(Debug, Clone, PartialEq)]
pub struct Or {
    /// The traversals.
    pub any: Vec<Steps>,
}

fn reach(reach: &mut Reach<'_>, all: &[Steps], input: Elements) -> Elements {
    reach.branches(all.iter(), &input);
    input
}

impl Operator for And {
    nested!(all);

    fn reach(&self, of: &mut Reach<'_>, input: Elements) -> Elements {
        reach(of, &self.all, input)
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for And {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        if let Some(exist) = run.exists_all(&self.all, &batch).await? {
            return Ok(keep(batch, |at| exist.iter().all(|exists| exists[at])));
        }
        let mut left = batch;
        for steps in &self.all {
            let exists = run.exists(steps, &left).await?;
            left = left.keep(|at| exists[at]);
        }
        Ok(Output::Same(left))
    }
}

impl Operator for Or {
    nested!(any);

    fn reach(&self, of: &mut Reach<'_>, input: Elements) -> Elements {
        reach(of, &self.any, input)
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Or {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        if let Some(exist) = run.exists_all(&self.any, &batch).await? {
            return Ok(keep(batch, |at| exist.iter().any(|exists| exists[at])));
        }
        let mut matching = vec![false; batch.len()];
        for steps in &self.any {
            let open: Vec<u32> = (0..batch.len() as u32).filter(|at| !matching[*at as usize]).collect();
            let rows = batch.take(&open, &run.growth)?;
            let exists = run.exists(steps, &rows).await?;
            open.iter().zip(exists).for_each(|(at, exists)| matching[*at as usize] = exists);
        }
        Ok(keep(batch, |at| matching[at]))
    }
}
