//! Paths as JSON.

use std::collections::BTreeMap;

use hoplake::VertexId;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    answers::StatisticsAnswer,
    rows::{key, properties_of},
};
use crate::{
    calls::{self, NamedPath},
    cost::PricedCost,
    failure::Failure,
};

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
    /// By the property that the request names as weight: the sum of the edges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) length: Option<f64>,
    pub(crate) version: u64,
    pub(crate) cost: PricedCost,
}

/// A path, as a list of its vertices.
pub(super) fn path(path: &NamedPath) -> Result<Vec<PathVertex>, Failure> {
    let edge = |edge: &calls::PathEdge| {
        let properties = edge.properties.as_ref().map(properties_of).transpose()?;
        let id = edge.id.to_string();
        let direction = edge.direction.to_string();
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
