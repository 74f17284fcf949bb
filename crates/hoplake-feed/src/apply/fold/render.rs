//! The overlay as operations of a batch.

use hoplake::{Name, Operation, Schema, VertexRef};

use super::{EdgeId, EdgeState, Origin, Overlay, VertexState};

/// An overlay as operations.
#[derive(Debug, Default)]
pub struct Rendered {
    /// In the order of labels and keys, vertices first.
    pub operations: Vec<Operation>,
    /// The row change that each comes from, as far as the batch has one.
    pub origins: Vec<Option<Origin>>,
}

impl Rendered {
    fn push(&mut self, operation: Operation, origin: Option<Origin>) {
        self.operations.push(operation);
        self.origins.push(origin);
    }

    fn extend(&mut self, others: Self) {
        self.operations.extend(others.operations);
        self.origins.extend(others.origins);
    }
}

/// The operations that make of a graph of this schema what the overlay says.
pub fn render(overlay: Overlay, schema: &Schema) -> Rendered {
    let Overlay { vertices, edges, .. } = overlay;
    let mut rendered = Rendered::default();
    let mut of_edges: Vec<_> = edges.into_iter().collect();
    of_edges.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let is_reset = |vertex: &VertexRef| vertices.get(vertex).is_some_and(|state| state.is_reset);
    let is_gone = |vertex: &VertexRef| vertices.get(vertex).is_some_and(|state| !state.exists);
    // Nothing can be deleted of a label that the graph does not have.
    let has_label = |label: &Name| schema.label_id(label).is_some();
    let has_type = |id: &EdgeId| {
        let ends = schema.label_id(&id.source.label).zip(schema.label_id(&id.target.label));
        ends.is_some_and(|ends| {
            schema.edge_types.iter().any(|it| id.label == it.label && ends == (it.source, it.target))
        })
    };
    let mut rendered_edges = Rendered::default();
    for (id, EdgeState { exists, is_reset: edge_is_reset, properties, origin }) in of_edges {
        if is_gone(&id.source) || is_gone(&id.target) {
            continue;
        }
        let had_none = is_reset(&id.source) || is_reset(&id.target) || !has_type(&id);
        if edge_is_reset && !had_none {
            rendered_edges.push(deletion(&id), origin);
        }
        if !exists {
            continue;
        }
        let is_one = properties.len() == 1;
        for properties in properties {
            let operation = if is_one { upsert(&id, properties) } else { addition(&id, properties) };
            rendered_edges.push(operation, origin);
        }
    }
    let mut of_vertices: Vec<_> = vertices.into_iter().collect();
    of_vertices.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    for (vertex, VertexState { exists, is_reset, properties, origin }) in of_vertices {
        if is_reset && has_label(&vertex.label) {
            rendered.push(Operation::DeleteVertex { vertex: vertex.clone() }, origin);
        }
        if exists {
            rendered.push(Operation::UpsertVertex { vertex, properties, replace: false }, origin);
        }
    }
    rendered.extend(rendered_edges);
    rendered
}

fn deletion(id: &EdgeId) -> Operation {
    let label = id.label.clone();
    let source = id.source.clone();
    let target = id.target.clone();
    Operation::DeleteEdge { label, source, target, key: id.key.as_ref().map(Into::into) }
}

fn upsert(id: &EdgeId, properties: hoplake::Properties) -> Operation {
    let label = id.label.clone();
    let source = id.source.clone();
    let target = id.target.clone();
    let key = id.key.as_ref().map(Into::into);
    Operation::UpsertEdge { label, source, target, key, properties, replace: false }
}

/// One of several edges that nothing distinguishes.
fn addition(id: &EdgeId, properties: hoplake::Properties) -> Operation {
    let label = id.label.clone();
    let source = id.source.clone();
    let target = id.target.clone();
    Operation::EditEdge { label, source, target, number: None, properties: Some(properties), replace: false }
}
