//! Some items of a collection.

use super::part;
use crate::operators::{prelude::*, reductions::write_range};

/// The items of a collection from a number on, up to before another.
#[derive(Debug, Clone, PartialEq)]
pub struct RangeWithin {
    /// The first one, from 0.
    pub low: u64,
    /// The one behind the last; all without.
    pub high: Option<u64>,
}

impl Operator for RangeWithin {
    fn name(&self) -> &'static str {
        "Range"
    }

    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_range(f, self.low, self.high)
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for RangeWithin {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let low = self.low as usize;
        let high = self.high.map_or(usize::MAX, |high| high as usize);
        let growth = run.growth.clone();
        let part = |value: &Value| part(value, &growth, |length| low.min(length)..high.min(length)).map(Some);
        run.each_value(batch, part).await
    }
}
