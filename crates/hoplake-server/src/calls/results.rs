//! The batches of a result, and where they go.
//!
//! A call puts batches, which borrow from what it read, into a [`ResultSink`]. The sink of a protocol encodes each at once.

use arrow_array::{ArrayRef, RecordBatch};
use futures::future::BoxFuture;
use hoplake::{Direction, EdgeId, EdgeSlice, Frontier, Graph, Key, Rows, VertexId, gremlin::value::Value};

use super::edge_columns::EdgeColumns;
use crate::failure::Failure;

/// A batch of a result.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ResultBatch<'a> {
    /// Edges, with the keys of the vertices reached and with properties of their own, if requested. A result has at least one such batch,
    /// which may be empty.
    Edges { graph: &'a Graph, edges: EdgeSlice<'a>, keys: Option<&'a [Key]>, columns: &'a EdgeColumns },
    /// Vertices at a depth. Each depth has at least one batch, which may be empty.
    Vertices { depth: u32, vertices: &'a [VertexId] },
    /// Rows of one label.
    Rows(&'a LabelRows),
    /// Rows of one label that a scan found, without ids.
    Scanned(&'a LabelRows),
    /// Rows of one label, each with the value that a job computed.
    Values(&'a ValueRows),
    /// Paths.
    Paths(&'a [NamedPath]),
    /// Results of Gremlin, each with how many times it occurs.
    Results(&'a [(Value, u64)]),
}

/// The consumer of a result, in a protocol.
pub(crate) trait ResultSink: Send {
    /// Encodes a batch, and waits until there is room for it.
    fn put<'a>(&'a mut self, batch: ResultBatch<'a>) -> BoxFuture<'a, Result<(), Failure>>;
}

/// Vertices of one label: their ids, unless they were found by a scan, and a batch with their keys (column `~key`) and properties.
#[derive(Debug, Clone)]
pub(crate) struct LabelRows {
    pub(crate) label: String,
    /// The distance in hops.
    pub(crate) depth: u32,
    pub(crate) ids: Vec<VertexId>,
    pub(crate) batch: RecordBatch,
}

impl LabelRows {
    /// Rows of the facade, in order of label and ordinal, as the vertices of a set.
    pub(super) fn of(graph: &Graph, depth: u32, rows: Vec<Rows>, vertices: &Frontier) -> Vec<Self> {
        let one = |rows: Rows| {
            let label = graph.schema().label_id(&rows.label);
            let ids = label.into_iter().flat_map(|label| {
                vertices.ordinals(label).iter().filter_map(move |ordinal| VertexId::new(label, ordinal))
            });
            Self { label: rows.label, depth, ids: ids.collect(), batch: rows.batch }
        };
        rows.into_iter().map(one).collect()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.batch.num_rows()
    }

    /// Bytes that they take.
    pub(super) fn bytes(&self) -> usize {
        self.batch.get_array_memory_size() + self.ids.capacity() * size_of::<VertexId>()
    }

    /// The same in pieces of at most `most` rows.
    pub(crate) fn chunks(&self, most: usize) -> impl Iterator<Item = Self> + '_ {
        (0..self.len()).step_by(most.max(1)).map(move |start| {
            let length = most.min(self.len() - start);
            let ids = self.ids.get(start..start + length).unwrap_or_default().to_vec();
            Self { label: self.label.clone(), depth: self.depth, ids, batch: self.batch.slice(start, length) }
        })
    }
}

/// Rows of one label, and a value for each: int64 or float64, null where there is none.
#[derive(Debug, Clone)]
pub(crate) struct ValueRows {
    pub(crate) rows: LabelRows,
    pub(crate) values: ArrayRef,
}

impl ValueRows {
    /// The same in pieces of at most `most` rows.
    pub(crate) fn chunks(&self, most: usize) -> impl Iterator<Item = Self> + '_ {
        let starts = (0..self.rows.len()).step_by(most.max(1));
        self.rows.chunks(most).zip(starts).map(|(rows, start)| {
            let values = self.values.slice(start, rows.len());
            Self { rows, values }
        })
    }
}

/// A list of vertices, and what was requested of them and the edges between them.
#[derive(Debug, Clone)]
pub(crate) struct NamedPath {
    pub(crate) vertices: Vec<VertexId>,
    /// One for each vertex, if keys were requested.
    pub(crate) names: Vec<PathName>,
    /// One fewer than vertices, if edges were requested.
    pub(crate) edges: Vec<PathEdge>,
}

/// A vertex of a path.
#[derive(Debug, Clone)]
pub(crate) struct PathName {
    pub(crate) label: String,
    pub(crate) key: Key,
    /// A batch of one row, if properties were selected. Its columns are those of other paths, too, and counted once.
    pub(crate) properties: Option<RecordBatch>,
}

/// The edge between a vertex of a path and the next.
#[derive(Debug, Clone)]
pub(crate) struct PathEdge {
    pub(crate) id: EdgeId,
    pub(crate) label: String,
    /// How the path follows it.
    pub(crate) direction: Direction,
    /// As of a vertex.
    pub(crate) properties: Option<RecordBatch>,
}
