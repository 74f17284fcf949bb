//! Batches become one level: labels, types and ordinals are given out, and rows take their schema's shape.

use std::collections::BTreeMap;

use hoplake_format::{
    ChangeCounts, DegreeSummary, EdgeType, EdgeTypeId, Key, LabelId, Manifest, Property, PropertyType, ScalarType,
    Schema, VertexCount, VertexId, VertexLabel,
};

use super::{
    End, Properties, Value,
    level::{Changes, EdgeChanges, PairRows},
    resolve::{Pair, Resolved, Vertex},
};
use crate::EngineError;

/// What some batches make of a version: all that the next manifest says but its parts.
#[derive(Debug, Default)]
pub(crate) struct Assembled<'a> {
    pub(crate) schema: Schema,
    pub(crate) vertex_counts: Vec<VertexCount>,
    pub(crate) edge_counts: Vec<u64>,
    pub(crate) degrees: Vec<[DegreeSummary; 2]>,
    pub(crate) counts: ChangeCounts,
    pub(crate) changes: Changes<'a>,
}

impl<'a> Assembled<'a> {
    /// Puts batches together that name no item twice, and of which no two want a property to be of two types.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] if a value is of a wrong type, or numbers run out.
    pub(crate) fn of(manifest: &Manifest, batches: &'a [Resolved]) -> Result<Self, EngineError> {
        let mut assembled = Self::nothing(manifest);
        batches.iter().filter(|batch| batch.widens).try_for_each(|batch| assembled.widen(batch))?;
        let ordinals = assembled.add_vertices(batches)?;
        for batch in batches {
            assembled.change_vertices(batch)?;
            assembled.write_pairs(batch, &ordinals)?;
        }
        assembled.schema.validate().map_err(|error| EngineError::Invalid(error.to_string()))?;
        Ok(assembled)
    }

    /// Whether the schema has to be widened so that a batch fits.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] if it does not fit even then.
    pub(crate) fn widens(manifest: &Manifest, batch: &Resolved) -> Result<bool, EngineError> {
        let mut assembled = Self::nothing(manifest);
        assembled.widen(batch)?;
        assembled.schema.validate().map_err(|error| EngineError::Invalid(error.to_string()))?;
        Ok(assembled.schema != manifest.schema)
    }

    /// Widens the schema for one more batch; `false`, and nothing, if it does not fit what others have made of it.
    pub(crate) fn fits(&mut self, batch: &Resolved) -> bool {
        let before = self.schema.clone();
        let fits = self.widen(batch).is_ok() && self.schema.validate().is_ok();
        if !fits {
            self.vertex_counts.truncate(before.vertex_labels.len());
            self.edge_counts.truncate(before.edge_types.len());
            self.degrees.truncate(before.edge_types.len());
            self.schema = before;
        }
        fits
    }

    /// No change of a version.
    pub(crate) fn nothing(manifest: &Manifest) -> Self {
        Self {
            schema: manifest.schema.clone(),
            vertex_counts: manifest.vertex_counts.clone(),
            edge_counts: manifest.edge_counts.clone(),
            degrees: manifest.degrees.clone(),
            counts: ChangeCounts::default(),
            changes: Changes::default(),
        }
    }

    /// Lets the schema hold what a batch has.
    fn widen(&mut self, batch: &Resolved) -> Result<(), EngineError> {
        for (end, properties) in &batch.added {
            let label = self.label(end)?;
            let label = &mut self.schema.vertex_labels[usize::from(label.0)];
            fit(&label.name, &mut label.properties, properties)?;
        }
        for (vertex, (_, properties)) in &batch.changed {
            let label = &mut self.schema.vertex_labels[usize::from(vertex.label().0)];
            fit(&label.name, &mut label.properties, properties)?;
        }
        let mut types = EdgeTypes::default();
        for (pair, edges) in batch.groups() {
            for edge in edges {
                let edge_type = self.edge_type(&pair, batch, &mut types)?;
                let edge_type = &mut self.schema.edge_types[usize::from(edge_type.0)];
                fit(&edge_type.label, &mut edge_type.properties, edge)?;
            }
        }
        Ok(())
    }

    /// The number of a vertex's label, which is made if there is none.
    fn label(&mut self, end: &End) -> Result<LabelId, EngineError> {
        let key_type = end.key.key_type();
        if let Some(id) = self.schema.label_id(&end.label) {
            let expected = self.schema.vertex_labels[usize::from(id.0)].key_type;
            return match expected == key_type {
                true => Ok(id),
                false => {
                    Err(EngineError::Invalid(format!("keys of {} are {expected}, but {end} is {key_type}", end.label)))
                }
            };
        }
        let id = number(self.schema.vertex_labels.len(), "vertex labels")?;
        let label = VertexLabel { name: end.label.to_string(), key_type, properties: Vec::new() };
        self.schema.vertex_labels.push(label);
        self.vertex_counts.push(VertexCount::default());
        Ok(LabelId(id))
    }

    /// The number of a pair's edge type, which is made if there is none.
    fn edge_type(&mut self, pair: &Pair, batch: &Resolved, types: &mut EdgeTypes) -> Result<EdgeTypeId, EngineError> {
        let (source, target) = (self.label_of(pair.source, batch)?, self.label_of(pair.target, batch)?);
        if let Some(known) = types.get(&(pair.label, source, target)) {
            return Ok(*known);
        }
        let label = batch.edge_label(pair.label);
        let is = |it: &EdgeType| (&*it.label, it.source, it.target) == (label, source, target);
        let at = match self.schema.edge_types.iter().position(is) {
            Some(at) => at,
            None => {
                let edge_type = EdgeType { label: label.to_owned(), source, target, properties: Vec::new() };
                self.schema.edge_types.push(edge_type);
                self.edge_counts.push(0);
                self.degrees.push([DegreeSummary::default(), DegreeSummary::default()]);
                self.schema.edge_types.len() - 1
            }
        };
        let id = EdgeTypeId(number(at, "edge types")?);
        types.insert((pair.label, source, target), id);
        Ok(id)
    }

    fn label_of(&mut self, vertex: Vertex, batch: &Resolved) -> Result<LabelId, EngineError> {
        match vertex {
            Vertex::Known(vertex) => Ok(vertex.label()),
            Vertex::New(end) => self.label(batch.end(end)),
        }
    }

    /// Gives ordinals to new vertices: those of a label follow each other in the order of their keys.
    fn add_vertices(&mut self, batches: &'a [Resolved]) -> Result<BTreeMap<End, VertexId>, EngineError> {
        let mut added: BTreeMap<LabelId, BTreeMap<&Key, &Properties>> = BTreeMap::new();
        for (end, properties) in batches.iter().flat_map(|batch| &batch.added) {
            let label = self.label(end)?;
            added.entry(label).or_default().insert(&end.key, properties);
        }
        let mut ordinals = BTreeMap::new();
        for (label, rows) in added {
            let count = &mut self.vertex_counts[usize::from(label.0)];
            let name = &self.schema.vertex_labels[usize::from(label.0)].name;
            for (key, ordinal) in rows.keys().zip(count.ordinals..) {
                let full = || EngineError::Invalid(format!("{name} has no ordinals left"));
                let vertex = VertexId::new(label, ordinal).ok_or_else(full)?;
                ordinals.insert(End { label: name.into(), key: (*key).clone() }, vertex);
            }
            let of_label = self.changes.labels.entry(label).or_default();
            of_label.first_ordinal = count.ordinals;
            count.ordinals += rows.len() as u64;
            self.counts.vertices_added += rows.len() as u64;
            of_label.added = rows;
        }
        Ok(ordinals)
    }

    fn change_vertices(&mut self, batch: &'a Resolved) -> Result<(), EngineError> {
        for (vertex, (end, properties)) in &batch.changed {
            let of_label = self.changes.labels.entry(vertex.label()).or_default();
            of_label.changed.insert(vertex.ordinal(), (&end.key, properties));
            self.counts.vertices_changed += 1;
        }
        for (vertex, end) in &batch.gone {
            let of_label = self.changes.labels.entry(vertex.label()).or_default();
            of_label.gone.insert(&end.key, vertex.ordinal());
            self.vertex_counts[usize::from(vertex.label().0)].gone += 1;
            self.counts.vertices_removed += 1;
        }
        Ok(())
    }

    fn write_pairs(&mut self, batch: &'a Resolved, ordinals: &BTreeMap<End, VertexId>) -> Result<(), EngineError> {
        let of_new = |number: usize| ordinals.get(batch.end(number as u32)).copied();
        let named = batch.known().iter().enumerate().map(|(number, known)| known.or_else(|| of_new(number)));
        let named: Vec<_> = named.collect();
        let ordinal = |vertex: Vertex| match vertex {
            Vertex::Known(vertex) => Ok(vertex.ordinal()),
            Vertex::New(end) => {
                let missing = || EngineError::Invalid(format!("{} was given no ordinal", batch.end(end)));
                named[end as usize].map(VertexId::ordinal).ok_or_else(missing)
            }
        };
        let mut types = EdgeTypes::default();
        for (pair, edges) in batch.groups() {
            let edge_type = self.edge_type(&pair, batch, &mut types)?;
            let ends = (ordinal(pair.source)?, ordinal(pair.target)?);
            let count = self.changes.groups.entry(edge_type).or_default().push(ends, edges);
            match count {
                0 => self.counts.pairs_removed += 1,
                edges => {
                    self.counts.edges_written += edges;
                    self.edge_counts[usize::from(edge_type.0)] += edges;
                }
            }
        }
        Ok(())
    }
}

/// Edge types by the number of their label in a batch and the labels of their ends.
type EdgeTypes = BTreeMap<(u32, LabelId, LabelId), EdgeTypeId>;

impl<'a> EdgeChanges<'a> {
    /// Adds all edges between two vertices, and says how many there are.
    fn push(&mut self, ends: (u64, u64), edges: impl Iterator<Item = &'a Properties>) -> u64 {
        let first_row = self.rows.len() as u64;
        self.rows.extend(edges);
        let rows = self.rows.len() as u64 - first_row;
        self.pairs.push(PairRows { ends, first_row, rows });
        rows
    }
}

fn number(at: usize, what: &str) -> Result<u16, EngineError> {
    let fits = u16::try_from(at).ok().filter(|number| *number < u16::MAX);
    fits.ok_or_else(|| EngineError::Invalid(format!("a graph has at most 65,535 {what}")))
}

/// Lets properties hold values: new ones are added, integers become floating-point numbers.
fn fit(owner: &str, known: &mut Vec<Property>, values: &Properties) -> Result<(), EngineError> {
    for (name, value) in values {
        let found = value.property_type();
        let Some(property) = known.iter_mut().find(|property| *name == property.name) else {
            match found {
                Some(kind) => known.push(Property { name: name.to_string(), kind }),
                // A property that nobody has is as good as null.
                None if *value == Value::Null => {}
                None => {
                    let why = format!("{owner} has no property {name}, and {value} does not tell its type");
                    return Err(EngineError::Invalid(why));
                }
            }
            continue;
        };
        if value.is_of(property.kind) || value.clone().conform(property.kind).is_some() {
            continue;
        }
        match (property.kind, found) {
            (PropertyType::Scalar(ScalarType::Int64), Some(wider @ PropertyType::Scalar(ScalarType::Float64)))
            | (PropertyType::List(ScalarType::Int64), Some(wider @ PropertyType::List(ScalarType::Float64))) => {
                property.kind = wider;
            }
            _ => {
                let why = format!("property {name} of {owner} is {}, which {value} is not", property.kind);
                return Err(EngineError::Invalid(why));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(kind: PropertyType) -> Vec<Property> {
        vec![Property { name: "p".into(), kind }]
    }

    fn fitted(kind: PropertyType, value: Value) -> Result<PropertyType, String> {
        let mut known = known(kind);
        fit("Person", &mut known, &[("p", value)].into()).map_err(|error| error.to_string())?;
        Ok(known[0].kind)
    }

    #[test]
    fn integers_widen_and_nothing_else_does() {
        let (int, float) = (PropertyType::Scalar(ScalarType::Int64), PropertyType::Scalar(ScalarType::Float64));
        assert_eq!(fitted(int, Value::Float64(0.5)), Ok(float));
        assert_eq!(fitted(float, Value::Int64(3)), Ok(float));
        assert_eq!(fitted(int, Value::Null), Ok(int));
        let refused = fitted(int, Value::String("x".into())).unwrap_err();
        assert_eq!(refused, "property p of Person is int64, which \"x\" is not");
        let list = Value::List(vec![Value::Int64(1), Value::Float64(2.0)]);
        assert!(fitted(PropertyType::List(ScalarType::Float64), list.clone()).is_ok());
        assert!(fitted(PropertyType::List(ScalarType::Int64), list).is_err());
        let ints = PropertyType::List(ScalarType::Int64);
        assert_eq!(fitted(ints, Value::List(vec![Value::Float64(2.0)])), Ok(PropertyType::List(ScalarType::Float64)));
    }

    #[test]
    fn a_new_property_needs_a_type() {
        let mut known = Vec::new();
        fit("Person", &mut known, &[("a", Value::Bool(true)), ("b", Value::Null)].into()).unwrap();
        assert_eq!(known.len(), 1);
        let refused = fit("Person", &mut known, &[("c", Value::List(vec![]))].into()).unwrap_err();
        assert!(refused.to_string().contains("[] does not tell its type"), "{refused}");
    }
}
