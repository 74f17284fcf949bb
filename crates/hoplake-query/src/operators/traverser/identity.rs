//! Rows as they are.

use crate::operators::prelude::*;

/// Rows as they are: it may bind them to names.
#[derive(Debug, Clone, PartialEq)]
pub struct Identity;

impl Operator for Identity {
    fn reach(&self, _: &mut Reach<'_>, input: Elements) -> Elements {
        input
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Identity {
    async fn each(&self, _: &mut Run, batch: Batch) -> Done<Output> {
        Ok(Output::Same(batch))
    }
}
