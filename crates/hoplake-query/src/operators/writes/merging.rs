//! `mergeV` and `mergeE`: what is found, or else added.
//!
//! A traverser may add what a later one finds, so they are taken one after the other. What is in the graph already is sought for all of
//! a batch at once, unless an `onMatch` could change what later ones look for.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use crate::{
    growth::units_of,
    operators::prelude::*,
    plan::MergeMap,
    run::{
        Element,
        by_value::{Condition, Of},
        change::{self, NewValues, NewVertex},
    },
    tokens::{Direction, T, Token},
    value::{ELEMENT_BYTES, equals, kind_of, value_bytes},
};

/// What a map says of an element.
#[derive(Debug, Clone, Default)]
pub(super) struct Sought {
    pub(super) id: Option<Value>,
    pub(super) label: Option<Name>,
    pub(super) source: Option<Value>,
    pub(super) target: Option<Value>,
    pub(super) values: NewValues,
}

/// Entries of a map.
pub(super) type Entries = Vec<(Value, Value)>;

impl Run {
    /// The maps that are given, for each row; `null` is an empty one.
    pub(super) async fn maps_of(&mut self, given: &Given, batch: &Batch, step: &str) -> Done<Vec<Entries>> {
        let maps = self.given(given, batch).await?;
        let map = |value: Option<Value>| match value {
            Some(Value::Map(entries)) => Ok(entries),
            Some(Value::Null) | None => Ok(Vec::new()),
            Some(other) => Err(QueryError::wrong_type(format!(
                "{step}() takes a map, or a traversal that gives one, and this is {}",
                kind_of(&other)
            ))),
        };
        maps.into_iter().map(map).collect()
    }

    pub(super) async fn options_of(&mut self, option: Option<&MergeMap>, batch: &Batch) -> Done<Option<Vec<Entries>>> {
        match option {
            Some(option) => self.maps_of(&option.map, batch, "option(onCreate) of merge").await.map(Some),
            None => Ok(None),
        }
    }

    /// Changes what was found, as the option says from there.
    pub(super) async fn match_changes(
        &mut self,
        map: &MergeMap,
        batch: &Batch,
        matched: Vec<(u32, Element)>,
    ) -> Done<()> {
        let (parents, elements): (Vec<u32>, Vec<Element>) = matched.into_iter().unzip();
        let mut rows = batch.take_rows(&parents, &self.growth)?;
        self.growth.take(elements.len() * ELEMENT_BYTES)?;
        rows.items = Items::of_values(elements.iter().map(|element| (*element).into()).collect());
        let maps = self.maps_of(&map.map, &rows, "option(onMatch) of merge").await?;
        let mut changed = Vec::with_capacity(elements.len());
        for (element, entries) in elements.into_iter().zip(maps) {
            changed.push((element, match_values(entries, map)?));
        }
        changed.retain(|(_, values)| !values.is_empty());
        if changed.is_empty() { Ok(()) } else { self.set_values(changed).await }
    }
}

impl Sought {
    pub(super) fn of_vertex(entries: &[(Value, Value)], step: &str, growth: &Growth) -> Done<Self> {
        let sought = Self::of_edge(entries, step, growth)?;
        match (&sought.source, &sought.target) {
            (None, None) => Ok(sought),
            _ => Err(QueryError::wrong_type(format!("{step}() of a vertex has no directions in its map"))),
        }
    }

    pub(super) fn of_edge(entries: &[(Value, Value)], step: &str, growth: &Growth) -> Done<Self> {
        growth.take(size_of::<Self>() + map_bytes(entries))?;
        let mut sought = Self::default();
        let null = |what: &str| QueryError::wrong_type(format!("{step}() does not allow null {what}"));
        for (key, value) in entries {
            match (key, value) {
                (Value::Token(Token::T(T::Id)), Value::Null) => return Err(null("T.id values")),
                (Value::Token(Token::T(T::Id)), value) => sought.id = Some(value.clone()),
                (Value::Token(Token::T(T::Label)), Value::Text(label)) => {
                    change::check_label(label)?;
                    sought.label = Some((**label).into());
                }
                (Value::Token(Token::T(T::Label)), Value::Null) => return Err(null("T.label values")),
                (Value::Token(Token::T(T::Label)), other) => {
                    return Err(QueryError::wrong_type(format!(
                        "{step}() expects T.label value to be of String - found: {}",
                        kind_of(other)
                    )));
                }
                (Value::Token(Token::Direction(_)), Value::Null) => return Err(null("Direction values")),
                (Value::Token(Token::Direction(Direction::Out)), value) => sought.source = Some(value.clone()),
                (Value::Token(Token::Direction(Direction::In)), value) => sought.target = Some(value.clone()),
                (Value::Text(name), value) => {
                    change::check_name(name)?;
                    sought.values.push(((**name).into(), None, value.clone()));
                }
                (Value::Null, _) => return Err(null("keys")),
                (other, _) => {
                    return Err(QueryError::wrong_type(format!(
                        "{step}() and option(onCreate) args expect keys in Map to be either String or T - found {}",
                        kind_of(other)
                    )));
                }
            }
        }
        Ok(sought)
    }

    /// What properties an element has to have.
    pub(super) fn conditions(&self) -> impl Iterator<Item = Condition<'_>> {
        self.values.iter().map(|(name, _, value)| (Of::Property(name), Cow::Borrowed(value)))
    }

    /// What a vertex that is to be added has to have.
    pub(super) fn conditions_on_new(&self) -> impl Iterator<Item = Condition<'_>> {
        id_and_label(self.id.as_ref(), self.label.as_ref()).chain(self.conditions())
    }

    /// Whether an element with some properties, which are by name, is what is sought.
    pub(super) fn matches(&self, properties: &[(&str, Vec<Value>)], growth: &Growth) -> Done<bool> {
        let by_name: HashMap<&str, &Vec<Value>> = properties.iter().map(|(name, values)| (*name, values)).collect();
        for (name, _, value) in &self.values {
            let known = by_name.get(&**name).map_or(&[][..], |values| values);
            growth.work(units_of(known.iter().map(value_bytes).sum()))?;
            if !known.iter().any(|known| equals(known, value)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The values of all names that are not among others.
    pub(super) fn values_besides(&self, others: &NewValues, growth: &Growth) -> Done<NewValues> {
        let others: HashSet<&Name> = others.iter().map(|(name, ..)| name).collect();
        let mut values = growth.column(self.values.len())?;
        for (name, cardinality, value) in self.values.iter().filter(|(name, ..)| !others.contains(name)) {
            values.push((name.clone(), *cardinality, growth.copy(value)?));
        }
        Ok(values)
    }

    /// The vertex that is added where nothing was found.
    pub(super) fn created(
        &self,
        sought: &[(Value, Value)],
        on_create: &[(Value, Value)],
        option: Option<&MergeMap>,
        growth: &Growth,
    ) -> Done<NewVertex> {
        option.map_or(Ok(()), |option| option.reject_overrides(sought, on_create))?;
        let more = Self::of_vertex(on_create, "option(onCreate)", growth)?;
        let mut values = self.values_besides(&more.values, growth)?;
        let cardinality = |name: &Name| option.and_then(|option| option.cardinality(name));
        values.extend(more.values.into_iter().map(|(name, _, value)| (name.clone(), cardinality(&name), value)));
        let label = more.label.or_else(|| self.label.clone()).unwrap_or_else(|| "vertex".into());
        let id = match more.id {
            None => self.id.as_ref().map(|id| growth.copy(id)).transpose()?,
            id => id,
        };
        Ok(NewVertex { label: Some(label), id, values })
    }
}

/// What a vertex that is to be added has.
pub(super) fn values_of_new(new: &NewVertex) -> impl Iterator<Item = Condition<'_>> {
    let properties = new.values.iter().map(|(name, _, value)| (Of::Property(name), Cow::Borrowed(value)));
    id_and_label(new.id.as_ref(), new.label.as_ref()).chain(properties)
}

pub(super) fn id_and_label<'a>(id: Option<&'a Value>, label: Option<&Name>) -> impl Iterator<Item = Condition<'a>> {
    let label = label.map(|label| (Of::Label, Cow::Owned((&**label).into())));
    id.map(|id| (Of::Id, Cow::Borrowed(id))).into_iter().chain(label)
}

/// What the entries of a map take.
pub(super) fn map_bytes(entries: &[(Value, Value)]) -> usize {
    entries.iter().map(|(key, value)| value_bytes(key) + value_bytes(value)).sum()
}

/// The name of a property that an `onMatch` sets.
pub(super) fn match_name(key: &Value) -> Done<Name> {
    match key {
        Value::Text(name) => {
            change::check_name(name)?;
            Ok((**name).into())
        }
        other => Err(QueryError::wrong_type(format!(
            "The provided traversal's option(onMatch) expects keys in Map to be of String - found {}",
            kind_of(other)
        ))),
    }
}

/// What an `onMatch` sets.
pub(super) fn match_values(entries: Entries, map: &MergeMap) -> Done<NewValues> {
    let value = |(key, value): (Value, Value)| {
        let name = match_name(&key)?;
        Ok((name.clone(), map.cardinality(&name), value))
    };
    entries.into_iter().map(value).collect()
}

/// Rejects a map that could not be set, whether something is found or not.
pub(super) fn check_match(map: Option<&MergeMap>) -> Done<()> {
    match map {
        Some(MergeMap { map: Given::Value(Value::Map(entries)), .. }) => {
            entries.iter().try_for_each(|(key, _)| match_name(key).map(drop))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
