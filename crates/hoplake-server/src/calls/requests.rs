//! Requests, as both protocols understand them. What a request may not combine is rejected here, once for both.

use std::collections::HashSet;

use hoplake::{Hop, Strategy, VisitPolicy};

use crate::{failure::Failure, limits::RequestedLimits, vertex_name::VertexName};

/// Which graph; version 0 is the newest that is open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct GraphRef {
    pub(crate) name: String,
    pub(crate) version: u64,
}

/// The edges of a hop from vertices. The keys of the vertices reached take one wave more.
#[derive(Debug, Clone)]
pub(crate) struct NeighborsRequest {
    pub(crate) vertices: Vec<VertexName>,
    pub(crate) hop: Hop,
    pub(crate) keys: bool,
    /// Whether only the number of edges is wanted.
    pub(crate) count: bool,
    /// Properties of the edges; they take one wave more.
    pub(crate) select_edges: Vec<String>,
    pub(crate) limits: RequestedLimits,
}

impl NeighborsRequest {
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
pub(crate) struct PropertiesRequest {
    pub(crate) vertices: Vec<VertexName>,
    pub(crate) select: Vec<String>,
    pub(crate) limits: RequestedLimits,
}

impl PropertiesRequest {
    /// As [`NeighborsRequest::checked`].
    pub(crate) fn checked(self) -> Result<Self, Failure> {
        check_once(&self.select)?;
        Ok(self)
    }
}

/// A scan; a limit of 0 is as many vertices as the server allows.
#[derive(Debug, Clone)]
pub(crate) struct ScanRequest {
    pub(crate) scan: hoplake::ScanRequest,
    /// Whether only their number is wanted.
    pub(crate) count: bool,
    pub(crate) limits: RequestedLimits,
}

impl ScanRequest {
    /// As [`NeighborsRequest::checked`].
    pub(crate) fn checked(self) -> Result<Self, Failure> {
        let hoplake::ScanRequest { select, order_by, .. } = &self.scan;
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
    pub(crate) limits: RequestedLimits,
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
pub(crate) struct TraverseRequest {
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
pub(crate) struct PathsRequest {
    pub(crate) spec: TraversalSpec,
    /// Walks to return; 0 is as many as the server allows.
    pub(crate) limit: usize,
    /// Whether only the number of walks is wanted, whatever the limit.
    pub(crate) count: bool,
    pub(crate) output: PathOutput,
}

impl PathsRequest {
    /// As [`NeighborsRequest::checked`].
    pub(crate) fn checked(self) -> Result<Self, Failure> {
        if self.count && self.output != PathOutput::default() {
            return Err(Failure::invalid("keys, edges or properties are asked for, but the output is a count"));
        }
        Ok(self)
    }
}

/// A shortest path, by number of edges or by a property of them. All its edges match one hop.
#[derive(Debug, Clone)]
pub(crate) struct ShortestPathRequest {
    pub(crate) from: VertexName,
    pub(crate) to: VertexName,
    pub(crate) hop: Hop,
    /// 0 is the default.
    pub(crate) depth_max: usize,
    /// The property that is the length of an edge; not with a greatest depth.
    pub(crate) weight: Option<String>,
    pub(crate) output: PathOutput,
    pub(crate) limits: RequestedLimits,
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
