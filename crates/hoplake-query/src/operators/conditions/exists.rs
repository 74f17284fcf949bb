//! Conditions that a traversal has a result, or none.

use super::keep;
use crate::operators::prelude::*;

/// Keeps the rows for which a traversal has a result; the traversal may begin and end at bindings.
#[derive(Debug, Clone, PartialEq)]
pub struct Where {
    /// The traversal.
    pub steps: Steps,
}

/// Keeps the rows for which a traversal has no result.
#[derive(Debug, Clone, PartialEq)]
pub struct Not {
    /// The traversal.
    pub steps: Steps,
}

impl Operator for Where {
    of_steps!(passes);

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Where {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let exists = run.exists(&self.steps, &batch).await?;
        Ok(keep(batch, |at| exists[at]))
    }
}

impl Operator for Not {
    of_steps!(passes);

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Not {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let exists = run.exists(&self.steps, &batch).await?;
        Ok(keep(batch, |at| !exists[at]))
    }
}
