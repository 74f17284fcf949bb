//! Steps that change the graph: `addV`, `addE`, `property`, `drop`, `mergeV` and `mergeE`.

use std::collections::HashMap;

use hoplake_query::{
    error::QueryError,
    operators::{traverser, writes},
    plan::{Given, MergeMap, Merging, Name, NewKey, NewProperty},
    tokens::{Cardinality, Merge, Token},
    value::Value,
};

use super::{
    arguments::Arguments,
    lowering::{Lowered, Lowering, Op, only, op},
    modulators::Modulators,
};
use crate::script::{Argument, Call};

impl Lowering<'_> {
    /// Steps that change the graph.
    pub(super) fn change(
        &mut self,
        call: &Call,
        arguments: &mut Arguments<'_>,
        modulators: &Modulators<'_>,
    ) -> Lowered<(Vec<Op>, &'static [&'static str])> {
        Ok(match &*call.name {
            "drop" => (vec![op(writes::Drop)], &[]),
            "addV" => {
                let label = match arguments.take() {
                    Some(label) => self.given(label)?,
                    None => Given::Value("vertex".into()),
                };
                let properties = self.new_properties(&modulators.properties)?;
                // What the options configure, TinkerPop leaves to each provider.
                (vec![op(writes::AddVertex { label, properties })], &["with"])
            }
            "addE" => {
                let label = arguments.need("a label")?;
                let label = self.given(label)?;
                let from = self.end(modulators.from)?;
                let to = self.end(modulators.to)?;
                let properties = self.new_properties(&modulators.properties)?;
                (vec![op(writes::AddEdge { label, from, to, properties })], &["from", "to", "with"])
            }
            "property" => {
                let properties = self.new_property(call)?;
                arguments.rest();
                (properties.into_iter().map(|property| op(writes::Property { property })).collect(), &[])
            }
            _ => {
                let sought = match arguments.take() {
                    Some(argument) => self.given(argument)?,
                    None => Given::Steps(only(traverser::Identity)),
                };
                let mut merging =
                    Merging { sought, on_create: None, on_match: None, out_vertex: None, in_vertex: None };
                for option in &modulators.options {
                    let mut arguments = Arguments::new(option);
                    let Some(Argument::Token(Token::Merge(merge))) = arguments.take() else {
                        return Err(arguments.wrong("takes Merge.onCreate, onMatch, outV or inV here"));
                    };
                    let value = arguments.need("a map or a traversal")?;
                    let value = self.merge_map(value)?;
                    let otherwise = match arguments.take() {
                        None => None,
                        Some(Argument::Token(Token::Cardinality(cardinality))) => Some(*cardinality),
                        Some(_) => return Err(arguments.wrong("takes a cardinality here")),
                    };
                    arguments.end()?;
                    let value = MergeMap { otherwise, ..value };
                    match merge {
                        Merge::OnCreate => merging.on_create = Some(value),
                        Merge::OnMatch => merging.on_match = Some(value),
                        Merge::OutV => merging.out_vertex = Some(value.map),
                        Merge::InV => merging.in_vertex = Some(value.map),
                    }
                }
                // A mistake in what is written is one whether something is found or not.
                if let (Given::Value(Value::Map(sought)), Some(option)) = (&merging.sought, &merging.on_create)
                    && let Given::Value(Value::Map(create)) = &option.map
                {
                    option.reject_overrides(sought, create)?;
                }
                match &*call.name {
                    "mergeV" => (vec![op(writes::MergeVertex { merging })], &["option"]),
                    _ => (vec![op(writes::MergeEdge { merging })], &["option"]),
                }
            }
        })
    }

    /// A map whose values may have cardinalities, or what gives one.
    fn merge_map(&mut self, argument: &Argument) -> Lowered<MergeMap> {
        let Argument::Map(entries) = argument else {
            return Ok(MergeMap { map: self.given(argument)?, cardinalities: HashMap::new(), otherwise: None });
        };
        let mut cardinalities = HashMap::new();
        let mut plain = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            match value {
                Argument::Cardinality(cardinality, value) => {
                    if let Value::Text(name) = self.names.value(key)? {
                        cardinalities.entry(Name::from(&*name)).or_insert(*cardinality);
                    }
                    plain.push((key.clone(), (**value).clone()));
                }
                value => plain.push((key.clone(), value.clone())),
            }
        }
        Ok(MergeMap { map: self.given(&Argument::Map(plain))?, cardinalities, otherwise: None })
    }

    fn new_properties(&mut self, calls: &[&Call]) -> Lowered<Vec<NewProperty>> {
        let mut all = Vec::with_capacity(calls.len());
        for call in calls {
            all.extend(self.new_property(call)?);
        }
        Ok(all)
    }

    fn new_property(&mut self, call: &Call) -> Lowered<Vec<NewProperty>> {
        let mut arguments = Arguments::new(call);
        let cardinality = match arguments.first() {
            Some(Argument::Token(Token::Cardinality(cardinality))) => {
                arguments.take();
                Some(*cardinality)
            }
            _ => None,
        };
        let key = arguments.need("a name")?;
        let Some(value) = arguments.take() else {
            if let Argument::Map(entries) = key {
                return self.new_entries(entries, cardinality);
            }
            return Ok(vec![NewProperty { cardinality, key: NewKey::Entries, value: self.given(key)? }]);
        };
        if arguments.len() > 0 {
            return Err(QueryError::unsupported(
                "properties of properties are not supported: `property` takes one name and value",
            ));
        }
        let key = match key {
            Argument::Token(Token::T(token)) => NewKey::Token(*token),
            Argument::Traversal(calls) => NewKey::Steps(self.steps(calls)?),
            key => match self.names.value(key)? {
                Value::Text(name) => NewKey::Name(name.into()),
                Value::Token(Token::T(token)) => NewKey::Token(token),
                _ => return Err(arguments.wrong("takes a name or a token such as T.id")),
            },
        };
        let (value, cardinality) = match value {
            Argument::Cardinality(cardinality, value) => (&**value, Some(*cardinality)),
            value => (value, cardinality),
        };
        Ok(vec![NewProperty { cardinality, key, value: self.given(value)? }])
    }

    /// Properties from a map, each value perhaps with a cardinality of its own.
    fn new_entries(
        &mut self,
        entries: &[(Argument, Argument)],
        cardinality: Option<Cardinality>,
    ) -> Lowered<Vec<NewProperty>> {
        let mut all = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let key = match self.names.value(key)? {
                Value::Text(name) => NewKey::Name(name.into()),
                Value::Token(Token::T(token)) => NewKey::Token(token),
                _ => return Err(QueryError::invalid("the keys of a map of properties are names, T.id and T.label")),
            };
            let (value, cardinality) = match value {
                Argument::Cardinality(cardinality, value) => (&**value, Some(*cardinality)),
                value => (value, cardinality),
            };
            all.push(NewProperty { cardinality, key, value: self.given(value)? });
        }
        Ok(all)
    }
}
