//! What a batch comes to on a version of a graph: which vertices exist, rows as they will be, which edges go with a vertex
//! that goes; and whether all of it is allowed.
//!
//! Reading takes one wave for the keys, and one more for the rows and lists of what is changed in part or
//! deleted. Nothing is numbered yet: new vertices get their ordinals when it is known which batches go into a level.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures::future::try_join3;
use hoplake_format::{Direction, LabelId, VertexId, constants::KEY_COLUMN};
use hoplake_storage::{
    QueryContext, Wave,
    planted::{Bug, planted},
};

use super::{Batch, EdgeKey, End, Operation, Value, group::Edit};
use crate::{
    EngineError, Frontier, Snapshot,
    traversal::{Hop, HopDirection},
};

/// Properties by name.
pub(crate) type Properties = BTreeMap<String, Value>;

/// A vertex that exists, or one that this batch adds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Vertex {
    Known(VertexId),
    New(End),
}

/// All edges of a label between two vertices.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pair {
    pub(crate) label: String,
    pub(crate) source: Vertex,
    pub(crate) target: Vertex,
}

/// A batch on a version of a graph.
#[derive(Debug, Clone, Default)]
pub(crate) struct Resolved {
    /// Vertices that it adds.
    pub(crate) added: BTreeMap<End, Properties>,
    /// Rows that it writes anew, whole.
    pub(crate) changed: BTreeMap<VertexId, (End, Properties)>,
    /// Vertices that go.
    pub(crate) gone: BTreeMap<VertexId, End>,
    /// All edges that there are from now on.
    pub(crate) pairs: BTreeMap<Pair, Vec<Properties>>,
    /// Vertices that it names, those that are missing among them: what it builds on.
    pub(crate) named: BTreeSet<End>,
}

/// The vertices that a batch names, and which of them exist.
struct Ends<'a> {
    snapshot: &'a Snapshot,
    known: BTreeMap<&'a End, VertexId>,
}

impl Resolved {
    /// Resolves a batch.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] that names the operation which is not allowed; the store's.
    pub(crate) async fn of(
        batch: &Batch,
        snapshot: &Arc<Snapshot>,
        context: &QueryContext,
    ) -> Result<(Self, Wave), EngineError> {
        let mut resolved = Self { named: names(batch)?, ..Self::default() };
        let named = resolved.named.clone();
        let (ends, wave) = Ends::look_up(&named, snapshot, context).await?;
        for operation in &batch.operations {
            resolved.take_vertex(operation, &ends)?;
        }
        let mut edits = Edits::new();
        for operation in &batch.operations {
            resolved.take_edge(operation, &ends, batch.create_missing, &mut edits)?;
        }
        let partial_rows = resolved.complete_rows(batch, &ends, wave, context);
        let groups = groups_to_change(&edits, snapshot, wave, context);
        let deleted = edges_of_gone(&resolved, snapshot, wave, context);
        let ((rows, a), (groups, b), (removed, c)) = try_join3(partial_rows, groups, deleted).await?;
        for (vertex, mut properties) in rows {
            if planted(Bug::PartialLoses) {
                break;
            }
            if let Some((_, changes)) = resolved.changed.get_mut(&vertex) {
                properties.append(changes);
                *changes = properties;
            }
        }
        resolved.pairs = groups;
        for (pair, edits) in edits {
            let group = resolved.pairs.entry(pair).or_default();
            edits.into_iter().for_each(|edit| edit.apply(group));
        }
        resolved.pairs.extend(removed.into_iter().map(|pair| (pair, Vec::new())));
        Ok((resolved, a.max(b).max(c)))
    }

    /// Vertices that it adds, changes or deletes.
    pub(crate) fn written(&self) -> impl Iterator<Item = &End> {
        self.added.keys().chain(self.existing().map(|(_, end)| end))
    }

    /// Of these, those that exist.
    pub(crate) fn existing(&self) -> impl Iterator<Item = (VertexId, &End)> {
        let changed = self.changed.iter().map(|(vertex, (end, _))| (*vertex, end));
        changed.chain(self.gone.iter().map(|(vertex, end)| (*vertex, end)))
    }

    /// Whether a pair loses its edges because one of the two goes, not because the batch says so.
    pub(crate) fn goes_along(&self, pair: &Pair) -> bool {
        let goes = |vertex: &Vertex| matches!(vertex, Vertex::Known(vertex) if self.gone.contains_key(vertex));
        goes(&pair.source) || goes(&pair.target)
    }

    fn take_vertex(&mut self, operation: &Operation, ends: &Ends<'_>) -> Result<(), EngineError> {
        match operation {
            Operation::UpsertVertex { vertex, properties, .. } => match ends.known.get(vertex) {
                Some(known) => drop(self.changed.insert(*known, (vertex.clone(), properties.clone()))),
                None => drop(self.added.insert(vertex.clone(), properties.clone())),
            },
            Operation::DeleteVertex { vertex } => {
                ends.label(vertex, operation)?;
                if let Some(known) = ends.known.get(vertex) {
                    self.gone.insert(*known, vertex.clone());
                }
            }
            Operation::UpsertEdge { .. } | Operation::DeleteEdge { .. } => {}
        }
        Ok(())
    }

    fn take_edge(
        &mut self,
        operation: &Operation,
        ends: &Ends<'_>,
        create_missing: bool,
        edits: &mut Edits,
    ) -> Result<(), EngineError> {
        let (pair, edit) = match operation {
            Operation::UpsertEdge { label, source, target, key, properties, whole } => {
                check_key(operation, key.as_ref(), properties)?;
                let source = self.end(source, ends, operation, create_missing)?;
                let target = self.end(target, ends, operation, create_missing)?;
                let edit = Edit { key: key.clone(), properties: Some(properties.clone()), whole: *whole };
                (Pair { label: label.clone(), source, target }, edit)
            }
            Operation::DeleteEdge { label, source, target, key } => {
                ends.check_edge_type(operation, label, source, target, key.as_ref())?;
                // Without its ends there is no edge.
                let (Some(source), Some(target)) = (ends.known.get(source), ends.known.get(target)) else {
                    return Ok(());
                };
                let (source, target) = (Vertex::Known(*source), Vertex::Known(*target));
                let edit = Edit { key: key.clone(), properties: None, whole: true };
                (Pair { label: label.clone(), source, target }, edit)
            }
            Operation::UpsertVertex { .. } | Operation::DeleteVertex { .. } => return Ok(()),
        };
        edits.entry(pair).or_default().push(edit);
        Ok(())
    }

    /// The end of an edge that is to be there.
    fn end(
        &mut self,
        end: &End,
        ends: &Ends<'_>,
        operation: &Operation,
        create_missing: bool,
    ) -> Result<Vertex, EngineError> {
        if let Some(known) = ends.known.get(end) {
            return match self.gone.contains_key(known) {
                true => refused(operation, format!("the same batch deletes {end}")),
                false => Ok(Vertex::Known(*known)),
            };
        }
        if !self.added.contains_key(end) {
            if !create_missing {
                return refused(operation, format!("there is no vertex {end}; --create-missing makes one"));
            }
            ends.label(end, operation)?;
            self.added.insert(end.clone(), Properties::new());
        }
        Ok(Vertex::New(end.clone()))
    }

    /// The rows of vertices that are changed in part, as they are now.
    async fn complete_rows(
        &self,
        batch: &Batch,
        ends: &Ends<'_>,
        after: Wave,
        context: &QueryContext,
    ) -> Result<(Vec<(VertexId, Properties)>, Wave), EngineError> {
        let mut by_label: BTreeMap<LabelId, Vec<u64>> = BTreeMap::new();
        for operation in &batch.operations {
            let Operation::UpsertVertex { vertex, properties, whole: false } = operation else { continue };
            let Some(known) = ends.known.get(vertex) else { continue };
            let Some(label) = ends.snapshot.schema().label(known.label()) else { continue };
            if label.properties.iter().any(|property| !properties.contains_key(&property.name)) {
                by_label.entry(known.label()).or_default().push(known.ordinal());
            }
        }
        let (mut rows, mut wave) = (Vec::new(), after);
        let read = |(label, ordinals): (LabelId, Vec<u64>)| async move {
            let label_of = ends.snapshot.schema().label(label);
            let columns = label_of.into_iter().flat_map(|label| &label.properties).map(|it| it.name.clone());
            let columns: Vec<_> = columns.collect();
            let (batch, wave) = ends.snapshot.vertex_rows(label, &ordinals, &columns, after, context).await?;
            Ok::<_, EngineError>((label, ordinals, batch, wave))
        };
        for (label, ordinals, batch, came) in futures::future::try_join_all(by_label.into_iter().map(read)).await? {
            wave = wave.max(came);
            for (row, ordinal) in ordinals.iter().enumerate() {
                rows.extend(VertexId::new(label, *ordinal).map(|vertex| (vertex, properties_at(&batch, row))));
            }
        }
        Ok((rows, wave))
    }
}

/// The properties in a row of a batch.
fn properties_at(batch: &arrow_array::RecordBatch, row: usize) -> Properties {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns()).filter(|(field, _)| field.name() != KEY_COLUMN);
    columns.map(|(field, column)| (field.name().clone(), Value::at(column, row))).collect()
}

/// What a batch does to the edges between two vertices.
type Edits = BTreeMap<Pair, Vec<Edit>>;

/// The edges between two vertices, with their properties.
type Groups = BTreeMap<Pair, Vec<Properties>>;

/// The groups of which something stays, as they are now.
async fn groups_to_change(
    edits: &Edits,
    snapshot: &Arc<Snapshot>,
    after: Wave,
    context: &QueryContext,
) -> Result<(Groups, Wave), EngineError> {
    let mut wanted: BTreeMap<&str, BTreeMap<VertexId, BTreeSet<VertexId>>> = BTreeMap::new();
    for (pair, edits) in edits {
        let (Vertex::Known(source), Vertex::Known(target)) = (&pair.source, &pair.target) else { continue };
        let of = |it: &&hoplake_format::EdgeType| {
            (&it.label, it.source, it.target) == (&pair.label, source.label(), target.label())
        };
        let known = snapshot.schema().edge_types.iter().find(of).map_or(&[][..], |it| it.properties.as_slice());
        if edits.iter().any(|edit| edit.needs_group(known.iter().map(|property| &*property.name))) {
            wanted.entry(&pair.label).or_default().entry(*source).or_default().insert(*target);
        }
    }
    let (mut groups, mut wave) = (Groups::new(), after);
    for (label, sources) in wanted {
        let frontier: Frontier = sources.keys().copied().collect();
        let hop = Hop::along(HopDirection::Out, label);
        if !snapshot.schema().edge_types.iter().any(|it| it.label == label) {
            continue;
        }
        let (edges, came) = snapshot.neighbours(&frontier, &hop, after, context).await?;
        let edges: Vec<_> = edges.into_iter().filter(|edge| sources[&edge.from].contains(&edge.to)).collect();
        let names = snapshot.schema().edge_types.iter().filter(|it| it.label == label);
        let names: BTreeSet<_> = names.flat_map(|it| &it.properties).map(|it| it.name.clone()).collect();
        let names: Vec<_> = names.into_iter().collect();
        let (batches, came) = snapshot.edge_properties(&edges, &names, came, context).await?;
        wave = wave.max(came);
        let mut rows = vec![Properties::new(); edges.len()];
        for (positions, batch) in batches {
            positions.into_iter().enumerate().for_each(|(row, at)| rows[at] = properties_at(&batch, row));
        }
        for (edge, row) in edges.iter().zip(rows) {
            let (source, target) = (Vertex::Known(edge.from), Vertex::Known(edge.to));
            groups.entry(Pair { label: label.to_owned(), source, target }).or_default().push(row);
        }
    }
    Ok((groups, wave))
}

/// An edge's key has a value, and its properties do not say otherwise.
fn check_key(operation: &Operation, key: Option<&EdgeKey>, properties: &Properties) -> Result<(), EngineError> {
    let Some(EdgeKey { property, value }) = key else { return Ok(()) };
    if *value == Value::Null {
        return refused(operation, format!("its key {property} is null"));
    }
    match properties.get(property) {
        Some(other) if other != value => refused(operation, format!("its key {property} is also given as {other}")),
        _ => Ok(()),
    }
}

/// The pairs that lose their edges because one of the two goes.
async fn edges_of_gone(
    resolved: &Resolved,
    snapshot: &Arc<Snapshot>,
    after: Wave,
    context: &QueryContext,
) -> Result<(Vec<Pair>, Wave), EngineError> {
    if resolved.gone.is_empty() {
        return Ok((Vec::new(), after));
    }
    let frontier: Frontier = resolved.gone.keys().copied().collect();
    let direction = if planted(Bug::IncomingForgotten) { HopDirection::Out } else { HopDirection::Both };
    let hop = Hop { direction, ..Hop::default() };
    let (edges, wave) = snapshot.neighbours(&frontier, &hop, after, context).await?;
    let pair = |edge: &crate::Neighbour| {
        let (source, target) = match edge.direction {
            Direction::Out => (edge.from, edge.to),
            Direction::In => (edge.to, edge.from),
        };
        let label = snapshot.schema().edge_type(edge.edge_type)?.label.clone();
        Some(Pair { label, source: Vertex::Known(source), target: Vertex::Known(target) })
    };
    Ok((edges.iter().filter_map(pair).collect(), wave))
}

/// The vertices that a batch names; nothing is there twice.
fn names(batch: &Batch) -> Result<BTreeSet<End>, EngineError> {
    let (mut named, mut vertices) = (BTreeSet::new(), BTreeSet::new());
    let mut edges: BTreeMap<_, Vec<Option<&EdgeKey>>> = BTreeMap::new();
    for operation in &batch.operations {
        let new = match operation {
            Operation::UpsertVertex { vertex, .. } | Operation::DeleteVertex { vertex } => {
                named.insert(vertex.clone());
                vertices.insert(vertex)
            }
            Operation::UpsertEdge { label, source, target, key, .. }
            | Operation::DeleteEdge { label, source, target, key } => {
                named.extend([source.clone(), target.clone()]);
                let keys = edges.entry((label, source, target)).or_default();
                keys.push(key.as_ref());
                // Keys of one property tell edges apart; without a key all edges between the two are meant.
                let apart = |a: &EdgeKey, b: &EdgeKey| a.property == b.property && a.value != b.value;
                let (last, before) = keys.split_last().unwrap_or((&None, &[]));
                before.iter().all(|other| last.zip(*other).is_some_and(|(a, b)| apart(a, b)))
            }
        };
        if !new {
            return refused(operation, "the batch changes it twice".into());
        }
    }
    Ok(named)
}

impl<'a> Ends<'a> {
    async fn look_up(
        named: &'a BTreeSet<End>,
        snapshot: &'a Arc<Snapshot>,
        context: &QueryContext,
    ) -> Result<(Self, Wave), EngineError> {
        let mut ends = Vec::new();
        let mut keys = Vec::new();
        for end in named {
            let Some(id) = snapshot.schema().label_id(&end.label) else { continue };
            let label = snapshot.schema().label(id).filter(|label| label.key_type != end.key.key_type());
            if let Some(label) = label {
                let (expected, found) = (label.key_type, end.key.key_type());
                return Err(EngineError::Invalid(format!(
                    "keys of {} are {expected}, but {end} is {found}",
                    end.label
                )));
            }
            ends.push(end);
            keys.push((id, end.key.clone()));
        }
        let (found, wave) = snapshot.look_up(&keys, Wave(0), context).await?;
        let known = ends.into_iter().zip(found).filter_map(|(end, found)| Some((end, found?))).collect();
        Ok((Self { snapshot, known }, wave))
    }

    /// That there are no such edges, or none that have such a key, is an error.
    fn check_edge_type(
        &self,
        operation: &Operation,
        label: &str,
        source: &End,
        target: &End,
        key: Option<&EdgeKey>,
    ) -> Result<(), EngineError> {
        let labels = (self.label(source, operation)?, self.label(target, operation)?);
        let mut types = self.snapshot.schema().edge_types.iter();
        let of = types.find(|it| (&*it.label, it.source, it.target) == (label, labels.0, labels.1));
        let Some(of) = of else {
            return refused(operation, format!("the graph has no edges {label} between such vertices"));
        };
        match key.filter(|key| of.properties.iter().all(|property| property.name != key.property)) {
            Some(key) => refused(operation, format!("edges {label} have no property {}", key.property)),
            None => Ok(()),
        }
    }

    /// The label of a vertex; that there is none is an error.
    fn label(&self, end: &End, operation: &Operation) -> Result<LabelId, EngineError> {
        match self.snapshot.schema().label_id(&end.label) {
            Some(label) => Ok(label),
            None => refused(operation, format!("the graph has no vertex label {}", end.label)),
        }
    }
}

fn refused<T>(operation: &Operation, why: String) -> Result<T, EngineError> {
    Err(EngineError::Refused { operation: Box::new(operation.clone()), number: None, why })
}
