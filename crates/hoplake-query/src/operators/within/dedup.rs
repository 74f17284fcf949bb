//! Each item of a collection once.

use crate::{operators::prelude::*, run::reduce::distinct, value::value_bytes};

/// The items of a collection, each once.
#[derive(Debug, Clone, PartialEq)]
pub struct DedupWithin {
    /// What of each item. It is not looked at: items are compared as they are.
    pub by: Vec<By>,
}

impl Operator for DedupWithin {
    nested!(by);

    fn name(&self) -> &'static str {
        "Dedup"
    }

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        let items = input.others();
        reach.each_by(&self.by, &items);
        items
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for DedupWithin {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let growth = run.growth.clone();
        let once = |value: &Value| {
            growth.take(value_bytes(value))?;
            Ok(Some(match value {
                Value::List(items) | Value::Set(items) => Value::Set(distinct(items.iter().cloned(), &growth)?),
                Value::BulkSet(items) => Value::Set(items.iter().map(|(item, _)| item.clone()).collect()),
                Value::Map(entries) => {
                    Value::Set(entries.iter().map(|entry| Value::Entry(Box::new(entry.clone()))).collect())
                }
                Value::Path(path) => Value::Set(distinct(path.steps.iter().map(|(item, _)| item.clone()), &growth)?),
                other => Value::Set(vec![other.clone()]),
            }))
        };
        run.each_value(batch, once).await
    }
}
