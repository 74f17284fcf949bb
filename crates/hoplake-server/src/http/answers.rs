//! Bodies of answers, made from what calls return.

use std::collections::BTreeMap;

use hoplake::{ChangeCounts, VertexId};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    requests::OutputBody,
    rows::{Edge, FoundRow, Row, ValueRow, Vertices},
};
use crate::{
    calls::{
        AppliedChanges, DepthStatistics, EdgeTypeInfo, EmptyGraph, Info, LabelInfo, PropertyInfo, ResultSummary,
        Scanned, Statistics,
    },
    cost::{PricedCost, PricedStep},
    failure::Failure,
    jobs::JobInfo,
};

/// A graph that can be asked.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GraphName {
    pub(crate) name: String,
    /// Whether it is open now.
    pub(crate) open: bool,
}

/// The newest version of a graph.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RefreshAnswer {
    pub(crate) version: u64,
}

/// A property of a vertex label or an edge type.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Property {
    name: String,
    /// `bool`, `int64`, `float64`, `string`, `date`, `timestamp`, or a list of one of them: `list<string>`.
    r#type: String,
}

/// A class of vertices.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VertexLabel {
    name: String,
    /// `int64` or `string`.
    key_type: String,
    vertices: u64,
    properties: Vec<Property>,
}

/// An edge label between two vertex labels.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EdgeType {
    label: String,
    source: String,
    target: String,
    /// Exact, or an upper bound.
    edges: u64,
    /// `false` while commits that were not compacted may have replaced or deleted edges that are counted.
    edges_exact: bool,
    properties: Vec<Property>,
}

/// Schema, counts and sizes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GraphAnswer {
    name: String,
    version: u64,
    vertices: u64,
    /// Exact, or an upper bound.
    edges: u64,
    /// Whether the number of edges of every edge type is exact.
    edges_exact: bool,
    labels: Vec<VertexLabel>,
    edge_types: Vec<EdgeType>,
    /// Indexes, filters and footers.
    index_bytes: u64,
    /// Everything that the version names.
    total_bytes: u64,
    bytes_per_directed_edge: f64,
    created_unix_ms: i64,
    message: String,
    /// Whether a compaction would merge something.
    compaction_due: bool,
}

/// The changes of a version, in numbers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CountsAnswer {
    vertices_added: u64,
    vertices_changed: u64,
    vertices_removed: u64,
    /// Edges written, new or not.
    edges_written: u64,
    /// Pairs of vertices without edges from then on.
    pairs_removed: u64,
}

/// A batch that was applied.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChangesAnswer {
    /// The version that has the changes. What this server is asked from now on is answered from it, or from a later one.
    version: u64,
    /// Changes of the batch.
    changes: u64,
    /// Batches of the version, this one included.
    batches: u64,
    /// Whether it was applied before, as its idempotency key shows, and not now.
    repeated: bool,
    /// Of the version.
    counts: CountsAnswer,
    /// Of the version.
    cost: PricedCost,
}

/// A graph without content.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EmptyGraphAnswer {
    version: u64,
    /// Whether it was made now.
    created: bool,
}

/// The vertices found, in the order of the request.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LookUpAnswer {
    /// An id, or null if the vertex does not exist.
    ids: Vec<Option<String>>,
    version: u64,
    cost: PricedCost,
}

/// The edges of a hop.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NeighborsAnswer {
    /// In the order of vertex left, type, direction and position.
    // First: `writer` takes this list from the head of the summary. So it is in each answer with a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) edges: Option<Vec<Edge>>,
    /// With output `count`: how many edges there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) count: Option<u64>,
    pub(super) version: u64,
    pub(super) cost: PricedCost,
}

/// Vertices that were found, by label and position, or as they are sorted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScanAnswer {
    /// With output `rows`.
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<Vec<FoundRow>>,
    /// With output `count`: how many vertices there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    /// Whether the limit kept some back.
    truncated: bool,
    version: u64,
    cost: PricedCost,
}

/// Rows, in the order of label and position.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PropertiesAnswer {
    pub(super) rows: Vec<Row>,
    pub(super) version: u64,
    pub(super) cost: PricedCost,
}

/// The cost of one depth.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Depth {
    /// Edges that were followed to it.
    edges: u64,
    /// Vertices in its set.
    vertices: u64,
    /// Level by level each depth has its own; elsewhere depths overlap, and all is put on the last.
    step: PricedStep,
}

/// The cost of a traversal, and the sizes of its results.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatisticsAnswer {
    cost: PricedCost,
    time_us: u64,
    /// The keys of the starts.
    look_up: PricedStep,
    /// One a hop.
    depths: Vec<Depth>,
    /// Keys and properties of the result.
    rows: PricedStep,
    /// Vertices at the last depth, returned or not; of paths, the walks returned.
    results: u64,
    /// Whether the limit kept some of them back.
    truncated: bool,
    version: u64,
}

/// The result of a traversal.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TraverseAnswer {
    /// With output `rows`.
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<Vec<Row>>,
    /// With output `ids`.
    #[serde(skip_serializing_if = "Option::is_none")]
    vertices: Option<Vec<Vertices>>,
    /// With output `count`: how many vertices there are at the last depth, or at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    statistics: StatisticsAnswer,
}

/// A traversal that was opened.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OpenAnswer {
    /// Known only to this server.
    pub(crate) traversal: String,
    pub(crate) version: u64,
    /// It is closed when it was not used for so long.
    pub(crate) idle_ms: u64,
}

/// The total cost of a closed cursor.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CloseAnswer {
    /// Vertices that the steps were asked to go on from.
    pub(crate) vertices: u64,
    pub(crate) cost: PricedCost,
}

/// Why a job failed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobFailure {
    /// A code for programs, as a problem has it.
    reason: &'static str,
    /// A sentence about this job.
    detail: String,
    /// What to do about it.
    hint: &'static str,
}

/// A computation over a whole graph.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobAnswer {
    /// Known only to this server.
    pub(super) id: String,
    graph: String,
    version: u64,
    algorithm: &'static str,
    /// What its values are called; null if the result is a figure.
    value: Option<&'static str>,
    /// `waiting`, `running`, `done`, `failed` or `cancelled`.
    state: &'static str,
    submitted_unix_ms: u64,
    started_unix_ms: Option<u64>,
    ended_unix_ms: Option<u64>,
    /// When an ended job is forgotten, with its result.
    forgotten_unix_ms: Option<u64>,
    /// Vertices that take part, with deleted ones.
    vertices: u64,
    /// The last superstep or iteration that ended. Kernels over lists in memory have it at their end only.
    superstep: Option<u64>,
    /// Vertices that the superstep changed.
    changed: Option<u64>,
    /// By how much it changed all ranks in sum; of pagerank alone.
    residual: Option<f64>,
    /// Whether lists were streamed; null before the end.
    streamed: Option<bool>,
    /// The number of triangles, if they were counted.
    triangles: Option<u64>,
    /// Numbers for the whole graph, such as the modularity of communities; empty before the end.
    figures: BTreeMap<&'static str, f64>,
    /// So far.
    cost: PricedCost,
    /// Memory that it holds.
    memory_bytes: u64,
    /// Whether the result can be read.
    has_result: bool,
    /// Why it failed.
    failure: Option<JobFailure>,
}

/// The result of a job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobResultAnswer {
    /// The top by value, or all in the order of label and position.
    rows: Vec<ValueRow>,
    /// What the values are called.
    value: String,
    /// Vertices that have a row in the whole result.
    vertices: u64,
    graph: String,
    version: u64,
    cost: PricedCost,
}

fn properties(properties: Vec<PropertyInfo>) -> Vec<Property> {
    properties.into_iter().map(|property| Property { name: property.name, r#type: property.kind }).collect()
}

impl From<AppliedChanges> for ChangesAnswer {
    fn from(applied: AppliedChanges) -> Self {
        let AppliedChanges { version, counts, changes, batches, repeated, cost } = applied;
        let ChangeCounts { vertices_added, vertices_changed, vertices_removed, edges_written, pairs_removed } = counts;
        let counts = CountsAnswer { vertices_added, vertices_changed, vertices_removed, edges_written, pairs_removed };
        Self { version, changes, batches, repeated, counts, cost }
    }
}

impl From<EmptyGraph> for EmptyGraphAnswer {
    fn from(EmptyGraph { version, created }: EmptyGraph) -> Self {
        Self { version, created }
    }
}

impl From<Info> for GraphAnswer {
    fn from(info: Info) -> Self {
        let label = |label: LabelInfo| {
            let LabelInfo { name, key_type, vertices, properties: all } = label;
            VertexLabel { name, key_type, vertices, properties: properties(all) }
        };
        let edge_type = |edge: EdgeTypeInfo| {
            let EdgeTypeInfo { label, source, target, edges, edges_exact, properties: all } = edge;
            EdgeType { label, source, target, edges, edges_exact, properties: properties(all) }
        };
        Self {
            name: info.name,
            version: info.version,
            vertices: info.vertices,
            edges: info.edges,
            edges_exact: info.edges_exact,
            labels: info.labels.into_iter().map(label).collect(),
            edge_types: info.edge_types.into_iter().map(edge_type).collect(),
            index_bytes: info.index_bytes,
            total_bytes: info.total_bytes,
            bytes_per_directed_edge: info.bytes_per_directed_edge,
            created_unix_ms: info.created_unix_ms,
            message: info.message,
            compaction_due: info.compaction_due,
        }
    }
}

impl LookUpAnswer {
    pub(super) fn of(found: &[Option<VertexId>], version: u64, cost: PricedCost) -> Self {
        Self { ids: found.iter().map(|vertex| vertex.map(|vertex| vertex.to_string())).collect(), version, cost }
    }
}

impl From<JobInfo> for JobAnswer {
    fn from(info: JobInfo) -> Self {
        let failure = |failure: Failure| {
            let Failure { reason, message: detail, .. } = failure;
            JobFailure { reason: reason.name(), detail, hint: reason.hint() }
        };
        Self {
            id: info.id,
            graph: info.graph.name,
            version: info.graph.version,
            algorithm: info.algorithm.name,
            value: info.algorithm.value,
            state: info.state.name(),
            submitted_unix_ms: info.submitted_unix_ms,
            started_unix_ms: info.started_unix_ms,
            ended_unix_ms: info.ended_unix_ms,
            forgotten_unix_ms: info.forgotten_unix_ms,
            vertices: info.vertices,
            superstep: info.superstep,
            changed: info.changed,
            residual: info.residual,
            streamed: info.streamed,
            triangles: info.triangles,
            figures: info.figures,
            cost: info.cost,
            memory_bytes: info.memory_bytes,
            has_result: info.has_result,
            failure: info.failure.map(failure),
        }
    }
}

impl JobResultAnswer {
    /// With an empty list.
    pub(super) fn of(summary: ResultSummary, cost: PricedCost) -> Self {
        let ResultSummary { graph, value, vertices } = summary;
        Self { rows: Vec::new(), value, vertices, version: graph.version, graph: graph.name, cost }
    }
}

impl From<DepthStatistics> for Depth {
    fn from(DepthStatistics { edges, vertices, step }: DepthStatistics) -> Self {
        Self { edges, vertices, step }
    }
}

impl From<Statistics> for StatisticsAnswer {
    fn from(statistics: Statistics) -> Self {
        Self {
            cost: statistics.cost,
            time_us: statistics.time_us,
            look_up: statistics.look_up,
            depths: statistics.depths.into_iter().map(Into::into).collect(),
            rows: statistics.rows,
            results: statistics.results,
            truncated: statistics.truncated,
            version: statistics.version,
        }
    }
}

impl ScanAnswer {
    /// With an empty list, if it has one.
    pub(super) fn of(found: Scanned, count: bool, cost: PricedCost) -> Self {
        let Scanned { vertices, truncated, version } = found;
        Self { rows: (!count).then(Vec::new), count: count.then_some(vertices), truncated, version, cost }
    }
}

impl TraverseAnswer {
    /// With an empty list of the requested form.
    pub(super) fn of(statistics: Statistics, output: OutputBody) -> Self {
        Self {
            rows: (output == OutputBody::Rows).then(Vec::new),
            vertices: (output == OutputBody::Ids).then(Vec::new),
            count: statistics.count,
            statistics: statistics.into(),
        }
    }
}
