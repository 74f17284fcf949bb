//! Walks and paths with the keys and properties of their vertices, and of the edges between them.
//!
//! Walks share vertices and edges, so each is read once for many walks: the keys and properties of vertices and the properties of edges
//! are one wave for all of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use arrow_array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow_schema::{DataType, Schema};
use futures::future::try_join;
use hoplake_engine::{Edges, EngineError, Frontier, Held, Neighbour, Walk, change::Value, traversal::Hop};
use hoplake_format::{EdgeTypeId, Key, LabelId, Property, VertexId, constants::KEY_COLUMN};

use crate::{Error, ErrorKind, Query};

/// The vertices and edges of some walks.
#[derive(Debug, Default)]
pub struct DescribedWalks {
    labels: BTreeMap<LabelId, OfLabel>,
    edge_types: BTreeMap<EdgeTypeId, String>,
    edges: BTreeMap<Neighbour, Row>,
    edge_rows: Vec<RecordBatch>,
}

/// The vertices of a label: their ordinals, ascending, and a key and a row each.
#[derive(Debug)]
struct OfLabel {
    name: String,
    ordinals: Vec<u64>,
    keys: ArrayRef,
    rows: RecordBatch,
}

/// The batch that an edge has its row in, and which; none if its type has no properties.
type Row = Option<(usize, usize)>;

/// A vertex of a walk.
#[derive(Debug, Clone)]
pub struct WalkVertex<'a> {
    /// Its label.
    pub label: &'a str,
    /// Its key.
    pub key: Key,
    /// Its selected properties.
    pub properties: PropertyRow<'a>,
}

/// An edge of a walk.
#[derive(Debug, Clone)]
pub struct WalkEdge<'a> {
    /// Its label.
    pub label: &'a str,
    /// Its selected properties.
    pub properties: PropertyRow<'a>,
}

/// The selected properties that a label or an edge type has, with their values of one vertex or edge.
#[derive(Debug, Clone, Copy)]
pub struct PropertyRow<'a>(Option<(&'a RecordBatch, usize)>);

impl<'a> PropertyRow<'a> {
    /// Names and values; [`Value::Null`] where it has none.
    pub fn values(&self) -> impl Iterator<Item = (&'a str, Value)> + use<'a> {
        self.0.into_iter().flat_map(|(batch, row)| {
            let named = batch.schema_ref().fields().iter().zip(batch.columns());
            named.map(move |(field, column)| (field.name().as_str(), Value::at(column, row)))
        })
    }

    /// The same as a batch of one row, which shares its columns with those of other rows.
    pub fn to_batch(&self) -> RecordBatch {
        let none = || RecordBatch::new_empty(Arc::new(Schema::empty()));
        self.0.map_or_else(none, |(batch, row)| batch.slice(row, 1))
    }
}

impl DescribedWalks {
    /// A vertex; `None` if no walk has it.
    pub fn vertex(&self, vertex: VertexId) -> Option<WalkVertex<'_>> {
        let OfLabel { name, ordinals, keys, rows } = self.labels.get(&vertex.label())?;
        let row = ordinals.binary_search(&vertex.ordinal()).ok()?;
        let key = match Value::at(keys, row) {
            Value::Int64(key) => Key::Int64(key),
            Value::String(key) => Key::String(key.to_string()),
            _ => return None,
        };
        Some(WalkVertex { label: name, key, properties: PropertyRow(Some((rows, row))) })
    }

    /// An edge; `None` if no walk has it.
    pub fn edge(&self, edge: &Neighbour) -> Option<WalkEdge<'_>> {
        let label = self.edge_types.get(&edge.edge_type)?;
        let row = self.edges.get(edge)?.and_then(|(batch, row)| Some((self.edge_rows.get(batch)?, row)));
        Some(WalkEdge { label, properties: PropertyRow(row) })
    }

    fn bytes(&self) -> u64 {
        let of_labels = self.labels.values().map(|of| of.ordinals.len() * 8 + of.keys.get_array_memory_size());
        let batches = self.labels.values().map(|of| &of.rows).chain(&self.edge_rows);
        let batches = batches.map(RecordBatch::get_array_memory_size);
        // A B-tree is at least half full.
        let edges = 2 * self.edges.len() * size_of::<(Neighbour, Row)>();
        (of_labels.chain(batches).sum::<usize>() + edges) as u64
    }
}

fn names_of<'a>(all: impl IntoIterator<Item = &'a Vec<Property>>) -> BTreeSet<&'a str> {
    all.into_iter().flatten().map(|property| property.name.as_str()).collect()
}

impl Query {
    /// Rejects a property that neither an edge nor a vertex has.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound), with the properties that there are.
    pub fn check_select(&self, names: &[String]) -> Result<(), Error> {
        let [of_vertices, of_edges] = self.properties_by_owner();
        let known: BTreeSet<_> = of_vertices.union(&of_edges).copied().collect();
        match names.iter().find(|name| !known.contains(name.as_str())) {
            None => Ok(()),
            Some(missing) => {
                let known: Vec<_> = known.into_iter().collect();
                let known = known.join(", ");
                let message = format!("neither an edge nor a vertex has a property {missing:?}; they have {known}");
                Err(Error::new(ErrorKind::NotFound, message))
            }
        }
    }

    /// The names of properties that vertices and that edges have.
    fn properties_by_owner(&self) -> [BTreeSet<&str>; 2] {
        let schema = self.snapshot.schema();
        let of_vertices = names_of(schema.vertex_labels.iter().map(|label| &label.properties));
        [of_vertices, names_of(schema.edge_types.iter().map(|edge| &edge.properties))]
    }

    /// Those of `names` that vertices have, and those that edges have.
    fn by_owner(&self, names: &[String]) -> [Vec<String>; 2] {
        let of = |known: BTreeSet<&str>| names.iter().filter(|name| known.contains(name.as_str())).cloned().collect();
        self.properties_by_owner().map(of)
    }

    /// As [`Self::expect_rows`], of walks along these hops from vertices of these labels: of all their vertices, and, if one of
    /// `names` is a property of edges, of their edges.
    pub fn expect_walks(&mut self, starts: &[LabelId], hops: &[Hop], names: &[String]) {
        let [_, of_edges] = self.by_owner(names);
        self.expect_rows(starts.iter().copied());
        let mut near = starts.to_vec();
        for hop in hops {
            if !of_edges.is_empty() {
                self.expect_edge_rows(&near, hop);
            }
            near = hop.labels_reached(self.snapshot.schema(), &near);
            self.expect_rows(near.iter().copied());
        }
    }

    /// Labels, keys and properties called `names` of the vertices of walks, and of their edges if they have any. A vertex or edge
    /// that does not have a property leaves it out. One wave for all, after one that each label's or edge type's first use takes
    /// unless it was expected ([`Self::expect_walks`]).
    ///
    /// # Errors
    /// As [`Self::check_select`]; the store's.
    pub async fn describe_walks(&mut self, walks: &[Walk], names: &[String]) -> Result<Held<DescribedWalks>, Error> {
        self.check_select(names)?;
        let [of_vertices, of_edges] = self.by_owner(names);
        let vertices: Frontier = walks.iter().flat_map(|walk| &walk.vertices).copied().collect();
        let mut edges: BTreeMap<Neighbour, Row> =
            walks.iter().flat_map(|walk| &walk.edges).map(|edge| (*edge, None)).collect();
        // A copy that is read in the order in which edges are stored.
        let mut stored: Vec<Neighbour> = if of_edges.is_empty() { Vec::new() } else { edges.keys().copied().collect() };
        stored.sort_unstable_by_key(|edge| (edge.edge_type, edge.direction, edge.run, edge.position));
        let as_edges: Edges = stored.iter().copied().collect();
        let mut lines = [self.branch.clone(), self.branch.clone()];
        let [for_vertices, for_edges] = &mut lines;
        let rows = self.snapshot.properties().of_frontier(&vertices, &of_vertices, for_vertices);
        let edge_rows = self.snapshot.properties().of_edges(&as_edges, &of_edges, for_edges);
        let (rows, edge_rows) = try_join(rows, edge_rows).await?;
        self.branch.join(&lines);
        let mut described = DescribedWalks::default();
        for ((label, rows), (_, ordinals)) in rows.into_iter().zip(vertices.by_label()) {
            let ordinals = ordinals.iter().collect();
            let name = self.label_name(label);
            let keys = rows.column_by_name(KEY_COLUMN).cloned().unwrap_or_else(|| new_null_array(&DataType::Null, 0));
            let rows = self.own_columns(label, &rows)?;
            described.labels.insert(label, OfLabel { name, ordinals, keys, rows });
        }
        for (batch, (positions, rows)) in edge_rows.into_iter().enumerate() {
            for (row, position) in positions.into_iter().enumerate() {
                edges.insert(stored[position], Some((batch, row)));
            }
            described.edge_rows.push(rows);
        }
        let edge_type = |id| self.snapshot.schema().edge_type(id).map(|edge_type| (id, edge_type.label.clone()));
        described.edge_types = edges.keys().filter_map(|edge| edge_type(edge.edge_type)).collect();
        described.edges = edges;
        let bytes = described.bytes();
        Ok(Held::counted(described, bytes, self.context())?)
    }

    /// The columns of properties that a label has; other labels may have the rest.
    fn own_columns(&self, label: LabelId, rows: &RecordBatch) -> Result<RecordBatch, Error> {
        let own = names_of(self.snapshot.schema().label(label).map(|label| &label.properties));
        let fields = rows.schema_ref().fields().iter().enumerate();
        let kept = fields.filter(|(_, field)| own.contains(field.name().as_str()));
        let kept: Vec<_> = kept.map(|(column, _)| column).collect();
        Ok(rows.project(&kept).map_err(EngineError::from)?)
    }
}
