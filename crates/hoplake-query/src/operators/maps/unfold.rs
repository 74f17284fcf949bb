//! The items of collections.

use crate::{operators::prelude::*, run::Row, value::value_bytes};

/// The items of a collection, one after another.
#[derive(Debug, Clone, PartialEq)]
pub struct Unfold;

impl Operator for Unfold {
    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Unfold {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        run.unfold(batch).await
    }
}

impl Run {
    async fn unfold(&mut self, mut batch: Batch) -> Done<Output> {
        let Items::Values(values) = &batch.items else {
            // An element is the only item of itself.
            let items = std::mem::take(&mut batch.items);
            return Ok(Output::Next(batch.on(items)));
        };
        let mut parents = Vec::new();
        let mut items = Vec::new();
        let mut bulks = Vec::new();
        for (at, value) in values.iter().enumerate() {
            let before = items.len();
            let bulk = batch.rows[at].bulk;
            // For the copies, and for the lists of items, parents and numbers.
            self.growth.take(value_bytes(value) + item_count(value).saturating_mul(ITEM_BYTES))?;
            self.pace.rest(1 + item_count(value) as u64).await?;
            match value {
                Value::List(all) | Value::Set(all) => items.extend(all.iter().cloned()),
                Value::BulkSet(all) => {
                    items.extend(all.iter().map(|(item, _)| item.clone()));
                    bulks.extend(all.iter().map(|(_, count)| bulk.saturating_mul(*count)));
                }
                Value::Map(entries) => {
                    items.extend(entries.iter().map(|entry| Value::Entry(Box::new(entry.clone()))));
                }
                Value::Tree(tree) => {
                    items.extend(tree.entries().into_iter().map(|entry| Value::Entry(Box::new(entry))));
                }
                // Of a path the labels are left behind.
                Value::Path(path) => items.extend(path.steps.iter().map(|(item, _)| item.clone())),
                other => items.push(other.clone()),
            }
            parents.extend(std::iter::repeat_n(at as u32, items.len() - before));
            bulks.resize(items.len(), bulk);
        }
        let mut unfolded = self.derived(&batch, &parents, Items::of_values(items))?;
        unfolded.rows.iter_mut().zip(bulks).for_each(|(row, bulk)| row.bulk = bulk);
        Ok(Output::Next(unfolded))
    }
}

/// What an item takes that `unfold` gives, besides its value: a parent, a number, and a row.
const ITEM_BYTES: usize = size_of::<Value>() + 2 * size_of::<u64>() + size_of::<Row>();

/// How many items a value has.
fn item_count(value: &Value) -> usize {
    match value {
        Value::List(items) | Value::Set(items) => items.len(),
        Value::BulkSet(items) => items.len(),
        Value::Map(entries) => entries.len(),
        Value::Tree(tree) => tree.branches.len(),
        Value::Path(path) => path.steps.len(),
        _ => 1,
    }
}
