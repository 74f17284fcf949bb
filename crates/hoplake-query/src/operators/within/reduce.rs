//! One value of all items of a collection.

use crate::{operators::prelude::*, plan::Reduction, run::reduce::Reduced, value::value_bytes};

/// One value of all items of a collection.
#[derive(Debug, Clone, PartialEq)]
pub struct ReduceWithin {
    /// Which one.
    pub reduction: Reduction,
}

impl Operator for ReduceWithin {
    fn name(&self) -> &'static str {
        "Reduce"
    }

    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {:?}", self.reduction)
    }

    fn reach(&self, _: &mut Reach<'_>, _: Elements) -> Elements {
        Elements::default()
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for ReduceWithin {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let growth = run.growth.clone();
        let reduced = |value: &Value| {
            // The least, the greatest, or a value that is not a collection, is copied.
            growth.take(value_bytes(value))?;
            reduced(self.reduction, value)
        };
        run.each_value(batch, reduced).await
    }
}

fn reduced(reduction: Reduction, value: &Value) -> Done<Option<Value>> {
    let mut reduced = Reduced::of_items();
    let mut add = |item: &Value, bulk: u64| reduced.add(reduction, item, bulk);
    match value {
        Value::List(items) | Value::Set(items) => items.iter().try_for_each(|item| add(item, 1))?,
        Value::BulkSet(items) => items.iter().try_for_each(|(item, bulk)| add(item, *bulk))?,
        Value::Path(path) => path.steps.iter().try_for_each(|(item, _)| add(item, 1))?,
        Value::Map(entries) if reduction == Reduction::Count => {
            entries.iter().try_for_each(|(key, _)| add(key, 1))?;
        }
        Value::Tree(tree) if reduction == Reduction::Count => {
            tree.branches.iter().try_for_each(|(item, _)| add(item, 1))?;
        }
        // One value is its own sum, least and greatest.
        other if reduction == Reduction::Count || reduction == Reduction::Mean => add(other, 1)?,
        other => return Ok(Some(other.clone())),
    }
    reduced.finish(reduction)
}
