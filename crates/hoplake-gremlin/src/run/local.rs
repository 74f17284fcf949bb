//! Steps within one value: of the items of a collection, or the entries of a map.

use super::{
    Done, Run,
    barrier::compare_keys,
    batch::{Batch, Items},
    paths::Labels,
    reduce::{Reduced, distinct, items_of},
};
use crate::{
    plan::{Reduction, Sorting, StepKind},
    tokens::Order,
    value::Value,
};

impl Run {
    pub(super) async fn local(&mut self, kind: &StepKind, labels: &Labels, batch: Batch) -> Done<Batch> {
        match kind {
            StepKind::Range(_, low, high) => {
                let (low, high) = (*low as usize, high.map_or(usize::MAX, |high| high as usize));
                self.each_value(batch, labels, |value| {
                    Ok(Some(part(value, |length| low.min(length)..high.min(length))))
                })
            }
            StepKind::Tail(_, count) => {
                let count = *count as usize;
                self.each_value(batch, labels, |value| {
                    Ok(Some(part(value, |length| length.saturating_sub(count)..length)))
                })
            }
            StepKind::Dedup(..) => self.each_value(batch, labels, |value| {
                Ok(Some(match value {
                    Value::List(items) | Value::Set(items) => Value::Set(distinct(items.iter().cloned())),
                    Value::BulkSet(items) => Value::Set(items.iter().map(|(item, _)| item.clone()).collect()),
                    Value::Map(entries) => {
                        Value::Set(entries.iter().map(|entry| Value::Entry(Box::new(entry.clone()))).collect())
                    }
                    Value::Path(path) => Value::Set(distinct(path.steps.iter().map(|(item, _)| item.clone()))),
                    other => Value::Set(vec![other.clone()]),
                }))
            }),
            StepKind::Order(_, sortings) => self.order_within(batch, sortings, labels).await,
            StepKind::Sample(_, count, _) => {
                let mut sampled = Vec::with_capacity(batch.len());
                for at in 0..batch.len() {
                    let value = batch.items.value(at);
                    sampled.push(Some(sample(value, *count as usize, &mut self.random)));
                }
                self.mapped_if(&batch, sampled, labels)
            }
            StepKind::Reduce(reduction, _) => self.each_value(batch, labels, |value| reduced(*reduction, value)),
            StepKind::Index(as_map) => self.each_value(batch, labels, |value| Ok(Some(indexed(value, *as_map)))),
            _ => Ok(batch),
        }
    }

    async fn order_within(&mut self, batch: Batch, sortings: &[Sorting], labels: &Labels) -> Done<Batch> {
        // The items of all collections, each in the frame of its collection.
        let mut parents = Vec::new();
        let mut items = Vec::new();
        for at in 0..batch.len() {
            let before = items.len();
            match batch.items.value(at) {
                Value::List(all) | Value::Set(all) => items.extend(all),
                all @ Value::BulkSet(_) => items.extend(items_of(all)?),
                Value::Map(entries) => items.extend(entries.into_iter().map(|entry| Value::Entry(Box::new(entry)))),
                Value::Tree(tree) => {
                    items.extend(tree.entries().into_iter().map(|entry| Value::Entry(Box::new(entry))));
                }
                // A path stays in the order of its steps.
                _ => {}
            }
            parents.extend(std::iter::repeat_n(at as u32, items.len() - before));
        }
        let mut rows = batch.take_rows(&parents);
        rows.items = Items::of_values(items);
        let (keys, mut kept) = self.sort_keys(&rows, sortings).await?;
        let orders: Vec<Order> = sortings.iter().map(|(_, order)| *order).collect();
        kept.sort_by(|a, b| {
            let collections = parents[*a as usize].cmp(&parents[*b as usize]);
            collections.then_with(|| compare_keys(&keys, &orders, *a as usize, *b as usize))
        });
        let mut sorted: Vec<Vec<Value>> = vec![Vec::new(); batch.len()];
        kept.into_iter().for_each(|at| sorted[parents[at as usize] as usize].push(rows.items.value(at as usize)));
        let ordered = sorted.into_iter().enumerate().map(|(at, items)| match batch.items.value(at) {
            Value::List(_) | Value::Set(_) | Value::BulkSet(_) => Value::List(items),
            Value::Map(_) | Value::Tree(_) => Value::Map(
                items
                    .into_iter()
                    .filter_map(|item| match item {
                        Value::Entry(entry) => Some(*entry),
                        _ => None,
                    })
                    .collect(),
            ),
            other => other,
        });
        let ordered = ordered.collect();
        self.mapped(batch, Items::of_values(ordered), labels)
    }
}

/// The items of a collection within a range.
fn part(value: &Value, range: impl Fn(usize) -> std::ops::Range<usize>) -> Value {
    fn cut<T: Clone>(items: &[T], range: std::ops::Range<usize>) -> Vec<T> {
        items.get(range).unwrap_or_default().to_vec()
    }
    match value {
        Value::List(items) => Value::List(cut(items, range(items.len()))),
        Value::Set(items) => Value::Set(cut(items, range(items.len()))),
        Value::Map(entries) => Value::Map(cut(entries, range(entries.len()))),
        Value::Tree(tree) => Value::Map(cut(&tree.entries(), range(tree.branches.len()))),
        Value::BulkSet(items) => {
            let length = items.iter().map(|(_, bulk)| *bulk as usize).fold(0, usize::saturating_add);
            let all = items.iter().flat_map(|(item, bulk)| std::iter::repeat_n(item, *bulk as usize));
            let range = range(length);
            Value::List(all.skip(range.start).take(range.len()).cloned().collect())
        }
        Value::Path(path) => {
            let steps = cut(&path.steps, range(path.steps.len()));
            Value::List(steps.into_iter().map(|(item, _)| item).collect())
        }
        other => other.clone(),
    }
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

fn indexed(value: &Value, as_map: bool) -> Value {
    let items = match value {
        Value::List(items) | Value::Set(items) => items.clone(),
        Value::Map(entries) => entries.iter().map(|entry| Value::Entry(Box::new(entry.clone()))).collect(),
        Value::Path(path) => path.steps.iter().map(|(item, _)| item.clone()).collect(),
        other => vec![other.clone()],
    };
    let numbered = items.into_iter().zip(0i32..);
    match as_map {
        true => Value::Map(numbered.map(|(item, number)| (number.into(), item)).collect()),
        false => Value::List(numbered.map(|(item, number)| Value::List(vec![item, number.into()])).collect()),
    }
}
