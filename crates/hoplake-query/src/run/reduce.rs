//! Many values to one: counts, sums, groups, trees, and operators between two values.

use std::{
    cmp::Ordering,
    hash::{Hash, Hasher},
};

use crate::{
    error::{Done, QueryError},
    growth::Growth,
    literal::Number,
    plan::Reduction,
    tokens::BinaryOperator,
    value::{
        Key, Tree, Value,
        arithmetic::{self, Mean, Sum},
        kind_of, order, value_bytes,
    },
};

/// A value as a key that owns it.
#[derive(Debug, Clone)]
pub(crate) struct OwnedKey(pub(crate) Value);

impl PartialEq for OwnedKey {
    fn eq(&self, other: &Self) -> bool {
        Key(&self.0) == Key(&other.0)
    }
}

impl Eq for OwnedKey {}

impl Hash for OwnedKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Key(&self.0).hash(state);
    }
}

/// What a reducing step has so far, in a frame.
#[derive(Debug, Default)]
pub(crate) struct Reduced {
    count: u64,
    /// Whether a null was met.
    null: bool,
    sum: Sum,
    mean: Mean,
    extreme: Option<Value>,
    /// Whether the values are the items of one collection.
    items: bool,
}

impl Reduced {
    /// Nothing yet, of the items of a collection.
    pub(crate) fn of_items() -> Self {
        Self { items: true, ..Self::default() }
    }

    pub(crate) fn add(&mut self, reduction: Reduction, value: &Value, bulk: u64) -> Done<()> {
        if reduction == Reduction::Count {
            self.count = self.count.saturating_add(bulk);
            return Ok(());
        }
        if *value == Value::Null {
            self.null = true;
            return Ok(());
        }
        let number = || match value {
            Value::Number(number) => Ok(number),
            other => Err(QueryError::wrong_type(format!(
                "`{}` is of numbers, and this is {}",
                name(reduction),
                kind_of(other)
            ))),
        };
        match reduction {
            Reduction::Sum => self.sum.add(number()?, bulk)?,
            Reduction::Mean if self.items => self.mean.add_item(number()?, bulk)?,
            Reduction::Mean => self.mean.add(number()?, bulk)?,
            _ => {
                self.extreme = Some(match self.extreme.take() {
                    Some(before) => extreme(reduction == Reduction::Min, before, value),
                    None => value.clone(),
                });
            }
        }
        Ok(())
    }

    /// What it keeps.
    pub(crate) fn bytes(&self) -> u64 {
        self.extreme.as_ref().map_or(0, |extreme| value_bytes(extreme) as u64)
    }

    pub(crate) fn finish(self, reduction: Reduction) -> Done<Option<Value>> {
        let null = self.null.then_some(Value::Null);
        Ok(match reduction {
            Reduction::Count => Some(i64::try_from(self.count).unwrap_or(i64::MAX).into()),
            Reduction::Sum => self.sum.finish().map(Value::from).or(null),
            Reduction::Mean => self.mean.finish()?.map(Value::from).or(null),
            Reduction::Min | Reduction::Max => self.extreme.or(null),
        })
    }
}

fn name(reduction: Reduction) -> &'static str {
    match reduction {
        Reduction::Count => "count",
        Reduction::Sum => "sum",
        Reduction::Min => "min",
        Reduction::Max => "max",
        Reduction::Mean => "mean",
    }
}

/// The lesser or the greater of two values.
fn extreme(least: bool, before: Value, value: &Value) -> Value {
    match (&before, value) {
        (Value::Number(left), Value::Number(right)) => {
            Value::Number(if least { arithmetic::min(left, right) } else { arithmetic::max(left, right) })
        }
        _ => {
            let keeps = if least { Ordering::is_le } else { Ordering::is_ge };
            if keeps(order(&before, value)) { before } else { value.clone() }
        }
    }
}

/// What an operator makes of two values.
pub(crate) fn operate(operator: BinaryOperator, left: Value, right: Value, growth: &Growth) -> Done<Value> {
    let numbers = |compute: fn(&Number, &Number) -> Result<Number, arithmetic::ArithmeticError>| match (&left, &right) {
        (Value::Number(left), Value::Number(right)) => Ok(Value::Number(compute(left, right)?)),
        (Value::Null, other) | (other, Value::Null) => Ok(other.clone()),
        (left, right) => Err(QueryError::wrong_type(format!(
            "`{}` is of two numbers, and these are {} and {}",
            operator.name(),
            kind_of(left),
            kind_of(right)
        ))),
    };
    match operator {
        BinaryOperator::Assign => Ok(right),
        BinaryOperator::Sum => numbers(arithmetic::add),
        BinaryOperator::Minus => numbers(arithmetic::subtract),
        BinaryOperator::Mult => numbers(arithmetic::multiply),
        BinaryOperator::Div => numbers(arithmetic::divide),
        BinaryOperator::SumLong => match numbers(arithmetic::add)? {
            Value::Number(number) => Ok(crate::value::to_i64(&number).into()),
            other => Ok(other),
        },
        BinaryOperator::Min => Ok(extreme(true, left, &right)),
        BinaryOperator::Max => Ok(extreme(false, left, &right)),
        BinaryOperator::And | BinaryOperator::Or => match (&left, &right) {
            (Value::Boolean(left), Value::Boolean(right)) => {
                Ok(if operator == BinaryOperator::And { *left && *right } else { *left || *right }.into())
            }
            _ => Err(QueryError::wrong_type(format!("`{}` is of two booleans", operator.name()))),
        },
        BinaryOperator::AddAll => add_all(left, right, growth),
    }
}

fn add_all(left: Value, right: Value, growth: &Growth) -> Done<Value> {
    match (left, right) {
        (Value::Null, other) | (other, Value::Null) => Ok(other),
        (Value::Map(mut entries), Value::Map(more)) => {
            growth.take(more.len() * size_of::<(Value, Value)>())?;
            for (key, value) in more {
                growth.work(entries.len() as u64)?;
                match entries.iter_mut().find(|(other, _)| Key(other) == Key(&key)) {
                    Some((_, before)) => *before = value,
                    None => entries.push((key, value)),
                }
            }
            Ok(Value::Map(entries))
        }
        (Value::List(mut items), more) => {
            let more = items_of(more, growth)?;
            growth.take(more.len() * size_of::<Value>())?;
            items.extend(more);
            Ok(Value::List(items))
        }
        (Value::Set(items), more) => {
            let more = items_of(more, growth)?;
            Ok(Value::Set(distinct(items.into_iter().chain(more), growth)?))
        }
        (left @ Value::BulkSet(_), more) => {
            let mut items = items_of(left, growth)?;
            let more = items_of(more, growth)?;
            growth.take(more.len() * size_of::<Value>())?;
            items.extend(more);
            Ok(Value::List(items))
        }
        (left, _) => Err(QueryError::wrong_type(format!("`addAll` is of collections, and this is {}", kind_of(&left)))),
    }
}

/// Each once, in the order of their first.
pub(crate) fn distinct(values: impl Iterator<Item = Value>, growth: &Growth) -> Done<Vec<Value>> {
    let mut seen = std::collections::HashSet::new();
    let mut distinct = Vec::new();
    for value in values {
        growth.take(ENTRY_BYTES)?;
        if seen.insert(OwnedKey(growth.copy(&value)?)) {
            distinct.push(value);
        }
    }
    Ok(distinct)
}

/// What an item takes in a set and in a list besides its value.
pub(super) const ENTRY_BYTES: usize = size_of::<Value>() * 2;

/// Copies of one value, at most, that a step makes of traversers that were counted and not kept one by one.
const COPIES_MAX: u64 = 10_000_000;

/// How many copies of a value there are to be, if they are not so many that they would fill the memory.
pub(crate) fn copies(bulk: u64) -> Done<usize> {
    match usize::try_from(bulk) {
        Ok(copies) if bulk <= COPIES_MAX => Ok(copies),
        _ => Err(QueryError::wrong_type(format!(
            "a step would make {bulk} copies of a value, and at most {COPIES_MAX} are made: count, limit or dedup before it"
        ))),
    }
}

/// The items of a collection.
pub(crate) fn items_of(value: Value, growth: &Growth) -> Done<Vec<Value>> {
    match value {
        Value::List(items) | Value::Set(items) => Ok(items),
        Value::BulkSet(items) => {
            copies(items.iter().map(|(_, bulk)| *bulk).fold(0, u64::saturating_add))?;
            let mut all = Vec::new();
            for (item, bulk) in items {
                let copies = growth.copies(&item, value_bytes(&item), bulk as usize)?;
                growth.take(copies.len() * size_of::<Value>())?;
                all.extend(copies);
            }
            Ok(all)
        }
        other => Err(QueryError::wrong_type(format!("a collection is needed here, and this is {}", kind_of(&other)))),
    }
}

/// Adds a path to a tree.
pub(crate) fn plant(tree: &mut Tree, path: Vec<Value>, growth: &Growth) -> Done<()> {
    let mut tree = tree;
    for value in path {
        growth.work(tree.branches.len() as u64)?;
        growth.take(size_of::<(Value, Tree)>())?;
        let place = tree.branches.iter().position(|(item, _)| Key(item) == Key(&value));
        let place = place.unwrap_or_else(|| {
            tree.branches.push((value, Tree::default()));
            tree.branches.len() - 1
        });
        tree = &mut tree.branches[place].1;
    }
    Ok(())
}
