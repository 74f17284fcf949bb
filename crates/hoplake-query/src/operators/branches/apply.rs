//! What a traversal gives for each row.

use super::restored;
use crate::{operators::prelude::*, plan::reads_what_it_collects};

/// The first that a traversal gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Map {
    /// The traversal.
    pub steps: Steps,
}

/// All that a traversal gives, as the next step of the path.
#[derive(Debug, Clone, PartialEq)]
pub struct FlatMap {
    /// The traversal.
    pub steps: Steps,
}

/// All that a traversal gives, with its paths.
#[derive(Debug, Clone, PartialEq)]
pub struct Local {
    /// The traversal.
    pub steps: Steps,
}

impl Operator for Map {
    of_steps!(gives);

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Map {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let firsts = run.firsts(&self.steps, &batch).await?;
        run.mapped_if(&batch, firsts)
    }
}

impl Operator for FlatMap {
    of_steps!(gives);

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for FlatMap {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let found = run.child(&self.steps, &batch).await?;
        run.flat_mapped(&batch, found)
    }
}

impl Operator for Local {
    of_steps!(gives);

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Local {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let batch = run.one_by_one_if_it_acts(batch, &self.steps)?;
        let found = match reads_what_it_collects(&self.steps) {
            true => run.one_by_one(&self.steps, &batch).await?,
            false => run.child(&self.steps, &batch).await?,
        };
        let (found, _) = restored(found, &batch);
        Ok(Output::Same(found))
    }
}
