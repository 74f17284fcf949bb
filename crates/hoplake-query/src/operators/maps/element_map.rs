//! All that elements have, as maps.

use super::wanted;
use crate::{
    operators::prelude::*,
    run::{
        Element,
        elements::{elements, has_properties},
        properties::{Places, Properties},
    },
    tokens::{Direction, T, Token},
};

/// A map of all that an element has.
#[derive(Debug, Clone, PartialEq)]
pub struct ElementMap {
    /// The properties; all without.
    pub names: Vec<Name>,
}

impl Operator for ElementMap {
    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {}", self.names.join(", "))
    }

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        reach.names(&self.names, &input);
        let ends = reach.ends(&input);
        reach.reads(&ends, Some(&[]));
        Elements::default()
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for ElementMap {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        run.element_map(batch, &self.names).await
    }
}

impl Run {
    async fn element_map(&mut self, batch: Batch, names: &[Name]) -> Done<Output> {
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
        Ok(Output::Next(batch.on(Items::Values(maps))))
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
