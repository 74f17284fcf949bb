//! Requests, as both protocols understand them. What a request may not combine is refused here, once for both.

use std::collections::HashSet;

use hoplake::{Condition, Hop, Key, ScanRequest, Strategy, VisitPolicy};

use crate::failure::Failure;

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

impl NeighborsQuery {
    /// The same, if its parts agree.
    ///
    /// # Errors
    /// [`Reason::Invalid`](crate::failure::Reason::Invalid).
    pub(crate) fn checked(self) -> Result<Self, Failure> {
        check_once(&self.select_edges)?;
        // Rejected, not ignored: the client waits for what would never come.
        if self.count && (self.keys || !self.select_edges.is_empty()) {
            return Err(Failure::invalid("keys or properties are asked for, but the output is a count"));
        }
        Ok(self)
    }
}

/// Keys and properties of vertices; an empty `select` means only the keys.
#[derive(Debug, Clone)]
pub(crate) struct PropertiesQuery {
    pub(crate) vertices: Vec<VertexName>,
    pub(crate) select: Vec<String>,
    pub(crate) limits: Asked,
}

impl PropertiesQuery {
    /// As [`NeighborsQuery::checked`].
    pub(crate) fn checked(self) -> Result<Self, Failure> {
        check_once(&self.select)?;
        Ok(self)
    }
}

/// A scan; a limit of 0 is as many vertices as the server allows.
#[derive(Debug, Clone)]
pub(crate) struct ScanQuery {
    pub(crate) request: ScanRequest,
    /// Whether only their number is wanted.
    pub(crate) count: bool,
    pub(crate) limits: Asked,
}

impl ScanQuery {
    /// As [`NeighborsQuery::checked`].
    pub(crate) fn checked(self) -> Result<Self, Failure> {
        let ScanRequest { select, order_by, .. } = &self.request;
        check_once(select)?;
        check_once(order_by.iter().map(|by| &by.property))?;
        if self.count && !(select.is_empty() && order_by.is_empty()) {
            return Err(Failure::invalid("properties are selected or sorted by, but the output is a count"));
        }
        Ok(self)
    }
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

impl Output {
    /// One that has no properties, if none are selected; `rows` is the name of the output that has some.
    ///
    /// # Errors
    /// [`Reason::Invalid`](crate::failure::Reason::Invalid).
    pub(crate) fn without(self, select: &[String], rows: &str) -> Result<Self, Failure> {
        match select.is_empty() {
            true => Ok(self),
            false => Err(Failure::invalid(format!("properties are selected, but the output is not {rows}"))),
        }
    }

    /// Rows with these properties.
    ///
    /// # Errors
    /// As [`Self::without`], if one is selected twice.
    pub(crate) fn rows(select: Vec<String>) -> Result<Self, Failure> {
        check_once(&select)?;
        Ok(Self::Rows(select))
    }
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
    ///
    /// # Errors
    /// As [`Output::rows`].
    pub(crate) fn new(keys: bool, edges: bool, select: Vec<String>) -> Result<Self, Failure> {
        check_once(&select)?;
        let all = !select.is_empty();
        Ok(Self { keys: keys || all, edges: edges || all, select })
    }
}

/// The walks of a traversal; the facade enumerates them as they are sent.
#[derive(Debug, Clone)]
pub(crate) struct PathsQuery {
    pub(crate) spec: TraversalSpec,
    /// Walks to return; 0 is as many as the server allows.
    pub(crate) limit: usize,
    /// Whether only the number of walks is wanted, whatever the limit.
    pub(crate) count: bool,
    pub(crate) output: PathOutput,
}

impl PathsQuery {
    /// As [`NeighborsQuery::checked`].
    pub(crate) fn checked(self) -> Result<Self, Failure> {
        if self.count && self.output != PathOutput::default() {
            return Err(Failure::invalid("keys, edges or properties are asked for, but the output is a count"));
        }
        Ok(self)
    }
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

/// Rejects a property that is named twice. Each time it would be a column or a comparison of its own, and then nothing bounds their
/// number but the length of the request.
pub(super) fn check_once<'a>(names: impl IntoIterator<Item = &'a String>) -> Result<(), Failure> {
    let mut seen = HashSet::new();
    match names.into_iter().find(|name| !seen.insert(name.as_str())) {
        None => Ok(()),
        Some(twice) => Err(Failure::invalid(format!("property {twice:?} is named twice; name it once"))),
    }
}
