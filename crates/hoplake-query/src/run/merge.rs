//! `mergeV` and `mergeE`: what is found, or else added.
//!
//! A traverser may add what a later one finds, so they are taken one after the other. What is in the graph already is sought for all of
//! a batch at once, unless an `onMatch` could change what later ones look for.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    ops::Range,
};

use hoplake_engine::{Frontier, Neighbour};
use hoplake_format::{LabelId, VertexId};

use super::{
    Batch, Done, Run,
    batch::{ELEMENT_BYTES, Element, Items, value_bytes},
    by::kind_of,
    by_value::{ByValue, Condition, Of},
    change::{NewValues, NewVertex},
    elements::Wanted,
    expand::hop_along,
    growth::{Growth, units_of},
    kept::distinct,
    paths::Labels,
};
use crate::{
    error::QueryError,
    plan::{Given, MergeMap, Merging, Name},
    tokens::{Direction, Merge, T, Token},
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

/// Entries of a map.
type Entries = Vec<(Value, Value)>;

/// What a traverser found, or is to add.
enum Found {
    There(Vec<VertexId>),
    /// The number of the new vertex.
    New(usize),
}

impl Run {
    pub(super) async fn merge_vertices(&mut self, batch: Batch, merging: &Merging, labels: &Labels) -> Done<Batch> {
        let growth = self.growth.clone();
        let maps = self.maps_of(&merging.sought, &batch, "mergeV").await?;
        let sought: Vec<Sought> =
            maps.iter().map(|entries| Sought::of_vertex(entries, "mergeV", &growth)).collect::<Done<_>>()?;
        let on_create = self.options_of(merging.on_create.as_ref(), &batch).await?;
        let on_match = merging.on_match.as_ref();
        check_match(on_match)?;
        let created = |at: usize| {
            let entries = on_create.as_ref().map_or(&[][..], |all| &all[at]);
            sought[at].created(&maps[at], entries, merging.on_create.as_ref(), &growth)
        };
        // A mistake in what is written is one whether something is found or not; one in what a traversal gives only if it is needed.
        if matches!(&merging.on_create, Some(MergeMap { map: Given::Value(_), .. })) {
            for at in 0..batch.len() {
                let (mark, worked) = (growth.begin(), growth.done());
                drop(created(at)?);
                growth.end(&mark)?;
                self.rest_since(worked).await?;
            }
        }
        // One after the other if a match may change what is sought later.
        let together = on_match.is_none() || batch.len() == 1;
        let length = if together { batch.len().max(1) } else { 1 };
        let steps: Vec<_> = (0..batch.len()).step_by(length).map(|at| at..at + length).collect();
        let (mut parents, mut items) = (Vec::new(), Vec::new());
        let mut worked = growth.done();
        for range in steps {
            let mut found = Vec::with_capacity(range.len());
            let mut new: Vec<NewVertex> = Vec::new();
            let known = self.vertices_like(&sought[range.clone()]).await?;
            // What the new ones have, as far as those seek it who find nothing else.
            let mut of_new = ByValue::new(&growth);
            let unknown = sought[range.clone()].iter().zip(&known).filter(|(_, known)| known.is_empty());
            for (of, value) in unknown.flat_map(|(sought, _)| sought.conditions_on_new()) {
                of_new.ask(of, &value)?;
            }
            for (at, known) in range.clone().zip(known) {
                self.rest_since(worked).await?;
                worked = growth.done();
                if !known.is_empty() {
                    found.push(Found::There(known));
                    continue;
                }
                let conditions: Vec<_> = sought[at].conditions_on_new().collect();
                if let Some(number) = of_new.find(0..new.len(), &conditions, 1)?.first() {
                    found.push(Found::New(*number));
                    continue;
                }
                let one = created(at)?;
                for (of, value) in values_of_new(&one) {
                    of_new.file(new.len(), of, &value)?;
                }
                found.push(Found::New(new.len()));
                new.push(one);
            }
            let added = match new.is_empty() {
                true => Vec::new(),
                false => self.added_vertices(&new.iter().collect::<Vec<_>>()).await?,
            };
            drop(of_new);
            let mut matched: Vec<(u32, Element)> = Vec::new();
            for (at, found) in range.zip(found) {
                let vertices = match found {
                    Found::New(number) => vec![added[number]],
                    Found::There(vertices) => {
                        growth.take(vertices.len() * size_of::<(u32, Element)>())?;
                        matched.extend(vertices.iter().map(|vertex| (at as u32, Element::Vertex(*vertex))));
                        vertices
                    }
                };
                growth.take(2 * vertices.len() * size_of::<(u32, VertexId)>())?;
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
    async fn maps_of(&mut self, given: &Given, batch: &Batch, step: &str) -> Done<Vec<Entries>> {
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

    async fn options_of(&mut self, option: Option<&MergeMap>, batch: &Batch) -> Done<Option<Vec<Entries>>> {
        match option {
            Some(option) => self.maps_of(&option.map, batch, "option(onCreate) of merge").await.map(Some),
            None => Ok(None),
        }
    }

    /// Changes what was found, as the option says from there.
    async fn match_changes(&mut self, map: &MergeMap, batch: &Batch, matched: Vec<(u32, Element)>) -> Done<()> {
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

    /// The vertices that are like each of some maps.
    async fn vertices_like(&mut self, sought: &[Sought]) -> Done<Vec<Vec<VertexId>>> {
        let mark = self.growth.begin();
        let found = self.looked_through(sought).await?;
        self.growth.end(&mark)?;
        let count = found.iter().map(|vertices| vertices.len()).sum::<usize>();
        self.growth.take(count * size_of::<VertexId>() + size_of_val(&found[..]))?;
        Ok(found)
    }

    /// As [`Self::vertices_like`]: the vertices of labels are read once for all maps, and found by a table.
    async fn looked_through(&mut self, sought: &[Sought]) -> Done<Vec<Vec<VertexId>>> {
        let growth = self.growth.clone();
        let (vertices, ranges) = self.candidates(sought).await?;
        let mut by_value = ByValue::new(&growth);
        let names = distinct(sought.iter().flat_map(|it| it.values.iter().map(|(name, ..)| name)));
        if !names.is_empty() {
            for (of, value) in sought.iter().flat_map(Sought::conditions) {
                by_value.ask(of, &value)?;
            }
            let mut elements = growth.column(vertices.len())?;
            elements.extend(vertices.iter().map(|vertex| Element::Vertex(*vertex)));
            let read = self.read(elements, Wanted::Named(&names)).await?;
            for (place, vertex) in vertices.iter().enumerate() {
                let worked = growth.done();
                for (name, values) in read.all(Element::Vertex(*vertex), &None) {
                    growth.work(1)?;
                    values.iter().try_for_each(|value| by_value.file(place, Of::Property(name), value))?;
                }
                self.rest_since(worked).await?;
            }
        }
        let mut all = growth.column(sought.len())?;
        for (sought, range) in sought.iter().zip(ranges) {
            let conditions: Vec<_> = sought.conditions().collect();
            let worked = growth.done();
            let found = by_value.find(range, &conditions, usize::MAX)?;
            self.rest_since(worked).await?;
            all.push(found.into_iter().map(|place| vertices[place]).collect());
        }
        Ok(all)
    }

    /// The vertices of the ids and labels of some maps, whatever their properties are, and which of them are those of each map.
    async fn candidates(&mut self, sought: &[Sought]) -> Done<(Vec<VertexId>, Vec<Range<usize>>)> {
        let ids = sought.iter().map(|sought| sought.id.as_ref().unwrap_or(&Value::Null));
        let ids = self.growth.copy_all(ids)?;
        let by_id = self.vertices_of(&ids).await?;
        let mut vertices: Vec<VertexId> = Vec::new();
        let mut of_labels: HashMap<Option<&Name>, Range<usize>> = HashMap::new();
        let mut ranges = self.growth.column(sought.len())?;
        for (sought, by_id) in sought.iter().zip(by_id) {
            let begin = vertices.len();
            if sought.id.is_some() {
                let is_labelled =
                    |vertex: &VertexId| sought.label.as_ref().is_none_or(|label| **label == *self.label_of(*vertex));
                self.growth.take(2 * by_id.len() * size_of::<VertexId>())?;
                vertices.extend(by_id.into_iter().filter(is_labelled));
                ranges.push(begin..vertices.len());
                continue;
            }
            if let Some(range) = of_labels.get(&sought.label.as_ref()) {
                ranges.push(range.clone());
                continue;
            }
            let schema = self.snapshot.schema();
            let labels: Vec<LabelId> = match &sought.label {
                Some(label) => schema.label_id(label).into_iter().collect(),
                None => (0..schema.vertex_labels.len()).map(|label| LabelId(label as u16)).collect(),
            };
            let snapshot = self.snapshot.clone();
            let found = snapshot.find_vertices(&labels, None, None, &mut self.branch).await?;
            self.growth.take(2 * found.len() as usize * size_of::<VertexId>())?;
            vertices.extend(found.vertices());
            of_labels.insert(sought.label.as_ref(), begin..vertices.len());
            ranges.push(begin..vertices.len());
        }
        Ok((vertices, ranges))
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
        let growth = self.growth.clone();
        for (at, entries) in sought.into_iter().enumerate() {
            self.pace.rest(1).await?;
            let mark = growth.begin();
            let sought = Sought::of_edge(&entries, "mergeE", &growth)?;
            let own = |which: usize| ends[which].as_ref().and_then(|all| all[at].as_ref());
            let end = |value: &Option<Value>| {
                let value = match value {
                    // `Merge.outV` stands for what its option gives.
                    Some(Value::Token(Token::Merge(Merge::OutV))) => own(0),
                    Some(Value::Token(Token::Merge(Merge::InV))) => own(1),
                    other => other.as_ref(),
                };
                value.map(|value| growth.copy(value)).transpose()
            };
            let (source, target) = (end(&sought.source)?, end(&sought.target)?);
            let source = self.merged_end(source, "OUT").await?;
            let target = self.merged_end(target, "IN").await?;
            let mut edges = self.edges_like(&sought, source.as_ref(), target.as_ref()).await?;
            // What a traversal gives for a new edge is of no interest if there is one.
            let on_create = on_create.as_ref().filter(|_| edges.is_empty() || create_is_given);
            let more = match on_create {
                Some(maps) => Sought::of_edge(&maps[at], "option(onCreate)", &growth)?,
                None => Sought::default(),
            };
            if let (Some(maps), Some(option)) = (on_create, &merging.on_create) {
                option.refuse_overrides(&entries, &maps[at])?;
            }
            let conflict = |what: &str| {
                QueryError::wrong_type(format!("option(onCreate) cannot override values from merge() argument: {what}"))
            };
            let own_source = self.merged_end(end(&more.source)?, "OUT").await?;
            let own_target = self.merged_end(end(&more.target)?, "IN").await?;
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
                    QueryError::wrong_type(format!(
                        "{which} Vertex not specified in onCreate and no existing edge was found for mergeE()"
                    ))
                };
                let vertex = |found: Option<Vec<VertexId>>, which: &str| {
                    found.and_then(|found| found.first().copied()).ok_or_else(|| needs(which))
                };
                let source = vertex(own_source.or(source), "Out")?;
                let target = vertex(own_target.or(target), "In")?;
                let mut values = sought.values_besides(&more.values, &growth)?;
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
            growth.end(&mark)?;
            growth.take(2 * edges.len() * size_of::<(u32, Neighbour)>())?;
            parents.extend(edges.iter().map(|_| at as u32));
            items.extend(edges);
        }
        self.derived(&batch, &parents, Items::Edges(items), labels)
    }

    /// What `option(outV, …)` gives: a vertex, or a map that finds one.
    async fn end_option(&mut self, given: Option<&Given>, batch: &Batch) -> Done<Option<Vec<Option<Value>>>> {
        let Some(given) = given else { return Ok(None) };
        let mut values = self.given(given, batch).await?;
        let mut places = Vec::new();
        let mut sought = Vec::new();
        for (place, value) in values.iter().enumerate() {
            if let Some(Value::Map(entries)) = value {
                places.push(place);
                sought.push(Sought::of_vertex(entries, "mergeE", &self.growth)?);
            }
        }
        if !sought.is_empty() {
            let found = self.vertices_like(&sought).await?;
            for (place, found) in places.into_iter().zip(found) {
                values[place] = found.first().map(|vertex| (*vertex).into());
            }
        }
        Ok(Some(values))
    }

    /// The vertices of an end; `None` if the end is not named.
    async fn merged_end(&mut self, end: Option<Value>, which: &str) -> Done<Option<Vec<VertexId>>> {
        let Some(end) = end else { return Ok(None) };
        let found = self.vertices_of(std::slice::from_ref(&end)).await?.pop().unwrap_or_default();
        match found.is_empty() {
            true => {
                Err(QueryError::wrong_type(format!("Vertex id could not be resolved from mergeE at Direction.{which}")))
            }
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
                    self.growth.take(found.len() as usize * size_of::<VertexId>())?;
                    all = found.vertices().collect();
                    (Direction::Out, &all)
                }
            };
            let label: Vec<Name> = sought.label.iter().cloned().collect();
            let Some(hop) = hop_along(&self.snapshot, direction, &label) else { return Ok(Vec::new()) };
            let frontier = Frontier::held(near, self.branch.context()).await?;
            let read = self.snapshot.neighbours(&frontier, &hop, &mut self.branch).await?;
            self.growth.take(read.len() as usize * size_of::<Neighbour>())?;
            read.iter().collect()
        };
        let ends = [source, target].map(|all| all.map(|all| all.iter().collect::<HashSet<_>>()));
        let is_end = |which: usize, vertex: VertexId| ends[which].as_ref().is_none_or(|all| all.contains(&vertex));
        self.growth.work(edges.len() as u64)?;
        edges.retain(|edge| {
            let id = edge.id();
            is_end(0, id.source)
                && is_end(1, id.target)
                && sought.label.as_ref().is_none_or(|label| **label == *self.edge_label_of(edge))
        });
        if !sought.values.is_empty() {
            let names = distinct(sought.values.iter().map(|(name, ..)| name));
            let mut elements = self.growth.column(edges.len())?;
            elements.extend(edges.iter().map(|edge| Element::Edge(*edge)));
            let read = self.read(elements, Wanted::Named(&names)).await?;
            let mut like = self.growth.column(edges.len())?;
            for edge in edges {
                let all = read.all(Element::Edge(edge), &None);
                self.pace.rest(1 + all.len() as u64).await?;
                if sought.is_fulfilled(&all, &self.growth)? {
                    like.push(edge);
                }
            }
            edges = like;
        }
        Ok(edges)
    }
}

impl Sought {
    fn of_vertex(entries: &[(Value, Value)], step: &str, growth: &Growth) -> Done<Self> {
        let sought = Self::of_edge(entries, step, growth)?;
        match (&sought.source, &sought.target) {
            (None, None) => Ok(sought),
            _ => Err(QueryError::wrong_type(format!("{step}() of a vertex has no directions in its map"))),
        }
    }

    fn of_edge(entries: &[(Value, Value)], step: &str, growth: &Growth) -> Done<Self> {
        growth.take(size_of::<Self>() + map_bytes(entries))?;
        let mut sought = Self::default();
        let null = |what: &str| QueryError::wrong_type(format!("{step}() does not allow null {what}"));
        for (key, value) in entries {
            match (key, value) {
                (Value::Token(Token::T(T::Id)), Value::Null) => return Err(null("T.id values")),
                (Value::Token(Token::T(T::Id)), value) => sought.id = Some(value.clone()),
                (Value::Token(Token::T(T::Label)), Value::Text(label)) => {
                    super::change::check_label(label)?;
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
                    super::change::check_name(name)?;
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
    fn conditions(&self) -> impl Iterator<Item = Condition<'_>> {
        self.values.iter().map(|(name, _, value)| (Of::Property(name), Cow::Borrowed(value)))
    }

    /// What a vertex that is to be added has to have.
    fn conditions_on_new(&self) -> impl Iterator<Item = Condition<'_>> {
        id_and_label(self.id.as_ref(), self.label.as_ref()).chain(self.conditions())
    }

    /// Whether an element with some properties, which are by name, is what is sought.
    fn is_fulfilled(&self, properties: &[(&str, Vec<Value>)], growth: &Growth) -> Done<bool> {
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
    fn values_besides(&self, others: &NewValues, growth: &Growth) -> Done<NewValues> {
        let others: HashSet<&Name> = others.iter().map(|(name, ..)| name).collect();
        let mut values = growth.column(self.values.len())?;
        for (name, cardinality, value) in self.values.iter().filter(|(name, ..)| !others.contains(name)) {
            values.push((name.clone(), *cardinality, growth.copy(value)?));
        }
        Ok(values)
    }

    /// The vertex that is added where nothing was found.
    fn created(
        &self,
        sought: &[(Value, Value)],
        on_create: &[(Value, Value)],
        option: Option<&MergeMap>,
        growth: &Growth,
    ) -> Done<NewVertex> {
        option.map_or(Ok(()), |option| option.refuse_overrides(sought, on_create))?;
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
fn values_of_new(new: &NewVertex) -> impl Iterator<Item = Condition<'_>> {
    let properties = new.values.iter().map(|(name, _, value)| (Of::Property(name), Cow::Borrowed(value)));
    id_and_label(new.id.as_ref(), new.label.as_ref()).chain(properties)
}

fn id_and_label<'a>(id: Option<&'a Value>, label: Option<&Name>) -> impl Iterator<Item = Condition<'a>> {
    let label = label.map(|label| (Of::Label, Cow::Owned((&**label).into())));
    id.map(|id| (Of::Id, Cow::Borrowed(id))).into_iter().chain(label)
}

/// What the entries of a map take.
fn map_bytes(entries: &[(Value, Value)]) -> usize {
    entries.iter().map(|(key, value)| value_bytes(key) + value_bytes(value)).sum()
}

/// The name of a property that an `onMatch` sets.
fn match_name(key: &Value) -> Done<Name> {
    match key {
        Value::Text(name) => {
            super::change::check_name(name)?;
            Ok((**name).into())
        }
        other => Err(QueryError::wrong_type(format!(
            "The provided traversal's option(onMatch) expects keys in Map to be of String - found {}",
            kind_of(other)
        ))),
    }
}

/// What an `onMatch` sets.
fn match_values(entries: Entries, map: &MergeMap) -> Done<NewValues> {
    let value = |(key, value): (Value, Value)| {
        let name = match_name(&key)?;
        Ok((name.clone(), map.cardinality(&name), value))
    };
    entries.into_iter().map(value).collect()
}

/// Refuses a map that could not be set, whether something is found or not.
fn check_match(map: Option<&MergeMap>) -> Done<()> {
    match map {
        Some(MergeMap { map: Given::Value(Value::Map(entries)), .. }) => {
            entries.iter().try_for_each(|(key, _)| match_name(key).map(drop))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
