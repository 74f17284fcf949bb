//! Requests, as both protocols understand them.

use hoplake::{Condition, Hop, Key, Strategy, VisitPolicy};

/// Which graph; version 0 is the newest that is open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct GraphRef {
    pub(crate) name: String,
    pub(crate) version: u64,
}

/// A vertex, by id or by label and key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum VertexName {
    /// The engine's 64 bits.
    Id(u64),
    /// A label and a key of the label's type.
    Key(String, Key),
    /// `Person:933`, to be read as the label's type: only the schema shows whether `933` is a number or text.
    Text(String),
    /// All vertices of a label that fulfil a condition.
    Found(String, Condition),
}

/// The limits that a client asks for; 0 asks for none.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Asked {
    pub(crate) time_ms: u64,
    pub(crate) vertices_max: u64,
    pub(crate) requests_max: u64,
    pub(crate) bytes_max: u64,
    pub(crate) usd_max: f64,
    pub(crate) memory_bytes_max: u64,
}

/// The edges of a hop from vertices. The keys of the vertices reached take one wave more.
#[derive(Debug, Clone)]
pub(crate) struct NeighborsQuery {
    pub(crate) vertices: Vec<VertexName>,
    pub(crate) hop: Hop,
    pub(crate) keys: bool,
    /// Whether only the number of edges is wanted.
    pub(crate) count: bool,
    /// Properties of the edges; they take one wave more.
    pub(crate) select_edges: Vec<String>,
    pub(crate) limits: Asked,
}

/// Keys and properties of vertices; an empty `select` means only the keys.
#[derive(Debug, Clone)]
pub(crate) struct PropertiesQuery {
    pub(crate) vertices: Vec<VertexName>,
    pub(crate) select: Vec<String>,
    pub(crate) limits: Asked,
}

/// What traversals and walks have in common.
#[derive(Debug, Clone)]
pub(crate) struct TraversalSpec {
    pub(crate) starts: Vec<VertexName>,
    pub(crate) hops: Vec<Hop>,
    pub(crate) strategy: Strategy,
    pub(crate) visit: VisitPolicy,
    /// 0 is the server's choice.
    pub(crate) parallelism: usize,
    pub(crate) limits: Asked,
}

/// The output for each vertex of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Output {
    /// Its id.
    Ids,
    /// Its id, its key and these properties.
    Rows(Vec<String>),
    /// Nothing.
    Nothing,
    /// Nothing; only their number.
    Count,
}

/// A traversal, and which of its vertices to return: of the last depth, or of all.
#[derive(Debug, Clone)]
pub(crate) struct TraverseQuery {
    pub(crate) spec: TraversalSpec,
    pub(crate) output: Output,
    /// Vertices to return; 0 is as many as the server allows.
    pub(crate) limit: usize,
    pub(crate) all_depths: bool,
}

/// What paths have, other than the ids of their vertices.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PathOutput {
    pub(crate) keys: bool,
    pub(crate) edges: bool,
    /// Properties of vertices and edges.
    pub(crate) select: Vec<String>,
}

impl PathOutput {
    /// Properties bring what they are of.
    pub(crate) fn new(keys: bool, edges: bool, select: Vec<String>) -> Self {
        let all = !select.is_empty();
        Self { keys: keys || all, edges: edges || all, select }
    }
}

/// The walks of a traversal; the facade enumerates them as they are sent.
#[derive(Debug, Clone)]
pub(crate) struct PathsQuery {
    pub(crate) spec: TraversalSpec,
    /// Walks to return; 0 is as many as the server allows.
    pub(crate) limit: usize,
    pub(crate) output: PathOutput,
}

/// A shortest path by number of edges. All its edges match one hop.
#[derive(Debug, Clone)]
pub(crate) struct ShortestPathQuery {
    pub(crate) from: VertexName,
    pub(crate) to: VertexName,
    pub(crate) hop: Hop,
    /// 0 is the default.
    pub(crate) depth_max: usize,
    pub(crate) output: PathOutput,
    pub(crate) limits: Asked,
}
