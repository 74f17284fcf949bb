//! Items with their numbers.

use crate::{
    operators::prelude::*,
    value::{ALLOCATION_BYTES, value_bytes},
};

/// Each item of a collection with its number.
#[derive(Debug, Clone, PartialEq)]
pub struct Index {
    /// Whether it is a map from the numbers, and not a list of pairs.
    pub as_map: bool,
}

impl Operator for Index {
    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Index {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let growth = run.growth.clone();
        run.each_value(batch, |value| indexed(value, self.as_map, &growth).map(Some)).await
    }
}

fn indexed(value: &Value, as_map: bool, growth: &Growth) -> Done<Value> {
    growth.take(value_bytes(value))?;
    let items = match value {
        Value::List(items) | Value::Set(items) => items.clone(),
        Value::Map(entries) => entries.iter().map(|entry| Value::Entry(Box::new(entry.clone()))).collect(),
        Value::Path(path) => path.steps.iter().map(|(item, _)| item.clone()).collect(),
        other => vec![other.clone()],
    };
    growth.take(items.len().saturating_mul(3 * size_of::<Value>() + ALLOCATION_BYTES))?;
    let numbered = items.into_iter().zip(0i32..);
    Ok(match as_map {
        true => Value::Map(numbered.map(|(item, number)| (number.into(), item)).collect()),
        false => Value::List(numbered.map(|(item, number)| Value::List(vec![item, number.into()])).collect()),
    })
}
