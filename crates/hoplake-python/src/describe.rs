//! Schemas and sizes as plain objects.

use hoplake::{Graph, GraphInfo, LabelId};
use pyo3::{prelude::*, types::PyDict};

/// Labels and edge types, with their properties and how many vertices and edges they have.
pub fn schema<'py>(py: Python<'py>, graph: &Graph) -> PyResult<Bound<'py, PyAny>> {
    let schema = graph.schema();
    let manifest = graph.manifest();
    let classes = py.import("hoplake._schema")?;
    let properties = |all: &[hoplake::Property]| {
        let named = PyDict::new(py);
        for property in all {
            named.set_item(&property.name, property.kind.to_string())?;
        }
        Ok::<_, PyErr>(named)
    };
    let name = |label: LabelId| schema.label(label).map_or("", |label| label.name.as_str());
    let mut labels = Vec::new();
    for (label, count) in schema.vertex_labels.iter().zip(&manifest.vertex_counts) {
        let key = label.key_type.to_string();
        let fields = (&label.name, key, properties(&label.properties)?, count.live());
        labels.push(classes.getattr("Label")?.call1(fields)?);
    }
    let mut edge_types = Vec::new();
    for ((id, edge), count) in schema.edge_types().zip(&manifest.edge_counts) {
        let ends = (name(edge.source), name(edge.target));
        let is_exact = graph.is_edge_count_exact(id);
        let fields = (&edge.label, ends.0, ends.1, properties(&edge.properties)?, *count, is_exact);
        edge_types.push(classes.getattr("EdgeType")?.call1(fields)?);
    }
    classes.getattr("Schema")?.call1((labels, edge_types))
}

/// Sizes of a version.
pub fn info<'py>(py: Python<'py>, info: &GraphInfo) -> PyResult<Bound<'py, PyAny>> {
    let fields = PyDict::new(py);
    fields.set_item("version", info.version)?;
    fields.set_item("vertices", info.vertices)?;
    fields.set_item("edges", info.edges)?;
    fields.set_item("is_edge_count_exact", info.edges_exact)?;
    fields.set_item("bytes", info.total_bytes)?;
    fields.set_item("index_bytes", info.index_bytes)?;
    fields.set_item("bytes_per_directed_edge", info.bytes_per_directed_edge())?;
    py.import("hoplake._schema")?.getattr("Info")?.call((), Some(&fields))
}
