//! Elements of the graph: their ids, labels and properties, read for a whole batch at once.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use arrow_array::RecordBatch;
use foldhash::fast::RandomState;
use hoplake_engine::{Edges, EngineError, Neighbour, Snapshot, split_vertex, vertex_text};
use hoplake_format::{EdgeId, EdgeTypeId, Key, KeyType, LabelId, LogicalType, VertexId};
use hoplake_storage::Branch;

use super::{
    Batch, Run,
    batch::{Element, element_of},
    stored,
};
use crate::{
    error::{Done, QueryError},
    literal::Number,
    plan::{Name, Predicate},
    run::{
        conditions::matches,
        properties::{Logical, Properties, Wanted, key_at},
    },
    value::{Edge, Graph, Path, Property, Tree, Unread, UnreadProperty, Value, Vertex, VertexProperty, kind_of},
};

/// What a key takes that is looked up: itself, its place in an order, and what is found.
const SOUGHT_BYTES: usize = 96;

impl Run {
    /// The label of a vertex.
    pub(crate) fn label_of(&self, vertex: VertexId) -> &str {
        self.snapshot.schema().label(vertex.label()).map_or("", |label| &label.name)
    }

    /// The label of an edge.
    pub(crate) fn edge_label_of(&self, edge: &Neighbour) -> &str {
        self.snapshot.schema().edge_type(edge.edge_type).map_or("", |edge_type| &edge_type.label)
    }

    pub(crate) fn label(&self, element: Element) -> Value {
        match element {
            Element::Vertex(vertex) => self.label_of(vertex).into(),
            Element::Edge(edge) => self.edge_label_of(&edge).into(),
        }
    }

    /// Whether a property of vertices was computed, and is not that of the graph.
    pub(crate) fn is_computed(&self, name: &str) -> bool {
        self.computed.iter().any(|computed| *computed.property == *name)
    }

    /// What was read of vertices of a label, with what was computed of them.
    pub(crate) fn with_computed(
        &self,
        batch: RecordBatch,
        label: LabelId,
        ordinals: &[u64],
        is_wanted: impl Fn(&str) -> bool,
    ) -> Done<RecordBatch> {
        let wanted: Vec<_> = self.computed.iter().filter(|computed| is_wanted(&computed.property)).collect();
        if wanted.is_empty() {
            return Ok(batch);
        }
        let schema = batch.schema();
        let read = schema.fields().iter().map(|field| field.name().as_str()).zip(batch.columns().iter().cloned());
        let columns = read.chain(wanted.iter().map(|it| (&*it.property, it.values(label, ordinals))));
        RecordBatch::try_from_iter(columns).map_err(|error| EngineError::Internal(error.to_string()).into())
    }

    /// As [`Run::read`], whatever was read before.
    pub(crate) async fn read_now(&mut self, elements: Vec<Element>, wanted: Wanted<'_>) -> Done<Properties> {
        let mut vertices: BTreeMap<LabelId, BTreeSet<u64>> = BTreeMap::new();
        let mut edges: BTreeMap<EdgeId, Neighbour> = BTreeMap::new();
        for element in elements {
            match element {
                Element::Vertex(vertex) => {
                    vertices.entry(vertex.label()).or_default().insert(vertex.ordinal());
                }
                Element::Edge(edge) => {
                    edges.insert(edge.id(), edge);
                }
            }
        }
        let mut read = Properties::default();
        let snapshot = self.snapshot.clone();
        let schema = snapshot.schema();
        let places = wanted.places();
        let is_wanted = |name: &str| places.as_ref().is_none_or(|places| places.contains_key(name));
        let names_of = |label: LabelId| -> Vec<String> {
            let properties = schema.label(label).into_iter().flat_map(|label| &label.properties);
            let read = properties.filter(|property| is_wanted(&property.name) && !self.is_computed(&property.name));
            read.map(|property| property.name.clone()).collect()
        };
        let asked: Vec<_> = vertices
            .into_iter()
            .map(|(label, ordinals)| (label, ordinals.into_iter().collect::<Vec<u64>>(), names_of(label)))
            .collect();
        let mut of_edges: BTreeSet<String> = BTreeSet::new();
        let edge_types: BTreeSet<EdgeTypeId> = edges.values().map(|edge| edge.edge_type).collect();
        for edge_type in edge_types {
            let properties = schema.edge_type(edge_type).into_iter().flat_map(|edge| &edge.properties);
            of_edges.extend(properties.filter(|it| is_wanted(&it.name)).map(|property| property.name.clone()));
        }
        let of_edges: Vec<String> = of_edges.into_iter().collect();
        let edges: Edges = edges.into_values().collect();
        // Labels and edges do not depend on each other: one wave for all.
        let mut for_edges = self.branch.clone();
        let reads = self.branch.each(&asked, |(label, ordinals, names), mut line| {
            let snapshot = &snapshot;
            async move {
                let batch = snapshot.properties().of_vertices(*label, ordinals, names, &mut line).await?;
                Ok::<_, QueryError>((batch, line))
            }
        });
        let read_edges = async {
            match of_edges.is_empty() {
                true => Ok(Vec::new()),
                false => Ok(snapshot.properties().of_edges(&edges, &of_edges, &mut for_edges).await?),
            }
        };
        let (batches, edge_batches) = futures::future::try_join(reads, read_edges).await?;
        self.branch.join([&for_edges]);
        for ((label, ordinals, _), batch) in asked.iter().zip(batches) {
            let batch = self.with_computed(batch, *label, ordinals, is_wanted)?;
            let name = schema.label(*label).map_or("", |label| &label.name);
            let owner = |row| key_at(&batch, row).map_or_else(|| name.to_owned(), |key| vertex_text(name, &key));
            let units = stored::check_moments(&batch, owner)?;
            self.pace.rest(units).await?;
            let number = read.batches.len() as u32;
            let vertices = ordinals.iter().filter_map(|ordinal| VertexId::new(*label, *ordinal));
            read.vertices.extend(vertices.zip((0u32..).map(|row| (number, row))));
            let known = schema.label(*label).map_or(&[][..], |label| &label.properties);
            read.batches.push(with_logical(batch, known));
        }
        for (positions, batch) in edge_batches {
            let number = read.batches.len() as u32;
            let first = positions.first().and_then(|position| edges.get(*position));
            let known = first.and_then(|edge| schema.edge_type(edge.edge_type)).map_or(&[][..], |it| &it.properties);
            let owner = |row| {
                let edge = positions.get(row).and_then(|position: &usize| edges.get(*position));
                edge.map_or_else(String::new, |edge| format!("the edge {}", edge.id()))
            };
            let units = stored::check_moments(&batch, owner)?;
            self.pace.rest(units).await?;
            for (row, position) in positions.into_iter().enumerate() {
                if let Some(edge) = edges.get(position) {
                    read.edges.insert(edge.id(), (number, row as u32));
                }
            }
            read.batches.push(with_logical(batch, known));
        }
        self.growth.take(read.bytes() as usize)?;
        Ok(read)
    }

    /// Whether keys are ids: they are if no key is in two labels.
    fn keys_are_ids(&self) -> bool {
        self.snapshot.manifest().unique_keys
    }

    /// The id of a vertex whose key was read.
    fn vertex_id(&self, vertex: VertexId, read: &Properties) -> Value {
        let Some(key) = read.key(vertex) else { return Value::Null };
        if !self.keys_are_ids() {
            return Value::Text(vertex_text(self.label_of(vertex), &key).into());
        }
        match key {
            Key::Int64(key) => key.into(),
            Key::String(key) => Value::Text(key.into()),
        }
    }

    /// The id of an element whose key was read.
    pub(crate) fn id(&self, element: Element, read: &Properties) -> Value {
        match element {
            Element::Vertex(vertex) => self.vertex_id(vertex, read),
            Element::Edge(edge) => Value::Text(edge.id().to_string().into()),
        }
    }

    /// The vertices of ids, for each those that it may name.
    pub(crate) async fn vertices_of(&mut self, ids: &[Value]) -> Done<Vec<Vec<VertexId>>> {
        self.vertices_with(ids, &[]).await
    }

    /// As [`Run::vertices_of`], those of labels that fulfil predicates. No key of another label is looked up.
    pub(crate) async fn vertices_with(
        &mut self,
        ids: &[Value],
        predicates: &[Arc<Predicate>],
    ) -> Done<Vec<Vec<VertexId>>> {
        let snapshot = self.snapshot.clone();
        let schema = snapshot.schema();
        let mut wanted: BTreeSet<LabelId> = BTreeSet::new();
        for (number, label) in (0u16..).map(LabelId).zip(&schema.vertex_labels) {
            if matches(&label.name, predicates.iter().map(|it| &**it), &self.growth)? {
                wanted.insert(number);
            }
        }
        let mut keys: Vec<(LabelId, Key)> = Vec::new();
        let mut owners: Vec<usize> = Vec::new();
        let growth = self.growth.clone();
        growth.take(ids.len() * size_of::<Vec<VertexId>>())?;
        let mut found: Vec<Vec<VertexId>> = vec![Vec::new(); ids.len()];
        for (at, id) in ids.iter().enumerate() {
            let id = match id {
                Value::Vertex(vertex) => &vertex.id,
                Value::Unread(_) => {
                    if let Some(Element::Vertex(vertex)) = element_of(id)
                        && wanted.contains(&vertex.label())
                    {
                        found[at].push(vertex);
                    }
                    continue;
                }
                id => id,
            };
            let mut seek = |label: LabelId, key: Key| {
                if !wanted.contains(&label) {
                    return Ok(());
                }
                let bytes = if let Key::String(text) = &key { text.len() } else { 0 };
                growth.take(SOUGHT_BYTES + bytes)?;
                keys.push((label, key));
                owners.push(at);
                Ok::<_, QueryError>(())
            };
            let labels = || (0u16..).map(LabelId).zip(&schema.vertex_labels);
            match id {
                Value::Text(text) => {
                    if let Ok((label, key)) = split_vertex(text)
                        && let Some(number) = schema.label_id(&label)
                        && let Some(key) = schema.label(number).and_then(|label| Key::parse(key, label.key_type))
                    {
                        seek(number, key)?;
                    }
                    // As text, a key may be of either type.
                    for (number, label) in labels() {
                        if let Some(key) = Key::parse(text, label.key_type) {
                            seek(number, key)?;
                        }
                    }
                }
                Value::Uuid(uuid) => {
                    for (number, _) in labels().filter(|(_, label)| label.key_type == KeyType::String) {
                        seek(number, Key::String(uuid.to_string()))?;
                    }
                }
                Value::Number(number) => {
                    let Some(key) = whole(number) else { continue };
                    for (number, _) in labels().filter(|(_, label)| label.key_type == KeyType::Int64) {
                        seek(number, Key::Int64(key))?;
                    }
                }
                _ => continue,
            }
            self.pace.rest(1 + schema.vertex_labels.len() as u64).await?;
        }
        if keys.is_empty() {
            return Ok(found);
        }
        let expected = self.expected.take().unwrap_or_default();
        let look_up =
            async |snapshot: &Arc<Snapshot>, branch: &mut Branch| snapshot.keys().look_up(&keys, branch).await;
        let vertices = expected.alongside(&snapshot, &mut self.branch, look_up).await?;
        for (owner, vertex) in owners.into_iter().zip(vertices) {
            let of_id = &mut found[owner];
            of_id.extend(vertex.filter(|vertex| !of_id.contains(vertex)));
        }
        Ok(found)
    }

    /// The edges of ids.
    pub(crate) async fn edges_of(&mut self, ids: &[Value]) -> Done<Vec<Option<Neighbour>>> {
        let mut found: Vec<Option<Neighbour>> = vec![None; ids.len()];
        let mut sought: Vec<EdgeId> = Vec::new();
        let mut owners: Vec<usize> = Vec::new();
        for (at, id) in ids.iter().enumerate() {
            if let Some(Element::Edge(edge)) = element_of(id) {
                found[at] = Some(edge);
                continue;
            }
            let text = match id {
                Value::Edge(edge) => &edge.id,
                id => id,
            };
            if let Value::Text(text) = text
                && let Ok(id) = text.parse::<EdgeId>()
            {
                sought.push(id);
                owners.push(at);
            }
        }
        if !sought.is_empty() {
            let edges = self.snapshot.clone();
            let edges = edges.adjacency().edges(&sought, &mut self.branch).await?;
            owners.into_iter().zip(edges).for_each(|(owner, edge)| found[owner] = edge);
        }
        Ok(found)
    }

    /// Values in which elements that came with the query are those of the graph, as far as it has them.
    pub(crate) async fn with_elements(&mut self, mut values: Vec<Value>) -> Done<Vec<Value>> {
        let is_element = |value: &Value| matches!(value, Value::Vertex(_) | Value::Edge(_));
        let places: Vec<usize> = (0..values.len()).filter(|at| is_element(&values[*at])).collect();
        if places.is_empty() {
            return Ok(values);
        }
        let sought: Vec<Value> = places.iter().map(|place| values[*place].clone()).collect();
        let vertices = self.vertices_of(&sought).await?;
        let edges = self.edges_of(&sought).await?;
        for ((place, vertices), edge) in places.into_iter().zip(vertices).zip(edges) {
            if let Some(vertex) = vertices.first() {
                values[place] = (*vertex).into();
            } else if let Some(edge) = edge {
                values[place] = edge.into();
            }
        }
        Ok(values)
    }

    /// Values whose elements were read: ids and labels, and properties if they are wanted.
    pub(crate) async fn finished(&mut self, values: Vec<Value>, with_properties: bool) -> Done<Vec<Value>> {
        let mut elements = Vec::new();
        for value in &values {
            // Before the list grows: an element is an entry of it, and edges have two vertices more.
            let count = element_count(value);
            self.growth.take(count.saturating_mul(FOUND_BYTES))?;
            collect(value, &mut elements);
            self.pace.rest(1 + count as u64).await?;
        }
        if elements.is_empty() && !values.iter().any(has_unread) {
            return Ok(values);
        }
        let ends: Vec<Element> = elements
            .iter()
            .filter_map(|element| match element {
                Element::Edge(edge) => Some([edge.from, edge.to].map(Element::Vertex)),
                Element::Vertex(_) => None,
            })
            .flatten()
            .collect();
        let wanted = if with_properties { Wanted::All } else { Wanted::Named(&[]) };
        elements.extend(ends);
        let read = self.read(elements, wanted).await?;
        let mut finished = self.growth.column(values.len())?;
        for value in values {
            self.pace.rest(1).await?;
            finished.push(self.finish(value, &read, with_properties)?);
        }
        Ok(finished)
    }

    fn finish(&self, value: Value, read: &Properties, with_properties: bool) -> Done<Value> {
        let all = |values: Vec<Value>| {
            values.into_iter().map(|it| self.finish(it, read, with_properties)).collect::<Done<Vec<_>>>()
        };
        let pair = |(key, value): (Value, Value)| {
            Ok((self.finish(key, read, with_properties)?, self.finish(value, read, with_properties)?))
        };
        Ok(match value {
            Value::List(items) => Value::List(all(items)?),
            Value::Set(items) => Value::Set(all(items)?),
            Value::BulkSet(items) => {
                let item = |(item, bulk)| Ok((self.finish(item, read, with_properties)?, bulk));
                Value::BulkSet(items.into_iter().map(item).collect::<Done<_>>()?)
            }
            Value::Map(entries) => Value::Map(entries.into_iter().map(pair).collect::<Done<_>>()?),
            Value::Entry(entry) => Value::Entry(Box::new(pair(*entry)?)),
            Value::Path(path) => {
                let step = |(item, labels)| Ok((self.finish(item, read, with_properties)?, labels));
                let steps = path.steps.into_iter().map(step).collect::<Done<_>>()?;
                Value::Path(Box::new(Path { steps }))
            }
            Value::Tree(tree) => Value::Tree(self.finish_tree(tree, read, with_properties)?),
            Value::Graph(graph) => {
                let Graph { vertices, edges } = *graph;
                Value::Graph(Box::new(Graph { vertices: all(vertices)?, edges: all(edges)? }))
            }
            Value::Unread(element) => self.growth.built(self.finish_element(*element, read, with_properties))?,
            other => other,
        })
    }

    fn finish_tree(&self, tree: Tree, read: &Properties, with_properties: bool) -> Done<Tree> {
        let branches = tree.branches.into_iter().map(|(item, below)| {
            Ok((self.finish(item, read, with_properties)?, self.finish_tree(below, read, with_properties)?))
        });
        Ok(Tree { branches: branches.collect::<Done<_>>()? })
    }

    fn finish_element(&self, element: Unread, read: &Properties, with_properties: bool) -> Value {
        match element {
            Unread::Vertex(vertex) => {
                let id = self.vertex_id(vertex, read);
                let properties = with_properties.then(|| {
                    let begin = property_ids_of(&id);
                    let mut all = Vec::new();
                    let mut add = |key: &Name, value, number| all.push(vertex_property(&begin, key, value, number));
                    read.each(Element::Vertex(vertex), &mut add);
                    all
                });
                Value::Vertex(Box::new(Vertex { id, label: self.label_of(vertex).into(), properties }))
            }
            Unread::Edge(edge) => {
                let end = |vertex: VertexId| (self.vertex_id(vertex, read), Box::from(self.label_of(vertex)));
                let id = edge.id();
                let properties = with_properties.then(|| {
                    let mut all = Vec::new();
                    let mut add = |key: &Name, value, _| all.push(Property { key: key.clone(), value });
                    read.each(Element::Edge(edge), &mut add);
                    all
                });
                Value::Edge(Box::new(Edge {
                    id: Value::Text(id.to_string().into()),
                    label: self.edge_label_of(&edge).into(),
                    out_vertex: end(id.source),
                    in_vertex: end(id.target),
                    properties,
                }))
            }
            Unread::VertexProperty(UnreadProperty { element, key, value, number }) => {
                let id = self.vertex_id(element, read);
                Value::VertexProperty(Box::new(vertex_property(&property_ids_of(&id), &key, value, number)))
            }
            Unread::Property(UnreadProperty { key, value, .. }) => Value::Property(Box::new(Property { key, value })),
        }
    }
}

/// A batch with the logical types of its columns, which are properties of one label or edge type.
fn with_logical(batch: RecordBatch, known: &[hoplake_format::Property]) -> (RecordBatch, Logical) {
    let known: HashMap<&str, LogicalType, RandomState> =
        known.iter().map(|it| (it.name.as_str(), it.logical)).collect();
    let of = |name: &str| known.get(name).copied();
    let fields = batch.schema_ref().fields().iter();
    let logical =
        fields.map(|field| (Name::from(field.name().as_str()), of(field.name()).unwrap_or_default())).collect();
    (batch, logical)
}

/// What the ids of a vertex's properties begin with.
fn property_ids_of(vertex: &Value) -> String {
    match vertex {
        Value::Number(id) => format!("{id}/"),
        Value::Text(id) => format!("{id}/"),
        _ => String::new(),
    }
}

fn vertex_property(begin: &str, key: &Name, value: Value, number: u32) -> VertexProperty {
    // In one piece: an answer of a hundred vertices has a thousand of them.
    let number = match number {
        0 => "0".into(),
        number => std::borrow::Cow::Owned(number.to_string()),
    };
    let id = [begin, key, "/", &number].concat();
    VertexProperty { id: Value::Text(id.into()), key: key.clone(), value, properties: Some(Vec::new()) }
}

/// A number that an int64 key can be.
fn whole(number: &Number) -> Option<i64> {
    let rounded = crate::value::to_i64(number);
    crate::value::equals(&Value::Number(number.clone()), &rounded.into()).then_some(rounded)
}

/// What an element takes that is looked for: it and its ends in lists and sorted sets.
const FOUND_BYTES: usize = 3 * (size_of::<Element>() + size_of::<(EdgeId, Neighbour)>());

/// How many elements a value has within, at most.
fn element_count(value: &Value) -> usize {
    let all = |values: &[Value]| values.iter().map(element_count).sum::<usize>();
    match value {
        Value::List(items) | Value::Set(items) => all(items),
        Value::BulkSet(items) => items.iter().map(|(item, _)| element_count(item)).sum(),
        Value::Map(entries) => entries.iter().map(|(key, value)| element_count(key) + element_count(value)).sum(),
        Value::Entry(entry) => element_count(&entry.0) + element_count(&entry.1),
        Value::Path(path) => path.steps.iter().map(|(item, _)| element_count(item)).sum(),
        Value::Tree(tree) => tree_element_count(tree),
        Value::Graph(graph) => all(&graph.vertices) + all(&graph.edges),
        Value::Unread(_) => 1,
        _ => 0,
    }
}

fn tree_element_count(tree: &Tree) -> usize {
    tree.branches.iter().map(|(item, below)| element_count(item) + tree_element_count(below)).sum()
}

/// Adds the elements that a value has within.
fn collect(value: &Value, elements: &mut Vec<Element>) {
    match value {
        Value::List(items) | Value::Set(items) => items.iter().for_each(|item| collect(item, elements)),
        Value::BulkSet(items) => items.iter().for_each(|(item, _)| collect(item, elements)),
        Value::Map(entries) => entries.iter().for_each(|(key, value)| {
            collect(key, elements);
            collect(value, elements);
        }),
        Value::Entry(entry) => {
            collect(&entry.0, elements);
            collect(&entry.1, elements);
        }
        Value::Path(path) => path.steps.iter().for_each(|(item, _)| collect(item, elements)),
        Value::Tree(tree) => collect_tree(tree, elements),
        Value::Graph(graph) => graph.vertices.iter().chain(&graph.edges).for_each(|it| collect(it, elements)),
        Value::Unread(element) => match &**element {
            Unread::Vertex(vertex) => elements.push(Element::Vertex(*vertex)),
            Unread::Edge(edge) => elements.push(Element::Edge(*edge)),
            Unread::VertexProperty(property) => elements.push(Element::Vertex(property.element)),
            Unread::Property(_) => {}
        },
        _ => {}
    }
}

fn collect_tree(tree: &Tree, elements: &mut Vec<Element>) {
    tree.branches.iter().for_each(|(item, below)| {
        collect(item, elements);
        collect_tree(below, elements);
    });
}

/// Whether a value has properties of edges within, which need nothing to be read.
fn has_unread(value: &Value) -> bool {
    match value {
        Value::Unread(_) => true,
        Value::List(items) | Value::Set(items) => items.iter().any(has_unread),
        Value::BulkSet(items) => items.iter().any(|(item, _)| has_unread(item)),
        Value::Map(entries) => entries.iter().any(|(key, value)| has_unread(key) || has_unread(value)),
        Value::Entry(entry) => has_unread(&entry.0) || has_unread(&entry.1),
        Value::Path(path) => path.steps.iter().any(|(item, _)| has_unread(item)),
        Value::Tree(tree) => has_unread_tree(tree),
        Value::Graph(graph) => graph.vertices.iter().chain(&graph.edges).any(has_unread),
        _ => false,
    }
}

fn has_unread_tree(tree: &Tree) -> bool {
    tree.branches.iter().any(|(item, below)| has_unread(item) || has_unread_tree(below))
}

/// The elements of a batch.
pub(crate) fn elements(batch: &Batch) -> impl Iterator<Item = Element> + '_ {
    (0..batch.len()).filter_map(|at| batch.items.element(at))
}

/// The element of a row; `None` of a property, which has no properties.
pub(crate) fn has_properties(batch: &Batch, at: usize) -> Done<Option<Element>> {
    if let Some(element) = batch.items.element(at) {
        return Ok(Some(element));
    }
    match &*batch.items.get(at) {
        // A property of a vertex is an element, and none has properties here. One of an edge is none.
        Value::Unread(unread) if matches!(**unread, Unread::VertexProperty(_)) => Ok(None),
        other => Err(QueryError::wrong_type(format!("only elements have properties, and this is {}", kind_of(other)))),
    }
}
