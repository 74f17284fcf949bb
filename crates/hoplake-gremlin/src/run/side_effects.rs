//! Side effects: what steps collect under names, for others to read.

use std::collections::HashMap;

use hoplake_storage::{MemoryHold, QueryContext};

use super::{
    Done, Run,
    batch::{Batch, value_bytes},
    reduce::{Groups, OwnedKey, copies},
};
use crate::{
    error::GremlinError,
    plan::{Collects, Name, Settings},
    tokens::Operator,
    value::{Tree, Value},
};

/// All side effects of a query.
#[derive(Debug)]
pub(super) struct SideEffects {
    effects: HashMap<Name, Effect>,
    hold: MemoryHold,
}

/// A side effect.
#[derive(Debug)]
enum Effect {
    /// A value that was there from the beginning, and what adds to it.
    Value(Value, Option<Operator>),
    /// What `aggregate` collects: values in the order of their first, with their numbers.
    Collected { values: Vec<(Value, u64)>, places: HashMap<OwnedKey, usize> },
    /// What `group` collects.
    Groups(Box<Groups>),
    /// What `groupCount` collects.
    Counts { counts: Vec<(Value, u64)>, places: HashMap<OwnedKey, usize> },
    /// What `tree` collects.
    Tree(Tree),
}

impl SideEffects {
    pub(super) fn new(settings: &Settings, context: &QueryContext) -> Done<Self> {
        let empty = || Effect::Collected { values: Vec::new(), places: HashMap::new() };
        let nothing = |what: Collects| match what {
            Collects::Values => empty(),
            Collects::Map => Effect::Value(Value::Map(Vec::new()), None),
            Collects::Tree => Effect::Tree(Tree::default()),
        };
        let mut initial: HashMap<Name, Effect> =
            settings.collected.iter().map(|(name, what)| (name.clone(), nothing(*what))).collect();
        let given = settings.side_effects.iter();
        initial.extend(given.map(|it| (it.name.clone(), Effect::Value(it.initial.clone(), it.reduce))));
        Ok(Self { effects: initial, hold: context.hold(0)? })
    }

    fn grow(&mut self, bytes: usize, context: &QueryContext) -> Done<()> {
        let bytes = self.hold.bytes() + bytes as u64;
        Ok(context.resize(&mut self.hold, bytes)?)
    }
}

fn other_kind(name: &Name) -> GremlinError {
    GremlinError::wrong_type(format!("the side effect {name:?} is collected by steps of several kinds"))
}

impl Run {
    /// Adds values to what is collected under a name.
    pub(super) fn aggregate(&mut self, name: &Name, values: impl Iterator<Item = (Value, u64)>) -> Done<()> {
        let context = self.branch.context().clone();
        let empty = || Effect::Collected { values: Vec::new(), places: HashMap::new() };
        self.side_effects.effects.entry(name.clone()).or_insert_with(empty);
        // What is assigned is all that came.
        if let Some(Effect::Value(before, Some(Operator::Assign))) = self.side_effects.effects.get_mut(name) {
            *before = Value::BulkSet(values.collect());
            let bytes = value_bytes(before);
            return self.side_effects.grow(bytes, &context);
        }
        for (value, bulk) in values {
            self.side_effects.grow(value_bytes(&value) * 2 + 16, &context)?;
            match self.side_effects.effects.get_mut(name) {
                Some(Effect::Collected { values, places }) => count(values, places, value, bulk),
                Some(Effect::Value(before, reduce)) => {
                    let operator = reduce.unwrap_or(Operator::AddAll);
                    for _ in 0..copies(bulk)? {
                        let added = match operator {
                            Operator::AddAll => Value::List(vec![value.clone()]),
                            _ => value.clone(),
                        };
                        *before = super::reduce::operate(operator, std::mem::take(before), added)?;
                    }
                }
                _ => return Err(other_kind(name)),
            }
        }
        Ok(())
    }

    /// Whether each value of a side effect replaces the one before.
    pub(super) fn assigns(&self, name: &Name) -> bool {
        matches!(self.side_effects.effects.get(name), Some(Effect::Value(_, Some(Operator::Assign))))
    }

    /// Adds rows to the groups of a name.
    pub(super) fn group_under(
        &mut self,
        name: &Name,
        keys: Vec<Option<Value>>,
        batch: &Batch,
        value: &crate::plan::By,
    ) -> Done<()> {
        let context = self.branch.context().clone();
        self.side_effects.grow(batch.bytes() as usize, &context)?;
        let groups = || Effect::Groups(Box::new(Groups::new(value.clone())));
        match self.side_effects.effects.entry(name.clone()).or_insert_with(groups) {
            Effect::Groups(groups) => {
                groups.add(keys, batch);
                Ok(())
            }
            Effect::Value(Value::Map(initial), _) => {
                let mut groups = Groups::new(value.clone());
                groups.initial = std::mem::take(initial);
                groups.add(keys, batch);
                self.side_effects.effects.insert(name.clone(), Effect::Groups(Box::new(groups)));
                Ok(())
            }
            _ => Err(other_kind(name)),
        }
    }

    /// Adds keys to the counts of a name.
    pub(super) fn count_under(&mut self, name: &Name, keys: impl Iterator<Item = (Value, u64)>) -> Done<()> {
        let context = self.branch.context().clone();
        let empty = || Effect::Counts { counts: Vec::new(), places: HashMap::new() };
        self.side_effects.effects.entry(name.clone()).or_insert_with(empty);
        for (key, bulk) in keys {
            self.side_effects.grow(value_bytes(&key) * 2 + 16, &context)?;
            let effect = self.side_effects.effects.get_mut(name);
            if let Some(effect @ Effect::Value(Value::Map(_), _)) = effect {
                *effect = counts_of(std::mem::replace(effect, empty()));
            }
            match self.side_effects.effects.get_mut(name) {
                Some(Effect::Counts { counts, places }) => count(counts, places, key, bulk),
                _ => return Err(other_kind(name)),
            }
        }
        Ok(())
    }

    /// Adds paths to the tree of a name.
    pub(super) fn grow_tree(&mut self, name: &Name, paths: Vec<Vec<Value>>) -> Done<()> {
        let context = self.branch.context().clone();
        let bytes = paths.iter().flatten().map(value_bytes).sum();
        self.side_effects.grow(bytes, &context)?;
        match self.side_effects.effects.entry(name.clone()).or_insert_with(|| Effect::Tree(Tree::default())) {
            Effect::Tree(tree) => {
                paths.into_iter().for_each(|path| super::reduce::plant(tree, path));
                Ok(())
            }
            _ => Err(other_kind(name)),
        }
    }

    /// The value of a side effect, if there is one of that name.
    pub(super) async fn side_effect(&mut self, name: &Name) -> Done<Option<Value>> {
        let Some(effect) = self.side_effects.effects.get(name) else { return Ok(None) };
        let groups = match effect {
            Effect::Value(value, _) => return Ok(Some(value.clone())),
            Effect::Collected { values, .. } => return Ok(Some(Value::BulkSet(values.clone()))),
            Effect::Counts { counts, .. } => {
                return Ok(Some(Value::Map(
                    counts.iter().map(|(key, count)| (key.clone(), (*count as i64).into())).collect(),
                )));
            }
            Effect::Tree(tree) => return Ok(Some(Value::Tree(tree.clone()))),
            Effect::Groups(groups) => groups.copy(),
        };
        self.grouped(groups).await.map(Some)
    }
}

/// Counts that go on from a map.
fn counts_of(effect: Effect) -> Effect {
    let (mut counts, mut places) = (Vec::new(), HashMap::new());
    if let Effect::Value(Value::Map(entries), _) = effect {
        for (key, value) in entries {
            if let Value::Number(number) = value {
                count(&mut counts, &mut places, key, u64::try_from(crate::value::to_i64(&number)).unwrap_or(0));
            }
        }
    }
    Effect::Counts { counts, places }
}

fn count(counts: &mut Vec<(Value, u64)>, places: &mut HashMap<OwnedKey, usize>, value: Value, bulk: u64) {
    match places.get(&OwnedKey(value.clone())) {
        Some(place) => counts[*place].1 = counts[*place].1.saturating_add(bulk),
        None => {
            places.insert(OwnedKey(value.clone()), counts.len());
            counts.push((value, bulk));
        }
    }
}
