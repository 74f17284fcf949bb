//! No rows.

use std::sync::Arc;

use crate::{
    operators::{Each, Operator, Output, PerBatch, Running},
    run::{Batch, Done, Run},
};

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
