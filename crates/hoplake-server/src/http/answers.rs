//! Bodies of answers, made from what calls return.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use hoplake::{ChangeCounts, EdgeSlice, Graph, KEY_COLUMN, Key, Neighbour, VertexId};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{requests::OutputBody, values};
use crate::{
    calls::{
        self, AppliedChanges, DepthStatistics, EdgeColumns, EdgeTypeInfo, EmptyGraph, Info, LabelInfo, LabelRows,
        NamedPath, PropertyInfo, ResultSummary, Scanned, Statistics, ValueRows,
    },
    cost::{PricedCost, Step},
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

/// An edge that was followed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Edge {
    /// The edge's id, the same from either end.
    pub(super) id: String,
    /// The id of the vertex left.
    pub(super) from: String,
    pub(super) label: String,
    /// `out` or `in`.
    pub(super) direction: String,
    /// The id of the vertex reached.
    pub(super) to: String,
    /// The label of the vertex reached.
    pub(super) to_label: String,
    /// The key of the vertex reached, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    to_key: Option<Value>,
    /// Every selected property of the edge, null if it has none; if any is selected.
    #[serde(skip_serializing_if = "Option::is_none")]
    properties: Option<BTreeMap<String, Value>>,
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

/// A vertex with its key and properties.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Row {
    id: String,
    label: String,
    key: Value,
    /// The distance in hops.
    depth: u32,
    /// Every selected property, null if the vertex has none.
    properties: BTreeMap<String, Value>,
}

/// A vertex that was found.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FoundRow {
    label: String,
    key: Value,
    /// Every selected property, null if the vertex has none.
    properties: BTreeMap<String, Value>,
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

/// The ids at one depth.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Vertices {
    pub(super) depth: u32,
    pub(super) ids: Vec<String>,
}

/// The cost of one depth.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Depth {
    /// Edges that were followed to it.
    edges: u64,
    /// Vertices in its set.
    vertices: u64,
    /// Level by level each depth has its own; elsewhere depths overlap, and all is put on the last.
    step: Step,
}

/// The cost of a traversal, and the sizes of its results.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatisticsAnswer {
    cost: PricedCost,
    time_us: u64,
    /// The keys of the starts.
    look_up: Step,
    /// One a hop.
    depths: Vec<Depth>,
    /// Keys and properties of the result.
    rows: Step,
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

/// A vertex of a path.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PathVertex {
    id: String,
    /// If keys were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    /// If keys were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Value>,
    /// If properties were selected: those that its label has, null where it has no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    properties: Option<BTreeMap<String, Value>>,
    /// If edges were requested: by which edge the path goes on. The last vertex has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    edge: Option<PathEdge>,
}

/// The edge between a vertex of a path and the next.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PathEdge {
    /// The edge's id, the same from either end.
    id: String,
    label: String,
    /// `out` or `in`: how the path follows it.
    direction: String,
    /// If properties were selected: those that its type has, null where it has no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    properties: Option<BTreeMap<String, Value>>,
}

/// Walks, each a list of vertices.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PathsAnswer {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) paths: Option<Vec<Vec<PathVertex>>>,
    /// With output `count`: how many walks there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) count: Option<u64>,
    pub(crate) statistics: StatisticsAnswer,
}

/// A shortest path.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShortestPathAnswer {
    /// Null if there is none within the length.
    pub(crate) path: Option<Vec<PathVertex>>,
    pub(crate) version: u64,
    pub(crate) cost: PricedCost,
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
    /// What its values are called; null of triangles.
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
    /// So far.
    cost: PricedCost,
    /// Memory that it holds.
    memory_bytes: u64,
    /// Whether the result can be read.
    has_result: bool,
    /// Why it failed.
    failure: Option<JobFailure>,
}

/// A vertex with the value that was computed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ValueRow {
    id: String,
    label: String,
    key: Value,
    /// A number; null if the vertex has none.
    value: Value,
    /// Every selected property, null if the vertex has none.
    properties: BTreeMap<String, Value>,
}

/// The result of a job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobResultAnswer {
    /// The top by value, or all in the order of label and position.
    rows: Vec<ValueRow>,
    /// What the values are called.
    value: &'static str,
    /// Vertices that have a row in the whole result.
    vertices: u64,
    graph: String,
    version: u64,
    cost: PricedCost,
}

/// A key in the type of its label: a client can send it back as it is.
pub(super) fn key(key: &Key) -> Value {
    match key {
        Key::Int64(key) => (*key).into(),
        Key::String(key) => key.as_str().into(),
    }
}

/// Text: an id has 64 bits, and many readers of JSON keep 53 of a number.
pub(super) fn ids(vertices: impl IntoIterator<Item = VertexId>) -> Vec<String> {
    vertices.into_iter().map(|vertex| vertex.to_string()).collect()
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

/// Edges of a part, with the keys of the vertices reached and properties of their own if requested.
pub(super) fn edges(
    graph: &Graph,
    all: EdgeSlice<'_>,
    keys: Option<&[Key]>,
    columns: &EdgeColumns,
) -> Result<impl Iterator<Item = Edge>, Failure> {
    let columns = columns.iter().map(|(name, values)| Ok((name.to_string(), values::values(values)?)));
    let columns = columns.collect::<Result<Vec<_>, Failure>>()?;
    Ok(all.into_iter().enumerate().map(move |(position, found)| {
        let of_edge = columns.iter().map(|(name, values)| (name.clone(), values[position].clone()));
        let properties = (!columns.is_empty()).then(|| of_edge.collect());
        Edge { properties, ..edge(graph, &found, keys.and_then(|keys| keys.get(position))) }
    }))
}

/// An edge, with the key of the vertex reached if requested.
fn edge(graph: &Graph, edge: &Neighbour, of: Option<&Key>) -> Edge {
    let schema = graph.schema();
    Edge {
        id: edge.id().to_string(),
        from: edge.from.to_string(),
        label: schema.edge_type(edge.edge_type).map(|edge| edge.label.clone()).unwrap_or_default(),
        direction: edge.direction.to_string(),
        to: edge.to.to_string(),
        to_label: schema.label(edge.to.label()).map(|label| label.name.clone()).unwrap_or_default(),
        to_key: of.map(key),
        properties: None,
    }
}

/// Rows of one label, with properties sorted by name.
pub(super) fn rows(part: &LabelRows) -> Result<Vec<Row>, Failure> {
    let rows = part.ids.iter().zip(found_rows(part)?);
    let row = |(id, FoundRow { label, key, properties }): (&VertexId, FoundRow)| Row {
        id: id.to_string(),
        label,
        key,
        depth: part.depth,
        properties,
    };
    Ok(rows.map(row).collect())
}

/// Rows of one label that have no ids.
pub(super) fn found_rows(part: &LabelRows) -> Result<Vec<FoundRow>, Failure> {
    let columns = values::columns(&part.batch)?;
    let row = |row: usize| {
        let mut properties: BTreeMap<String, Value> =
            columns.iter().map(|(name, values)| (name.clone(), values[row].clone())).collect();
        // The engine reads the key as one more column.
        let key = properties.remove(KEY_COLUMN).unwrap_or_default();
        FoundRow { label: part.label.clone(), key, properties }
    };
    Ok((0..part.len()).map(row).collect())
}

/// Rows of one label with their values.
pub(super) fn value_rows(part: &ValueRows) -> Result<Vec<ValueRow>, Failure> {
    let values = values::values(&part.values)?;
    let row = |(row, value): (Row, Value)| {
        let Row { id, label, key, properties, .. } = row;
        ValueRow { id, label, key, value, properties }
    };
    Ok(rows(&part.rows)?.into_iter().zip(values).map(row).collect())
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

/// A path, as a list of its vertices.
pub(super) fn path(path: &NamedPath) -> Result<Vec<PathVertex>, Failure> {
    let edge = |edge: &calls::PathEdge| {
        let properties = edge.properties.as_ref().map(properties_of).transpose()?;
        let (id, direction) = (edge.id.to_string(), edge.direction.to_string());
        Ok::<_, Failure>(PathEdge { id, label: edge.label.clone(), direction, properties })
    };
    let vertex = |(at, vertex): (usize, &VertexId)| {
        let name = path.names.get(at);
        let properties = name.and_then(|name| name.properties.as_ref());
        Ok(PathVertex {
            id: vertex.to_string(),
            label: name.map(|name| name.label.clone()),
            key: name.map(|name| key(&name.key)),
            properties: properties.map(properties_of).transpose()?,
            edge: path.edges.get(at).map(edge).transpose()?,
        })
    };
    path.vertices.iter().enumerate().map(vertex).collect()
}

/// The properties of a batch of one row.
pub(super) fn properties_of(batch: &RecordBatch) -> Result<BTreeMap<String, Value>, Failure> {
    let columns = values::columns(batch)?.into_iter();
    Ok(columns.map(|(name, values)| (name, values.into_iter().next().unwrap_or_default())).collect())
}
