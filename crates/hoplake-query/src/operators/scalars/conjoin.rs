//! The items of lists as one text.

use super::collection;
use crate::operators::prelude::*;

/// The items of a list as one text.
#[derive(Debug, Clone, PartialEq)]
pub struct Conjoin {
    /// What stands between them.
    pub delimiter: Box<str>,
}

impl Operator for Conjoin {
    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Conjoin {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let growth = run.growth.clone();
        let values = run.finished(batch.items.copies(&growth)?, false).await?;
        let mut joined = growth.column(values.len())?;
        for value in values {
            let items = collection("conjoin", value, &growth)?;
            let mut text = growth.text();
            for (number, item) in items.iter().filter(|item| **item != Value::Null).enumerate() {
                if number > 0 {
                    text.push(&self.delimiter)?;
                }
                text.push_value(item)?;
            }
            let has_items = items.is_empty() || items.iter().any(|item| *item != Value::Null);
            joined.push(if has_items { text.finish() } else { Value::Null });
            run.pace.rest(1 + items.len() as u64).await?;
        }
        Ok(Output::Next(batch.on(Items::Values(joined))))
    }
}
