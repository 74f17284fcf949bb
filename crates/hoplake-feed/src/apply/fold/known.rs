//! What a fold needs to know of the graph, and the answers.

use std::collections::{BTreeSet, HashMap};

use hoplake::{Direction, Name, Properties, VertexRef};

use super::EdgeId;

/// Something of the graph, as it was before a batch, on which the batch depends.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Need {
    /// Whether there is a vertex.
    Exists(VertexRef),
    /// The edges of a vertex along one label, in one direction, to or from vertices of a label.
    Edges(EdgesOf),
    /// A vertex with all its properties and edges.
    Whole(VertexRef),
    /// All vertices of a label.
    Vertices(Name),
    /// All edges of a label between vertices of two labels.
    EdgeType(EdgeTypeName),
}

/// Edges of a vertex.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EdgesOf {
    /// The vertex.
    pub vertex: VertexRef,
    /// Their label.
    pub label: Name,
    /// Whether they leave the vertex.
    pub is_outgoing: bool,
    /// The label of the vertices at their other ends.
    pub other: Name,
}

/// The edges of a label between vertices of two labels.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EdgeTypeName {
    /// Their label.
    pub label: Name,
    /// The label of the vertices that they leave.
    pub source: Name,
    /// The label of the vertices that they reach.
    pub target: Name,
}

impl EdgesOf {
    /// The direction as the graph has it.
    pub fn direction(&self) -> Direction {
        if self.is_outgoing { Direction::Out } else { Direction::In }
    }
}

/// An edge of the graph.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownEdge {
    /// Its label, ends and key.
    pub id: EdgeId,
    /// All its properties.
    pub properties: Properties,
}

/// A vertex of the graph.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KnownVertex {
    /// All its properties.
    pub properties: Properties,
    /// All its edges; a self-loop once.
    pub edges: Vec<KnownEdge>,
}

/// The results of the look-ups for a batch.
#[derive(Debug, Clone, Default)]
pub struct LookupResults {
    /// Whether there are vertices.
    pub exists: HashMap<VertexRef, bool>,
    /// Edges of vertices.
    pub edges: HashMap<EdgesOf, Vec<KnownEdge>>,
    /// Whole vertices; `None` of those that are not there.
    pub whole: HashMap<VertexRef, Option<KnownVertex>>,
    /// All vertices of labels.
    pub vertices: HashMap<Name, Vec<VertexRef>>,
    /// All edges of types.
    pub edge_types: HashMap<EdgeTypeName, Vec<EdgeId>>,
}

/// What a fold asks, and what it knows.
#[derive(Debug)]
pub(super) struct Asking<'a> {
    known: &'a LookupResults,
    needs: BTreeSet<Need>,
}

impl<'a> Asking<'a> {
    pub(super) fn new(known: &'a LookupResults) -> Self {
        Self { known, needs: BTreeSet::new() }
    }

    pub(super) fn into_needs(self) -> BTreeSet<Need> {
        self.needs
    }

    /// Whether there was a vertex; no, until that is known.
    pub(super) fn exists(&mut self, vertex: &VertexRef) -> bool {
        if let Some(whole) = self.known.whole.get(vertex) {
            return whole.is_some();
        }
        let known = self.known.exists.get(vertex).copied();
        known.unwrap_or_else(|| self.ask(Need::Exists(vertex.clone()), false))
    }

    /// The edges that a vertex had; none, until they are known.
    pub(super) fn edges(&mut self, of: EdgesOf) -> &'a [KnownEdge] {
        match self.known.edges.get(&of) {
            Some(edges) => edges,
            None => self.ask(Need::Edges(of), &[]),
        }
    }

    /// A vertex as it was; `None` until it is known, and if there was none.
    pub(super) fn whole(&mut self, vertex: &VertexRef) -> Option<&'a KnownVertex> {
        match self.known.whole.get(vertex) {
            Some(whole) => whole.as_ref(),
            None => self.ask(Need::Whole(vertex.clone()), None),
        }
    }

    pub(super) fn vertices(&mut self, label: &Name) -> &'a [VertexRef] {
        match self.known.vertices.get(label) {
            Some(vertices) => vertices,
            None => self.ask(Need::Vertices(label.clone()), &[]),
        }
    }

    pub(super) fn edge_type(&mut self, name: EdgeTypeName) -> &'a [EdgeId] {
        match self.known.edge_types.get(&name) {
            Some(edges) => edges,
            None => self.ask(Need::EdgeType(name), &[]),
        }
    }

    fn ask<T>(&mut self, need: Need, until_then: T) -> T {
        self.needs.insert(need);
        until_then
    }
}
