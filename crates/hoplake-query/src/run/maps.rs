//! Properties, and maps of them; what was met under labels.

use std::collections::BTreeMap;

use super::{
    Done, Run,
    batch::{Batch, Element, Items, value_bytes},
    by::kind_of,
    each::elements,
    elements::{Places, Properties, Wanted},
    growth::ALLOCATION_BYTES,
    paths::Labels,
};
use crate::{
    error::QueryError,
    plan::{By, Name, StepKind, TokensWanted},
    tokens::{Direction, Pop, T, Token},
    value::{Unread, UnreadProperty, Value},
};

impl Run {
    pub(super) async fn maps(&mut self, kind: &StepKind, labels: &Labels, batch: Batch) -> Done<Batch> {
        match kind {
            StepKind::Values(names) | StepKind::Properties(names) => {
                let values_alone = matches!(kind, StepKind::Values(_));
                let wanted = wanted(names);
                let read = self.read(elements(&batch), wanted).await?;
                let places = wanted.places();
                let (mut parents, mut items) = (Vec::new(), Vec::new());
                for at in 0..batch.len() {
                    let Some(element) = has_properties(&batch, at)? else { continue };
                    for (key, values) in read.all(element, &places) {
                        for (value, number) in values.into_iter().zip(0u32..) {
                            let item = if values_alone { value } else { property(element, key, value, number) };
                            parents.push(at as u32);
                            items.push(self.growth.built(item)?);
                        }
                    }
                    self.pace.rest(1).await?;
                }
                self.derived(&batch, &parents, Items::of_values(items), labels)
            }
            StepKind::ValueMap(names, tokens, by) => self.value_map(batch, names, *tokens, by, labels).await,
            StepKind::PropertyMap(names) => {
                let wanted = wanted(names);
                let read = self.read(elements(&batch), wanted).await?;
                let places = wanted.places();
                let map = |at: usize| -> Done<Value> {
                    let Some(element) = has_properties(&batch, at)? else { return Ok(Value::Map(Vec::new())) };
                    let entries = read.all(element, &places).into_iter().map(|(key, values)| {
                        let each = values.into_iter().zip(0u32..);
                        let mut all: Vec<_> =
                            each.map(|(value, number)| property(element, key, value, number)).collect();
                        match element {
                            Element::Vertex(_) => (key.into(), Value::List(all)),
                            Element::Edge(_) => (key.into(), all.pop().unwrap_or_default()),
                        }
                    });
                    self.growth.built(Value::Map(entries.collect()))
                };
                let maps = (0..batch.len()).map(map).collect::<Done<Vec<_>>>()?;
                self.mapped(batch, Items::Values(maps), labels)
            }
            StepKind::ElementMap(names) => self.element_map(batch, names, labels).await,
            StepKind::Select(pop, names, by, as_map) => self.select(batch, *pop, names, by, *as_map, labels).await,
            StepKind::SelectSteps(pop, steps, by) => {
                let keys = self.firsts(steps, &batch).await?;
                let mut values = self.growth.column(batch.len())?;
                values.resize_with(batch.len(), || None);
                // Each row is asked for its own name: there may be as many of them as rows.
                let mut rows_of: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
                for (at, key) in keys.iter().enumerate() {
                    if let Some(Value::Text(name)) = key {
                        rows_of.entry(name).or_default().push(at);
                    }
                }
                for (name, rows) in rows_of {
                    let name = Name::from(name);
                    let effect = self.side_effect(&name).await?;
                    for at in rows {
                        values[at] = self.met_at(at, &name, effect.as_ref(), *pop, &batch)?;
                    }
                }
                // Any value can be the key of a map.
                for (at, key) in keys.iter().enumerate() {
                    if let (None, Some(key), Value::Map(entries)) = (&values[at], key, &*batch.items.get(at)) {
                        self.growth.work(entries.len() as u64)?;
                        let same = |(other, _): &&(Value, Value)| crate::value::Key(other) == crate::value::Key(key);
                        let found = entries.iter().find(same);
                        values[at] = found.map(|(_, value)| self.growth.copy(value)).transpose()?;
                    }
                }
                let values = match by.first() {
                    Some(by) => self.by_of(by, &batch, values).await?,
                    None => values,
                };
                self.mapped_if(&batch, values, labels)
            }
            StepKind::Project(names, by) => {
                let all: Vec<&By> = (0..names.len()).map(|number| nth(by, number)).collect();
                let mut columns = self.by_all(&all, &batch).await?;
                let mut maps = self.growth.column(batch.len())?;
                for at in 0..batch.len() {
                    self.growth.take(names_bytes(names))?;
                    let entries = names.iter().zip(&mut columns);
                    let entries = entries.filter_map(|(name, column)| Some(((&**name).into(), column[at].take()?)));
                    maps.push(Value::Map(entries.collect()));
                }
                self.mapped(batch, Items::Values(maps), labels)
            }
            _ => Ok(batch),
        }
    }

    async fn select(
        &mut self,
        batch: Batch,
        pop: Pop,
        names: &[Name],
        by: &[By],
        as_map: bool,
        labels: &Labels,
    ) -> Done<Batch> {
        let mut met = Vec::with_capacity(names.len());
        for name in names {
            met.push(self.met(name, pop, &batch).await?);
        }
        self.keep_ready_of(&met, by).await?;
        let mut columns = Vec::with_capacity(names.len());
        for (number, met) in met.into_iter().enumerate() {
            columns.push(self.by_of(nth(by, number), &batch, met).await?);
        }
        if !as_map {
            let only = columns.pop().unwrap_or_default();
            return self.mapped_if(&batch, only, labels);
        }
        let mut maps = self.growth.column(batch.len())?;
        for at in 0..batch.len() {
            self.growth.take(names_bytes(names))?;
            let entries =
                names.iter().zip(&mut columns).map(|(name, column)| Some(((&**name).into(), column[at].take()?)));
            maps.push(entries.collect::<Option<Vec<_>>>().map(Value::Map));
        }
        self.mapped_if(&batch, maps, labels)
    }

    async fn value_map(
        &mut self,
        batch: Batch,
        names: &[Name],
        tokens: TokensWanted,
        by: &[By],
        labels: &Labels,
    ) -> Done<Batch> {
        let wanted = wanted(names);
        let read = self.read(elements(&batch), wanted).await?;
        let places = wanted.places();
        let mut maps: Vec<Vec<(Value, Value)>> = Vec::with_capacity(batch.len());
        for at in 0..batch.len() {
            let mut entries = Vec::new();
            if let Some(element) = has_properties(&batch, at)? {
                if tokens.id {
                    entries.push((Value::Token(Token::T(T::Id)), self.id(element, &read)));
                }
                if tokens.label {
                    entries.push((Value::Token(Token::T(T::Label)), self.label(element)));
                }
                entries.extend(read.all(element, &places).into_iter().map(|(key, mut values)| match element {
                    Element::Vertex(_) => (key.into(), Value::List(values)),
                    Element::Edge(_) => (key.into(), values.pop().unwrap_or_default()),
                }));
            }
            self.growth.take(entries_bytes(&entries))?;
            self.pace.rest(1).await?;
            maps.push(entries);
        }
        for (number, one) in by.iter().enumerate() {
            // Properties in their order, each by one `by` in turn; not tokens.
            let is_property = |entry: &(Value, Value)| matches!(entry.0, Value::Text(_));
            let places = maps.iter().enumerate().flat_map(|(at, entries)| {
                let properties = entries.iter().enumerate().filter(|(_, entry)| is_property(entry));
                properties.skip(number).step_by(by.len()).map(move |(place, _)| (at, place))
            });
            let places: Vec<(usize, usize)> = places.collect();
            let parents: Vec<u32> = places.iter().map(|(at, _)| *at as u32).collect();
            let mut rows = batch.take_rows(&parents, &self.growth)?;
            let values = places.iter().map(|(at, place)| std::mem::take(&mut maps[*at][*place].1));
            rows.items = Items::of_values(values.collect());
            let values = self.by(one, &rows).await?;
            for ((at, place), value) in places.into_iter().zip(values) {
                match value {
                    Some(value) => maps[at][place].1 = value,
                    // Marked, and removed below.
                    None => maps[at][place].0 = Value::Null,
                }
            }
        }
        let maps = maps.into_iter().map(|mut entries| {
            entries.retain(|(key, _)| *key != Value::Null);
            Value::Map(entries)
        });
        let maps = maps.collect();
        self.mapped(batch, Items::Values(maps), labels)
    }

    async fn element_map(&mut self, batch: Batch, names: &[Name], labels: &Labels) -> Done<Batch> {
        let wanted = wanted(names);
        let mut all: Vec<Element> = elements(&batch).collect();
        for at in 0..all.len() {
            if let Element::Edge(edge) = all[at] {
                all.extend([edge.from, edge.to].map(Element::Vertex));
            }
        }
        let read = self.read(all, wanted).await?;
        let places = wanted.places();
        let mut maps = Vec::with_capacity(batch.len());
        for at in 0..batch.len() {
            let map = match has_properties(&batch, at)? {
                Some(element) => Value::Map(self.element_entries(element, &read, &places)),
                None => {
                    let value = batch.items.copy(at, &self.growth)?;
                    let value = self.finished(vec![value], false).await?.pop().unwrap_or_default();
                    property_entries(&value)
                }
            };
            maps.push(self.growth.built(map)?);
            self.pace.rest(1).await?;
        }
        self.mapped(batch, Items::Values(maps), labels)
    }

    fn element_entries(&self, element: Element, read: &Properties, places: &Places<'_>) -> Vec<(Value, Value)> {
        let token = |token: T| Value::Token(Token::T(token));
        let mut entries = vec![(token(T::Id), self.id(element, read)), (token(T::Label), self.label(element))];
        if let Element::Edge(edge) = element {
            let id = edge.id();
            let end = |vertex| {
                let vertex = Element::Vertex(vertex);
                Value::Map(vec![(token(T::Id), self.id(vertex, read)), (token(T::Label), self.label(vertex))])
            };
            entries.push((Value::Token(Token::Direction(Direction::In)), end(id.target)));
            entries.push((Value::Token(Token::Direction(Direction::Out)), end(id.source)));
        }
        let properties = read.all(element, places).into_iter();
        entries.extend(properties.filter_map(|(key, mut values)| Some((key.into(), values.pop()?))));
        entries
    }
}

fn property_entries(value: &Value) -> Value {
    let token = |token: T| Value::Token(Token::T(token));
    match value {
        Value::VertexProperty(property) => Value::Map(vec![
            (token(T::Id), property.id.clone()),
            (token(T::Key), (&*property.key).into()),
            (token(T::Value), property.value.clone()),
        ]),
        Value::Property(property) => {
            Value::Map(vec![(token(T::Key), (&*property.key).into()), (token(T::Value), property.value.clone())])
        }
        _ => Value::Map(Vec::new()),
    }
}

/// What the names of a map take, as its keys.
fn names_bytes(names: &[Name]) -> usize {
    let entry = |name: &Name| size_of::<(Value, Value)>() + ALLOCATION_BYTES + name.len();
    size_of::<Value>() + ALLOCATION_BYTES + names.iter().map(entry).sum::<usize>()
}

fn entries_bytes(entries: &[(Value, Value)]) -> usize {
    entries.iter().map(|(key, value)| value_bytes(key) + value_bytes(value)).sum()
}

fn wanted(names: &[Name]) -> Wanted<'_> {
    if names.is_empty() { Wanted::All } else { Wanted::Named(names) }
}

fn nth(by: &[By], number: usize) -> &By {
    if by.is_empty() { &By::Identity } else { &by[number % by.len()] }
}

/// The element of a row; `None` of a property, which has no properties.
pub(super) fn has_properties(batch: &Batch, at: usize) -> Done<Option<Element>> {
    if let Some(element) = batch.items.element(at) {
        return Ok(Some(element));
    }
    match &*batch.items.get(at) {
        // A property of a vertex is an element, and none has properties here. One of an edge is none.
        Value::Unread(unread) if matches!(**unread, Unread::VertexProperty(_)) => Ok(None),
        other => Err(QueryError::wrong_type(format!("only elements have properties, and this is {}", kind_of(other)))),
    }
}

fn property(element: Element, key: &str, value: Value, number: u32) -> Value {
    let key = key.into();
    Value::Unread(Box::new(match element {
        Element::Vertex(element) => Unread::VertexProperty(UnreadProperty { element, key, value, number }),
        Element::Edge(element) => Unread::Property(UnreadProperty { element, key, value, number }),
    }))
}
