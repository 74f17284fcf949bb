//! What a batch comes to on a version of a graph: which vertices exist, rows as they will be, which edges go with a vertex
//! that goes; and whether all of it is allowed.
//!
//! Reading takes one wave for the keys, and one more for the rows and lists of what is changed in part or
//! deleted. Nothing is numbered yet: new vertices get their ordinals when it is known which batches go into a level.
//!
//! A batch may have a million edges, most of them upserted blindly. So names are replaced by numbers first ([`Names`]), and
//! properties stay where the batch has them unless something is to be added to them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures::future::try_join3;
use hoplake_format::{LabelId, VertexId};
use hoplake_storage::Branch;

use super::{
    Batch, EdgeKey, End, Name, Operation, Properties, Value, before::Change, group::Edit, names::Names,
    strict::check_declared,
};
use crate::{EngineError, Refusal, Snapshot};

/// A vertex that exists, or by its number among those that the batch names, one that it adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Vertex {
    Known(VertexId),
    New(u32),
}

/// All edges of a label, by its number in the batch, between two vertices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pair {
    pub(crate) label: u32,
    pub(crate) source: Vertex,
    pub(crate) target: Vertex,
}

/// The edges between two vertices from now on.
#[derive(Debug, Clone, PartialEq)]
enum Edges {
    /// One, with the properties of an operation of the batch.
    Of(u32),
    /// So many, with properties that are no operation's.
    Made(Vec<Properties>),
}

/// What a batch needs of the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Widening {
    /// It fits as it is.
    None,
    /// New labels, edge types or properties.
    Adds,
    /// Also another type of a property that is there.
    Converts,
}

/// A batch on a version of a graph.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(super) batch: Arc<Batch>,
    pub(super) names: Names,
    /// The vertices that it names, by their numbers there; those that exist.
    pub(super) known: Vec<Option<VertexId>>,
    /// Vertices that it adds.
    pub(crate) added: BTreeMap<End, Properties>,
    /// Rows that it writes anew, whole.
    pub(crate) changed: BTreeMap<VertexId, (End, Properties)>,
    /// Vertices that go.
    pub(crate) gone: BTreeMap<VertexId, End>,
    /// Labels of vertices that it upserts, and which the graph may not have yet.
    introduced: BTreeSet<Name>,
    /// All edges that there are from now on, ascending by pair.
    pairs: Vec<(Pair, Edges)>,
    /// How the schema has to be widened for it.
    pub(crate) widens: Widening,
}

impl Resolved {
    /// Resolves a batch.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] that names the operation which is not allowed; the store's.
    pub(crate) async fn of(
        batch: &Arc<Batch>,
        snapshot: &Arc<Snapshot>,
        branch: &mut Branch,
    ) -> Result<Self, EngineError> {
        check_declared(batch, snapshot.schema())?;
        let names = Names::of(batch)?;
        let known = names.look_up(batch, snapshot, branch).await?;
        let (added, changed, gone) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut resolved = Self {
            batch: batch.clone(),
            names,
            known,
            added,
            changed,
            gone,
            introduced: BTreeSet::new(),
            pairs: Vec::new(),
            widens: Widening::None,
        };
        for (number, operation) in batch.operations.iter().enumerate() {
            resolved.take_vertex((number, operation), snapshot)?;
        }
        let edits = resolved.edits(snapshot)?;
        let changes = resolved.changes(&edits, snapshot);
        let mut lines = [branch.clone(), branch.clone(), branch.clone()];
        let [of_rows, of_groups, of_gone] = &mut lines;
        let partial_rows = resolved.complete_rows(snapshot, of_rows);
        let groups = resolved.groups_to_change(&edits, &changes, snapshot, of_groups);
        let deleted = resolved.edges_of_gone(snapshot, of_gone);
        let (rows, mut groups, (removed, labels)) = try_join3(partial_rows, groups, deleted).await?;
        branch.join(&lines);
        for (vertex, mut properties) in rows {
            if let Some((_, changes)) = resolved.changed.get_mut(&vertex) {
                properties.extend(std::mem::take(changes));
                *changes = properties;
            }
        }
        let mut pairs = Vec::with_capacity(edits.len() + removed.len());
        for (edits, change) in edits.chunk_by(|a, b| a.0 == b.0).zip(changes) {
            let (pair, first) = edits[0];
            let edges = match change {
                Change::Replaced => Edges::Of(first),
                Change::Edited => {
                    let mut group = groups.remove(&pair).unwrap_or_default();
                    edits.iter().for_each(|(_, number)| resolved.edit(*number).apply(&mut group));
                    Edges::Made(group)
                }
            };
            pairs.push((pair, edges));
        }
        resolved.names.edge_labels = labels;
        if !removed.is_empty() {
            pairs.retain(|(pair, _)| !removed.contains(pair));
            pairs.extend(removed.into_iter().map(|pair| (pair, Edges::Made(Vec::new()))));
            pairs.sort_unstable_by_key(|(pair, _)| *pair);
        }
        resolved.pairs = pairs;
        Ok(resolved)
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

    /// The vertices that it names, by number: those that exist.
    pub(crate) fn known(&self) -> &[Option<VertexId>] {
        &self.known
    }

    /// Of the vertices that it names those that are missing: it builds on that.
    pub(crate) fn missing(&self) -> impl Iterator<Item = &End> {
        let missing = self.known.iter().enumerate().filter(|(_, known)| known.is_none());
        missing.map(|(number, _)| self.end(number as u32))
    }

    /// A vertex that it names.
    pub(crate) fn end(&self, number: u32) -> &End {
        self.names.end(&self.batch, number)
    }

    /// How it names a vertex that exists.
    pub(crate) fn name_of(&self, vertex: VertexId) -> Option<&End> {
        let number = self.known.iter().position(|known| *known == Some(vertex))?;
        Some(self.end(number as u32))
    }

    /// An edge label that it names.
    pub(crate) fn edge_label(&self, number: u32) -> &str {
        &self.names.edge_labels[number as usize]
    }

    /// All edge labels that it names, by number.
    pub(crate) fn edge_labels(&self) -> &[Name] {
        &self.names.edge_labels
    }

    /// The pairs whose edges it writes, ascending.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = Pair> {
        self.pairs.iter().map(|(pair, _)| *pair)
    }

    /// The same, each with the properties of all edges that there are from now on.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (Pair, impl Iterator<Item = &Properties>)> {
        self.pairs.iter().map(|(pair, edges)| {
            let (one, many) = match edges {
                Edges::Of(number) => (self.batch.operations[*number as usize].properties(), &[][..]),
                Edges::Made(group) => (None, group.as_slice()),
            };
            (*pair, one.into_iter().chain(many))
        })
    }

    /// Whether a pair loses its edges because one of the two goes, not because the batch says so.
    pub(crate) fn goes_along(&self, pair: &Pair) -> bool {
        let goes = |vertex: &Vertex| matches!(vertex, Vertex::Known(vertex) if self.gone.contains_key(vertex));
        goes(&pair.source) || goes(&pair.target)
    }

    fn take_vertex(&mut self, at: At<'_>, snapshot: &Snapshot) -> Result<(), EngineError> {
        let [end, _] = self.names.operations[at.0].ends;
        match (at.1, self.known.get(end as usize).copied().flatten()) {
            (Operation::UpsertVertex { vertex, properties, .. }, Some(known)) => {
                self.changed.insert(known, (vertex.clone(), properties.clone()));
            }
            (Operation::UpsertVertex { vertex, properties, .. }, None) => {
                self.added.insert(vertex.clone(), properties.clone());
                if !self.introduced.contains(&vertex.label) {
                    self.introduced.insert(vertex.label.clone());
                }
            }
            (Operation::DeleteVertex { vertex }, known) => {
                label_of(vertex, at, snapshot)?;
                self.gone.extend(known.map(|known| (known, vertex.clone())));
            }
            (Operation::UpsertEdge { .. } | Operation::DeleteEdge { .. }, _) => {}
        }
        Ok(())
    }

    /// Which operation changes which pair, by pair and in the order of the batch.
    fn edits(&mut self, snapshot: &Snapshot) -> Result<Vec<(Pair, u32)>, EngineError> {
        let batch = self.batch.clone();
        let mut edits = Vec::with_capacity(batch.operations.len());
        for (number, operation) in batch.operations.iter().enumerate() {
            let named = self.names.operations[number];
            let at = (number, operation);
            let [source, target] = match operation {
                Operation::UpsertEdge { key, properties, .. } => {
                    check_key(at, key.as_ref(), properties)?;
                    let source = self.end_to_be(named.ends[0], at, snapshot)?;
                    [source, self.end_to_be(named.ends[1], at, snapshot)?]
                }
                Operation::DeleteEdge { label, source, target, key } => {
                    check_edge_type(at, label, [source, target], key.as_ref(), snapshot)?;
                    // Without its ends there is no edge.
                    match named.ends.map(|end| self.known[end as usize]) {
                        [Some(source), Some(target)] => [Vertex::Known(source), Vertex::Known(target)],
                        _ => continue,
                    }
                }
                Operation::UpsertVertex { .. } | Operation::DeleteVertex { .. } => continue,
            };
            edits.push((Pair { label: named.edge_label, source, target }, number as u32));
        }
        edits.sort_unstable();
        for edits in edits.chunk_by(|a, b| a.0 == b.0).filter(|edits| edits.len() > 1) {
            self.names.check_apart(&batch, edits.iter().map(|(_, number)| *number))?;
        }
        Ok(edits)
    }

    /// The end of an edge that is to be there.
    fn end_to_be(&mut self, number: u32, at: At<'_>, snapshot: &Snapshot) -> Result<Vertex, EngineError> {
        if let Some(known) = self.known[number as usize] {
            return match self.gone.contains_key(&known) {
                true => refused(at, Refusal::Other, format!("the same batch deletes {}", self.end(number))),
                false => Ok(Vertex::Known(known)),
            };
        }
        let end = self.end(number);
        if !self.added.contains_key(end) {
            if !self.batch.create_missing {
                return refused(at, Refusal::MissingEnd, format!("there is no vertex {end}"));
            }
            let declared = snapshot.schema().label_id(&end.label).is_some() || self.introduced.contains(&end.label);
            if !declared {
                return refused(at, Refusal::Other, no_label(&end.label));
            }
            let end = end.clone();
            self.added.insert(end, Properties::new());
        }
        Ok(Vertex::New(number))
    }

    fn edit(&self, number: u32) -> Edit {
        match &self.batch.operations[number as usize] {
            Operation::UpsertEdge { key, properties, whole, .. } => {
                Edit { key: key.clone(), properties: Some(properties.clone()), whole: *whole }
            }
            Operation::DeleteEdge { key, .. } => Edit { key: key.clone(), properties: None, whole: true },
            Operation::UpsertVertex { .. } | Operation::DeleteVertex { .. } => Edit::default(),
        }
    }
}

/// The number of a label, which is added if it is not there.
pub(crate) fn number_of(labels: &mut Vec<Name>, label: &Name) -> u32 {
    let at = labels.iter().position(|known| known == label).unwrap_or_else(|| {
        labels.push(label.clone());
        labels.len() - 1
    });
    at as u32
}

/// An edge's key has a value, and its properties do not say otherwise.
fn check_key(at: At<'_>, key: Option<&EdgeKey>, properties: &Properties) -> Result<(), EngineError> {
    let Some(EdgeKey { property, value }) = key else { return Ok(()) };
    if *value == Value::Null {
        return refused(at, Refusal::Other, format!("its key {property} is null"));
    }
    match properties.get(property) {
        Some(other) if other != value => {
            refused(at, Refusal::Other, format!("its key {property} is also given as {other}"))
        }
        _ => Ok(()),
    }
}

/// That there are no such edges, or none that have such a key, is an error.
fn check_edge_type(
    at: At<'_>,
    label: &str,
    [source, target]: [&End; 2],
    key: Option<&EdgeKey>,
    snapshot: &Snapshot,
) -> Result<(), EngineError> {
    let labels = (label_of(source, at, snapshot)?, label_of(target, at, snapshot)?);
    let mut types = snapshot.schema().edge_types.iter();
    let of = types.find(|it| (&*it.label, it.source, it.target) == (label, labels.0, labels.1));
    let Some(of) = of else {
        let (source, target) = (&source.label, &target.label);
        return refused(at, Refusal::Other, format!("the graph has no edges {label} from {source} to {target}"));
    };
    match key.filter(|key| of.properties.iter().all(|property| property.name != key.property)) {
        Some(key) => refused(at, Refusal::Other, format!("edges {label} have no property {}", key.property)),
        None => Ok(()),
    }
}

/// The label of a vertex; that there is none is an error.
fn label_of(end: &End, at: At<'_>, snapshot: &Snapshot) -> Result<LabelId, EngineError> {
    match snapshot.schema().label_id(&end.label) {
        Some(label) => Ok(label),
        None => refused(at, Refusal::Other, no_label(&end.label)),
    }
}

fn no_label(label: &str) -> String {
    format!("the graph has no vertex label {label}")
}

/// An operation and its number in the batch.
pub(super) type At<'a> = (usize, &'a Operation);

pub(super) fn refused<T>((number, operation): At<'_>, refusal: Refusal, why: String) -> Result<T, EngineError> {
    Err(EngineError::Refused { operation: Box::new(operation.clone()), number, refusal, why })
}
