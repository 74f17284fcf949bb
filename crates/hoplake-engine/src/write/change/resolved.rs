//! A batch, resolved on a version of a graph: the vertices that it adds, changes and deletes, and the new edges of the pairs that it names.
//!
//! [`super::resolve`] creates it. Conflicts, new properties and the delta are computed from it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use hoplake_format::VertexId;

use crate::read::property_index::Items;

use super::{
    Batch, Columns, Name, Operation, Properties, VertexRef,
    names::{At, Names, Single},
    retype::OfOwners,
};

/// A vertex that exists, or one that the batch adds, by its number among the vertices that the batch names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Vertex {
    Known(VertexId),
    New(u32),
}

/// All edges of a label, by its number in the batch, between two vertices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pair {
    pub(crate) label: u32,
    pub(crate) source: Vertex,
    pub(crate) target: Vertex,
}

/// The new edges between two vertices.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Edges {
    /// One edge, from the change of the batch with this number.
    // A million blind upserts copy no properties: they stay in the batch.
    Of(u32),
    /// An edge for each of these properties.
    Made(Vec<Properties>),
}

/// All edges between two vertices.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub(super) pair: Pair,
    pub(super) edges: Edges,
    /// Whether they do not depend on the edges before.
    pub(super) alone: bool,
}

/// The properties of a vertex or of an edge.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PropertySource<'a> {
    /// A row of the columns of an operation.
    OfColumns { operation: usize, columns: &'a Columns, row: usize },
    /// Others.
    Single(&'a Properties),
}

/// The new row of a vertex.
#[derive(Debug)]
pub(super) enum VertexRow {
    /// The row of the change with this number; the only copy stays in the batch.
    Of(u32),
    /// A row of its own.
    Made(Properties),
}

/// A vertex that exists and is changed.
#[derive(Debug)]
pub(super) struct ChangedVertex {
    pub(super) end: VertexRef,
    pub(super) row: VertexRow,
    /// Whether the row before is dropped completely.
    pub(super) replace: bool,
}

/// The change of the schema that a batch needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Widening {
    /// None: the batch fits the schema.
    None,
    /// New labels, edge types or properties.
    Adds,
    /// Also a new type for an existing property.
    Converts,
}

/// A batch, resolved on a version of a graph.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(super) batch: Arc<Batch>,
    pub(super) names: Names,
    /// The ids of the vertices that the batch names, by number; `None` for those that do not exist.
    pub(super) known: Vec<Option<VertexId>>,
    /// Whether a vertex that it may add has the key of a vertex of another label.
    pub(super) shares_key: bool,
    /// Vertices that it adds.
    pub(super) added: BTreeMap<VertexRef, VertexRow>,
    /// Vertices that exist and whose rows it writes.
    pub(super) changed: BTreeMap<VertexId, ChangedVertex>,
    /// Vertices that it deletes.
    pub(crate) gone: BTreeMap<VertexId, VertexRef>,
    /// Vertices that it deletes and upserts again; they lose their edges.
    pub(super) cleared: BTreeSet<VertexId>,
    /// Vertices that it upserts and deletes again, by number; they do not exist, as before.
    pub(super) withdrawn: BTreeSet<u32>,
    /// Labels of vertices that it upserts; the graph may not have them yet.
    pub(super) introduced: BTreeSet<Name>,
    /// The new edges of all pairs that it writes, sorted by pair.
    pub(super) groups: Vec<Group>,
    /// The items of property indexes, in the version before, for the vertices that it changes or deletes.
    pub(crate) items_before: Items,
    /// How the schema has to be widened for it.
    pub(crate) widens: Widening,
    /// Properties without values whose type it changes.
    pub(super) retyped: OfOwners,
}

impl Resolved {
    /// Vertices that it adds, changes or deletes.
    pub(crate) fn written(&self) -> impl Iterator<Item = &VertexRef> {
        self.added.keys().chain(self.existing().map(|(_, end)| end))
    }

    /// Existing vertices that it changes or deletes.
    pub(crate) fn existing(&self) -> impl Iterator<Item = (VertexId, &VertexRef)> {
        let changed = self.changed.iter().map(|(vertex, changed)| (*vertex, &changed.end));
        changed.chain(self.gone.iter().map(|(vertex, end)| (*vertex, end)))
    }

    /// The vertices that it adds.
    pub(crate) fn added(&self) -> impl Iterator<Item = (&VertexRef, PropertySource<'_>)> {
        self.added.iter().map(|(end, row)| (end, self.written_row(row)))
    }

    /// Vertices that exist whose rows it writes.
    pub(crate) fn changed(&self) -> impl Iterator<Item = (VertexId, &VertexRef, PropertySource<'_>)> {
        self.changed.iter().map(|(vertex, changed)| (*vertex, &changed.end, self.written_row(&changed.row)))
    }

    /// The ids of the vertices that it names, by number; `None` for those that do not exist.
    pub(crate) fn known(&self) -> &[Option<VertexId>] {
        &self.known
    }

    /// The vertices that it names and that do not exist: the batch depends on their absence.
    pub(crate) fn missing(&self) -> impl Iterator<Item = VertexRef> {
        // If another batch of the delta added one of these, this batch would have another effect: `Items` compares them.
        let missing = self.known.iter().enumerate().filter(|(_, known)| known.is_none());
        missing.map(|(number, _)| self.end(number as u32))
    }

    /// A vertex that it names.
    pub(crate) fn end(&self, number: u32) -> VertexRef {
        self.names.end(&self.batch, number)
    }

    /// The name of the label of a vertex that it names.
    pub(crate) fn vertex_label(&self, number: u32) -> &Name {
        self.names.vertex_label(number)
    }

    /// How it names a vertex that exists.
    pub(crate) fn name_of(&self, vertex: VertexId) -> Option<VertexRef> {
        let number = self.known.iter().position(|known| *known == Some(vertex))?;
        Some(self.end(number as u32))
    }

    /// An edge label that it names.
    pub(crate) fn edge_label(&self, number: u32) -> &str {
        &self.names.edge_labels[number as usize]
    }

    /// All edge labels that it names, by number.
    pub(crate) fn edge_labels(&self) -> &[Name] {
        &self.names.edge_labels
    }

    /// The pairs whose edges it writes, ascending.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = Pair> {
        self.groups.iter().map(|group| group.pair)
    }

    /// Of these, the pairs whose new edges depend on the old ones.
    pub(crate) fn pairs_built_on(&self) -> impl Iterator<Item = Pair> {
        self.groups.iter().filter(|group| !group.alone).map(|group| group.pair)
    }

    /// The pairs whose edges it writes, each with the properties of all its new edges.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (Pair, impl Iterator<Item = PropertySource<'_>>)> {
        self.groups.iter().map(|group| {
            let (one, many) = match &group.edges {
                Edges::Of(number) => (self.written_by(*number), &[][..]),
                Edges::Made(group) => (None, group.as_slice()),
            };
            (group.pair, one.into_iter().chain(many.iter().map(PropertySource::Single)))
        })
    }

    /// Vertices whose rows it changes partly, each with a test whether the batch sets a property.
    pub(super) fn partial_rows(&self) -> impl Iterator<Item = (VertexId, impl Fn(&str) -> bool)> {
        let partial = self.changed.iter().filter(|(_, changed)| !changed.replace);
        partial.map(|(vertex, changed)| {
            let row = self.written_row(&changed.row);
            let names = move |property: &str| match row {
                PropertySource::Single(properties) => properties.get(property).is_some(),
                PropertySource::OfColumns { columns, row, .. } => columns.names(row, property),
            };
            (*vertex, names)
        })
    }

    /// Vertices that lose all their edges.
    pub(super) fn without_edges(&self) -> impl Iterator<Item = VertexId> {
        self.gone.keys().chain(&self.cleared).copied()
    }

    /// Whether a pair loses all its edges because one of its vertices is deleted and added again.
    pub(super) fn is_cleared(&self, pair: &Pair) -> bool {
        let is = |vertex| matches!(vertex, Vertex::Known(vertex) if self.cleared.contains(&vertex));
        is(pair.source) || is(pair.target)
    }

    fn written_row<'a>(&'a self, row: &'a VertexRow) -> PropertySource<'a> {
        match row {
            VertexRow::Made(properties) => PropertySource::Single(properties),
            VertexRow::Of(number) => self.written_by(*number).unwrap_or(PropertySource::Single(Properties::NONE)),
        }
    }

    /// The properties of an upsert.
    fn written_by(&self, number: u32) -> Option<PropertySource<'_>> {
        let At { operation, change } = self.change(number);
        match change {
            Single::One(one) => one.properties().map(PropertySource::Single),
            Single::Row(columns, row) => Some(PropertySource::OfColumns { operation, columns, row }),
        }
    }

    /// A change by its number.
    pub(super) fn change(&self, number: u32) -> At<'_> {
        self.names.change(&self.batch, number)
    }

    /// Whether a pair loses its edges because one of its vertices is deleted, not by an operation on its edges.
    pub(crate) fn is_deleted_with_vertex(&self, pair: &Pair) -> bool {
        let is_deleted = |vertex: &Vertex| matches!(vertex, Vertex::Known(vertex) if self.gone.contains_key(vertex));
        is_deleted(&pair.source) || is_deleted(&pair.target)
    }

    /// Whether a change replaces or deletes all edges between two vertices.
    pub(super) fn resets(&self, number: u32) -> bool {
        match self.change(number).change {
            Single::Row(columns, _) => columns.replaces(),
            // Without `replace`, an edge keeps the properties that the upsert does not name. An upsert that names all of them does not count:
            // another batch of the same delta may add a property.
            Single::One(Operation::UpsertEdge { key, replace, .. }) => key.is_none() && *replace,
            Single::One(Operation::DeleteEdge { key, .. }) => key.is_none(),
            Single::One(_) => false,
        }
    }
}
