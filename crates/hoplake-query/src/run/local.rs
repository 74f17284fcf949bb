//! Steps within one value: of the items of a collection, or the entries of a map.

use super::{
    Done, Run,
    barrier::sort,
    batch::{Batch, Items, value_bytes},
    growth::{ALLOCATION_BYTES, Growth},
    paths::Labels,
    reduce::{Reduced, distinct, items_of},
};
use crate::{
    plan::{Reduction, Sorting, StepKind},
    value::Value,
};

impl Run {
    pub(super) async fn local(&mut self, kind: &StepKind, labels: &Labels, batch: Batch) -> Done<Batch> {
        match kind {
            StepKind::Range(_, low, high) => {
                let (low, high) = (*low as usize, high.map_or(usize::MAX, |high| high as usize));
                let growth = self.growth.clone();
                let part = |value: &Value| part(value, &growth, |length| low.min(length)..high.min(length)).map(Some);
                self.each_value(batch, labels, part).await
            }
            StepKind::Tail(_, count) => {
                let count = *count as usize;
                let growth = self.growth.clone();
                let part =
                    |value: &Value| part(value, &growth, |length| length.saturating_sub(count)..length).map(Some);
                self.each_value(batch, labels, part).await
            }
            StepKind::Dedup(..) => {
                let growth = self.growth.clone();
                let once = |value: &Value| {
                    growth.take(value_bytes(value))?;
                    Ok(Some(match value {
                        Value::List(items) | Value::Set(items) => Value::Set(distinct(items.iter().cloned(), &growth)?),
                        Value::BulkSet(items) => Value::Set(items.iter().map(|(item, _)| item.clone()).collect()),
                        Value::Map(entries) => {
                            Value::Set(entries.iter().map(|entry| Value::Entry(Box::new(entry.clone()))).collect())
                        }
                        Value::Path(path) => {
                            Value::Set(distinct(path.steps.iter().map(|(item, _)| item.clone()), &growth)?)
                        }
                        other => Value::Set(vec![other.clone()]),
                    }))
                };
                self.each_value(batch, labels, once).await
            }
            StepKind::Order(_, sortings) => self.order_within(batch, sortings, labels).await,
            StepKind::Sample(_, count, _) => {
                let mut sampled = self.growth.column(batch.len())?;
                for at in 0..batch.len() {
                    let value = batch.items.copy(at, &self.growth)?;
                    sampled.push(Some(sample(value, *count as usize, &mut self.random)));
                }
                self.mapped_if(&batch, sampled, labels)
            }
            StepKind::Reduce(reduction, _) => {
                let growth = self.growth.clone();
                let reduced = |value: &Value| {
                    // The least, the greatest, or a value that is not a collection, is copied.
                    growth.take(value_bytes(value))?;
                    reduced(*reduction, value)
                };
                self.each_value(batch, labels, reduced).await
            }
            StepKind::Index(as_map) => {
                let growth = self.growth.clone();
                self.each_value(batch, labels, |value| indexed(value, *as_map, &growth).map(Some)).await
            }
            _ => Ok(batch),
        }
    }

    async fn order_within(&mut self, batch: Batch, sortings: &[Sorting], labels: &Labels) -> Done<Batch> {
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
        self.mapped(batch, Items::of_values(ordered), labels)
    }
}

/// The items of a collection within a range.
fn part(value: &Value, growth: &Growth, range: impl Fn(usize) -> std::ops::Range<usize>) -> Done<Value> {
    fn cut<T: Clone>(items: &[T], range: std::ops::Range<usize>) -> Vec<T> {
        items.get(range).unwrap_or_default().to_vec()
    }
    growth.take(value_bytes(value))?;
    Ok(match value {
        Value::List(items) => Value::List(cut(items, range(items.len()))),
        Value::Set(items) => Value::Set(cut(items, range(items.len()))),
        Value::Map(entries) => Value::Map(cut(entries, range(entries.len()))),
        Value::Tree(tree) => Value::Map(cut(&tree.entries(), range(tree.branches.len()))),
        Value::BulkSet(items) => {
            let length = items.iter().map(|(_, bulk)| *bulk as usize).fold(0, usize::saturating_add);
            let all = items.iter().flat_map(|(item, bulk)| std::iter::repeat_n(item, *bulk as usize));
            let range = range(length);
            Value::List(growth.copy_all(all.skip(range.start).take(range.len()))?)
        }
        Value::Path(path) => {
            let steps = cut(&path.steps, range(path.steps.len()));
            Value::List(steps.into_iter().map(|(item, _)| item).collect())
        }
        other => other.clone(),
    })
}

fn sample(value: Value, count: usize, random: &mut fastrand::Rng) -> Value {
    fn some<T>(mut items: Vec<T>, count: usize, random: &mut fastrand::Rng) -> Vec<T> {
        while items.len() > count {
            items.swap_remove(random.usize(..items.len()));
        }
        items
    }
    match value {
        Value::List(items) => Value::List(some(items, count, random)),
        Value::Set(items) => Value::List(some(items, count, random)),
        Value::Map(entries) => Value::Map(some(entries, count, random)),
        other => other,
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
