//! Steps that change the graph.
//!
//! A step's changes become operations of a batch, and the query goes on with a snapshot that has them
//! ([`Snapshot::with_changes`]). At its end all operations are one commit, based on the version that it began with.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use hoplake_engine::{
    Frontier, Neighbour, Snapshot,
    change::{
        self, Batch as ChangeBatch, Committed, Committer, LogicalTypes, Name as EngineName, Operation, Properties,
        VertexRef,
    },
    split_vertex,
    traversal::{Hop, HopDirection},
};
use hoplake_format::{Key, KeyType, LabelId, VertexId, VertexLabel};
use hoplake_storage::MemoryHold;

use super::{
    Done, Graph, Run,
    batch::{Batch, Element, Items, value_bytes},
    by::kind_of,
    elements::Wanted,
    growth::{ALLOCATION_BYTES, units_of},
    kept::distinct,
    paths::Labels,
    stored::{Owner, to_stored},
};
use crate::{
    error::QueryError,
    literal::Number,
    plan::{End, Given, Name, NewKey, NewProperty, StepKind},
    tokens::{Cardinality, Pop, T, Token},
    value::{Unread, Value},
};

/// What the memory of operations is a multiple of: themselves, and the keys, lists and rows of the run that has them.
const COPIES: u64 = 3;

/// What a change takes before it is applied, besides its names and values: its operation, and places in tables.
const CHANGE_BYTES: usize = 512;

/// Bytes for each vertex whose name is looked up, without the text of its key: places in two tables, and the name.
const VERTEX_BYTES: usize = 4 * size_of::<VertexId>() + 2 * size_of::<(VertexId, VertexRef)>();

/// Vertices whose names are read at once before it is known how long names are: as many as most changes have.
const NAMED_AT_FIRST: usize = 1 << 10;

/// Texts of names that are read at once after that. They are counted when they are there.
const NAMED_BYTES: usize = 8 << 20;

/// What is dropped, in tables and lists.
const DROPPED_BYTES: usize = 3 * size_of::<(Neighbour, Name)>();

/// How many times the name of a vertex is there meanwhile: as such, in the operation, and where it is looked up.
const NAME_COPIES: usize = 4;

/// The same of a value: as it is given, as it is stored, and in the operation.
const VALUE_COPIES: usize = 3;

/// What a query has changed and not committed yet.
#[derive(Debug, Clone)]
pub(super) struct Changes {
    committer: Option<Arc<Committer>>,
    /// The version that the changes were decided on.
    base: u64,
    /// Those of each step together: statements of a session copy a transaction, and share these.
    operations: Vec<Arc<Vec<Operation>>>,
    /// What the values of these are beyond their types.
    logical_types: LogicalTypes,
    /// The memory of operations, and of the runs that have them, for as long as the transaction lives.
    memory: Vec<Arc<MemoryHold>>,
}

impl Changes {
    pub(super) fn new(graph: &Graph) -> Self {
        let base = graph.snapshot.manifest().version;
        let (operations, memory) = (Vec::new(), Vec::new());
        Self { committer: graph.committer.clone(), base, operations, logical_types: LogicalTypes::default(), memory }
    }

    pub(super) fn any(&self) -> bool {
        self.operations.iter().any(|operations| !operations.is_empty())
    }

    pub(super) fn are_allowed(&self) -> bool {
        self.committer.is_some()
    }

    pub(super) fn count(&self) -> usize {
        self.operations.iter().flat_map(|operations| operations.iter()).map(Operation::changes).sum()
    }

    pub(super) async fn commit(self) -> Done<Option<Committed>> {
        let Self { committer, base, operations, logical_types, memory } = self;
        let owned = |operations: Arc<Vec<Operation>>| Arc::try_unwrap(operations).unwrap_or_else(|it| it.to_vec());
        let operations: Vec<Operation> = operations.into_iter().flat_map(owned).collect();
        let Some(committer) = committer.filter(|_| !operations.is_empty()) else { return Ok(None) };
        let batch = ChangeBatch { base: Some(base), ..batch_of(operations, logical_types) };
        let committed = committer.commit(batch).await?;
        drop(memory);
        Ok(Some(committed))
    }
}

/// Where keys are unique, they are the ids of vertices. A query may not end that, not even together with another writer: all ids of the
/// graph would have another form.
fn batch_of(operations: Vec<Operation>, logical_types: LogicalTypes) -> ChangeBatch {
    ChangeBatch { operations, logical_types, keep_unique_keys: true, ..ChangeBatch::default() }
}

/// Properties that a vertex or an edge is to have, by name in the order in which they were given.
pub(super) type NewValues = Vec<(Name, Option<Cardinality>, Value)>;

fn bytes_of(values: &NewValues) -> usize {
    values.iter().map(|(name, _, value)| size_of::<Name>() + name.len() + value_bytes(value)).sum()
}

fn name_bytes(vertex: &VertexRef) -> usize {
    let key = if let Key::String(key) = &vertex.key { key.len() } else { 0 };
    vertex.label.len() + key
}

/// A vertex that is to be added.
#[derive(Debug, Clone, Default)]
pub(super) struct NewVertex {
    pub(super) label: Option<Name>,
    pub(super) id: Option<Value>,
    pub(super) values: NewValues,
}

impl Run {
    pub(super) async fn change(&mut self, kind: &StepKind, labels: &Labels, batch: Batch) -> Done<Batch> {
        match kind {
            StepKind::AddVertex(label, properties) => self.add_vertices(batch, label, properties, labels).await,
            StepKind::AddEdge(label, from, to, properties) => {
                self.add_edges(batch, label, [from, to], properties, labels).await
            }
            StepKind::Property(property) => self.set_property(batch, property, labels).await,
            StepKind::Drop => self.drop_elements(batch).await,
            StepKind::MergeVertex(merging) => self.merge_vertices(batch, merging, labels).await,
            StepKind::MergeEdge(merging) => self.merge_edges(batch, merging, labels).await,
            _ => Ok(batch),
        }
    }

    /// Changes the snapshot that the query reads, and notes the operations for the commit.
    pub(super) async fn apply(&mut self, operations: Vec<Operation>, logical_types: LogicalTypes) -> Done<()> {
        if operations.is_empty() {
            return Ok(());
        }
        let bytes: usize = operations.iter().map(Operation::memory_bytes).sum();
        let memory = self.branch.context().hold(COPIES * bytes as u64)?;
        self.changes.logical_types.extend(&logical_types);
        let batch = batch_of(operations.clone(), logical_types);
        let snapshot: Arc<Snapshot> = self.snapshot.with_changes(batch, &mut self.branch).await?;
        self.snapshot = snapshot;
        self.changes.operations.push(Arc::new(operations));
        self.changes.memory.push(Arc::new(memory));
        Ok(())
    }

    /// The labels and keys of vertices.
    async fn names_of(&mut self, vertices: impl IntoIterator<Item = VertexId>) -> Done<HashMap<VertexId, VertexRef>> {
        let mut distinct: HashSet<VertexId> = HashSet::new();
        for vertex in vertices {
            if !distinct.contains(&vertex) {
                self.growth.take(VERTEX_BYTES)?;
                distinct.insert(vertex);
            }
        }
        let vertices: Vec<VertexId> = distinct.into_iter().collect();
        let snapshot = self.snapshot.clone();
        let mut named = HashMap::with_capacity(vertices.len());
        let mut rest = &vertices[..];
        let mut bytes = 0;
        while !rest.is_empty() {
            let count = match named.len() {
                0 => NAMED_AT_FIRST,
                known => NAMED_BYTES / (bytes / known).max(1),
            };
            let (piece, others) = rest.split_at(count.clamp(1, rest.len()));
            rest = others;
            let keys = snapshot.keys(piece, &mut self.branch).await?;
            for (vertex, key) in piece.iter().zip(keys) {
                let name = VertexRef::new(self.label_of(*vertex), key);
                self.growth.take(name_bytes(&name))?;
                bytes += name_bytes(&name);
                named.insert(*vertex, name);
            }
        }
        Ok(named)
    }

    /// What new properties are for each row: names and values, those of maps one by one.
    async fn new_values(&mut self, properties: &[NewProperty], batch: &Batch) -> Done<Vec<NewVertex>> {
        let entries = properties.len() * size_of::<(Name, Option<Cardinality>, Value)>();
        self.growth.take(batch.len().saturating_mul(size_of::<NewVertex>() + ALLOCATION_BYTES + entries))?;
        let new = || NewVertex { values: Vec::with_capacity(properties.len()), ..NewVertex::default() };
        let mut all: Vec<NewVertex> = (0..batch.len()).map(|_| new()).collect();
        for property in properties {
            let values = self.given(&property.value, batch).await?;
            let keys = match &property.key {
                NewKey::Steps(steps) => self.firsts(steps, batch).await?,
                _ => vec![None; batch.len()],
            };
            for ((new, value), key) in all.iter_mut().zip(values).zip(keys) {
                let nothing = |what: &str| {
                    QueryError::wrong_type(format!(
                        "the traversal for the {what} of `property` has no result for a traverser: write \
                         `coalesce(…, constant(null))` where there may be none"
                    ))
                };
                let value = value.ok_or_else(|| nothing("value"))?;
                match &property.key {
                    NewKey::Name(name) => new.values.push((name.clone(), property.cardinality, value)),
                    NewKey::Token(token) => new.set_token(*token, value)?,
                    NewKey::Steps(_) => {
                        let entry = (key.ok_or_else(|| nothing("name"))?, value);
                        new.set_entries(vec![entry], property.cardinality)?;
                    }
                    NewKey::Entries => match value {
                        Value::Map(entries) => new.set_entries(entries, property.cardinality)?,
                        Value::Null => {}
                        other => {
                            return Err(QueryError::wrong_type(format!(
                                "`property` takes a map, and this is {}",
                                kind_of(&other)
                            )));
                        }
                    },
                }
            }
        }
        Ok(all)
    }

    async fn add_vertices(
        &mut self,
        batch: Batch,
        label: &Given,
        properties: &[NewProperty],
        labels: &Labels,
    ) -> Done<Batch> {
        let given = self.given(label, &batch).await?;
        let mut new = self.new_values(properties, &batch).await?;
        let bulks = batch.rows.iter().map(|row| super::reduce::copies(row.bulk));
        let count = bulks.sum::<Done<usize>>()?;
        self.growth.take(count.saturating_mul(size_of::<u32>() + size_of::<&NewVertex>()))?;
        let places: Vec<u32> =
            (0u32..).zip(&batch.rows).flat_map(|(at, row)| std::iter::repeat_n(at, row.bulk as usize)).collect();
        for (new, label) in new.iter_mut().zip(given) {
            match label {
                Some(Value::Text(label)) if new.label.is_none() => new.label = Some((*label).into()),
                Some(Value::Text(_)) => {}
                Some(Value::Null) => return Err(QueryError::wrong_type("Label can not be null")),
                _ => return Err(QueryError::wrong_type("the label of a vertex is a text")),
            }
        }
        let new: Vec<&NewVertex> = places.iter().map(|place| &new[*place as usize]).collect();
        let vertices = self.added_vertices(&new).await?;
        let mut added = self.derived(&batch, &places, Items::Vertices(vertices), labels)?;
        added.rows.iter_mut().for_each(|row| row.bulk = 1);
        Ok(added)
    }

    /// Adds vertices, and returns them.
    pub(super) async fn added_vertices(&mut self, new: &[&NewVertex]) -> Done<Vec<VertexId>> {
        // Until the operations are applied, which counts them again.
        let mark = self.growth.begin();
        let mut named = Vec::with_capacity(new.len());
        let mut operations = Vec::with_capacity(new.len());
        let mut key_types: BTreeMap<Name, KeyType> = BTreeMap::new();
        let mut logical_types = LogicalTypes::default();
        for new in new {
            let label: Name = new.label.clone().unwrap_or_else(|| "vertex".into());
            let id_bytes = new.id.as_ref().map_or(0, value_bytes);
            self.changes_one(id_bytes + label.len(), bytes_of(&new.values)).await?;
            check_label(&label)?;
            let schema = self.snapshot.schema();
            let known = schema.label_id(&label).and_then(|id| schema.label(id)).map(|label| label.key_type);
            // A new label has keys of the type of the others where they are unique: or the ids of all would have another form.
            let new_type = || key_types.get(&label).copied().or_else(|| self.snapshot.manifest().unique_key_type());
            let key_type = known.or_else(new_type);
            let key = new_key(&label, new.id.as_ref(), key_type, &mut self.random)?;
            key_types.entry(label.clone()).or_insert(key.key_type());
            let vertex = VertexRef::new(&*label, key);
            let (properties, _) =
                self.stored(Owner::Vertex(&label), &new.values, &HashMap::new(), &mut logical_types)?;
            operations.push(Operation::UpsertVertex { vertex: vertex.clone(), properties, replace: true });
            named.push(vertex);
        }
        let unique = self.snapshot.manifest().unique_keys;
        let mut distinct = HashSet::new();
        let taken = self.taken(&named).await?;
        for (vertex, is_taken) in named.iter().zip(taken) {
            let of_label = if unique { "" } else { vertex.label.as_str() };
            if is_taken || !distinct.insert((of_label, &vertex.key)) {
                return Err(QueryError::wrong_type(format!("Vertex with id already exists: {}", vertex.key)));
            }
        }
        self.growth.end(&mark)?;
        self.apply(operations, logical_types).await?;
        let vertices = self.looked_up(&named).await?;
        let lost = || hoplake_engine::EngineError::Internal("a vertex that was added is not there".into());
        vertices.into_iter().map(|vertex| vertex.ok_or_else(|| lost().into())).collect()
    }

    /// Counts what it takes to change an element, before that is built.
    async fn changes_one(&mut self, name_bytes: usize, value_bytes: usize) -> Done<()> {
        let bytes = CHANGE_BYTES + NAME_COPIES * name_bytes + VALUE_COPIES * value_bytes;
        self.growth.take(bytes)?;
        Ok(self.pace.rest(units_of(bytes)).await?)
    }

    /// Whether there are vertices with some keys: of their labels, or of any label where the keys of the graph are unique. A query may
    /// not end that, for the ids of all vertices would have another form.
    async fn taken(&mut self, named: &[VertexRef]) -> Done<Vec<bool>> {
        let snapshot = self.snapshot.clone();
        let schema = snapshot.schema();
        let unique = snapshot.manifest().unique_keys;
        let mut keys: Vec<(LabelId, Key)> = Vec::with_capacity(named.len());
        let mut owners: Vec<usize> = Vec::with_capacity(named.len());
        for (at, vertex) in named.iter().enumerate() {
            let labels = (0u16..).map(LabelId).zip(&schema.vertex_labels);
            let is_one = |label: &VertexLabel| unique || *label.name == *vertex.label.as_str();
            let labels = labels.filter(|(_, label)| label.key_type == vertex.key.key_type() && is_one(label));
            for (id, _) in labels {
                keys.push((id, vertex.key.clone()));
                owners.push(at);
            }
        }
        let found = snapshot.look_up(&keys, &mut self.branch).await?;
        let mut taken = vec![false; named.len()];
        owners.into_iter().zip(found).filter(|(_, found)| found.is_some()).for_each(|(at, _)| taken[at] = true);
        Ok(taken)
    }

    async fn looked_up(&mut self, named: &[VertexRef]) -> Done<Vec<Option<VertexId>>> {
        let snapshot = self.snapshot.clone();
        let schema = snapshot.schema();
        let keys: Vec<_> = named
            .iter()
            .map(|vertex| schema.label_id(&vertex.label).map(|label| (label, vertex.key.clone())))
            .collect();
        let known: Vec<_> = keys.iter().flatten().cloned().collect();
        let mut found = snapshot.look_up(&known, &mut self.branch).await?.into_iter();
        Ok(keys.into_iter().map(|key| key.and_then(|_| found.next().flatten())).collect())
    }

    async fn add_edges(
        &mut self,
        batch: Batch,
        label: &Given,
        ends: [&End; 2],
        properties: &[NewProperty],
        labels: &Labels,
    ) -> Done<Batch> {
        let given = self.given(label, &batch).await?;
        let new = self.new_values(properties, &batch).await?;
        let sources = self.ends_of(&batch, ends[0]).await?;
        let targets = self.ends_of(&batch, ends[1]).await?;
        let mut rows = Vec::new();
        let mut added = Vec::new();
        for (at, (label, new)) in given.into_iter().zip(&new).enumerate() {
            let label: Name = match (&new.label, label) {
                (Some(label), _) => label.clone(),
                (None, Some(Value::Text(label))) => (*label).into(),
                (None, Some(Value::Null)) => return Err(QueryError::wrong_type("Label can not be null")),
                _ => return Err(QueryError::wrong_type("the label of an edge is a text")),
            };
            if new.id.is_some() {
                return Err(no_edge_ids());
            }
            let bytes = size_of::<(u32, Name, VertexId, VertexId, NewValues)>() + bytes_of(&new.values);
            for _ in 0..super::reduce::copies(batch.rows[at].bulk)? {
                self.growth.take(bytes)?;
                self.pace.rest(1).await?;
                rows.push(at as u32);
                added.push((label.clone(), sources[at], targets[at], new.values.clone()));
            }
        }
        let edges = self.added_edges(added).await?;
        let mut batch = self.derived(&batch, &rows, Items::Edges(edges), labels)?;
        batch.rows.iter_mut().for_each(|row| row.bulk = 1);
        Ok(batch)
    }

    /// Adds edges, and returns them.
    pub(super) async fn added_edges(
        &mut self,
        new: Vec<(Name, VertexId, VertexId, NewValues)>,
    ) -> Done<Vec<Neighbour>> {
        let names = self.names_of(new.iter().flat_map(|(_, source, target, _)| [*source, *target])).await?;
        let named = |vertex: &VertexId| names.get(vertex).cloned().ok_or_else(|| gone("the vertex of an edge"));
        let mark = self.growth.begin();
        let mut operations = Vec::with_capacity(new.len());
        let mut logical_types = LogicalTypes::default();
        for (label, source, target, values) in &new {
            check_label(label)?;
            let ends = [source, target].into_iter().filter_map(|end| names.get(end));
            let names = ends.map(name_bytes).sum::<usize>() + label.len();
            self.changes_one(names, bytes_of(values)).await?;
            let (properties, _) = self.stored(Owner::Edge(label), values, &HashMap::new(), &mut logical_types)?;
            operations.push(Operation::EditEdge {
                label: (&**label).into(),
                source: named(source)?,
                target: named(target)?,
                number: None,
                properties: Some(properties),
                replace: true,
            });
        }
        self.growth.end(&mark)?;
        self.apply(operations, logical_types).await?;
        // The new ones are the last between their vertices.
        let hop = Hop {
            labels: new.iter().map(|(label, ..)| label.to_string()).collect::<HashSet<_>>().into_iter().collect(),
            direction: HopDirection::Out,
            condition: None,
        };
        let sources: Vec<VertexId> = new.iter().map(|(_, source, ..)| *source).collect();
        let frontier = Frontier::held(&sources, self.branch.context()).await?;
        let read = self.snapshot.neighbours(&frontier, &hop, &mut self.branch).await?;
        let wanted: HashSet<(VertexId, VertexId)> =
            new.iter().map(|(_, source, target, _)| (*source, *target)).collect();
        let mut between: HashMap<(Box<str>, VertexId, VertexId), Vec<Neighbour>> = HashMap::new();
        for edge in read.iter().filter(|edge| wanted.contains(&(edge.from, edge.to))) {
            let label = Box::from(self.edge_label_of(&edge));
            between.entry((label, edge.from, edge.to)).or_default().push(edge);
        }
        between.values_mut().for_each(|edges| edges.sort_unstable_by_key(|edge| edge.parallel));
        let mut edges = Vec::with_capacity(new.len());
        for (label, source, target, _) in new.iter().rev() {
            let found = between.get_mut(&(Box::from(&**label), *source, *target)).and_then(Vec::pop);
            edges.push(found.ok_or_else(|| gone("an edge that was added"))?);
        }
        edges.reverse();
        Ok(edges)
    }

    /// An end of new edges, for each row.
    async fn ends_of(&mut self, batch: &Batch, end: &End) -> Done<Vec<VertexId>> {
        let values: Vec<Option<Value>> = match end {
            End::Here => self.own_values(batch)?,
            End::Labelled(label) => self.met(label, Pop::Last, batch).await?,
            End::Steps(steps) => self.firsts(steps, batch).await?,
            End::Vertex(value) => self.growth.copies(&Some(value.clone()), value_bytes(value), batch.len())?,
        };
        let values: Vec<Value> = values.into_iter().map(Option::unwrap_or_default).collect();
        let vertices = self.vertices_of(&values).await?;
        let found = vertices.iter().zip(&values).map(|(found, value)| match found.first() {
            Some(vertex) => Ok(*vertex),
            None => Err(QueryError::wrong_type(format!(
                "The value given to addE() must resolve to a Vertex or the ID of a Vertex present in the graph, and this is {}",
                kind_of(value)
            ))),
        });
        found.collect()
    }

    async fn set_property(&mut self, batch: Batch, property: &NewProperty, labels: &Labels) -> Done<Batch> {
        let new = self.new_values(std::slice::from_ref(property), &batch).await?;
        if new.iter().any(|new| new.id.is_some() || new.label.is_some()) {
            return Err(QueryError::wrong_type(
                "the id and the label of an element are set when it is added, and stay",
            ));
        }
        self.growth.take(batch.len() * (size_of::<Element>() + size_of::<(Element, NewValues)>()))?;
        let elements: Vec<Element> = (0..batch.len())
            .map(|at| batch.items.element(at).ok_or_else(|| not_an_element(&batch.items.get(at))))
            .collect::<Done<_>>()?;
        self.set_values(elements.into_iter().zip(new.into_iter().map(|new| new.values)).collect()).await?;
        self.relabelled(batch, labels)
    }

    /// Sets properties of elements.
    pub(super) async fn set_values(&mut self, new: Vec<(Element, NewValues)>) -> Done<()> {
        // Names whose values are added to those that are there.
        fn added(values: &NewValues) -> impl Iterator<Item = &Name> {
            let adds = |cardinality| matches!(cardinality, Some(Cardinality::List | Cardinality::Set));
            values.iter().filter(move |(_, cardinality, _)| adds(*cardinality)).map(|(name, ..)| name)
        }
        let names = distinct(new.iter().flat_map(|(_, values)| added(values)));
        let read = match names.is_empty() {
            true => None,
            false => Some(self.read(new.iter().map(|(element, _)| *element), Wanted::Named(&names)).await?),
        };
        let vertices = new.iter().flat_map(|(element, _)| match element {
            Element::Vertex(vertex) => vec![*vertex],
            Element::Edge(edge) => vec![edge.from, edge.to],
        });
        let named = self.names_of(vertices).await?;
        let name_of = |vertex: &VertexId| named.get(vertex).cloned().ok_or_else(|| gone("the vertex"));
        // Values that were set for the same element just now count as those before.
        let mut known: HashMap<(VertexId, Name), Vec<Value>> = HashMap::new();
        let mark = self.growth.begin();
        let mut operations = Vec::with_capacity(new.len());
        let mut logical_types = LogicalTypes::default();
        for (element, values) in &new {
            let ends = match element {
                Element::Vertex(vertex) => [Some(*vertex), None],
                Element::Edge(edge) => [Some(edge.from), Some(edge.to)],
            };
            let ends = ends.into_iter().flatten().filter_map(|end| named.get(&end));
            self.changes_one(ends.map(name_bytes).sum(), bytes_of(values)).await?;
            match element {
                Element::Vertex(vertex) => {
                    let vertex_name = name_of(vertex)?;
                    let mut before: HashMap<Name, Vec<Value>> = HashMap::new();
                    for name in distinct(added(values)) {
                        let stored = || read.as_ref().map_or_else(Vec::new, |read| read.values(*element, &name));
                        let values = known.entry((*vertex, name.clone())).or_insert_with(stored);
                        // Once here, and twice in what is put together of it: a vertex may come as often as it has values.
                        self.growth.take(3 * values.iter().map(value_bytes).sum::<usize>())?;
                        before.insert(name, values.clone());
                    }
                    let owner = Owner::Vertex(&vertex_name.label);
                    let (properties, now) = self.stored(owner, values, &before, &mut logical_types)?;
                    known.extend(now.into_iter().map(|(name, values)| ((*vertex, name), values)));
                    operations.push(Operation::UpsertVertex { vertex: vertex_name, properties, replace: false });
                }
                Element::Edge(edge) => {
                    let id = edge.id();
                    let label = self.edge_label_of(edge);
                    let (properties, _) =
                        self.stored(Owner::Edge(label), values, &HashMap::new(), &mut logical_types)?;
                    operations.push(Operation::EditEdge {
                        label: label.into(),
                        source: name_of(&id.source)?,
                        target: name_of(&id.target)?,
                        number: Some(id.parallel),
                        properties: Some(properties),
                        replace: false,
                    });
                }
            }
        }
        self.growth.end(&mark)?;
        self.apply(operations, logical_types).await
    }

    async fn drop_elements(&mut self, batch: Batch) -> Done<Batch> {
        let mut vertices: HashSet<VertexId> = HashSet::new();
        let mut edges: HashMap<_, Neighbour> = HashMap::new();
        // Values of vertices' properties that go, by place.
        let mut values: BTreeMap<(VertexId, Name), HashSet<u32>> = BTreeMap::new();
        let mut of_edges: Vec<(Neighbour, Name)> = Vec::new();
        for at in 0..batch.len() {
            match batch.items.copy(at, &self.growth)? {
                Value::Unread(element) => {
                    self.growth.take(DROPPED_BYTES)?;
                    self.pace.rest(units_of(DROPPED_BYTES)).await?;
                    match *element {
                        Unread::Vertex(vertex) => drop(vertices.insert(vertex)),
                        Unread::Edge(edge) => drop(edges.insert(edge.id(), edge)),
                        Unread::VertexProperty(property) => {
                            values.entry((property.element, property.key)).or_default().insert(property.number);
                        }
                        Unread::Property(property) => of_edges.push((property.element, property.key)),
                    }
                }
                other => return Err(not_an_element(&other)),
            }
        }
        let ends = edges.values().chain(of_edges.iter().map(|(edge, _)| edge)).flat_map(|edge| [edge.from, edge.to]);
        let count = vertices.len() + 2 * (edges.len() + of_edges.len()) + values.len();
        let mut all = self.growth.column(count)?;
        all.extend(vertices.iter().copied().chain(ends).chain(values.keys().map(|(vertex, _)| *vertex)));
        let named = self.names_of(all).await?;
        let name_of = |vertex: &VertexId| named.get(vertex).cloned().ok_or_else(|| gone("the vertex"));
        let bytes_of_name = |vertex: &VertexId| named.get(vertex).map_or(0, name_bytes);
        let bytes_of_ends = |edge: &Neighbour| bytes_of_name(&edge.from) + bytes_of_name(&edge.to);
        let mut operations = Vec::new();
        let names = distinct(values.keys().map(|(_, key)| key));
        let read = self.read(values.keys().map(|(vertex, _)| Element::Vertex(*vertex)), Wanted::Named(&names)).await?;
        // Until the operations are applied, which counts them again.
        let mark = self.growth.begin();
        for ((vertex, key), numbers) in values {
            let before = read.values(Element::Vertex(vertex), &key);
            let left = before.into_iter().zip(0u32..).filter(|(_, number)| !numbers.contains(number));
            let left: Vec<Value> = left.map(|(value, _)| value).collect();
            let left_bytes = left.iter().map(value_bytes).sum::<usize>();
            self.changes_one(bytes_of_name(&vertex), key.len() + left_bytes).await?;
            let value = if left.is_empty() { change::Value::Null } else { to_stored(&key, &Value::List(left))? };
            let properties = [(EngineName::from(&*key), value)].into_iter().collect();
            operations.push(Operation::UpsertVertex { vertex: name_of(&vertex)?, properties, replace: false });
        }
        let edit = |run: &Self, edge: &Neighbour, properties: Option<Properties>| -> Done<Operation> {
            let id = edge.id();
            Ok(Operation::EditEdge {
                label: run.edge_label_of(edge).into(),
                source: name_of(&id.source)?,
                target: name_of(&id.target)?,
                number: Some(id.parallel),
                properties,
                replace: false,
            })
        };
        for (edge, key) in &of_edges {
            let label_bytes = self.edge_label_of(edge).len();
            self.changes_one(bytes_of_ends(edge) + label_bytes, key.len()).await?;
            let properties = [(EngineName::from(&**key), change::Value::Null)].into_iter().collect();
            operations.push(edit(self, edge, Some(properties))?);
        }
        // From the last of each pair on, or those before would change the numbers of those behind.
        let mut edges: Vec<Neighbour> = edges.into_values().collect();
        edges.sort_unstable_by_key(|edge| std::cmp::Reverse(edge.id()));
        for edge in &edges {
            let id = edge.id();
            if !vertices.contains(&id.source) && !vertices.contains(&id.target) {
                let label_bytes = self.edge_label_of(edge).len();
                self.changes_one(bytes_of_ends(edge) + label_bytes, 0).await?;
                operations.push(edit(self, edge, None)?);
            }
        }
        let mut gone: HashSet<VertexRef> = HashSet::new();
        let mut gone_bytes = 0;
        for vertex in vertices.iter().filter_map(|vertex| named.get(vertex)) {
            self.changes_one(name_bytes(vertex), 0).await?;
            gone_bytes += 2 * size_of::<VertexRef>() + name_bytes(vertex);
            gone.insert(vertex.clone());
            operations.push(Operation::DeleteVertex { vertex: vertex.clone() });
        }
        self.growth.end(&mark)?;
        self.growth.take(gone_bytes)?;
        self.apply(operations, LogicalTypes::default()).await?;
        // In a batch vertices come before edges: an edge of a vertex that goes would have no end.
        let stays = |operation: &Operation| match operation {
            Operation::EditEdge { source, target, .. } => !gone.contains(source) && !gone.contains(target),
            _ => true,
        };
        for operations in &mut self.changes.operations {
            self.growth.work(operations.len() as u64)?;
            if !gone.is_empty() && !operations.iter().all(stays) {
                Arc::make_mut(operations).retain(stays);
            }
        }
        Ok(Batch::default())
    }
}

impl NewVertex {
    pub(super) fn set_token(&mut self, token: T, value: Value) -> Done<()> {
        match (token, value) {
            (T::Id, value) => self.id = Some(value),
            (T::Label, Value::Text(label)) => self.label = Some((*label).into()),
            (T::Label, _) => return Err(QueryError::wrong_type("a label is a text")),
            (token, _) => return Err(QueryError::wrong_type(format!("T.{} cannot be set", token.name()))),
        }
        Ok(())
    }

    pub(super) fn set_entries(&mut self, entries: Vec<(Value, Value)>, cardinality: Option<Cardinality>) -> Done<()> {
        for (key, value) in entries {
            match key {
                Value::Text(name) => self.values.push(((*name).into(), cardinality, value)),
                Value::Token(Token::T(token)) => self.set_token(token, value)?,
                other => {
                    return Err(QueryError::wrong_type(format!(
                        "the keys of a map of properties are names, T.id and T.label, and this is {}",
                        kind_of(&other)
                    )));
                }
            }
        }
        Ok(())
    }
}

pub(super) fn check_label(label: &str) -> Done<()> {
    match label {
        "" => Err(QueryError::wrong_type("Label can not be empty")),
        label if label.starts_with('~') => {
            Err(QueryError::wrong_type(format!("Label can not be a hidden key: {label}")))
        }
        _ => Ok(()),
    }
}

pub(super) fn check_name(name: &str) -> Done<()> {
    match name {
        "" => Err(QueryError::wrong_type("Property key can not be empty")),
        name if name.starts_with('~') => {
            Err(QueryError::wrong_type(format!("Property key can not be a hidden key: {name}")))
        }
        _ => Ok(()),
    }
}

/// The key of a new vertex: its id as the label's keys are, or a new one.
fn new_key(label: &str, id: Option<&Value>, key_type: Option<KeyType>, random: &mut fastrand::Rng) -> Done<Key> {
    let Some(id) = id else {
        return Ok(match key_type {
            // As many as a JSON number holds exactly.
            Some(KeyType::Int64) => Key::Int64(random.i64(1..1 << 53)),
            _ => Key::String(uuid::Uuid::new_v4().to_string()),
        });
    };
    let wrong = |wanted: &str| {
        QueryError::wrong_type(format!(
            "the keys of {label} are {wanted}, and the id of the new vertex is {}",
            kind_of(id)
        ))
    };
    match (id, key_type) {
        (Value::Number(number), None | Some(KeyType::Int64)) => {
            let whole = crate::value::to_i64(number);
            match number {
                Number::Byte(_) | Number::Short(_) | Number::Int(_) | Number::Long(_) => Ok(Key::Int64(whole)),
                _ => Err(wrong("int64")),
            }
        }
        (Value::Text(text), key_type) => {
            let key = match split_vertex(text) {
                Ok((of, key)) if of == label => key,
                _ => text,
            };
            let key_type = key_type.unwrap_or(KeyType::String);
            Key::parse(key, key_type).ok_or_else(|| wrong("int64"))
        }
        (Value::Uuid(uuid), None | Some(KeyType::String)) => Ok(Key::String(uuid.to_string())),
        (_, Some(KeyType::Int64)) => Err(wrong("int64")),
        _ => Err(wrong("text")),
    }
}

fn not_an_element(value: &Value) -> QueryError {
    QueryError::wrong_type(format!("only vertices and edges can be changed, and this is {}", kind_of(value)))
}

pub(super) fn no_edge_ids() -> QueryError {
    QueryError::wrong_type("Edge does not support user supplied identifiers: an edge gets its id from its vertices")
}

fn gone(what: &str) -> QueryError {
    hoplake_engine::EngineError::Internal(format!("{what} is not there")).into()
}
