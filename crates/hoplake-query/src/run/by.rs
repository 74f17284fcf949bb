//! What a `by` computes of each row.

use std::collections::HashSet;

use super::{
    Run,
    batch::{Batch, Items, element_of},
};
use crate::{
    error::{Done, QueryError},
    growth::Growth,
    plan::{By, Given, Name},
    run::properties::Wanted,
    tokens::{Column, Pop, T},
    value::{Unread, Value, kind_of, value_bytes},
};

impl Run {
    /// A value for each row; `None` where there is none.
    pub(crate) async fn by(&mut self, by: &By, batch: &Batch) -> Done<Vec<Option<Value>>> {
        let mut values = self.computed(by, batch).await?;
        let is_productive = |names: &HashSet<Name>| match by {
            By::Property(name) => !names.contains(name),
            By::Steps(_) => true,
            _ => false,
        };
        if self.settings.productive.as_ref().is_some_and(is_productive) {
            values.iter_mut().filter(|value| value.is_none()).for_each(|value| *value = Some(Value::Null));
        }
        Ok(values)
    }

    async fn computed(&mut self, by: &By, batch: &Batch) -> Done<Vec<Option<Value>>> {
        match by {
            By::Identity => self.own_values(batch),
            By::Property(name) => self.by_property(name, batch).await,
            By::Token(token) => self.by_token(*token, batch).await,
            By::Column(column) => {
                (0..batch.len()).map(|at| column_of(*column, &batch.items.get(at), &self.growth).map(Some)).collect()
            }
            By::Steps(steps) => self.firsts(steps, batch).await,
        }
    }

    /// The values of the rows themselves.
    pub(crate) fn own_values(&self, batch: &Batch) -> Done<Vec<Option<Value>>> {
        let mut values = self.growth.column(batch.len())?;
        for at in 0..batch.len() {
            values.push(Some(batch.items.copy(at, &self.growth)?));
        }
        Ok(values)
    }

    /// A copy of a column.
    pub(crate) fn copied(&self, column: &[Option<Value>]) -> Done<Vec<Option<Value>>> {
        let mut values = self.growth.column(column.len())?;
        for value in column {
            values.push(value.as_ref().map(|value| self.growth.copy(value)).transpose()?);
        }
        Ok(values)
    }

    /// As [`Self::by`], of other values than those of the rows.
    pub(crate) async fn by_of(
        &mut self,
        by: &By,
        batch: &Batch,
        values: Vec<Option<Value>>,
    ) -> Done<Vec<Option<Value>>> {
        if *by == By::Identity {
            return Ok(values);
        }
        let places: Vec<u32> = (0..batch.len() as u32).filter(|at| values[*at as usize].is_some()).collect();
        let mut rows = batch.take_rows(&places, &self.growth)?;
        rows.items = Items::of_values(values.into_iter().flatten().collect());
        let computed = self.by(by, &rows).await?;
        let mut all = self.growth.column(batch.len())?;
        all.resize_with(batch.len(), || None);
        places.into_iter().zip(computed).for_each(|(place, value)| all[place as usize] = value);
        Ok(all)
    }

    async fn by_property(&mut self, name: &Name, batch: &Batch) -> Done<Vec<Option<Value>>> {
        let elements = (0..batch.len()).filter_map(|at| batch.items.element(at));
        let read = self.read(elements, Wanted::Named(std::slice::from_ref(name))).await?;
        let growth = self.growth.clone();
        let value = |at| match batch.items.element(at) {
            Some(element) => {
                let mut values = read.values(element, name);
                growth.take(values.iter().map(value_bytes).sum())?;
                match values.len() {
                    0 | 1 => Ok(values.pop()),
                    count => Err(QueryError::wrong_type(format!(
                        "`by({name:?})` is of one value, and a vertex has {count}: use `by(values({name:?}).fold())`"
                    ))),
                }
            }
            None => match &*batch.items.get(at) {
                // A map has null for a key that it lacks, unlike an element.
                Value::Map(entries) => {
                    growth.work(entries.len() as u64)?;
                    growth.copy(entry(entries, name).unwrap_or(&Value::Null)).map(Some)
                }
                whole @ Value::Tree(tree) => {
                    growth.take(value_bytes(whole))?;
                    Ok(Some(entry(&tree.entries(), name).cloned().unwrap_or_default()))
                }
                Value::Unread(unread) if matches!(**unread, Unread::VertexProperty(_)) => Ok(None),
                other => Err(QueryError::wrong_type(format!(
                    "`by({name:?})` is the property of an element or the entry of a map, and this is {}",
                    kind_of(other)
                ))),
            },
        };
        (0..batch.len()).map(value).collect()
    }

    pub(crate) async fn by_token(&mut self, token: T, batch: &Batch) -> Done<Vec<Option<Value>>> {
        match token {
            T::Id => {
                let vertices = (0..batch.len()).filter_map(|at| batch.items.element(at));
                let read = self.read(vertices, Wanted::Named(&[])).await?;
                let mut ids = Vec::with_capacity(batch.len());
                for at in 0..batch.len() {
                    ids.push(match batch.items.element(at) {
                        Some(element) => Some(self.growth.built(self.id(element, &read))?),
                        None => match self.finished(vec![batch.items.copy(at, &self.growth)?], false).await?.pop() {
                            Some(Value::VertexProperty(property)) => Some(property.id),
                            other => return Err(no_token(T::Id, &other.unwrap_or_default())),
                        },
                    });
                }
                Ok(ids)
            }
            token => (0..batch.len()).map(|at| self.token(token, batch, at).map(Some)).collect(),
        }
    }

    fn token(&self, token: T, batch: &Batch, at: usize) -> Done<Value> {
        if let (T::Label, Some(element)) = (token, batch.items.element(at)) {
            return self.growth.built(self.label(element));
        }
        let value = batch.items.get(at);
        match (token, &*value) {
            (T::Label | T::Key, Value::Unread(element)) => match &**element {
                Unread::VertexProperty(property) => Ok((&*property.key).into()),
                Unread::Property(property) => Ok((&*property.key).into()),
                _ => Err(no_token(token, &value)),
            },
            (T::Value, Value::Unread(element)) => match &**element {
                Unread::VertexProperty(property) => self.growth.copy(&property.value),
                Unread::Property(property) => self.growth.copy(&property.value),
                _ => Err(no_token(token, &value)),
            },
            (T::Key, Value::Entry(entry)) => self.growth.copy(&entry.0),
            (T::Value, Value::Entry(entry)) => self.growth.copy(&entry.1),
            _ => Err(no_token(token, &value)),
        }
    }

    /// What is given, for each row.
    pub(crate) async fn given(&mut self, given: &Given, batch: &Batch) -> Done<Vec<Option<Value>>> {
        match given {
            Given::Value(value) => {
                let value = self.with_elements(vec![self.growth.copy(value)?]).await?.pop();
                let bytes = value.as_ref().map_or(0, value_bytes);
                self.growth.copies(&value, bytes, batch.len())
            }
            Given::Steps(steps) => self.firsts(steps, batch).await,
        }
    }

    /// What was met under a label, for each row: the entry of a map, a side effect, or a step of the path.
    pub(crate) async fn met(&mut self, label: &Name, pop: Pop, batch: &Batch) -> Done<Vec<Option<Value>>> {
        let effect = self.side_effect(label).await?;
        let mut met = self.growth.column(batch.len())?;
        for at in 0..batch.len() {
            met.push(self.met_at(at, label, effect.as_ref(), pop, batch)?);
        }
        Ok(met)
    }

    /// As [`Self::met`], for one row; `effect` is the side effect of that name.
    pub(crate) fn met_at(
        &self,
        at: usize,
        label: &Name,
        effect: Option<&Value>,
        pop: Pop,
        batch: &Batch,
    ) -> Done<Option<Value>> {
        if let Items::Values(values) = &batch.items
            && let Value::Map(entries) = &values[at]
        {
            self.growth.work(entries.len() as u64)?;
            if let Some(value) = entry(entries, label) {
                return self.growth.copy(value).map(Some);
            }
        }
        match effect {
            Some(effect) => self.growth.copy(effect).map(Some),
            None => self.paths.labelled(batch.rows[at].path, label, pop, &self.growth),
        }
    }

    /// As [`Self::met`], the last one, for steps that cannot go on without it.
    ///
    /// `select`, `format` and others leave out what met nothing. A comparison has no answer for it: a label that is misspelt would be
    /// a condition that nothing matches, or all.
    pub(crate) async fn needed(&mut self, label: &Name, step: &str, batch: &Batch) -> Done<Vec<Value>> {
        let met = self.met(label, Pop::Last, batch).await?;
        let value = |value: Option<Value>| {
            value.ok_or_else(|| {
                QueryError::wrong_type(format!(
                    "`{step}` needs {label:?}, and neither the map, the side effects nor the path of a traverser has it: name a \
                     step so with `as` before"
                ))
            })
        };
        met.into_iter().map(value).collect()
    }
}

/// The value of a name in a map.
pub(crate) fn entry<'a>(entries: &'a [(Value, Value)], name: &str) -> Option<&'a Value> {
    entries.iter().find(|(key, _)| matches!(key, Value::Text(key) if **key == *name)).map(|(_, value)| value)
}

/// The keys or values of a map or a path.
pub(crate) fn column_of(column: Column, value: &Value, growth: &Growth) -> Done<Value> {
    growth.take(value_bytes(value))?;
    match (column, value) {
        (Column::Keys, Value::Map(entries)) => Ok(Value::Set(entries.iter().map(|(key, _)| key.clone()).collect())),
        (Column::Values, Value::Map(entries)) => Ok(Value::List(entries.iter().map(|(_, it)| it.clone()).collect())),
        (column, Value::Tree(tree)) => column_of(column, &Value::Map(tree.entries()), growth),
        (Column::Keys, Value::Entry(entry)) => Ok(entry.0.clone()),
        (Column::Values, Value::Entry(entry)) => Ok(entry.1.clone()),
        (Column::Keys, Value::Path(path)) => {
            let labels = |labels: &[Box<str>]| Value::Set(labels.iter().map(|label| (&**label).into()).collect());
            Ok(Value::List(path.steps.iter().map(|(_, all)| labels(all)).collect()))
        }
        (Column::Values, Value::Path(path)) => {
            Ok(Value::List(path.steps.iter().map(|(item, _)| item.clone()).collect()))
        }
        (_, other) => Err(QueryError::wrong_type(format!(
            "`{}` is of a map, an entry or a path, and this is {}",
            column.name(),
            kind_of(other)
        ))),
    }
}

fn no_token(token: T, value: &Value) -> QueryError {
    QueryError::wrong_type(format!("{} has no {}", kind_of(value), token.name()))
}

/// Whether a value is an element.
pub(crate) fn is_element(value: &Value) -> bool {
    element_of(value).is_some()
}

pub(crate) fn not_an_edge(value: &Value) -> QueryError {
    QueryError::wrong_type(format!("only edges have ends, and this is {}", kind_of(value)))
}
