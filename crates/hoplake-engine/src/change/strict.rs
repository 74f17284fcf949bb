//! Strict batches: what the graph does not declare is an error, and a misspelt name adds nothing.

use std::collections::HashMap;

use hoplake_format::{Property, Schema};

use super::{
    Batch, EdgeKey, Operation, Properties,
    resolve::{At, refused},
};
use crate::{EngineError, Refusal};

/// Refuses the first upsert of a strict batch with a label, an edge type or a property that the graph does not have.
/// Deletions of what is not declared are errors anyway.
pub(super) fn check_declared(batch: &Batch, schema: &Schema) -> Result<(), EngineError> {
    if !batch.strict {
        return Ok(());
    }
    let vertices: HashMap<_, _> = schema.vertex_labels.iter().map(|it| (it.name.as_str(), &it.properties)).collect();
    let name = |label| schema.label(label).map_or("", |label| label.name.as_str());
    let edge_types = schema.edge_types.iter();
    let edges: HashMap<_, _> =
        edge_types.map(|it| ((it.label.as_str(), name(it.source), name(it.target)), &it.properties)).collect();
    for at in batch.operations.iter().enumerate() {
        match at.1 {
            Operation::UpsertVertex { vertex, properties, .. } => {
                let Some(known) = vertices.get(vertex.label.as_str()) else {
                    return undeclared(at, format!("the graph has no vertex label {}", vertex.label));
                };
                check_properties(at, known, properties, None)?;
            }
            Operation::UpsertEdge { label, source, target, key, properties, .. } => {
                let ends = (source.label.as_str(), target.label.as_str());
                let Some(known) = edges.get(&(label.as_str(), ends.0, ends.1)) else {
                    return undeclared(at, format!("the graph has no edges {label} from {} to {}", ends.0, ends.1));
                };
                check_properties(at, known, properties, key.as_ref())?;
            }
            Operation::DeleteVertex { .. } | Operation::DeleteEdge { .. } => {}
        }
    }
    Ok(())
}

fn check_properties(
    at: At<'_>,
    known: &[Property],
    properties: &Properties,
    key: Option<&EdgeKey>,
) -> Result<(), EngineError> {
    let named = properties.names().chain(key.map(|key| &key.property));
    match named.into_iter().find(|name| known.iter().all(|property| **name != property.name)) {
        Some(name) => undeclared(at, format!("{} has no property {name}", at.1.owner())),
        None => Ok(()),
    }
}

fn undeclared(at: At<'_>, why: String) -> Result<(), EngineError> {
    refused(at, Refusal::Undeclared, why)
}
