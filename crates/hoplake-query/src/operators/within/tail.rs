//! The last items of a collection.

use super::part;
use crate::operators::prelude::*;

/// The last items of a collection.
#[derive(Debug, Clone, PartialEq)]
pub struct TailWithin {
    /// How many.
    pub count: u64,
}

impl Operator for TailWithin {
    fn name(&self) -> &'static str {
        "Tail"
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for TailWithin {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let count = self.count as usize;
        let growth = run.growth.clone();
        let part = |value: &Value| part(value, &growth, |length| length.saturating_sub(count)..length).map(Some);
        run.each_value(batch, part).await
    }
}
