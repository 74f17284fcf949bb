//! The naive model of a version, and the effect of a batch on it.
//!
//! It is written for being obviously right: maps of everything, copied for each version.

use std::collections::{BTreeMap, BTreeSet};

use hoplake::{Batch, Name, Operation, Properties, Value, VertexRef};

/// An edge label and the two ends.
pub type Pair = (Name, VertexRef, VertexRef);

/// The content that a graph should have.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Model {
    /// Vertices and their properties, without those that are null.
    pub vertices: BTreeMap<VertexRef, Properties>,
    /// The edges between each two vertices, in the order of their properties' text.
    pub edges: BTreeMap<Pair, Vec<Properties>>,
    /// Vertex labels that the schema knows.
    pub labels: BTreeSet<Name>,
    /// Edge labels that it knows, with the labels of their ends, and the properties of such edges.
    pub edge_types: BTreeMap<(Name, Name, Name), BTreeSet<Name>>,
}

/// The changes of a batch, or of a version.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changed {
    /// Vertices that it added, changed or deleted.
    pub vertices: BTreeSet<VertexRef>,
    /// Of these, the ones that it deleted, or that returned.
    pub reborn: BTreeSet<VertexRef>,
    /// Pairs whose edges it wrote or removed.
    pub pairs: BTreeSet<Pair>,
}

impl Model {
    /// Why a batch of single operations is rejected on this version, if it is.
    pub fn rejection(&self, batch: &Batch) -> Option<String> {
        let added = batch.operations.iter().filter_map(|operation| match operation {
            Operation::UpsertVertex { vertex, .. } => Some(vertex),
            _ => None,
        });
        let added: BTreeSet<_> = added.collect();
        let is_label = |label: &str| self.labels.contains(label) || added.iter().any(|end| end.label == label);
        let gone = |end: &VertexRef| {
            let deletes = |it: &Operation| matches!(it, Operation::DeleteVertex { vertex } if vertex == end);
            self.vertices.contains_key(end) && batch.operations.iter().any(deletes)
        };
        let end_rejected = |end: &VertexRef| match self.vertices.contains_key(end) || added.contains(end) {
            true => gone(end).then(|| format!("the batch deletes {end}")),
            false if !batch.create_missing => Some(format!("there is no {end}")),
            false => (!is_label(&end.label)).then(|| format!("there is no label {}", end.label)),
        };
        // What operations before have introduced may be deleted by later ones.
        let mut labels = BTreeSet::new();
        let mut types: BTreeMap<_, BTreeSet<&Name>> = BTreeMap::new();
        batch.operations.iter().find_map(|operation| match operation {
            Operation::UpsertColumns(_) => None,
            Operation::UpsertVertex { vertex, .. } => {
                labels.insert(&vertex.label);
                None
            }
            Operation::DeleteVertex { vertex } => {
                let known = self.labels.contains(vertex.label.as_str()) || labels.contains(&vertex.label);
                (!known).then(|| format!("there is no label {}", vertex.label))
            }
            Operation::UpsertEdge { label, source, target, key, properties, .. } => {
                let names = types.entry((label.clone(), source.label.clone(), target.label.clone())).or_default();
                names.extend(key.iter().map(|key| &key.property));
                names.extend(properties.names());
                end_rejected(source).or_else(|| end_rejected(target))
            }
            Operation::EditEdge { .. } => Some("histories have no edges by number".to_owned()),
            Operation::DeleteEdge { label, source, target, key } => {
                let edge_type = (label.clone(), source.label.clone(), target.label.clone());
                let introduced = types.get(&edge_type);
                if introduced.is_some_and(|names| key.as_ref().is_none_or(|key| names.contains(&key.property))) {
                    return None;
                }
                match self.edge_types.get(&edge_type) {
                    None => Some(format!("there are no edges {label}")),
                    Some(known) => key.as_ref().filter(|key| !known.contains(&key.property)).map(|key| key.to_string()),
                }
            }
        })
    }

    /// Applies a valid batch, and returns what it changed.
    pub fn apply(&mut self, batch: &Batch) -> Changed {
        let mut changed = Changed::default();
        for operation in &batch.operations {
            self.apply_to_vertex(operation, &mut changed);
        }
        for operation in &batch.operations {
            self.apply_to_edge(operation, &mut changed);
        }
        changed
    }

    fn apply_to_vertex(&mut self, operation: &Operation, changed: &mut Changed) {
        match operation {
            Operation::UpsertVertex { vertex, properties, replace } => {
                let row = merged(self.vertices.get(vertex), properties, *replace);
                if self.vertices.insert(vertex.clone(), row).is_none() {
                    changed.reborn.insert(vertex.clone());
                }
                self.labels.insert(vertex.label.clone());
                changed.vertices.insert(vertex.clone());
            }
            Operation::DeleteVertex { vertex } if self.vertices.remove(vertex).is_some() => {
                changed.vertices.insert(vertex.clone());
                changed.reborn.insert(vertex.clone());
                let touches = |(_, source, target): &Pair| source == vertex || target == vertex;
                changed.pairs.extend(self.edges.keys().filter(|pair| touches(pair)).cloned());
                self.edges.retain(|pair, _| !touches(pair));
            }
            _ => {}
        }
    }

    fn apply_to_edge(&mut self, operation: &Operation, changed: &mut Changed) {
        let (label, source, target, key, change) = match operation {
            Operation::UpsertEdge { label, source, target, key, properties, replace } => {
                (label, source, target, key, Some((properties, *replace)))
            }
            Operation::DeleteEdge { label, source, target, key } => (label, source, target, key, None),
            // Edges of a pair have no order here, and so no numbers.
            Operation::UpsertVertex { .. }
            | Operation::DeleteVertex { .. }
            | Operation::EditEdge { .. }
            | Operation::UpsertColumns(_) => return,
        };
        let pair = (label.clone(), source.clone(), target.clone());
        let of_key = |edge: &Properties| {
            key.as_ref().is_none_or(|key| edge.get(&key.property) == Some(&widened(key.value.clone())))
        };
        let mut edges = self.edges.remove(&pair).unwrap_or_default();
        let old = edges.iter().find(|edge| of_key(edge)).cloned();
        edges.retain(|edge| !of_key(edge));
        if let Some((properties, replace)) = change {
            for end in [source, target] {
                // Only a batch that makes missing ends gets here without them.
                if !self.vertices.contains_key(end) {
                    self.vertices.insert(end.clone(), Properties::new());
                    changed.vertices.insert(end.clone());
                    changed.reborn.insert(end.clone());
                }
            }
            let mut row = merged(old.as_ref(), properties, replace);
            row.extend(key.iter().map(|key| (key.property.clone(), widened(key.value.clone()))));
            let edge_type = (label.clone(), source.label.clone(), target.label.clone());
            self.edge_types.entry(edge_type).or_default().extend(row.names().cloned());
            edges.push(row);
            // Parallel edges have no order of their own.
            edges.sort_by_key(|edge| format!("{edge:?}"));
            changed.pairs.insert(pair.clone());
        }
        // Without its ends, before the batch and after it, no edge exists.
        let there = |end| self.vertices.contains_key(end) && !changed.reborn.contains(end);
        if there(source) && there(target) {
            changed.pairs.insert(pair.clone());
        }
        if !edges.is_empty() {
            self.edges.insert(pair, edges);
        }
    }

    /// The vertices at the other end of edges of a label that touch this one.
    pub fn neighbours(&self, label: &str, vertex: &VertexRef, out: bool) -> BTreeSet<VertexRef> {
        let far = |(of, source, target): &Pair| match out {
            true => (of == label && source == vertex).then(|| target.clone()),
            false => (of == label && target == vertex).then(|| source.clone()),
        };
        self.edges.keys().filter_map(far).collect()
    }

    /// How many edges there are.
    pub fn edge_count(&self) -> usize {
        self.edges.values().map(Vec::len).sum()
    }

    /// The first few differences from another model, for a message.
    pub fn difference(&self, found: &Self) -> String {
        let mut lines = Vec::new();
        differences("vertex", &self.vertices, &found.vertices, &mut lines);
        differences("edges", &self.edges, &found.edges, &mut lines);
        differences("edge type", &self.edge_types, &found.edge_types, &mut lines);
        if self.labels != found.labels {
            lines.push(format!("labels: expected {:?}, found {:?}", self.labels, found.labels));
        }
        lines.truncate(4);
        lines.join("; ")
    }
}

fn differences<K: Ord + std::fmt::Debug, V: PartialEq + std::fmt::Debug>(
    what: &str,
    expected: &BTreeMap<K, V>,
    found: &BTreeMap<K, V>,
    lines: &mut Vec<String>,
) {
    let keys: BTreeSet<&K> = expected.keys().chain(found.keys()).collect();
    for key in keys {
        let expected = expected.get(key);
        let found = found.get(key);
        if expected != found {
            lines.push(format!("{what} {key:?}: expected {expected:?}, found {found:?}"));
        }
    }
}

fn merged(old: Option<&Properties>, new: &Properties, replace: bool) -> Properties {
    let mut merged = old.filter(|_| !replace).cloned().unwrap_or_default();
    merged.extend(new.iter().map(|(name, value)| (name.clone(), widened(value.clone()))));
    merged.retain(|_, value| *value != Value::Null);
    merged
}

/// Properties as they are compared; see [`widened`].
pub fn compared(properties: Properties) -> Properties {
    properties.into_iter().map(|(name, value)| (name, widened(value))).collect()
}

/// A value as it is compared: a property may have become floating-point since it was written, so all numbers are.
pub fn widened(value: Value) -> Value {
    match value {
        Value::Int64(number) => Value::Float64(number as f64),
        Value::List(items) => Value::List(items.into_iter().map(widened).collect()),
        other => other,
    }
}
