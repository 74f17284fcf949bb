//! Batches become one delta: labels, types and ordinals are given out, and rows take their schema's shape.

use std::collections::{BTreeMap, HashSet};

use hoplake_format::{
    ChangeCounts, DegreeSummary, EdgeType, EdgeTypeId, Key, LabelId, Manifest, Property, Schema, VertexCount, VertexId,
    VertexLabel,
};

use super::{
    Columns, Name, Operation, VertexRef,
    delta::{DeltaChanges, EdgeChanges, PairRows},
    fit::{Misfit, PropertyPositions, fit, fit_columns},
    names::{At, Single},
    resolved::{Pair, PropertySource, Resolved, Vertex, Widening},
    retype::{Free, OfOwners},
    rows::{Row, Rows},
    widen::{Conversion, conversions},
};
use crate::{EngineError, owner::Owner};

/// The effect of some batches on a version: the next manifest without its runs.
#[derive(Debug, Default)]
pub(crate) struct Assembled<'a> {
    pub(crate) schema: Schema,
    pub(crate) unique_keys: bool,
    pub(crate) vertex_counts: Vec<VertexCount>,
    pub(crate) edge_counts: Vec<u64>,
    pub(crate) degrees: Vec<[DegreeSummary; 2]>,
    pub(crate) counts: ChangeCounts,
    pub(crate) changes: DeltaChanges<'a>,
    /// Properties without values, which may take another type.
    free: OfOwners,
    /// The property whose type a value does not fit, after an error of that.
    misfit: Option<(Owner, Name)>,
}

/// A batch that does not fit the schema.
pub(super) struct Unfit {
    pub(super) error: EngineError,
    /// The property whose type a value does not fit.
    pub(super) property: Option<Box<(Owner, Name)>>,
}

impl<'a> Assembled<'a> {
    /// Assembles batches in sequence; no two of them need different types of a property. Two may write the
    /// edges of one pair, if the later one does not build on what there was: it decides.
    ///
    /// # Errors
    /// [`EngineError::Rejected`] if a value is of a wrong type, [`EngineError::Invalid`] if numbers run out.
    pub(crate) fn of(manifest: &Manifest, batches: &'a [Resolved]) -> Result<Self, EngineError> {
        let mut assembled = Self::nothing(manifest);
        // The schema first: rows are encoded with the types that it has in the end.
        let mut widening = batches.iter().filter(|batch| batch.widens != Widening::None);
        widening.try_for_each(|batch| assembled.widen(batch))?;
        let mut column_rows: Vec<ColumnRows> = batches.iter().map(|_| ColumnRows::default()).collect();
        assembled.unique_keys &= !batches.iter().any(|batch| batch.shares_key);
        let ordinals = assembled.add_vertices(batches, &mut column_rows)?;
        for (batch, column_rows) in batches.iter().zip(&mut column_rows) {
            assembled.change_vertices(batch, column_rows)?;
            assembled.changes.items_before.extend(&batch.items_before);
            assembled.write_pairs(batch, &ordinals, column_rows)?;
        }
        // Of labels that have vertices: one that is empty has no keys.
        let labels = assembled.schema.vertex_labels.iter().zip(&assembled.vertex_counts);
        let mut types = labels.filter(|(_, count)| count.live() > 0).map(|(label, _)| label.key_type);
        let first = types.next();
        assembled.unique_keys &= types.all(|key_type| Some(key_type) == first);
        assembled.count_edges(batches.len());
        assembled.schema.validate().map_err(|error| EngineError::Invalid(error.to_string()))?;
        Ok(assembled)
    }

    /// How the schema has to be widened so that a batch fits, and which properties become float64 by that.
    ///
    /// # Errors
    /// [`EngineError::Rejected`] if it does not fit even then.
    pub(super) fn widens(
        manifest: &Manifest,
        batch: &Resolved,
        free: &OfOwners,
    ) -> Result<(Widening, Vec<Conversion>), Unfit> {
        let mut assembled = Self::nothing(manifest);
        assembled.free.clone_from(free);
        if let Err(error) = assembled.widen(batch) {
            return Err(Unfit { error, property: assembled.misfit.map(Box::new) });
        }
        let valid = assembled.schema.validate();
        valid.map_err(|error| Unfit { error: EngineError::Invalid(error.to_string()), property: None })?;
        let converted = conversions(&manifest.schema, &assembled.schema);
        let retypes = assembled.free.len() < free.len();
        let widening = match (assembled.schema == manifest.schema, converted.is_empty() && !retypes) {
            (true, _) => Widening::None,
            (false, true) => Widening::Adds,
            (false, false) => Widening::Converts,
        };
        Ok((widening, converted))
    }

    /// Widens the schema for one more batch; `false`, and nothing, if it does not fit what others have made of it, or
    /// wants another type of a property that they have: their values were not held against that.
    pub(crate) fn fits(&mut self, batch: &Resolved) -> bool {
        let before = self.schema.clone();
        let fits = self.widen(batch).is_ok()
            && self.schema.validate().is_ok()
            && conversions(&before, &self.schema).is_empty();
        if !fits {
            // Labels and types are only appended, so what this batch added is at the end of each vector.
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
            unique_keys: manifest.unique_keys,
            vertex_counts: manifest.vertex_counts.clone(),
            edge_counts: manifest.edge_counts.clone(),
            degrees: manifest.degrees.clone(),
            counts: ChangeCounts::default(),
            changes: DeltaChanges::default(),
            free: OfOwners::new(),
            misfit: None,
        }
    }

    /// Lets the schema hold what a batch has. If a property becomes float64 or takes another type on the way, values that were looked at
    /// before are looked at again: each must stay exact, or be of that type.
    fn widen(&mut self, batch: &Resolved) -> Result<(), EngineError> {
        self.free.extend(batch.retyped.iter().cloned());
        // A property takes another type once, and becomes float64 once: this ends.
        let mut is_last = false;
        while self.hold(batch, is_last)? {
            is_last = true;
        }
        Ok(())
    }

    /// Extends the schema by the names and types of a batch; returns whether a property became float64.
    fn hold(&mut self, batch: &Resolved, is_last: bool) -> Result<bool, EngineError> {
        let mut again = false;
        let of = |end: &VertexRef, misfit: Misfit| batch.misfits(misfit, |_, at| is_upsert_of(at, end));
        // Columns are checked column by column.
        let mut of_labels = BTreeMap::new();
        let mut of_edges = BTreeMap::new();
        let mut used: BTreeMap<usize, (&Columns, Vec<usize>)> = BTreeMap::new();
        let mut later = |operation, columns, row| used.entry(operation).or_insert((columns, Vec::new())).1.push(row);
        let added = batch.added().map(|(end, row)| Ok((self.label(end)?, end, row)));
        let added = added.collect::<Result<Vec<_>, EngineError>>()?;
        let changed = batch.changed().map(|(vertex, end, row)| (vertex.label(), end, row));
        for (id, end, row) in added.into_iter().chain(changed) {
            let positions: &mut PropertyPositions = of_labels.entry(id).or_default();
            let label = &mut self.schema.vertex_labels[usize::from(id.0)];
            match row {
                PropertySource::OfColumns { operation, columns, row } => later(operation, columns, row),
                PropertySource::Single(properties) => {
                    let declared = batch.batch.logical_types.vertices(&label.name);
                    let mut free = Free { owner: Owner::Label(id), of_owners: &mut self.free, is_last };
                    let known = &mut label.properties;
                    let fitted = fit(&label.name, known, positions, properties, declared, &mut free, is_last);
                    again |= fitted.map_err(|misfit| {
                        self.misfit = Some((Owner::Label(id), misfit.property.clone()));
                        of(end, misfit)
                    })?;
                }
            }
        }
        let mut types = EdgeTypes::default();
        for (pair, edges) in batch.groups() {
            for edge in edges {
                let id = self.edge_type(&pair, batch, &mut types)?;
                let positions: &mut PropertyPositions = of_edges.entry(id).or_default();
                let edge_type = &mut self.schema.edge_types[usize::from(id.0)];
                match edge {
                    PropertySource::OfColumns { operation, columns, row } => later(operation, columns, row),
                    PropertySource::Single(edge) => {
                        let declared = batch.batch.logical_types.edges(&edge_type.label);
                        let known = &mut edge_type.properties;
                        let mut free = Free { owner: Owner::EdgeType(id), of_owners: &mut self.free, is_last };
                        let fitted = fit(&edge_type.label, known, positions, edge, declared, &mut free, is_last);
                        let is_of = |number, at: At<'_>| batch.is_of(number, at, &pair);
                        again |= fitted.map_err(|misfit| {
                            self.misfit = Some((Owner::EdgeType(id), misfit.property.clone()));
                            batch.misfits(misfit, is_of)
                        })?;
                    }
                }
            }
        }
        for (operation, (columns, mut rows)) in used {
            // Vertices came in the order of their keys; the error names the first row that does not fit.
            rows.sort_unstable();
            let (owner, known) = properties_of(&mut self.schema, columns);
            let mut free = Free { owner, of_owners: &mut self.free, is_last };
            let logical_types = &batch.batch.logical_types;
            let declared = match columns.ends() {
                None => logical_types.vertices(columns.label()),
                Some(_) => logical_types.edges(columns.label()),
            };
            let fitted = fit_columns(columns.label(), known, columns, declared, &mut free, &rows);
            again |= fitted.map_err(|misfit| {
                self.misfit = Some((owner, misfit.1.property.clone()));
                batch.misfits_in(operation, columns, misfit)
            })?;
        }
        Ok(again)
    }

    /// The number of a vertex's label, which is made if there is none.
    fn label(&mut self, end: &VertexRef) -> Result<LabelId, EngineError> {
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
        let source = self.label_of(pair.source, batch)?;
        let target = self.label_of(pair.target, batch)?;
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
            Vertex::New(end) => match self.schema.label_id(batch.vertex_label(end)) {
                Some(label) => Ok(label),
                None => self.label(&batch.end(end)),
            },
        }
    }

    /// Gives ordinals to new vertices: those of a label follow each other in the order of their keys.
    fn add_vertices(
        &mut self,
        batches: &'a [Resolved],
        column_rows: &mut [ColumnRows],
    ) -> Result<BTreeMap<VertexRef, VertexId>, EngineError> {
        let mut added: BTreeMap<LabelId, BTreeMap<&Key, Row>> = BTreeMap::new();
        for (batch, column_rows) in batches.iter().zip(column_rows) {
            for (end, row) in batch.added() {
                let label = self.label(end)?;
                let row = column_rows.row(&mut self.changes.labels.entry(label).or_default().rows, row);
                added.entry(label).or_default().insert(&end.key, row);
            }
        }
        if self.unique_keys && added.len() > 1 {
            let mut distinct: HashSet<&Key> = HashSet::new();
            self.unique_keys = added.values().flat_map(BTreeMap::keys).all(|key| distinct.insert(key));
        }
        let mut ordinals = BTreeMap::new();
        for (label, rows) in added {
            let count = &mut self.vertex_counts[usize::from(label.0)];
            let name = &self.schema.vertex_labels[usize::from(label.0)].name;
            // In the order of keys, ordinals of a key block are consecutive, and the block stores only the first.
            for (key, ordinal) in rows.keys().zip(count.ordinals..) {
                let full = || EngineError::Invalid(format!("{name} has no ordinals left"));
                let vertex = VertexId::new(label, ordinal).ok_or_else(full)?;
                ordinals.insert(VertexRef { label: name.into(), key: (*key).clone() }, vertex);
            }
            let of_label = self.changes.labels.entry(label).or_default();
            of_label.first_ordinal = count.ordinals;
            count.ordinals += rows.len() as u64;
            self.counts.vertices_added += rows.len() as u64;
            of_label.added = rows;
        }
        Ok(ordinals)
    }

    fn change_vertices(&mut self, batch: &'a Resolved, column_rows: &mut ColumnRows) -> Result<(), EngineError> {
        for (vertex, end, row) in batch.changed() {
            let of_label = self.changes.labels.entry(vertex.label()).or_default();
            let row = column_rows.row(&mut of_label.rows, row);
            of_label.changed.insert(vertex.ordinal(), (&end.key, row));
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

    fn write_pairs(
        &mut self,
        batch: &'a Resolved,
        ordinals: &BTreeMap<VertexRef, VertexId>,
        column_rows: &mut ColumnRows,
    ) -> Result<(), EngineError> {
        let of_new = |number: usize| ordinals.get(&batch.end(number as u32)).copied();
        // By number, so that an edge finds the ordinals of its ends without a look-up by key.
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
            self.changes.groups.entry(edge_type).or_default().push(ends, edges, column_rows);
        }
        Ok(())
    }

    /// Counts edges, once it is known which batch has the last word on a pair.
    fn count_edges(&mut self, batches: usize) {
        for (edge_type, of_type) in &mut self.changes.groups {
            if batches > 1 {
                of_type.keep_last();
            }
            for pair in &of_type.pairs {
                self.counts.pairs_removed += u64::from(pair.rows == 0);
                self.counts.edges_written += pair.rows;
                // Nobody has looked whether the pair had edges: the count is an upper bound until a compaction.
                self.edge_counts[usize::from(edge_type.0)] += pair.rows;
            }
        }
    }
}

/// The properties that a schema has for columns, whose labels and edge type are in it, and whose they are.
fn properties_of<'a>(schema: &'a mut Schema, columns: &Columns) -> (Owner, &'a mut Vec<Property>) {
    let [source, target] = [0, 1].map(|which| schema.label_id(columns.end_label(which)).unwrap_or(LabelId(0)));
    match columns.ends() {
        None => (Owner::Label(source), &mut schema.vertex_labels[usize::from(source.0)].properties),
        Some(_) => {
            let is = |it: &EdgeType| (&*it.label, it.source, it.target) == (columns.label().as_str(), source, target);
            let at = schema.edge_types.iter().position(is).unwrap_or_default();
            (Owner::EdgeType(EdgeTypeId(at as u16)), &mut schema.edge_types[at].properties)
        }
    }
}

/// Whether a change is an upsert of this vertex.
fn is_upsert_of(at: At<'_>, end: &VertexRef) -> bool {
    match at.change {
        Single::One(operation) => matches!(operation, Operation::UpsertVertex { vertex, .. } if vertex == end),
        Single::Row(columns, row) => columns.ends().is_none() && columns.end(row, 0) == *end,
    }
}

/// The first row of the columns of a batch, by operation, among the rows of their label or edge type.
#[derive(Debug, Default)]
struct ColumnRows {
    first_rows: BTreeMap<usize, u64>,
}

impl ColumnRows {
    /// Where a row is among others, to which it or all of its columns are added.
    fn row<'a>(&mut self, rows: &mut Rows<'a>, written: PropertySource<'a>) -> Row {
        match written {
            PropertySource::Single(properties) => rows.add(properties),
            PropertySource::OfColumns { operation, columns, row } => {
                let first = self.first_rows.entry(operation).or_insert_with(|| rows.add_columns(columns));
                Row::OfColumns(*first + row as u64)
            }
        }
    }
}

/// Edge types by the number of their label in a batch and the labels of their ends.
type EdgeTypes = BTreeMap<(u32, LabelId, LabelId), EdgeTypeId>;

impl<'a> EdgeChanges<'a> {
    /// Adds all edges between two vertices.
    fn push(
        &mut self,
        ends: (u64, u64),
        edges: impl Iterator<Item = PropertySource<'a>>,
        column_rows: &mut ColumnRows,
    ) {
        // They are one row of columns, or single ones, which get numbers that follow each other.
        let mut first = None;
        let mut rows = 0;
        for edge in edges {
            let row = column_rows.row(&mut self.rows, edge);
            first.get_or_insert(row);
            rows += 1;
        }
        self.pairs.push(PairRows { ends, first_row: first.unwrap_or(Row::OfColumns(0)), rows });
    }

    /// Leaves the last of several batches that wrote a pair.
    fn keep_last(&mut self) {
        // Stable: of one pair they stay in the order of the batches.
        self.pairs.sort_by_key(|pair| pair.ends);
        self.pairs.dedup_by(|later, earlier| {
            let same = later.ends == earlier.ends;
            if same {
                *earlier = *later;
            }
            same
        });
    }
}

fn number(at: usize, what: &str) -> Result<u16, EngineError> {
    let fits = u16::try_from(at).ok().filter(|number| *number < u16::MAX);
    fits.ok_or_else(|| EngineError::Invalid(format!("a graph has at most 65,535 {what}")))
}
