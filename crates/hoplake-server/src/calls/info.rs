//! Schema, counts and sizes.

use hoplake::{CompactionSettings, Graph, Property};

use super::{Call, GraphRef};
use crate::{catalog::OpenGraph, failure::Failure};

/// A property and its type, as text: protocols show types and compute nothing with them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PropertyInfo {
    pub(crate) name: String,
    pub(crate) kind: String,
}

/// A vertex label, with the number of its vertices that are not deleted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LabelInfo {
    pub(crate) name: String,
    pub(crate) key_type: String,
    pub(crate) vertices: u64,
    pub(crate) properties: Vec<PropertyInfo>,
}

/// An edge type. `edges` is an upper bound unless `edges_exact`: commits may have replaced or deleted edges.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EdgeTypeInfo {
    pub(crate) label: String,
    pub(crate) source: String,
    pub(crate) target: String,
    pub(crate) edges: u64,
    pub(crate) edges_exact: bool,
    pub(crate) properties: Vec<PropertyInfo>,
}

/// The description of a graph.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Info {
    pub(crate) name: String,
    pub(crate) version: u64,
    pub(crate) vertices: u64,
    pub(crate) edges: u64,
    pub(crate) edges_exact: bool,
    pub(crate) labels: Vec<LabelInfo>,
    pub(crate) edge_types: Vec<EdgeTypeInfo>,
    pub(crate) index_bytes: u64,
    pub(crate) total_bytes: u64,
    pub(crate) bytes_per_directed_edge: f64,
    pub(crate) created_unix_ms: i64,
    pub(crate) message: String,
    /// Whether a compaction would merge something.
    pub(crate) compaction_due: bool,
}

/// Schema, counts and sizes of a graph.
pub(crate) async fn info(call: &mut Call, graph: &GraphRef) -> Result<Info, Failure> {
    let open = call.graph(graph).await?;
    let reads = async {
        let settings = CompactionSettings::default();
        Ok((open.graph.info().await?, open.graph.compaction_is_due(&settings).await?))
    };
    let (sizes, compaction_due) = call.bounded(reads).await?;
    let OpenGraph { name, graph } = &*open;
    let manifest = graph.manifest();
    Ok(Info {
        name: name.clone(),
        version: sizes.version,
        vertices: sizes.vertices,
        edges: sizes.edges,
        edges_exact: sizes.edges_exact,
        labels: labels(graph),
        edge_types: edge_types(graph),
        index_bytes: sizes.index_bytes,
        total_bytes: sizes.total_bytes,
        bytes_per_directed_edge: sizes.bytes_per_directed_edge(),
        created_unix_ms: manifest.created_unix_ms as i64,
        message: manifest.change.message.clone(),
        compaction_due,
    })
}

fn properties(properties: &[Property]) -> Vec<PropertyInfo> {
    let one = |property: &Property| PropertyInfo { name: property.name.clone(), kind: property.kind.to_string() };
    properties.iter().map(one).collect()
}

fn labels(graph: &Graph) -> Vec<LabelInfo> {
    // Counts of a manifest have the order of the schema, here and for edge types.
    let labels = graph.schema().vertex_labels.iter().zip(&graph.manifest().vertex_counts);
    let each = labels.map(|(label, count)| LabelInfo {
        name: label.name.clone(),
        key_type: label.key_type.to_string(),
        // Without deleted vertices, which keep their ordinals.
        vertices: count.live(),
        properties: properties(&label.properties),
    });
    each.collect()
}

fn edge_types(graph: &Graph) -> Vec<EdgeTypeInfo> {
    let name = |id| graph.schema().label(id).map(|label| label.name.clone()).unwrap_or_default();
    let types = graph.schema().edge_types().zip(&graph.manifest().edge_counts);
    let each = types.map(|((id, edge), count)| EdgeTypeInfo {
        label: edge.label.clone(),
        source: name(edge.source),
        target: name(edge.target),
        edges: *count,
        edges_exact: graph.is_edge_count_exact(id),
        properties: properties(&edge.properties),
    });
    each.collect()
}
