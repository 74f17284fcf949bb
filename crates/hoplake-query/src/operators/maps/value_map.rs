//! Maps of properties to their values.

use super::{entries_bytes, wanted};
use crate::{
    operators::prelude::*,
    plan::TokensWanted,
    run::{
        Element,
        elements::{elements, has_properties},
    },
    tokens::{T, Token},
};

/// A map of properties to their values.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueMap {
    /// The properties; all without.
    pub names: Vec<Name>,
    /// What else the map has.
    pub tokens: TokensWanted,
    /// What of each value, in turn.
    pub by: Vec<By>,
}

impl Operator for ValueMap {
    nested!(by);

    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {}", self.names.join(", "))
    }

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        reach.names(&self.names, &input);
        Elements::default()
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for ValueMap {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        run.value_map(batch, &self.names, self.tokens, &self.by).await
    }
}

impl Run {
    async fn value_map(&mut self, batch: Batch, names: &[Name], tokens: TokensWanted, by: &[By]) -> Done<Output> {
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
        Ok(Output::Next(batch.on(Items::Values(maps))))
    }
}
