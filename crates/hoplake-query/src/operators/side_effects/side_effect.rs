//! A traversal whose results are dropped.

use crate::operators::prelude::*;

/// A traversal whose results are dropped.
#[derive(Debug, Clone, PartialEq)]
pub struct SideEffect {
    /// The traversal.
    pub steps: Steps,
}

impl Operator for SideEffect {
    of_steps!(passes);

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for SideEffect {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        run.child(&self.steps, &batch).await?;
        Ok(Output::Same(batch))
    }
}
