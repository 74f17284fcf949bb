//! No rows.

use crate::operators::prelude::*;

/// No row passes.
#[derive(Debug, Clone, PartialEq)]
pub struct Discard;

impl Operator for Discard {
    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Discard {
    async fn each(&self, _: &mut Run, _: Batch) -> Done<Output> {
        Ok(Output::Same(Batch::default()))
    }
}
