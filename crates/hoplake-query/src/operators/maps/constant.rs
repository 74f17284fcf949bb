//! The same value for all.

use crate::{operators::prelude::*, value::value_bytes};

/// The same value for all.
#[derive(Debug, Clone, PartialEq)]
pub struct Constant {
    /// The value.
    pub value: Value,
}

impl Operator for Constant {
    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {}", self.value)
    }

    fn reach(&self, _: &mut Reach<'_>, _: Elements) -> Elements {
        Elements::default()
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Constant {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let value = run.with_elements(vec![self.value.clone()]).await?;
        let values = run.growth.copies(&value[0], value_bytes(&value[0]), batch.len())?;
        Ok(Output::Next(batch.on(Items::of_values(values))))
    }
}
