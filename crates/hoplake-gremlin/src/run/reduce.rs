//! Many values to one: counts, sums, groups, trees, and operators between two values.

use std::{
    cmp::Ordering,
    collections::HashMap,
    hash::{Hash, Hasher},
};

use super::{
    Done, Run,
    batch::{Batch, Items},
    by::kind_of,
};
use crate::{
    error::GremlinError,
    literal::Number,
    plan::{By, Reduction},
    tokens::Operator,
    value::{
        Key, Tree, Value,
        arithmetic::{self, Mean, Sum},
        order,
    },
};

/// A value as a key that owns it.
#[derive(Debug, Clone)]
pub(super) struct OwnedKey(pub(super) Value);

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
pub(super) struct Reduced {
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
    pub(super) fn of_items() -> Self {
        Self { items: true, ..Self::default() }
    }

    pub(super) fn add(&mut self, reduction: Reduction, value: &Value, bulk: u64) -> Done<()> {
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
            other => Err(GremlinError::wrong_type(format!(
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

    pub(super) fn finish(self, reduction: Reduction) -> Done<Option<Value>> {
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
pub(super) fn operate(operator: Operator, left: Value, right: Value) -> Done<Value> {
    let numbers = |compute: fn(&Number, &Number) -> Result<Number, arithmetic::ArithmeticError>| match (&left, &right) {
        (Value::Number(left), Value::Number(right)) => Ok(Value::Number(compute(left, right)?)),
        (Value::Null, other) | (other, Value::Null) => Ok(other.clone()),
        (left, right) => Err(GremlinError::wrong_type(format!(
            "`{}` is of two numbers, and these are {} and {}",
            operator.name(),
            kind_of(left),
            kind_of(right)
        ))),
    };
    match operator {
        Operator::Assign => Ok(right),
        Operator::Sum => numbers(arithmetic::add),
        Operator::Minus => numbers(arithmetic::subtract),
        Operator::Mult => numbers(arithmetic::multiply),
        Operator::Div => numbers(arithmetic::divide),
        Operator::SumLong => match numbers(arithmetic::add)? {
            Value::Number(number) => Ok(crate::value::to_i64(&number).into()),
            other => Ok(other),
        },
        Operator::Min => Ok(extreme(true, left, &right)),
        Operator::Max => Ok(extreme(false, left, &right)),
        Operator::And | Operator::Or => match (&left, &right) {
            (Value::Boolean(left), Value::Boolean(right)) => {
                Ok(if operator == Operator::And { *left && *right } else { *left || *right }.into())
            }
            _ => Err(GremlinError::wrong_type(format!("`{}` is of two booleans", operator.name()))),
        },
        Operator::AddAll => add_all(left, right),
    }
}

fn add_all(left: Value, right: Value) -> Done<Value> {
    match (left, right) {
        (Value::Null, other) | (other, Value::Null) => Ok(other),
        (Value::Map(mut entries), Value::Map(more)) => {
            for (key, value) in more {
                match entries.iter_mut().find(|(other, _)| Key(other) == Key(&key)) {
                    Some((_, before)) => *before = value,
                    None => entries.push((key, value)),
                }
            }
            Ok(Value::Map(entries))
        }
        (Value::List(mut items), more) => {
            items.extend(items_of(more)?);
            Ok(Value::List(items))
        }
        (Value::Set(items), more) => {
            let more = items_of(more)?;
            Ok(Value::Set(distinct(items.into_iter().chain(more))))
        }
        (left @ Value::BulkSet(_), more) => {
            let mut items = items_of(left)?;
            items.extend(items_of(more)?);
            Ok(Value::List(items))
        }
        (left, _) => {
            Err(GremlinError::wrong_type(format!("`addAll` is of collections, and this is {}", kind_of(&left))))
        }
    }
}

/// Each once, in the order of their first.
pub(super) fn distinct(values: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut seen = std::collections::HashSet::new();
    values.filter(|value| seen.insert(OwnedKey(value.clone()))).collect()
}

/// Copies of one value, at most, that a step makes of traversers that were counted and not kept one by one.
const COPIES_MAX: u64 = 10_000_000;

/// How many copies of a value there are to be, if they are not so many that they would fill the memory.
pub(super) fn copies(bulk: u64) -> Done<usize> {
    match usize::try_from(bulk) {
        Ok(copies) if bulk <= COPIES_MAX => Ok(copies),
        _ => Err(GremlinError::wrong_type(format!(
            "a step would make {bulk} copies of a value, and at most {COPIES_MAX} are made: count, limit or dedup before it"
        ))),
    }
}

/// The items of a collection.
pub(super) fn items_of(value: Value) -> Done<Vec<Value>> {
    match value {
        Value::List(items) | Value::Set(items) => Ok(items),
        Value::BulkSet(items) => {
            copies(items.iter().map(|(_, bulk)| *bulk).fold(0, u64::saturating_add))?;
            Ok(items.into_iter().flat_map(|(item, bulk)| std::iter::repeat_n(item, bulk as usize)).collect())
        }
        other => Err(GremlinError::wrong_type(format!("a collection is needed here, and this is {}", kind_of(&other)))),
    }
}

/// Adds a path to a tree.
pub(super) fn plant(tree: &mut Tree, path: Vec<Value>) {
    let mut tree = tree;
    for value in path {
        let place = tree.branches.iter().position(|(item, _)| Key(item) == Key(&value));
        let place = place.unwrap_or_else(|| {
            tree.branches.push((value, Tree::default()));
            tree.branches.len() - 1
        });
        tree = &mut tree.branches[place].1;
    }
}

/// Rows by their key: what `group` collects before it computes a value of each group.
#[derive(Debug)]
pub(super) struct Groups {
    value: By,
    keys: Vec<Value>,
    places: HashMap<OwnedKey, u32>,
    /// Entries that were there from the beginning.
    pub(super) initial: Vec<(Value, Value)>,
    /// All rows; the frame of each is its group.
    rows: Batch,
}

impl Groups {
    pub(super) fn new(value: By) -> Self {
        Self { value, keys: Vec::new(), places: HashMap::new(), initial: Vec::new(), rows: Batch::default() }
    }

    /// Adds the rows that have a key.
    pub(super) fn add(&mut self, keys: Vec<Option<Value>>, batch: &Batch) {
        let places: Vec<u32> = (0..batch.len() as u32).filter(|at| keys[*at as usize].is_some()).collect();
        let mut rows = batch.take(&places);
        for (row, key) in rows.rows.iter_mut().zip(keys.into_iter().flatten()) {
            let key = OwnedKey(key);
            row.frame = match self.places.get(&key) {
                Some(place) => *place,
                None => {
                    let place = self.keys.len() as u32;
                    self.keys.push(key.0.clone());
                    self.places.insert(key, place);
                    place
                }
            };
        }
        self.rows.append(rows);
    }

    pub(super) fn copy(&self) -> Self {
        let places: Vec<u32> = (0..self.rows.len() as u32).collect();
        Self {
            value: self.value.clone(),
            keys: self.keys.clone(),
            places: HashMap::new(),
            initial: self.initial.clone(),
            rows: self.rows.take(&places),
        }
    }
}

impl Run {
    /// The map of some groups.
    pub(super) async fn grouped(&mut self, groups: Groups) -> Done<Value> {
        let Groups { value, keys, rows, initial, .. } = groups;
        let mut values: Vec<Option<Value>> = vec![None; keys.len()];
        match &value {
            By::Steps(steps) => {
                let reduces = steps.iter().any(|step| super::pipe::is_barrier(step));
                let found = if reduces {
                    let mut pipe = super::Pipe::new(steps);
                    pipe.feed(rows);
                    self.drain(&mut pipe).await?
                } else {
                    // Of a traversal that does not reduce, the last one counts.
                    let firsts = self.firsts(steps, &rows).await?;
                    let kept: Vec<u32> =
                        (0..rows.len() as u32).rev().filter(|at| firsts[*at as usize].is_some()).collect();
                    let mut kept_rows = rows.take_rows(&kept);
                    kept_rows.items =
                        Items::Values(kept.iter().filter_map(|at| firsts[*at as usize].clone()).collect());
                    kept_rows
                };
                for (at, row) in found.rows.iter().enumerate() {
                    let value = &mut values[row.frame as usize];
                    if value.is_none() {
                        *value = Some(found.items.value(at));
                    }
                }
            }
            by => {
                let computed = self.by(by, &rows).await?;
                values.iter_mut().for_each(|value| *value = Some(Value::List(Vec::new())));
                for (row, computed) in rows.rows.iter().zip(computed) {
                    if let (Some(Value::List(items)), Some(computed)) = (&mut values[row.frame as usize], computed) {
                        items.extend(std::iter::repeat_n(computed, copies(row.bulk)?));
                    }
                }
            }
        }
        let mut entries = initial;
        entries.extend(keys.into_iter().zip(values).filter_map(|(key, value)| Some((key, value?))));
        Ok(Value::Map(entries))
    }

    /// All groups by frame.
    pub(super) async fn group_by_frame(
        &mut self,
        batch: Batch,
        frames: usize,
        key: &By,
        value: &By,
    ) -> Done<Vec<Value>> {
        let keys = self.by(key, &batch).await?;
        let mut maps = Vec::with_capacity(frames);
        let mut by_frame: Vec<Vec<u32>> = vec![Vec::new(); frames];
        batch.rows.iter().zip(0u32..).for_each(|(row, at)| by_frame[row.frame as usize].push(at));
        for places in by_frame {
            let mut groups = Groups::new(value.clone());
            groups.add(places.iter().map(|at| keys[*at as usize].clone()).collect(), &batch.take(&places));
            maps.push(self.grouped(groups).await?);
        }
        Ok(maps)
    }

    /// How many of each key, by frame.
    pub(super) async fn counts_by_frame(&mut self, batch: Batch, frames: usize, by: &By) -> Done<Vec<Value>> {
        let keys = self.by(by, &batch).await?;
        let mut places: HashMap<(u32, OwnedKey), usize> = HashMap::new();
        let mut counts: Vec<Vec<(Value, u64)>> = vec![Vec::new(); frames];
        for (row, key) in batch.rows.iter().zip(keys) {
            let Some(key) = key else { continue };
            let of_frame = &mut counts[row.frame as usize];
            let place = *places.entry((row.frame, OwnedKey(key.clone()))).or_insert(of_frame.len());
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
