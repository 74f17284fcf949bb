//! Strict batches: what the graph does not declare is an error, and a misspelt name adds nothing.

use std::collections::{HashMap, HashSet};

use arrow_array::Array;
use hoplake_format::{Property, Schema};

use super::{
    Batch, EdgeKey, Operation, Properties,
    names::{At, Single},
};
use crate::{EngineError, Rejection};

/// Rejects the first upsert of a strict batch with a label, an edge type or a property that the graph does not have.
/// Deletions of what is not declared are errors anyway.
pub(super) fn check_declared<'a>(batch: &Batch, schema: &'a Schema) -> Result<(), EngineError> {
    if !batch.strict {
        return Ok(());
    }
    let names = |properties: &'a [Property]| properties.iter().map(|it| it.name.as_str()).collect::<HashSet<_>>();
    let labels = schema.vertex_labels.iter();
    let vertices: HashMap<_, _> = labels.map(|it| (it.name.as_str(), names(&it.properties))).collect();
    let name = |label| schema.label(label).map_or("", |label| label.name.as_str());
    let edge_types = schema.edge_types.iter();
    let edges: HashMap<_, _> =
        edge_types.map(|it| ((it.label.as_str(), name(it.source), name(it.target)), names(&it.properties))).collect();
    for (operation, it) in batch.operations.iter().enumerate() {
        let at = At { operation, change: Single::One(it) };
        match it {
            Operation::UpsertVertex { vertex, properties, .. } => {
                let Some(known) = vertices.get(vertex.label.as_str()) else {
                    return undeclared(at, format!("the graph has no vertex label {}", vertex.label));
                };
                check_properties(at, &vertex.label, known, properties, None)?;
            }
            Operation::UpsertEdge { label, source, target, key, properties, .. } => {
                let ends = (source.label.as_str(), target.label.as_str());
                let Some(known) = edges.get(&(label.as_str(), ends.0, ends.1)) else {
                    return undeclared(at, format!("the graph has no edges {label} from {} to {}", ends.0, ends.1));
                };
                check_properties(at, label, known, properties, key.as_ref())?;
            }
            Operation::UpsertColumns(columns) if columns.is_empty() => {}
            Operation::UpsertColumns(columns) => {
                let at = |row| At { operation, change: Single::Row(columns, row) };
                let label = columns.label();
                let known = match columns.ends() {
                    None => {
                        vertices.get(label.as_str()).ok_or_else(|| format!("the graph has no vertex label {label}"))
                    }
                    Some([source, target]) => {
                        let none = || format!("the graph has no edges {label} from {source} to {target}");
                        edges.get(&(label.as_str(), source.as_str(), target.as_str())).ok_or_else(none)
                    }
                };
                let known = known.or_else(|why| undeclared(at(0), why))?;
                let new = columns.properties().iter().filter(|it| !known.contains(it.name.as_str()));
                // A null names nothing.
                let first =
                    new.filter_map(|it| Some(((0..columns.len()).find(|row| it.values.is_valid(*row))?, &it.name)));
                // The first row, as if the rows were single operations, whatever the order of the columns.
                if let Some((row, name)) = first.min() {
                    return undeclared(at(row), format!("{label} has no property {name}"));
                }
            }
            Operation::EditEdge { label, source, target, properties: Some(properties), .. } => {
                let ends = (source.label.as_str(), target.label.as_str());
                let Some(known) = edges.get(&(label.as_str(), ends.0, ends.1)) else {
                    return undeclared(at, format!("the graph has no edges {label} from {} to {}", ends.0, ends.1));
                };
                check_properties(at, label, known, properties, None)?;
            }
            Operation::DeleteVertex { .. } | Operation::DeleteEdge { .. } | Operation::EditEdge { .. } => {}
        }
    }
    Ok(())
}

fn check_properties(
    at: At<'_>,
    owner: &str,
    known: &HashSet<&str>,
    properties: &Properties,
    key: Option<&EdgeKey>,
) -> Result<(), EngineError> {
    let named = properties.names().chain(key.map(|key| &key.property));
    match named.into_iter().find(|name| !known.contains(name.as_str())) {
        Some(name) => undeclared(at, format!("{owner} has no property {name}")),
        None => Ok(()),
    }
}

fn undeclared<T>(at: At<'_>, why: String) -> Result<T, EngineError> {
    at.rejected(Rejection::Undeclared, why)
}
