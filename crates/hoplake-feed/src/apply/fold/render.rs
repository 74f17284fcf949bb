//! The overlay as operations of a batch.

use hoplake::{Name, Operation, Schema, VertexRef};

use super::{EdgeId, EdgeState, Overlay, VertexState};

/// The operations that make of a graph of this schema what the overlay says, in the order of labels and keys.
pub fn render(overlay: Overlay, schema: &Schema) -> Vec<Operation> {
    let Overlay { vertices, edges, .. } = overlay;
    let mut operations = Vec::with_capacity(vertices.len() + edges.len());
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
    let mut edge_operations = Vec::with_capacity(of_edges.len());
    for (id, EdgeState { exists, is_reset: edge_is_reset, properties }) in of_edges {
        if is_gone(&id.source) || is_gone(&id.target) {
            continue;
        }
        let had_none = is_reset(&id.source) || is_reset(&id.target) || !has_type(&id);
        if edge_is_reset && !had_none {
            edge_operations.push(deletion(&id));
        }
        if !exists {
            continue;
        }
        let is_one = properties.len() == 1;
        for properties in properties {
            edge_operations.push(if is_one { upsert(&id, properties) } else { addition(&id, properties) });
        }
    }
    let mut of_vertices: Vec<_> = vertices.into_iter().collect();
    of_vertices.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    for (vertex, VertexState { exists, is_reset, properties }) in of_vertices {
        if is_reset && has_label(&vertex.label) {
            operations.push(Operation::DeleteVertex { vertex: vertex.clone() });
        }
        if exists {
            operations.push(Operation::UpsertVertex { vertex, properties, replace: false });
        }
    }
    operations.extend(edge_operations);
    operations
}

fn deletion(id: &EdgeId) -> Operation {
    let (label, source, target) = (id.label.clone(), id.source.clone(), id.target.clone());
    Operation::DeleteEdge { label, source, target, key: id.key.as_ref().map(Into::into) }
}

fn upsert(id: &EdgeId, properties: hoplake::Properties) -> Operation {
    let (label, source, target) = (id.label.clone(), id.source.clone(), id.target.clone());
    let key = id.key.as_ref().map(Into::into);
    Operation::UpsertEdge { label, source, target, key, properties, replace: false }
}

/// One of several edges that nothing distinguishes.
fn addition(id: &EdgeId, properties: hoplake::Properties) -> Operation {
    let (label, source, target) = (id.label.clone(), id.source.clone(), id.target.clone());
    Operation::EditEdge { label, source, target, number: None, properties: Some(properties), replace: false }
}
