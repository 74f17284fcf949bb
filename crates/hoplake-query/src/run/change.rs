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
    change::{LogicalTypes, Operation, VertexRef},
    split_vertex,
    traversal::{Hop, HopDirection},
};
use hoplake_format::{Key, KeyType, LabelId, VertexId, VertexLabel};

use super::{
    Run,
    batch::{Batch, Element},
    kept::distinct,
};
use crate::{
    error::{Done, QueryError},
    growth::units_of,
    literal::Number,
    plan::{Name, NewKey, NewProperty},
    run::{properties::Wanted, to_stored::Owner, transaction::batch_of},
    tokens::{Cardinality, T, Token},
    value::{ALLOCATION_BYTES, Value, kind_of, value_bytes},
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

/// How many times the name of a vertex is there meanwhile: as such, in the operation, and where it is looked up.
const NAME_COPIES: usize = 4;

/// The same of a value: as it is given, as it is stored, and in the operation.
const VALUE_COPIES: usize = 3;

/// Properties that a vertex or an edge is to have, by name in the order in which they were given.
pub(crate) type NewValues = Vec<(Name, Option<Cardinality>, Value)>;

pub(crate) fn bytes_of(values: &NewValues) -> usize {
    values.iter().map(|(name, _, value)| size_of::<Name>() + name.len() + value_bytes(value)).sum()
}

pub(crate) fn name_bytes(vertex: &VertexRef) -> usize {
    let key = if let Key::String(key) = &vertex.key { key.len() } else { 0 };
    vertex.label.len() + key
}

/// A vertex that is to be added.
#[derive(Debug, Clone, Default)]
pub(crate) struct NewVertex {
    pub(crate) label: Option<Name>,
    pub(crate) id: Option<Value>,
    pub(crate) values: NewValues,
}

impl Run {
    /// Changes the snapshot that the query reads, and notes the operations for the commit.
    pub(crate) async fn apply(&mut self, operations: Vec<Operation>, logical_types: LogicalTypes) -> Done<()> {
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
    pub(crate) async fn names_of(
        &mut self,
        vertices: impl IntoIterator<Item = VertexId>,
    ) -> Done<HashMap<VertexId, VertexRef>> {
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
            let keys = snapshot.keys().of(piece, &mut self.branch).await?;
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
    pub(crate) async fn new_values(&mut self, properties: &[NewProperty], batch: &Batch) -> Done<Vec<NewVertex>> {
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

    /// Adds vertices, and returns them.
    pub(crate) async fn added_vertices(&mut self, new: &[&NewVertex]) -> Done<Vec<VertexId>> {
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
    pub(crate) async fn changes_one(&mut self, name_bytes: usize, value_bytes: usize) -> Done<()> {
        let bytes = CHANGE_BYTES + NAME_COPIES * name_bytes + VALUE_COPIES * value_bytes;
        self.growth.take(bytes)?;
        Ok(self.pace.rest(units_of(bytes)).await?)
    }

    /// Whether there are vertices with some keys: of their labels, or of any label where the keys of the graph are unique. A query may
    /// not end that, for the ids of all vertices would have another form.
    pub(crate) async fn taken(&mut self, named: &[VertexRef]) -> Done<Vec<bool>> {
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
        let found = snapshot.keys().look_up(&keys, &mut self.branch).await?;
        let mut taken = vec![false; named.len()];
        owners.into_iter().zip(found).filter(|(_, found)| found.is_some()).for_each(|(at, _)| taken[at] = true);
        Ok(taken)
    }

    pub(crate) async fn looked_up(&mut self, named: &[VertexRef]) -> Done<Vec<Option<VertexId>>> {
        let snapshot = self.snapshot.clone();
        let schema = snapshot.schema();
        let keys: Vec<_> = named
            .iter()
            .map(|vertex| schema.label_id(&vertex.label).map(|label| (label, vertex.key.clone())))
            .collect();
        let known: Vec<_> = keys.iter().flatten().cloned().collect();
        let mut found = snapshot.keys().look_up(&known, &mut self.branch).await?.into_iter();
        Ok(keys.into_iter().map(|key| key.and_then(|_| found.next().flatten())).collect())
    }

    /// Adds edges, and returns them.
    pub(crate) async fn added_edges(
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
        let read = self.snapshot.adjacency().neighbours(&frontier, &hop, &mut self.branch).await?;
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

    /// Sets properties of elements.
    pub(crate) async fn set_values(&mut self, new: Vec<(Element, NewValues)>) -> Done<()> {
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
}

impl NewVertex {
    pub(crate) fn set_token(&mut self, token: T, value: Value) -> Done<()> {
        match (token, value) {
            (T::Id, value) => self.id = Some(value),
            (T::Label, Value::Text(label)) => self.label = Some((*label).into()),
            (T::Label, _) => return Err(QueryError::wrong_type("a label is a text")),
            (token, _) => return Err(QueryError::wrong_type(format!("T.{} cannot be set", token.name()))),
        }
        Ok(())
    }

    pub(crate) fn set_entries(&mut self, entries: Vec<(Value, Value)>, cardinality: Option<Cardinality>) -> Done<()> {
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

pub(crate) fn check_label(label: &str) -> Done<()> {
    match label {
        "" => Err(QueryError::wrong_type("Label can not be empty")),
        label if label.starts_with('~') => {
            Err(QueryError::wrong_type(format!("Label can not be a hidden key: {label}")))
        }
        _ => Ok(()),
    }
}

pub(crate) fn check_name(name: &str) -> Done<()> {
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

pub(crate) fn not_an_element(value: &Value) -> QueryError {
    QueryError::wrong_type(format!("only vertices and edges can be changed, and this is {}", kind_of(value)))
}

pub(crate) fn no_edge_ids() -> QueryError {
    QueryError::wrong_type("Edge does not support user supplied identifiers: an edge gets its id from its vertices")
}

pub(crate) fn gone(what: &str) -> QueryError {
    hoplake_engine::EngineError::Internal(format!("{what} is not there")).into()
}
