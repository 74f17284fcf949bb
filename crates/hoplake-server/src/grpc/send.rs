//! Answers as messages, in chunks that fit a client's default bound of 4 MiB a message.

use arrow_array::Array;
use hoplake::{ChangeCounts, Direction, EdgeList, EdgeSlice, Key, gremlin::value::Value};

use super::columns::{self, ids};
use crate::{
    calls::{
        AppliedChanges, DepthStatistics, EdgeColumns, EdgeTypeInfo, EmptyGraph, Info, LabelInfo, LabelRows, NamedPath,
        PathEdge, PathName, PropertyInfo, Statistics, ValueRows, raw_id,
    },
    failure::Failure,
    v1::{self, vertex_ref::LabelledKey},
};

/// The bytes of rows in a message, on average: a 16th of the bound, for rows that are longer than others.
const ROW_BYTES: usize = 256 << 10;
/// Rows in a message, however short.
const ROWS_MAX: usize = 4 << 10;

/// Results of Gremlin as JSON, in chunks.
pub(super) fn results(results: &[(Value, u64)]) -> impl Iterator<Item = Vec<String>> + Send {
    let text = |(value, bulk): &(Value, u64)| std::iter::repeat_n(value.to_json().to_string(), *bulk as usize);
    let mut texts = results.iter().flat_map(text);
    std::iter::from_fn(move || {
        let mut chunk = Vec::new();
        let mut bytes = 0;
        while bytes < ROW_BYTES
            && chunk.len() < ROWS_MAX
            && let Some(text) = texts.next()
        {
            bytes += text.len();
            chunk.push(text);
        }
        (!chunk.is_empty()).then_some(chunk)
    })
}

/// Keys of vertices, all of one label.
fn keys<'a>(keys: impl IntoIterator<Item = &'a Key>) -> v1::Keys {
    let mut wire = v1::Keys::default();
    for key in keys {
        match key {
            Key::Int64(key) => wire.int64s.push(*key),
            Key::String(key) => wire.strings.push(key.clone()),
        }
    }
    wire
}

/// Edges of one type and direction: their ends have one label, and so one type of key.
fn edges(list: &EdgeList<'_>, of_ends: Option<&[Key]>) -> v1::Edges {
    v1::Edges {
        from: raw_id(list.from),
        edge_type: list.edge_type.0.into(),
        direction: direction(list.direction).into(),
        to: ids(list.targets.iter().copied()),
        keys: of_ends.map(keys),
        parallel: list.parallel.to_vec(),
        columns: Vec::new(),
    }
}

/// Edges, with the keys of the vertices reached and properties of their own if requested.
pub(super) fn all_edges(
    all: EdgeSlice<'_>,
    of_ends: Option<&[Key]>,
    columns: &EdgeColumns,
) -> Result<Vec<v1::Edges>, Failure> {
    let mut from = 0;
    // Keys are in the order of all edges; each list takes as many as it has edges.
    let mut rest = of_ends;
    let lists = all.into_lists().map(|list| {
        let of_list = rest.and_then(|keys| keys.split_at_checked(list.targets.len()));
        rest = of_list.map(|(_, later)| later);
        let count = list.targets.len();
        let of_edges = columns.iter().map(|(name, values)| columns::column(name, &values.slice(from, count)));
        let columns = of_edges.collect::<Result<_, _>>()?;
        from += count;
        Ok(v1::Edges { columns, ..edges(&list, of_list.map(|(now, _)| now)) })
    });
    lists.collect()
}

/// The messages of rows.
pub(super) fn rows(all: &LabelRows, format: v1::RowFormat) -> impl Iterator<Item = Result<v1::Rows, Failure>> {
    all.chunks(rows_a_message(all)).map(move |rows| columns::rows(&rows, format))
}

/// The messages of rows with the values that a job computed.
pub(super) fn value_rows(
    all: &ValueRows,
    format: v1::RowFormat,
) -> impl Iterator<Item = Result<v1::JobResultResponse, Failure>> {
    all.chunks(rows_a_message(&all.rows)).map(move |part| {
        let (rows, values) = columns::value_rows(&part, format)?;
        Ok(v1::JobResultResponse { rows: Some(rows), values, ..Default::default() })
    })
}

fn rows_a_message(all: &LabelRows) -> usize {
    // Measured before it is cut: a slice reports the buffers of the whole.
    let mean = all.batch.get_array_memory_size() / all.len().max(1);
    (ROW_BYTES / mean.max(1)).clamp(1, ROWS_MAX)
}

impl From<&DepthStatistics> for v1::Depth {
    fn from(depth: &DepthStatistics) -> Self {
        Self { edges: depth.edges, vertices: depth.vertices, step: Some(depth.step.into()) }
    }
}

impl From<Statistics> for v1::Statistics {
    fn from(statistics: Statistics) -> Self {
        Self {
            cost: Some(statistics.cost.into()),
            time_us: statistics.time_us,
            look_up: Some(statistics.look_up.into()),
            depths: statistics.depths.iter().map(Into::into).collect(),
            rows: Some(statistics.rows.into()),
            results: statistics.results,
            truncated: statistics.truncated,
            count: statistics.count,
            version: statistics.version,
        }
    }
}

/// A path, with what was requested of it.
pub(super) fn path(path: &NamedPath) -> Result<v1::Path, Failure> {
    let kind = |key: &Key| match key {
        Key::Int64(key) => v1::key::Kind::Int64(*key),
        Key::String(key) => v1::key::Kind::String(key.clone()),
    };
    let key =
        |name: &PathName| LabelledKey { label: name.label.clone(), key: Some(v1::Key { kind: Some(kind(&name.key)) }) };
    let edge = |edge: &PathEdge| {
        Ok(v1::PathEdge {
            edge_type: edge.id.edge_type.0.into(),
            direction: direction(edge.direction).into(),
            parallel: edge.id.parallel,
            properties: edge.properties.as_ref().map(columns::properties).transpose()?,
        })
    };
    let rows = path.names.iter().filter_map(|name| name.properties.as_ref());
    Ok(v1::Path {
        ids: ids(path.vertices.iter().copied()),
        keys: path.names.iter().map(key).collect(),
        properties: rows.map(columns::properties).collect::<Result<_, Failure>>()?,
        edges: path.edges.iter().map(edge).collect::<Result<_, Failure>>()?,
    })
}

fn direction(direction: Direction) -> v1::Direction {
    match direction {
        Direction::Out => v1::Direction::Out,
        Direction::In => v1::Direction::In,
    }
}

impl From<AppliedChanges> for v1::ApplyResponse {
    fn from(applied: AppliedChanges) -> Self {
        let AppliedChanges { version, counts, changes, batches, repeated, cost } = applied;
        let ChangeCounts { vertices_added, vertices_changed, vertices_removed, edges_written, pairs_removed } = counts;
        let counts =
            v1::ChangeCounts { vertices_added, vertices_changed, vertices_removed, edges_written, pairs_removed };
        Self { version, counts: Some(counts), changes, batches, repeated, cost: Some(cost.into()) }
    }
}

impl From<EmptyGraph> for v1::CreateGraphResponse {
    fn from(EmptyGraph { version, created }: EmptyGraph) -> Self {
        Self { version, created }
    }
}

impl From<&Failure> for v1::Failure {
    fn from(failure: &Failure) -> Self {
        let code = failure.reason.grpc() as i32;
        let reason = failure.reason.name().to_owned();
        Self { code, reason, message: failure.message.clone() }
    }
}

fn properties(properties: Vec<PropertyInfo>) -> Vec<v1::Property> {
    properties.into_iter().map(|property| v1::Property { name: property.name, r#type: property.kind }).collect()
}

impl From<LabelInfo> for v1::VertexLabel {
    fn from(label: LabelInfo) -> Self {
        let LabelInfo { name, key_type, vertices, properties: all } = label;
        Self { name, key_type, vertices, properties: properties(all) }
    }
}

impl From<EdgeTypeInfo> for v1::EdgeType {
    fn from(edge: EdgeTypeInfo) -> Self {
        let EdgeTypeInfo { label, source, target, edges, edges_exact, properties: all } = edge;
        Self { label, source, target, edges, edges_exact, properties: properties(all) }
    }
}

impl From<Info> for v1::GetGraphResponse {
    fn from(info: Info) -> Self {
        Self {
            name: info.name,
            version: info.version,
            vertices: info.vertices,
            edges: info.edges,
            edges_exact: info.edges_exact,
            labels: info.labels.into_iter().map(Into::into).collect(),
            edge_types: info.edge_types.into_iter().map(Into::into).collect(),
            index_bytes: info.index_bytes,
            total_bytes: info.total_bytes,
            bytes_per_directed_edge: info.bytes_per_directed_edge,
            created_unix_ms: info.created_unix_ms,
            message: info.message,
            compaction_due: info.compaction_due,
        }
    }
}
