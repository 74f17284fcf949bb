//! Items of a collection, sorted.

use crate::{
    operators::prelude::*,
    plan::{Sorting, write_sortings},
    run::{reduce::items_of, sort::sort},
    tokens::Order,
};

/// The items of a collection, sorted.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderWithin {
    /// By what.
    pub sortings: Vec<Sorting>,
}

impl Operator for OrderWithin {
    nested!(sortings);

    fn name(&self) -> &'static str {
        "Order"
    }

    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_sortings(f, &self.sortings)
    }

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        let items = input.others();
        reach.each_by(self.sortings.iter().map(|(by, _)| by), &items);
        items
    }

    fn acts(&self) -> bool {
        self.sortings.iter().any(|(_, order)| *order == Order::Shuffle)
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for OrderWithin {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        run.order_within(batch, &self.sortings).await
    }
}

impl Run {
    async fn order_within(&mut self, batch: Batch, sortings: &[Sorting]) -> Done<Output> {
        // The items of all collections, each in the frame of its collection.
        let mut parents = Vec::new();
        let mut items = Vec::new();
        for at in 0..batch.len() {
            let before = items.len();
            match batch.items.copy(at, &self.growth)? {
                Value::List(all) | Value::Set(all) => items.extend(all),
                all @ Value::BulkSet(_) => items.extend(items_of(all, &self.growth)?),
                Value::Map(entries) => items.extend(entries.into_iter().map(|entry| Value::Entry(Box::new(entry)))),
                Value::Tree(tree) => {
                    items.extend(tree.entries().into_iter().map(|entry| Value::Entry(Box::new(entry))));
                }
                // A path stays in the order of its steps.
                _ => {}
            }
            self.growth.take((items.len() - before) * (size_of::<Value>() + 2 * size_of::<u32>()))?;
            parents.extend(std::iter::repeat_n(at as u32, items.len() - before));
        }
        let mut rows = batch.take_rows(&parents, &self.growth)?;
        rows.items = Items::of_values(items);
        let (keys, mut kept) = self.sort_keys(&rows, sortings).await?;
        let growth = self.growth.clone();
        sort(&mut kept, |at| parents[at as usize], &keys, sortings, &growth)?;
        let mut sorted: Vec<Vec<Value>> = growth.copies(&Vec::new(), 0, batch.len())?;
        for at in kept {
            growth.take(size_of::<Value>())?;
            sorted[parents[at as usize] as usize].push(rows.items.copy(at as usize, &growth)?);
        }
        let ordered = sorted.into_iter().enumerate().map(|(at, items)| {
            Ok(match &*batch.items.get(at) {
                Value::List(_) | Value::Set(_) | Value::BulkSet(_) => Value::List(items),
                Value::Map(_) | Value::Tree(_) => {
                    growth.take(items.len() * size_of::<(Value, Value)>())?;
                    let entry = |item| match item {
                        Value::Entry(entry) => Some(*entry),
                        _ => None,
                    };
                    Value::Map(items.into_iter().filter_map(entry).collect())
                }
                other => growth.copy(other)?,
            })
        });
        let ordered = ordered.collect::<Done<Vec<_>>>()?;
        Ok(Output::Next(batch.on(Items::of_values(ordered))))
    }
}
