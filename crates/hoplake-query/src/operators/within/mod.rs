//! Operators on one value: the items of a collection, or the entries of a map.

mod dedup;
mod index;
mod order;
mod range;
mod reduce;
mod sample;
mod tail;

pub use self::{
    dedup::DedupWithin, index::Index, order::OrderWithin, range::RangeWithin, reduce::ReduceWithin,
    sample::SampleWithin, tail::TailWithin,
};
use crate::{
    error::Done,
    growth::Growth,
    value::{Value, value_bytes},
};

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
