//! Many values to one: counts, sums, groups, trees, and operators between two values.

use std::{
    cmp::Ordering,
    collections::HashMap,
    hash::{Hash, Hasher},
};

use super::{
    Done, Run,
    batch::{Batch, Items, value_bytes},
    by::kind_of,
    growth::Growth,
};
use crate::{
    error::QueryError,
    literal::Number,
    plan::{By, Reduction},
    tokens::BinaryOperator,
    value::{
        Key, Tree, Value,
        arithmetic::{self, Mean, Sum},
        order,
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
const ENTRY_BYTES: usize = size_of::<Value>() * 2;

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

/// Rows by their key: what `group` collects before it computes a value of each group.
#[derive(Debug)]
pub(crate) struct Groups {
    value: By,
    keys: Vec<Value>,
    places: HashMap<OwnedKey, u32>,
    /// Entries that were there from the beginning.
    pub(crate) initial: Vec<(Value, Value)>,
    /// All rows; the frame of each is its group.
    rows: Batch,
    bytes: u64,
}

impl Groups {
    pub(crate) fn new(value: By) -> Self {
        Self { value, keys: Vec::new(), places: HashMap::new(), initial: Vec::new(), rows: Batch::default(), bytes: 0 }
    }

    /// Adds the rows that have a key.
    pub(crate) fn add(&mut self, keys: Vec<Option<Value>>, batch: &Batch, growth: &Growth) -> Done<()> {
        let places: Vec<u32> = (0..batch.len() as u32).filter(|at| keys[*at as usize].is_some()).collect();
        let mut rows = batch.take(&places, growth)?;
        for (row, key) in rows.rows.iter_mut().zip(keys.into_iter().flatten()) {
            growth.take(ENTRY_BYTES)?;
            let key = OwnedKey(key);
            row.frame = match self.places.get(&key) {
                Some(place) => *place,
                None => {
                    let place = self.keys.len() as u32;
                    self.bytes += (value_bytes(&key.0) * 2 + ENTRY_BYTES) as u64;
                    self.keys.push(growth.copy(&key.0)?);
                    self.places.insert(key, place);
                    place
                }
            };
        }
        self.bytes += rows.bytes();
        self.rows.append(rows, growth)
    }

    /// What they take.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn copy(&self, growth: &Growth) -> Done<Self> {
        let places: Vec<u32> = (0..self.rows.len() as u32).collect();
        growth.take(self.initial.iter().map(|(key, value)| value_bytes(key) + value_bytes(value)).sum())?;
        Ok(Self {
            value: self.value.clone(),
            keys: growth.copy_all(&self.keys)?,
            places: HashMap::new(),
            initial: self.initial.clone(),
            rows: self.rows.take(&places, growth)?,
            bytes: self.bytes,
        })
    }
}

impl Run {
    /// The map of some groups.
    pub(crate) async fn grouped(&mut self, groups: Groups) -> Done<Value> {
        let Groups { value, keys, rows, initial, .. } = groups;
        let growth = self.growth.clone();
        let mut values: Vec<Option<Value>> = growth.column(keys.len())?;
        values.resize_with(keys.len(), || None);
        match &value {
            By::Steps(steps) => {
                let reduces = steps.iter().any(|step| step.operator.is_barrier());
                let mut found = if reduces {
                    let mut pipe = super::Pipe::new(steps);
                    pipe.feed(rows);
                    self.drain(&mut pipe).await?
                } else {
                    // Of a traversal that does not reduce, the last one counts.
                    let firsts = self.firsts(steps, &rows).await?;
                    let kept: Vec<u32> =
                        (0..rows.len() as u32).rev().filter(|at| firsts[*at as usize].is_some()).collect();
                    let mut kept_rows = rows.take_rows(&kept, &growth)?;
                    let mut firsts = firsts;
                    kept_rows.items = Items::Values(kept.iter().filter_map(|at| firsts[*at as usize].take()).collect());
                    kept_rows
                };
                growth.absorb(found.hold.take());
                for (row, value) in found.rows.iter().zip(found.items.into_values(&growth)?) {
                    values[row.frame as usize].get_or_insert(value);
                }
            }
            by => {
                let computed = self.by(by, &rows).await?;
                values.iter_mut().for_each(|value| *value = Some(Value::List(Vec::new())));
                for (row, computed) in rows.rows.iter().zip(computed) {
                    if let (Some(Value::List(items)), Some(computed)) = (&mut values[row.frame as usize], computed) {
                        let copies = copies(row.bulk)?;
                        growth.take((value_bytes(&computed) + size_of::<Value>()).saturating_mul(copies))?;
                        items.extend(std::iter::repeat_n(computed, copies));
                    }
                }
            }
        }
        let mut entries = initial;
        entries.extend(keys.into_iter().zip(values).filter_map(|(key, value)| Some((key, value?))));
        Ok(Value::Map(entries))
    }

    /// All groups by frame.
    pub(crate) async fn group_by_frame(
        &mut self,
        batch: Batch,
        frames: usize,
        key: &By,
        value: &By,
    ) -> Done<Vec<Value>> {
        let mut keys = self.by(key, &batch).await?;
        let growth = self.growth.clone();
        let mut maps = Vec::with_capacity(frames);
        let mut by_frame: Vec<Vec<u32>> = vec![Vec::new(); frames];
        batch.rows.iter().zip(0u32..).for_each(|(row, at)| by_frame[row.frame as usize].push(at));
        for places in by_frame {
            let mut groups = Groups::new(value.clone());
            let of_frame = places.iter().map(|at| keys[*at as usize].take()).collect();
            groups.add(of_frame, &batch.take(&places, &growth)?, &growth)?;
            maps.push(self.grouped(groups).await?);
        }
        Ok(maps)
    }

    /// How many of each key, by frame.
    pub(crate) async fn counts_by_frame(&mut self, batch: Batch, frames: usize, by: &By) -> Done<Vec<Value>> {
        let keys = self.by(by, &batch).await?;
        let mut places: HashMap<(u32, OwnedKey), usize> = HashMap::new();
        let mut counts: Vec<Vec<(Value, u64)>> = vec![Vec::new(); frames];
        for (row, key) in batch.rows.iter().zip(keys) {
            let Some(key) = key else { continue };
            let of_frame = &mut counts[row.frame as usize];
            let copy = OwnedKey(self.growth.copy(&key)?);
            self.growth.take(ENTRY_BYTES)?;
            let place = *places.entry((row.frame, copy)).or_insert(of_frame.len());
            match of_frame.get_mut(place) {
                Some((_, count)) => *count = count.saturating_add(row.bulk),
                None => of_frame.push((key, row.bulk)),
            }
        }
        let map = |counts: Vec<(Value, u64)>| {
            Value::Map(counts.into_iter().map(|(key, count)| (key, (count as i64).into())).collect())
        };
        Ok(counts.into_iter().map(map).collect())
    }
}
