//! Batches become one level: labels, types and ordinals are given out, and rows take their schema's shape.

use std::collections::BTreeMap;

use hoplake_format::{
    ChangeCounts, DegreeSummary, EdgeType, EdgeTypeId, Key, LabelId, Manifest, Schema, VertexCount, VertexId,
    VertexLabel,
};

use super::{
    End, Operation, Properties,
    fit::{Misfit, fit},
    level::{Changes, EdgeChanges, PairRows},
    resolve::{Pair, Resolved, Vertex, Widening},
    widen::{Conversion, conversions},
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
    /// [`EngineError::Refused`] if a value is of a wrong type, [`EngineError::Invalid`] if numbers run out.
    pub(crate) fn of(manifest: &Manifest, batches: &'a [Resolved]) -> Result<Self, EngineError> {
        let mut assembled = Self::nothing(manifest);
        let mut widening = batches.iter().filter(|batch| batch.widens != Widening::None);
        widening.try_for_each(|batch| assembled.widen(batch))?;
        let ordinals = assembled.add_vertices(batches)?;
        for batch in batches {
            assembled.change_vertices(batch)?;
            assembled.write_pairs(batch, &ordinals)?;
        }
        assembled.schema.validate().map_err(|error| EngineError::Invalid(error.to_string()))?;
        Ok(assembled)
    }

    /// How the schema has to be widened so that a batch fits, and which properties become float64 by that.
    ///
    /// # Errors
    /// [`EngineError::Refused`] if it does not fit even then.
    pub(crate) fn widens(manifest: &Manifest, batch: &Resolved) -> Result<(Widening, Vec<Conversion>), EngineError> {
        let mut assembled = Self::nothing(manifest);
        assembled.widen(batch)?;
        assembled.schema.validate().map_err(|error| EngineError::Invalid(error.to_string()))?;
        let converted = conversions(&manifest.schema, &assembled.schema);
        let widening = match (assembled.schema == manifest.schema, converted.is_empty()) {
            (true, _) => Widening::None,
            (false, true) => Widening::Adds,
            (false, false) => Widening::Converts,
        };
        Ok((widening, converted))
    }

    /// Widens the schema for one more batch; `false`, and nothing, if it does not fit what others have made of it, or wants
    /// another type of a property that they have: their values were not held against that.
    pub(crate) fn fits(&mut self, batch: &Resolved) -> bool {
        let before = self.schema.clone();
        let fits = self.widen(batch).is_ok()
            && self.schema.validate().is_ok()
            && conversions(&before, &self.schema).is_empty();
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

    /// Lets the schema hold what a batch has. If a property becomes float64 on the way, values that were looked at before
    /// are looked at again: each must stay exact.
    fn widen(&mut self, batch: &Resolved) -> Result<(), EngineError> {
        if self.hold(batch)? {
            self.hold(batch)?;
        }
        Ok(())
    }

    /// Lets the schema hold what a batch has; says whether a property became float64.
    fn hold(&mut self, batch: &Resolved) -> Result<bool, EngineError> {
        let mut converted = false;
        let of = |end: &End, misfit: Misfit| {
            batch.misfits(
                misfit,
                |_, operation| matches!(operation, Operation::UpsertVertex { vertex, .. } if vertex == end),
            )
        };
        for (end, properties) in &batch.added {
            let label = self.label(end)?;
            let label = &mut self.schema.vertex_labels[usize::from(label.0)];
            converted |= fit(&label.name, &mut label.properties, properties).map_err(|misfit| of(end, misfit))?;
        }
        for (vertex, (end, properties)) in &batch.changed {
            let label = &mut self.schema.vertex_labels[usize::from(vertex.label().0)];
            converted |= fit(&label.name, &mut label.properties, properties).map_err(|misfit| of(end, misfit))?;
        }
        let mut types = EdgeTypes::default();
        for (pair, edges) in batch.groups() {
            for edge in edges {
                let edge_type = self.edge_type(&pair, batch, &mut types)?;
                let edge_type = &mut self.schema.edge_types[usize::from(edge_type.0)];
                converted |= fit(&edge_type.label, &mut edge_type.properties, edge)
                    .map_err(|misfit| batch.misfits(misfit, |number, _| batch.is_of(number, &pair)))?;
            }
        }
        Ok(converted)
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
                let missing = || EngineError::Internal(format!("{} was given no ordinal", batch.end(end)));
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
