//! Two lists.

use std::collections::HashSet;

use super::collection;
use crate::{
    operators::prelude::*,
    run::reduce::{OwnedKey, distinct, items_of, operate},
    tokens::BinaryOperator,
    value::{ALLOCATION_BYTES, kind_of, value_bytes},
};

/// The item and another list.
#[derive(Debug, Clone, PartialEq)]
pub struct Lists {
    /// What is made of them.
    pub step: ListStep,
    /// The other list.
    pub other: Given,
}

/// What is done with two lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the step that it is called after")]
pub enum ListStep {
    Combine,
    Merge,
    Difference,
    Disjunct,
    Intersect,
    Product,
}

impl Operator for Lists {
    nested!(other);

    fn name(&self) -> &'static str {
        "List"
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Lists {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let others = run.given(&self.other, &batch).await?;
        let growth = run.growth.clone();
        let mut values = growth.column(batch.len())?;
        for (at, other) in others.into_iter().enumerate() {
            let by_traversal = matches!(self.other, Given::Steps(_));
            let own = batch.items.copy(at, &growth)?;
            values.push(Some(lists(self.step, own, other.unwrap_or_default(), by_traversal, &growth)?));
            run.pace.rest(1).await?;
        }
        run.mapped_if(&batch, values)
    }
}

fn lists(step: ListStep, left: Value, right: Value, by_traversal: bool, growth: &Growth) -> Done<Value> {
    let name = match step {
        ListStep::Combine => "combine",
        ListStep::Merge => "merge",
        ListStep::Difference => "difference",
        ListStep::Disjunct => "disjunct",
        ListStep::Intersect => "intersect",
        ListStep::Product => "product",
    };
    if let (ListStep::Merge, Value::Map(_), Value::Map(_)) = (step, &left, &right) {
        return operate(BinaryOperator::AddAll, left, right, growth);
    }
    if let (ListStep::Merge, Value::Map(_)) = (step, &left) {
        return Err(QueryError::wrong_type(format!(
            "{name} step expected provided argument to evaluate to a Map, encountered {}",
            kind_of(&right)
        )));
    }
    let left = collection(name, left, growth)?;
    let right = match right {
        Value::Path(path) => path.steps.into_iter().map(|(item, _)| item).collect(),
        right @ (Value::List(_) | Value::Set(_) | Value::BulkSet(_)) => items_of(right, growth)?,
        other => {
            let kind = kind_of(&other);
            return Err(QueryError::wrong_type(match (&other, by_traversal) {
                (Value::Null, true) => {
                    format!("traversal argument for {name} step must yield an iterable type, not null")
                }
                (_, true) => {
                    format!("traversal argument for {name} step must yield an iterable type, encountered {kind}")
                }
                (Value::Null, false) => format!("Argument provided for {name} step can't be null"),
                (Value::Map(_), false) if step == ListStep::Merge => {
                    format!("{name} step type mismatch: expected argument to be Iterable but got Map")
                }
                _ => format!("{name} step can only take an array or an Iterable as an argument, encountered {kind}"),
            }));
        }
    };
    // For lists and sets of both: values move into them, or are copied as they are counted.
    growth.take((left.len() + right.len()).saturating_mul(4 * size_of::<Value>()))?;
    let keys = |values: &[Value]| Ok::<_, QueryError>(growth.copy_all(values)?.into_iter().map(OwnedKey).collect());
    let without = |values: Vec<Value>, others: &HashSet<OwnedKey>| {
        distinct(values.into_iter().filter(|value| !others.contains(&OwnedKey(value.clone()))), growth)
    };
    Ok(match step {
        ListStep::Combine => Value::List(left.into_iter().chain(right).collect()),
        ListStep::Merge => Value::Set(distinct(left.into_iter().chain(right), growth)?),
        ListStep::Difference => Value::Set(without(left, &keys(&right)?)?),
        ListStep::Disjunct => {
            let of_left: HashSet<OwnedKey> = keys(&left)?;
            let of_right: HashSet<OwnedKey> = keys(&right)?;
            let mut all = without(left, &of_right)?;
            all.extend(without(right, &of_left)?);
            Value::Set(all)
        }
        ListStep::Intersect => {
            let others: HashSet<OwnedKey> = keys(&right)?;
            let common = left.into_iter().filter(|value| others.contains(&OwnedKey(value.clone())));
            Value::Set(distinct(common, growth)?)
        }
        ListStep::Product => {
            // Every value is in as many pairs as the other list has values.
            let bytes = |values: &[Value]| values.iter().map(value_bytes).sum::<usize>();
            let pairs = left.len().saturating_mul(right.len()).saturating_mul(PAIR_BYTES);
            let copies =
                bytes(&left).saturating_mul(right.len()).saturating_add(bytes(&right).saturating_mul(left.len()));
            growth.take(pairs.saturating_add(copies))?;
            let mut pairs = Vec::with_capacity(left.len() * right.len());
            for a in &left {
                for b in &right {
                    growth.work(2)?;
                    pairs.push(Value::List(vec![a.clone(), b.clone()]));
                }
            }
            Value::List(pairs)
        }
    })
}

/// What a pair takes besides its values.
const PAIR_BYTES: usize = size_of::<Value>() + ALLOCATION_BYTES;
