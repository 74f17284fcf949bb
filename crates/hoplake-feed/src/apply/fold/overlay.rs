//! Vertices and edges as they will be after a batch, over what the graph had.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use foldhash::fast::RandomState;
use hoplake::{EdgeKey, Name, Properties, Value, VertexRef};

/// An edge by its label, its ends, and what distinguishes it from others between them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EdgeId {
    /// The label.
    pub label: Name,
    /// The vertex that it leaves.
    pub source: VertexRef,
    /// The vertex that it reaches.
    pub target: VertexRef,
    /// The edge key, if its label has one.
    pub key: Option<EdgeKeyText>,
}

/// An edge key in a form that has an order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EdgeKeyText {
    property: Name,
    /// The value as text, for comparison.
    text: String,
    value: Ordered,
}

/// A value that comparisons pass over: the text stands for it.
#[derive(Debug, Clone)]
struct Ordered(Value);

impl PartialEq for Ordered {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Ordered {}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl std::hash::Hash for Ordered {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

impl From<EdgeKey> for EdgeKeyText {
    fn from(key: EdgeKey) -> Self {
        Self { property: key.property, text: key.value.to_string(), value: Ordered(key.value) }
    }
}

impl From<&EdgeKeyText> for EdgeKey {
    fn from(key: &EdgeKeyText) -> Self {
        Self { property: key.property.clone(), value: key.value.0.clone() }
    }
}

impl EdgeId {
    /// The end that is not this vertex, or the same of a self-loop.
    pub fn other_end(&self, vertex: &VertexRef) -> &VertexRef {
        if self.source == *vertex { &self.target } else { &self.source }
    }

    /// The same edge with another vertex in the place of one.
    #[must_use]
    pub fn with_end(mut self, old: &VertexRef, new: &VertexRef) -> Self {
        for end in [&mut self.source, &mut self.target] {
            if end == old {
                end.clone_from(new);
            }
        }
        self
    }
}

/// The row change that an operation comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// Its transaction in the batch.
    pub transaction: usize,
    /// Its change in the transaction.
    pub change: usize,
    /// The entry of the mapping.
    pub entry: usize,
}

/// A vertex as it will be.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VertexState {
    /// Whether it will be there.
    pub exists: bool,
    /// Whether nothing stays of what it had in the graph.
    pub is_reset: bool,
    /// The properties that it gets.
    pub properties: Properties,
    /// The last change of its own row; without one, the first change that reached it by a rule of the database.
    pub origin: Option<Origin>,
}

/// An edge as it will be.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EdgeState {
    /// Whether it will be there.
    pub exists: bool,
    /// Whether nothing stays of what it had in the graph.
    pub is_reset: bool,
    /// The properties that it gets, of each of several edges that nothing distinguishes.
    pub properties: Vec<Properties>,
    /// The last change of the row that says there is the edge.
    pub origin: Option<Origin>,
}

/// All that changes.
#[derive(Debug, Default)]
pub struct Overlay {
    /// The vertices.
    pub vertices: HashMap<VertexRef, VertexState, RandomState>,
    /// The edges.
    pub edges: HashMap<EdgeId, EdgeState, RandomState>,
    /// The edges at a vertex.
    at: HashMap<VertexRef, BTreeSet<EdgeId>, RandomState>,
    /// The change that is applied.
    pub(super) origin: Option<Origin>,
}

impl Overlay {
    /// The vertex gets these properties, and exists.
    pub(super) fn upsert_vertex(&mut self, vertex: &VertexRef, properties: Properties) {
        let origin = self.origin;
        self.put_vertex(vertex, properties, |before| origin.or(before));
    }

    /// The same by a rule of the database: a rejection is still about the vertex's own row, if the batch has it.
    pub(super) fn amend_vertex(&mut self, vertex: &VertexRef, properties: Properties) {
        let origin = self.origin;
        self.put_vertex(vertex, properties, |before| before.or(origin));
    }

    fn put_vertex(
        &mut self,
        vertex: &VertexRef,
        properties: Properties,
        origin: impl Fn(Option<Origin>) -> Option<Origin>,
    ) {
        if let Some(state) = self.vertices.get_mut(vertex) {
            state.exists = true;
            state.properties.extend(properties);
            state.origin = origin(state.origin);
        } else {
            let state = VertexState { exists: true, is_reset: false, properties, origin: origin(None) };
            self.vertices.insert(vertex.clone(), state);
        }
    }

    /// The vertex is gone with its edges.
    pub(super) fn delete_vertex(&mut self, vertex: &VertexRef) {
        for id in self.at.remove(vertex).unwrap_or_default() {
            if let Some(at) = self.at.get_mut(id.other_end(vertex)) {
                at.remove(&id);
            }
            self.edges.remove(&id);
        }
        let gone = VertexState { exists: false, is_reset: true, properties: Properties::new(), origin: self.origin };
        self.vertices.insert(vertex.clone(), gone);
    }

    /// Whether nothing stays of what a vertex had in the graph.
    pub fn is_reset(&self, vertex: &VertexRef) -> bool {
        self.vertices.get(vertex).is_some_and(|state| state.is_reset)
    }

    /// The edge gets these properties, and exists.
    pub(super) fn upsert_edge(&mut self, id: EdgeId, properties: Properties) {
        self.upsert_edge_of(self.origin, id, properties);
    }

    /// The same of an edge whose row is another than the one that is applied.
    pub(super) fn upsert_edge_of(&mut self, origin: Option<Origin>, id: EdgeId, properties: Properties) {
        if let Some(state) = self.edges.get_mut(&id) {
            state.exists = true;
            state.origin = origin.or(state.origin);
            match state.properties.first_mut() {
                Some(first) => first.extend(properties),
                None => state.properties.push(properties),
            }
            return;
        }
        self.index(&id);
        self.edges.insert(id, EdgeState { exists: true, is_reset: false, properties: vec![properties], origin });
    }

    /// One more edge, next to those that nothing distinguishes from it.
    pub(super) fn add_edge(&mut self, id: EdgeId, properties: Properties) {
        self.index(&id);
        let state = self.edges.entry(id).or_insert_with(|| EdgeState { is_reset: true, ..EdgeState::default() });
        state.exists = true;
        state.origin = self.origin.or(state.origin);
        state.properties.push(properties);
    }

    /// The edge is gone.
    pub(super) fn delete_edge(&mut self, id: EdgeId) {
        self.index(&id);
        self.edges.insert(id, EdgeState { exists: false, is_reset: true, properties: Vec::new(), origin: self.origin });
    }

    fn index(&mut self, id: &EdgeId) {
        for end in [&id.source, &id.target] {
            match self.at.get_mut(end) {
                Some(at) => drop(at.insert(id.clone())),
                None => drop(self.at.insert(end.clone(), BTreeSet::from([id.clone()]))),
            }
        }
    }

    /// The edges at a vertex that the batch names.
    pub(super) fn at(&self, vertex: &VertexRef) -> impl Iterator<Item = (&EdgeId, &EdgeState)> {
        let ids = self.at.get(vertex).into_iter().flatten();
        ids.filter_map(|id| self.edges.get(id).map(|state| (id, state)))
    }

    /// The edges at a vertex, from those that it had in the graph.
    pub(super) fn edges_of(
        &self,
        vertex: &VertexRef,
        base: &[super::KnownEdge],
        is_meant: impl Fn(&EdgeId) -> bool,
    ) -> BTreeMap<EdgeId, Vec<Properties>> {
        let mut edges: BTreeMap<EdgeId, Vec<Properties>> = BTreeMap::new();
        if !self.is_reset(vertex) {
            // Those of a vertex at the other end that was deleted went with it.
            for edge in base.iter().filter(|edge| !self.is_reset(edge.id.other_end(vertex))) {
                edges.entry(edge.id.clone()).or_default().push(edge.properties.clone());
            }
        }
        for (id, state) in self.at(vertex).filter(|(id, _)| is_meant(id)) {
            if state.is_reset {
                edges.remove(id);
            }
            if !state.exists {
                continue;
            }
            let there = edges.entry(id.clone()).or_default();
            for (number, properties) in state.properties.iter().enumerate() {
                match there.get_mut(number) {
                    Some(before) => before.extend(properties.clone()),
                    None => there.push(properties.clone()),
                }
            }
        }
        edges
    }
}
