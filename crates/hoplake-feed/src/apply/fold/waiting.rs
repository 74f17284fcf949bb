//! Edges that wait for a vertex that is not there yet.
//!
//! The tables have a row that names a row which the graph does not have: because nothing in the database forbids it, or because
//! that row does not match its condition. When the vertex comes, the edge does.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hoplake::{Properties, VertexRef};

use super::{EdgeId, Origin};

/// The waiting edges of a feed, by id and by the missing vertex.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WaitingEdges {
    edges: BTreeMap<EdgeId, WaitingEdge>,
    at: HashMap<VertexRef, BTreeSet<EdgeId>>,
}

/// What an edge will be.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitingEdge {
    /// Its properties.
    pub properties: Properties,
    /// Whose row says that there is an edge.
    pub owner: Owner,
}

/// Whose row says that there is an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// That of its source, as a foreign key.
    Source,
    /// That of its target, as a foreign key.
    Target,
    /// A row of its own.
    Row,
}

/// What changes of the edges that wait; `None` of those that no longer do.
pub type WaitingChanges = BTreeMap<EdgeId, Option<WaitingEdge>>;

impl WaitingEdge {
    /// The vertex whose row says that there is an edge.
    pub fn owner<'a>(&self, id: &'a EdgeId) -> Option<&'a VertexRef> {
        match self.owner {
            Owner::Source => Some(&id.source),
            Owner::Target => Some(&id.target),
            Owner::Row => None,
        }
    }
}

impl WaitingEdges {
    /// How many wait.
    pub fn len(&self) -> usize {
        self.edges.len()
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&EdgeId, &WaitingEdge)> {
        self.edges.iter()
    }

    /// Applies changes.
    pub fn apply(&mut self, changes: &WaitingChanges) {
        for (id, change) in changes {
            match change {
                Some(edge) => {
                    for end in [&id.source, &id.target] {
                        self.at.entry(end.clone()).or_default().insert(id.clone());
                    }
                    self.edges.insert(id.clone(), edge.clone());
                }
                None => {
                    for end in [&id.source, &id.target] {
                        if let Some(at) = self.at.get_mut(end) {
                            at.remove(id);
                            if at.is_empty() {
                                self.at.remove(end);
                            }
                        }
                    }
                    self.edges.remove(id);
                }
            }
        }
    }
}

/// The edges that wait, and what a batch changes of them.
#[derive(Debug)]
pub(super) struct WaitingOverlay<'a> {
    base: &'a WaitingEdges,
    changes: WaitingChanges,
    /// The changed ones at a vertex, and ones that no longer are.
    changed_at: HashMap<VertexRef, BTreeSet<EdgeId>>,
    /// The rows of the batch that say so.
    origins: HashMap<EdgeId, Origin>,
}

impl<'a> WaitingOverlay<'a> {
    pub(super) fn new(base: &'a WaitingEdges) -> Self {
        Self { base, changes: WaitingChanges::new(), changed_at: HashMap::new(), origins: HashMap::new() }
    }

    pub(super) fn into_changes(self) -> WaitingChanges {
        self.changes
    }

    /// Adds an edge; `origin` is its row, if the batch has it.
    pub(super) fn insert(&mut self, id: EdgeId, edge: WaitingEdge, origin: Option<Origin>) {
        match origin {
            Some(origin) => drop(self.origins.insert(id.clone(), origin)),
            None => drop(self.origins.remove(&id)),
        }
        for end in [&id.source, &id.target] {
            self.changed_at.entry(end.clone()).or_default().insert(id.clone());
        }
        self.changes.insert(id, Some(edge));
    }

    /// The row of the batch that says there is an edge.
    pub(super) fn origin(&self, id: &EdgeId) -> Option<Origin> {
        self.origins.get(id).copied()
    }

    pub(super) fn has(&self, id: &EdgeId) -> bool {
        self.changes.get(id).map_or_else(|| self.base.edges.contains_key(id), Option::is_some)
    }

    pub(super) fn remove(&mut self, id: &EdgeId) {
        match self.base.edges.contains_key(id) {
            true => drop(self.changes.insert(id.clone(), None)),
            false => drop(self.changes.remove(id)),
        }
    }

    /// Those at a vertex.
    pub(super) fn at(&self, vertex: &VertexRef) -> Vec<(EdgeId, WaitingEdge)> {
        let ids = self.base.at.get(vertex).into_iter().flatten().filter(|id| !self.changes.contains_key(*id));
        let before = ids.filter_map(|id| self.base.edges.get(id).map(|edge| (id.clone(), edge.clone())));
        let changed = self.changed_at.get(vertex).into_iter().flatten();
        let changed = changed.filter_map(|id| self.changes.get(id)?.clone().map(|edge| (id.clone(), edge)));
        before.chain(changed).collect()
    }

    /// Those of a type.
    pub(super) fn of_type(&self, is_meant: impl Fn(&EdgeId) -> bool) -> Vec<EdgeId> {
        let before = self.base.edges.keys().filter(|id| !self.changes.contains_key(*id));
        let changed = self.changes.iter().filter(|(_, edge)| edge.is_some()).map(|(id, _)| id);
        before.chain(changed).filter(|id| is_meant(id)).cloned().collect()
    }
}
