//! Edges and rows as JSON.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use hoplake::{EdgeSlice, Graph, KEY_COLUMN, Key, Neighbour, VertexId};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::values;
use crate::{
    calls::{EdgeColumns, LabelRows, ValueRows},
    failure::Failure,
};

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

/// The ids at one depth.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Vertices {
    pub(super) depth: u32,
    pub(super) ids: Vec<String>,
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

/// The properties of a batch of one row.
pub(super) fn properties_of(batch: &RecordBatch) -> Result<BTreeMap<String, Value>, Failure> {
    let columns = values::columns(batch)?.into_iter();
    Ok(columns.map(|(name, values)| (name, values.into_iter().next().unwrap_or_default())).collect())
}
