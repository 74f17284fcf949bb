//! An error.

use crate::operators::prelude::*;

/// An error, if a row comes.
#[derive(Debug, Clone, PartialEq)]
pub struct Fail {
    /// What it says.
    pub message: Option<Box<str>>,
}

impl Operator for Fail {
    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Fail {
    async fn each(&self, _: &mut Run, _: Batch) -> Done<Output> {
        Err(QueryError::Failed(self.message.as_deref().unwrap_or("fail() Step Triggered").to_owned()))
    }
}
