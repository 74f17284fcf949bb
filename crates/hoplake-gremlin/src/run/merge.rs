//! `mergeV` and `mergeE`: what is found, or else added.
//!
//! A traverser may add what a later one finds, so they are taken one after the other. What is in the graph already is sought for all of
//! a batch at once, unless an `onMatch` could change what later ones look for.

use std::sync::Arc;

use hoplake_engine::{Frontier, Neighbour};
use hoplake_format::{LabelId, VertexId};

use super::{
    Batch, Done, Run,
    batch::{Element, Items},
    by::kind_of,
    change::{NewValues, NewVertex},
    elements::Wanted,
    expand::hop_along,
    paths::Labels,
};
use crate::{
    error::GremlinError,
    plan::{Given, MergeMap, Merging, Name},
    tokens::{Cardinality, Direction, Merge, T, Token},
    value::{Value, equals},
};

/// What a map says of an element.
#[derive(Debug, Clone, Default)]
struct Sought {
    id: Option<Value>,
    label: Option<Name>,
    source: Option<Value>,
    target: Option<Value>,
    values: NewValues,
}

/// What a traverser found, or is to add.
enum Found {
    There(Vec<VertexId>),
    /// The number of the new vertex.
    New(usize),
}

impl Run {
    pub(super) async fn merge_vertices(&mut self, batch: Batch, merging: &Merging, labels: &Labels) -> Done<Batch> {
        let maps = self.maps_of(&merging.sought, &batch, "mergeV").await?;
        let sought: Vec<Sought> =
            maps.iter().map(|entries| Sought::of_vertex(entries.clone(), "mergeV")).collect::<Done<_>>()?;
        let on_create = self.options_of(merging.on_create.as_ref(), &batch).await?;
        let on_match = merging.on_match.as_ref();
        check_match(on_match)?;
        let created = |at: usize| {
            let entries = on_create.as_ref().map(|all| all[at].clone()).unwrap_or_default();
            sought[at].created(&maps[at], entries, merging.on_create.as_ref())
        };
        // A mistake in what is written is one whether something is found or not; one in what a traversal gives only if it is needed.
        if matches!(&merging.on_create, Some(MergeMap { map: Given::Value(_), .. })) {
            (0..batch.len()).try_for_each(|at| created(at).map(drop))?;
        }
        // One after the other if a match may change what is sought later.
        let together = on_match.is_none() || batch.len() == 1;
        let length = if together { batch.len().max(1) } else { 1 };
        let steps: Vec<_> = (0..batch.len()).step_by(length).map(|at| at..at + length).collect();
        let (mut parents, mut items) = (Vec::new(), Vec::new());
        for range in steps {
            let mut found = Vec::with_capacity(range.len());
            let mut new: Vec<NewVertex> = Vec::new();
            let known = self.vertices_like(&sought[range.clone()]).await?;
            for (at, known) in range.clone().zip(known) {
                if !known.is_empty() {
                    found.push(Found::There(known));
                    continue;
                }
                if let Some(number) = new.iter().position(|new| sought[at].is_like(new)) {
                    found.push(Found::New(number));
                    continue;
                }
                new.push(created(at)?);
                found.push(Found::New(new.len() - 1));
            }
            let added = match new.is_empty() {
                true => Vec::new(),
                false => self.added_vertices(&new.iter().collect::<Vec<_>>()).await?,
            };
            let mut matched: Vec<(u32, Element)> = Vec::new();
            for (at, found) in range.zip(found) {
                let vertices = match found {
                    Found::New(number) => vec![added[number]],
                    Found::There(vertices) => {
                        matched.extend(vertices.iter().map(|vertex| (at as u32, Element::Vertex(*vertex))));
                        vertices
                    }
                };
                parents.extend(vertices.iter().map(|_| at as u32));
                items.extend(vertices);
            }
            if let Some(map) = on_match {
                self.match_changes(map, &batch, matched).await?;
            }
        }
        self.derived(&batch, &parents, Items::Vertices(items), labels)
    }

    /// The maps that are given, for each row; `null` is an empty one.
    async fn maps_of(&mut self, given: &Given, batch: &Batch, step: &str) -> Done<Vec<Vec<(Value, Value)>>> {
        let maps = self.given(given, batch).await?;
        let map = |value: Option<Value>| match value {
            Some(Value::Map(entries)) => Ok(entries),
            Some(Value::Null) | None => Ok(Vec::new()),
            Some(other) => Err(GremlinError::wrong_type(format!(
                "{step}() takes a map, or a traversal that gives one, and this is {}",
                kind_of(&other)
            ))),
        };
        maps.into_iter().map(map).collect()
    }

    async fn options_of(&mut self, option: Option<&MergeMap>, batch: &Batch) -> Done<Option<Vec<Vec<(Value, Value)>>>> {
        match option {
            Some(option) => self.maps_of(&option.map, batch, "option(onCreate) of merge").await.map(Some),
            None => Ok(None),
        }
    }

    /// Changes what was found, as the option says from there.
    async fn match_changes(&mut self, map: &MergeMap, batch: &Batch, matched: Vec<(u32, Element)>) -> Done<()> {
        let (parents, elements): (Vec<u32>, Vec<Element>) = matched.into_iter().unzip();
        let mut rows = batch.take_rows(&parents, &self.growth)?;
        rows.items = Items::of_values(elements.iter().map(|element| (*element).into()).collect());
        let maps = self.maps_of(&map.map, &rows, "option(onMatch) of merge").await?;
        let mut changed = Vec::with_capacity(elements.len());
        for (element, entries) in elements.into_iter().zip(maps) {
            changed.push((element, match_values(entries, map)?));
        }
        changed.retain(|(_, values)| !values.is_empty());
        if changed.is_empty() { Ok(()) } else { self.set_values(changed).await }
    }

    /// The vertices that are like each of some maps.
    async fn vertices_like(&mut self, sought: &[Sought]) -> Done<Vec<Vec<VertexId>>> {
        let ids: Vec<Value> = sought.iter().map(|sought| sought.id.clone().unwrap_or(Value::Null)).collect();
        let by_id = self.vertices_of(&ids).await?;
        let mut all: Vec<Vec<VertexId>> = Vec::with_capacity(sought.len());
        // Of a label, whatever their properties are: read once for all that seek in it.
        let mut of_label: Vec<(Option<Name>, Arc<Vec<VertexId>>)> = Vec::new();
        for (sought, by_id) in sought.iter().zip(by_id) {
            let candidates = match (&sought.id, of_label.iter().find(|(label, _)| *label == sought.label)) {
                (Some(_), _) => Arc::new(by_id),
                (None, Some((_, known))) => known.clone(),
                (None, None) => {
                    let schema = self.snapshot.schema();
                    let labels: Vec<LabelId> = match &sought.label {
                        Some(label) => schema.label_id(label).into_iter().collect(),
                        None => (0..schema.vertex_labels.len()).map(|label| LabelId(label as u16)).collect(),
                    };
                    let snapshot = self.snapshot.clone();
                    let found = snapshot.find_vertices(&labels, None, None, &mut self.branch).await?;
                    let found = Arc::new(found.vertices().collect::<Vec<_>>());
                    of_label.push((sought.label.clone(), found.clone()));
                    found
                }
            };
            all.push(candidates.to_vec());
        }
        let names: Vec<Name> = sought.iter().flat_map(|it| it.values.iter().map(|(name, ..)| name.clone())).collect();
        let read = match names.is_empty() {
            true => None,
            false => {
                let elements: Vec<Element> = all.iter().flatten().map(|vertex| Element::Vertex(*vertex)).collect();
                Some(self.read(elements, Wanted::Named(&names)).await?)
            }
        };
        for (sought, vertices) in sought.iter().zip(&mut all) {
            vertices.retain(|vertex| {
                let has = |(name, _, value): &(Name, Option<Cardinality>, Value)| {
                    let values =
                        read.as_ref().map_or_else(Vec::new, |read| read.values(Element::Vertex(*vertex), name));
                    values.iter().any(|known| equals(known, value))
                };
                sought.label.as_ref().is_none_or(|label| **label == *self.label_of(*vertex))
                    && sought.values.iter().all(has)
            });
        }
        Ok(all)
    }

    pub(super) async fn merge_edges(&mut self, batch: Batch, merging: &Merging, labels: &Labels) -> Done<Batch> {
        let sought = self.maps_of(&merging.sought, &batch, "mergeE").await?;
        let on_create = self.options_of(merging.on_create.as_ref(), &batch).await?;
        check_match(merging.on_match.as_ref())?;
        let create_is_given = matches!(&merging.on_create, Some(MergeMap { map: Given::Value(_), .. }));
        let ends = [
            self.end_option(merging.out_vertex.as_ref(), &batch).await?,
            self.end_option(merging.in_vertex.as_ref(), &batch).await?,
        ];
        let (mut parents, mut items) = (Vec::new(), Vec::new());
        for (at, entries) in sought.into_iter().enumerate() {
            let sought = Sought::of_edge(entries.clone(), "mergeE")?;
            let own = |which: usize| ends[which].as_ref().and_then(|all| all[at].clone());
            let end = |value: &Option<Value>| match value {
                // `Merge.outV` stands for what its option gives.
                Some(Value::Token(Token::Merge(Merge::OutV))) => own(0),
                Some(Value::Token(Token::Merge(Merge::InV))) => own(1),
                other => other.clone(),
            };
            let (source, target) = (end(&sought.source), end(&sought.target));
            let source = self.merged_end(source, "OUT").await?;
            let target = self.merged_end(target, "IN").await?;
            let mut edges = self.edges_like(&sought, source.as_ref(), target.as_ref()).await?;
            // What a traversal gives for a new edge is of no interest if there is one.
            let on_create = on_create.as_ref().filter(|_| edges.is_empty() || create_is_given);
            let more = match on_create {
                Some(maps) => Sought::of_edge(maps[at].clone(), "option(onCreate)")?,
                None => Sought::default(),
            };
            if let (Some(maps), Some(option)) = (on_create, &merging.on_create) {
                option.refuse_overrides(&entries, &maps[at])?;
            }
            let conflict = |what: &str| {
                GremlinError::wrong_type(format!(
                    "option(onCreate) cannot override values from merge() argument: {what}"
                ))
            };
            let own_source = self.merged_end(end(&more.source), "OUT").await?;
            let own_target = self.merged_end(end(&more.target), "IN").await?;
            if own_source.is_some() && source.is_some() && own_source != source {
                return Err(conflict("OUT"));
            }
            if own_target.is_some() && target.is_some() && own_target != target {
                return Err(conflict("IN"));
            }
            if edges.is_empty() {
                if more.id.is_some() || sought.id.is_some() {
                    return Err(super::change::no_edge_ids());
                }
                let needs = |which: &str| {
                    GremlinError::wrong_type(format!(
                        "{which} Vertex not specified in onCreate and no existing edge was found for mergeE()"
                    ))
                };
                let vertex = |found: Option<Vec<VertexId>>, which: &str| {
                    found.and_then(|found| found.first().copied()).ok_or_else(|| needs(which))
                };
                let source = vertex(own_source.or(source), "Out")?;
                let target = vertex(own_target.or(target), "In")?;
                let mut values = sought.values.clone();
                values.retain(|(name, ..)| !more.values.iter().any(|(other, ..)| other == name));
                values.extend(more.values);
                let label = more.label.or(sought.label).unwrap_or_else(|| "edge".into());
                edges = self.added_edges(vec![(label, source, target, values)]).await?;
            } else if let Some(map) = &merging.on_match {
                let matched = edges.iter().map(|edge| (at as u32, Element::Edge(*edge))).collect();
                self.match_changes(map, &batch, matched).await?;
                // What was changed has moved to another run.
                let ids: Vec<Value> = edges.iter().map(|edge| Value::Text(edge.id().to_string().into())).collect();
                edges = self.edges_of(&ids).await?.into_iter().flatten().collect();
            }
            parents.extend(edges.iter().map(|_| at as u32));
            items.extend(edges);
        }
        self.derived(&batch, &parents, Items::Edges(items), labels)
    }

    /// What `option(outV, …)` gives: a vertex, or a map that finds one.
    async fn end_option(&mut self, given: Option<&Given>, batch: &Batch) -> Done<Option<Vec<Option<Value>>>> {
        let Some(given) = given else { return Ok(None) };
        let mut values = self.given(given, batch).await?;
        for value in values.iter_mut() {
            if let Some(Value::Map(entries)) = value {
                let sought = Sought::of_vertex(std::mem::take(entries), "mergeE")?;
                let found = self.vertices_like(std::slice::from_ref(&sought)).await?;
                *value = found.first().and_then(|found| found.first()).map(|vertex| (*vertex).into());
            }
        }
        Ok(Some(values))
    }

    /// The vertices of an end; `None` if the end is not named.
    async fn merged_end(&mut self, end: Option<Value>, which: &str) -> Done<Option<Vec<VertexId>>> {
        let Some(end) = end else { return Ok(None) };
        let found = self.vertices_of(std::slice::from_ref(&end)).await?.pop().unwrap_or_default();
        match found.is_empty() {
            true => Err(GremlinError::wrong_type(format!(
                "Vertex id could not be resolved from mergeE at Direction.{which}"
            ))),
            false => Ok(Some(found)),
        }
    }

    async fn edges_like(
        &mut self,
        sought: &Sought,
        source: Option<&Vec<VertexId>>,
        target: Option<&Vec<VertexId>>,
    ) -> Done<Vec<Neighbour>> {
        let mut edges: Vec<Neighbour> = if let Some(id) = &sought.id {
            self.edges_of(std::slice::from_ref(id)).await?.into_iter().flatten().collect()
        } else {
            let all: Vec<VertexId>;
            let (direction, near) = match (source, target) {
                (Some(source), _) => (Direction::Out, source),
                (None, Some(target)) => (Direction::In, target),
                (None, None) => {
                    let labels: Vec<LabelId> =
                        (0..self.snapshot.schema().vertex_labels.len()).map(|label| LabelId(label as u16)).collect();
                    let snapshot = self.snapshot.clone();
                    let found = snapshot.find_vertices(&labels, None, None, &mut self.branch).await?;
                    all = found.vertices().collect();
                    (Direction::Out, &all)
                }
            };
            let label: Vec<Name> = sought.label.iter().cloned().collect();
            let Some(hop) = hop_along(&self.snapshot, direction, &label) else { return Ok(Vec::new()) };
            let frontier = Frontier::held(near, self.branch.context()).await?;
            let read = self.snapshot.neighbours(&frontier, &hop, &mut self.branch).await?;
            read.iter().collect()
        };
        let is_end = |wanted: Option<&Vec<VertexId>>, vertex: VertexId| wanted.is_none_or(|all| all.contains(&vertex));
        edges.retain(|edge| {
            let id = edge.id();
            is_end(source, id.source)
                && is_end(target, id.target)
                && sought.label.as_ref().is_none_or(|label| **label == *self.edge_label_of(edge))
        });
        if !sought.values.is_empty() {
            let names: Vec<Name> = sought.values.iter().map(|(name, ..)| name.clone()).collect();
            let elements: Vec<Element> = edges.iter().map(|edge| Element::Edge(*edge)).collect();
            let read = self.read(elements, Wanted::Named(&names)).await?;
            edges.retain(|edge| {
                sought.values.iter().all(|(name, _, value)| {
                    read.values(Element::Edge(*edge), name).iter().any(|known| equals(known, value))
                })
            });
        }
        Ok(edges)
    }
}

impl Sought {
    fn of_vertex(entries: Vec<(Value, Value)>, step: &str) -> Done<Self> {
        let sought = Self::of_edge(entries, step)?;
        match (&sought.source, &sought.target) {
            (None, None) => Ok(sought),
            _ => Err(GremlinError::wrong_type(format!("{step}() of a vertex has no directions in its map"))),
        }
    }

    fn of_edge(entries: Vec<(Value, Value)>, step: &str) -> Done<Self> {
        let mut sought = Self::default();
        let null = |what: &str| GremlinError::wrong_type(format!("{step}() does not allow null {what}"));
        for (key, value) in entries {
            match (key, value) {
                (Value::Token(Token::T(T::Id)), Value::Null) => return Err(null("T.id values")),
                (Value::Token(Token::T(T::Id)), value) => sought.id = Some(value),
                (Value::Token(Token::T(T::Label)), Value::Text(label)) => {
                    super::change::check_label(&label)?;
                    sought.label = Some((*label).into());
                }
                (Value::Token(Token::T(T::Label)), Value::Null) => return Err(null("T.label values")),
                (Value::Token(Token::T(T::Label)), other) => {
                    return Err(GremlinError::wrong_type(format!(
                        "{step}() expects T.label value to be of String - found: {}",
                        kind_of(&other)
                    )));
                }
                (Value::Token(Token::Direction(_)), Value::Null) => return Err(null("Direction values")),
                (Value::Token(Token::Direction(Direction::Out)), value) => sought.source = Some(value),
                (Value::Token(Token::Direction(Direction::In)), value) => sought.target = Some(value),
                (Value::Text(name), value) => {
                    super::change::check_name(&name)?;
                    sought.values.push(((*name).into(), None, value));
                }
                (Value::Null, _) => return Err(null("keys")),
                (other, _) => {
                    return Err(GremlinError::wrong_type(format!(
                        "{step}() and option(onCreate) args expect keys in Map to be either String or T - found {}",
                        kind_of(&other)
                    )));
                }
            }
        }
        Ok(sought)
    }

    /// Whether a vertex that is to be added is what is sought.
    fn is_like(&self, new: &NewVertex) -> bool {
        let has = |(name, _, value): &(Name, Option<Cardinality>, Value)| {
            new.values.iter().any(|(other, _, known)| other == name && equals(known, value))
        };
        let same_id = |id: &Value| new.id.as_ref().is_some_and(|other| equals(other, id));
        self.id.as_ref().is_none_or(same_id)
            && self.label.as_ref().is_none_or(|label| new.label.as_ref() == Some(label))
            && self.values.iter().all(has)
    }

    /// The vertex that is added where nothing was found.
    fn created(
        &self,
        sought: &[(Value, Value)],
        on_create: Vec<(Value, Value)>,
        option: Option<&MergeMap>,
    ) -> Done<NewVertex> {
        option.map_or(Ok(()), |option| option.refuse_overrides(sought, &on_create))?;
        let more = Self::of_vertex(on_create, "option(onCreate)")?;
        let mut values = self.values.clone();
        values.retain(|(name, ..)| !more.values.iter().any(|(other, ..)| other == name));
        let cardinality = |name: &Name| option.and_then(|option| option.cardinality(name));
        values.extend(more.values.into_iter().map(|(name, _, value)| (name.clone(), cardinality(&name), value)));
        let label = more.label.or_else(|| self.label.clone()).unwrap_or_else(|| "vertex".into());
        Ok(NewVertex { label: Some(label), id: more.id.or_else(|| self.id.clone()), values })
    }
}

/// What an `onMatch` sets.
fn match_values(entries: Vec<(Value, Value)>, map: &MergeMap) -> Done<NewValues> {
    let value = |(key, value): (Value, Value)| match key {
        Value::Text(name) => {
            super::change::check_name(&name)?;
            let name: Name = (*name).into();
            Ok((name.clone(), map.cardinality(&name), value))
        }
        other => Err(GremlinError::wrong_type(format!(
            "The provided traversal's option(onMatch) expects keys in Map to be of String - found {}",
            kind_of(&other)
        ))),
    };
    entries.into_iter().map(value).collect()
}

/// Refuses a map that could not be set, whether something is found or not.
fn check_match(map: Option<&MergeMap>) -> Done<()> {
    match map {
        Some(map @ MergeMap { map: Given::Value(Value::Map(entries)), .. }) => {
            match_values(entries.clone(), map).map(drop)
        }
        _ => Ok(()),
    }
}
