//! Resolves a batch on a version of a graph: which vertices exist, rows as they will be, which edges go with a vertex
//! that is deleted; and whether the batch is valid.
//!
//! Reading takes one wave for the keys, and one more for the rows and lists of what is changed in part or
//! deleted. Nothing is numbered yet: new vertices get their ordinals when it is known which batches go into a delta.
//!
//! A batch may have a million edges, most of them upserted blindly. So names are replaced by numbers first ([`Names`]),
//! and properties stay where the batch has them unless something is to be added to them.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    sync::Arc,
};

use futures::future::try_join3;
use hoplake_format::{LabelId, VertexId};
use hoplake_storage::Branch;

use super::{
    Batch, Columns, EdgeKey, Name, Operation, Properties, Value, VertexRef,
    before::{Change, Groups},
    group::Edit,
    names::{At, Names, Single},
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
    /// One, as a change of the batch has it.
    Of(u32),
    /// So many, with properties that do not come from an operation.
    Made(Vec<Properties>),
}

/// All edges between two vertices.
#[derive(Debug, Clone)]
struct Group {
    pair: Pair,
    edges: Edges,
    /// Whether they are the same whatever there was before.
    alone: bool,
}

/// The properties of a vertex or of an edge.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Written<'a> {
    /// A row of the columns of an operation.
    OfColumns { operation: usize, columns: &'a Columns, row: usize },
    /// Others.
    Single(&'a Properties),
}

/// The row of a vertex from now on.
#[derive(Debug)]
enum VertexRow {
    /// The row of a change of the batch, which keeps the only copy.
    Of(u32),
    Made(Properties),
}

/// A vertex that exists and is changed.
#[derive(Debug)]
struct ChangedVertex {
    end: VertexRef,
    row: VertexRow,
    /// Whether nothing of the row before stays.
    replace: bool,
}

/// The change of the schema that a batch needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Widening {
    /// It fits as it is.
    None,
    /// New labels, edge types or properties.
    Adds,
    /// Also another type of an existing property.
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
    added: BTreeMap<VertexRef, VertexRow>,
    /// Rows that it writes completely.
    changed: BTreeMap<VertexId, ChangedVertex>,
    /// Vertices that go.
    pub(crate) gone: BTreeMap<VertexId, VertexRef>,
    /// Vertices that it deletes and upserts again: their edges go.
    cleared: BTreeSet<VertexId>,
    /// Vertices that it upserts and deletes again, by number: they are as missing as before.
    withdrawn: BTreeSet<u32>,
    /// Labels of vertices that it upserts, and which the graph may not have yet.
    introduced: BTreeSet<Name>,
    /// All edges that there are from now on, ascending by pair.
    groups: Vec<Group>,
    /// How the schema has to be widened for it.
    pub(crate) widens: Widening,
}

impl Resolved {
    /// Resolves a batch.
    ///
    /// # Errors
    /// [`EngineError::Refused`] with the operation that is not valid; the store's error.
    pub(crate) async fn of(
        batch: &Arc<Batch>,
        snapshot: &Arc<Snapshot>,
        branch: &mut Branch,
    ) -> Result<Self, EngineError> {
        check_declared(batch, snapshot.schema())?;
        let names = Names::of(batch)?;
        let known = names.look_up(batch, snapshot, branch).await?;
        let mut resolved = Self {
            batch: batch.clone(),
            names,
            known,
            added: BTreeMap::new(),
            changed: BTreeMap::new(),
            gone: BTreeMap::new(),
            cleared: BTreeSet::new(),
            withdrawn: BTreeSet::new(),
            introduced: BTreeSet::new(),
            groups: Vec::new(),
            widens: Widening::None,
        };
        resolved.take_vertices(snapshot)?;
        let edits = resolved.edits(snapshot)?;
        let changes = resolved.changes(&edits, snapshot);
        // Rows, groups and edges of deleted vertices do not depend on each other: their reads are one wave.
        let mut lines = [branch.clone(), branch.clone(), branch.clone()];
        let [of_rows, of_groups, of_gone] = &mut lines;
        let partial_rows = resolved.complete_rows(snapshot, of_rows);
        let groups = resolved.groups_to_change(&edits, &changes, snapshot, of_groups);
        let deleted = resolved.edges_of_gone(snapshot, of_gone);
        let (rows, groups, (removed, labels)) = try_join3(partial_rows, groups, deleted).await?;
        branch.join(&lines);
        // Only now the reads have ended that borrowed `resolved`; edges of deleted vertices come last, since they
        // yield to edges that the batch itself writes.
        rows.into_iter().for_each(|(vertex, before)| resolved.complete(vertex, before));
        resolved.groups = resolved.groups_of(&edits, &changes, groups);
        resolved.names.edge_labels = labels;
        resolved.remove(removed);
        Ok(resolved)
    }

    /// Adds the old properties that a partly changed row keeps.
    fn complete(&mut self, vertex: VertexId, mut before: Properties) {
        let Some(changed) = self.changed.get_mut(&vertex) else { return };
        before.extend(made(&self.names, &self.batch, &mut changed.row));
        changed.row = VertexRow::Made(before);
    }

    /// The edges of each pair, from those there were where something of them stays.
    fn groups_of(&self, edits: &[(Pair, u32)], changes: &[Change], mut before: Groups) -> Vec<Group> {
        let mut groups = Vec::with_capacity(edits.len());
        for (edits, change) in edits.chunk_by(|a, b| a.0 == b.0).zip(changes) {
            let (pair, first) = edits[0];
            let edges = match change {
                Change::Replaced => Edges::Of(first),
                Change::Edited => {
                    let mut group = before.remove(&pair).unwrap_or_default();
                    edits.iter().for_each(|(_, number)| self.edit(*number).apply(&mut group));
                    Edges::Made(group)
                }
            };
            let is_new = |vertex| matches!(vertex, Vertex::New(_));
            // A pair with a new vertex had no edges, so an empty group needs no tombstone.
            if edges == Edges::Made(Vec::new()) && (is_new(pair.source) || is_new(pair.target)) {
                continue;
            }
            groups.push(Group { pair, edges, alone: self.resets(first) });
        }
        groups
    }

    /// Adds the pairs that lose their edges because one of the two vertices is deleted; a vertex that returned may have
    /// new edges.
    fn remove(&mut self, mut removed: BTreeSet<Pair>) {
        if removed.is_empty() {
            return;
        }
        let mut groups = std::mem::take(&mut self.groups);
        groups.retain(|group| !(removed.contains(&group.pair) && self.goes_along(&group.pair)));
        removed.retain(|pair| groups.binary_search_by_key(pair, |group| group.pair).is_err());
        groups.extend(removed.into_iter().map(|pair| Group { pair, edges: Edges::Made(Vec::new()), alone: true }));
        groups.sort_unstable_by_key(|group| group.pair);
        self.groups = groups;
    }

    /// Vertices that it adds, changes or deletes.
    pub(crate) fn written(&self) -> impl Iterator<Item = &VertexRef> {
        self.added.keys().chain(self.existing().map(|(_, end)| end))
    }

    /// Of these, those that exist.
    pub(crate) fn existing(&self) -> impl Iterator<Item = (VertexId, &VertexRef)> {
        let changed = self.changed.iter().map(|(vertex, changed)| (*vertex, &changed.end));
        changed.chain(self.gone.iter().map(|(vertex, end)| (*vertex, end)))
    }

    /// The vertices that it adds.
    pub(crate) fn added(&self) -> impl Iterator<Item = (&VertexRef, Written<'_>)> {
        self.added.iter().map(|(end, row)| (end, self.written_row(row)))
    }

    /// Vertices that exist whose rows it writes.
    pub(crate) fn changed(&self) -> impl Iterator<Item = (VertexId, &VertexRef, Written<'_>)> {
        self.changed.iter().map(|(vertex, changed)| (*vertex, &changed.end, self.written_row(&changed.row)))
    }

    /// The vertices that it names, by number: those that exist.
    pub(crate) fn known(&self) -> &[Option<VertexId>] {
        &self.known
    }

    /// The vertices that it names and that are missing: the batch depends on their absence.
    pub(crate) fn missing(&self) -> impl Iterator<Item = VertexRef> {
        let missing = self.known.iter().enumerate().filter(|(_, known)| known.is_none());
        missing.map(|(number, _)| self.end(number as u32))
    }

    /// A vertex that it names.
    pub(crate) fn end(&self, number: u32) -> VertexRef {
        self.names.end(&self.batch, number)
    }

    /// The name of the label of a vertex that it names.
    pub(crate) fn vertex_label(&self, number: u32) -> &Name {
        self.names.vertex_label(number)
    }

    /// How it names a vertex that exists.
    pub(crate) fn name_of(&self, vertex: VertexId) -> Option<VertexRef> {
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
        self.groups.iter().map(|group| group.pair)
    }

    /// Of these, the pairs whose new edges depend on the old ones.
    pub(crate) fn pairs_built_on(&self) -> impl Iterator<Item = Pair> {
        self.groups.iter().filter(|group| !group.alone).map(|group| group.pair)
    }

    /// The pairs whose edges it writes, each with the properties of all edges that there are from now on.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (Pair, impl Iterator<Item = Written<'_>>)> {
        self.groups.iter().map(|group| {
            let (one, many) = match &group.edges {
                Edges::Of(number) => (self.written_by(*number), &[][..]),
                Edges::Made(group) => (None, group.as_slice()),
            };
            (group.pair, one.into_iter().chain(many.iter().map(Written::Single)))
        })
    }

    /// Vertices whose rows keep something, each with whether it is given a property.
    pub(super) fn partial_rows(&self) -> impl Iterator<Item = (VertexId, impl Fn(&str) -> bool)> {
        let partial = self.changed.iter().filter(|(_, changed)| !changed.replace);
        partial.map(|(vertex, changed)| {
            let row = self.written_row(&changed.row);
            let names = move |property: &str| match row {
                Written::Single(properties) => properties.get(property).is_some(),
                Written::OfColumns { columns, row, .. } => columns.names(row, property),
            };
            (*vertex, names)
        })
    }

    /// Vertices that lose all edges they had.
    pub(super) fn without_edges(&self) -> impl Iterator<Item = VertexId> {
        self.gone.keys().chain(&self.cleared).copied()
    }

    /// Whether a pair loses all its edges because one of its vertices is deleted and added again.
    pub(super) fn is_cleared(&self, pair: &Pair) -> bool {
        let is = |vertex| matches!(vertex, Vertex::Known(vertex) if self.cleared.contains(&vertex));
        is(pair.source) || is(pair.target)
    }

    fn written_row<'a>(&'a self, row: &'a VertexRow) -> Written<'a> {
        match row {
            VertexRow::Made(properties) => Written::Single(properties),
            VertexRow::Of(number) => self.written_by(*number).unwrap_or(Written::Single(Properties::NONE)),
        }
    }

    /// The properties that an upsert has.
    fn written_by(&self, number: u32) -> Option<Written<'_>> {
        let At { operation, change } = self.change(number);
        match change {
            Single::One(one) => one.properties().map(Written::Single),
            Single::Row(columns, row) => Some(Written::OfColumns { operation, columns, row }),
        }
    }

    /// A change by its number.
    pub(super) fn change(&self, number: u32) -> At<'_> {
        self.names.change(&self.batch, number)
    }

    /// Whether a pair loses its edges because one of its vertices is deleted, not by an operation on its edges.
    pub(crate) fn goes_along(&self, pair: &Pair) -> bool {
        let goes = |vertex: &Vertex| matches!(vertex, Vertex::Known(vertex) if self.gone.contains_key(vertex));
        goes(&pair.source) || goes(&pair.target)
    }

    /// Applies the changes of vertices, one after the other.
    fn take_vertices(&mut self, snapshot: &Snapshot) -> Result<(), EngineError> {
        let batch = self.batch.clone();
        let mut first = 0;
        for (operation, it) in batch.operations.iter().enumerate() {
            let numbers = first..first + it.changes() as u32;
            first = numbers.end;
            match it {
                Operation::UpsertVertex { replace, .. } => self.upsert_vertex(numbers.start, *replace),
                Operation::UpsertColumns(columns) if columns.ends().is_none() => {
                    numbers.for_each(|number| self.upsert_vertex(number, columns.replaces()));
                }
                Operation::DeleteVertex { vertex } => {
                    self.delete_vertex(vertex, At { operation, change: Single::One(it) }, numbers.start, snapshot)?;
                }
                Operation::UpsertEdge { .. } | Operation::DeleteEdge { .. } | Operation::UpsertColumns(_) => {}
            }
        }
        Ok(())
    }

    fn upsert_vertex(&mut self, number: u32, replace: bool) {
        let row = VertexRow::Of(number);
        let vertex = self.names.changes[number as usize].ends[0];
        let end = self.end(vertex);
        if let Some(known) = self.known[vertex as usize] {
            // A vertex that is deleted and upserted again keeps its ordinal, but neither its row nor its edges.
            let returns = self.gone.remove(&known).is_some();
            if returns {
                self.cleared.insert(known);
            }
            match self.changed.entry(known) {
                Entry::Vacant(free) => drop(free.insert(ChangedVertex { end, row, replace: replace || returns })),
                Entry::Occupied(changed) => {
                    let changed = changed.into_mut();
                    changed.replace |= replace;
                    changed.row = then(&self.names, &self.batch, &mut changed.row, row, replace);
                }
            }
            return;
        }
        self.withdrawn.remove(&vertex);
        if !self.introduced.contains(&end.label) {
            self.introduced.insert(end.label.clone());
        }
        match self.added.entry(end) {
            Entry::Vacant(free) => drop(free.insert(row)),
            Entry::Occupied(added) => {
                let added = added.into_mut();
                *added = then(&self.names, &self.batch, added, row, replace);
            }
        }
    }

    fn delete_vertex(
        &mut self,
        end: &VertexRef,
        at: At<'_>,
        number: u32,
        snapshot: &Snapshot,
    ) -> Result<(), EngineError> {
        if !self.introduced.contains(&end.label) {
            label_of(end, at, snapshot)?;
        }
        let vertex = self.names.changes[number as usize].ends[0];
        match self.known[vertex as usize] {
            Some(known) => {
                self.changed.remove(&known);
                self.cleared.remove(&known);
                self.gone.insert(known, end.clone());
            }
            None if self.added.remove(end).is_some() => drop(self.withdrawn.insert(vertex)),
            None => {}
        }
        Ok(())
    }

    /// Which change is of which pair, by pair and in the order of the batch, without those after which all edges of the
    /// pair were replaced.
    fn edits(&mut self, snapshot: &Snapshot) -> Result<Vec<(Pair, u32)>, EngineError> {
        let batch = self.batch.clone();
        let mut edits = Vec::with_capacity(self.names.changes.len());
        let mut upserted = UpsertedTypes::default();
        let mut first = 0;
        for (operation, it) in batch.operations.iter().enumerate() {
            let numbers = first..first + it.changes() as u32;
            first = numbers.end;
            let at = At { operation, change: Single::One(it) };
            match it {
                Operation::UpsertEdge { key, properties, .. } => {
                    check_key(at, key.as_ref(), properties)?;
                    edits.push(self.upserted_pair(numbers.start, at, snapshot)?);
                }
                Operation::UpsertColumns(columns) if columns.ends().is_some() => {
                    for (row, number) in numbers.enumerate() {
                        let at = At { operation, change: Single::Row(columns, row) };
                        edits.push(self.upserted_pair(number, at, snapshot)?);
                    }
                }
                Operation::DeleteEdge { label, source, target, key } => {
                    if !upserted.has_before(&batch, operation, it) {
                        check_edge_type(at, label, [source, target], key.as_ref(), snapshot)?;
                    }
                    edits.extend(self.deleted_pair(numbers.start));
                }
                Operation::UpsertVertex { .. } | Operation::DeleteVertex { .. } | Operation::UpsertColumns(_) => {}
            }
        }
        edits.sort_unstable();
        self.drop_overwritten(&mut edits);
        Ok(edits)
    }

    fn upserted_pair(&mut self, number: u32, at: At<'_>, snapshot: &Snapshot) -> Result<(Pair, u32), EngineError> {
        let named = self.names.changes[number as usize];
        let source = self.end_to_be(named.ends[0], at, snapshot)?;
        let target = self.end_to_be(named.ends[1], at, snapshot)?;
        Ok((Pair { label: named.edge_label, source, target }, number))
    }

    /// Without its ends there is no edge.
    fn deleted_pair(&self, number: u32) -> Option<(Pair, u32)> {
        let named = self.names.changes[number as usize];
        let vertex = |end: u32| match self.known[end as usize] {
            Some(known) => Some(Vertex::Known(known)),
            None => self.added.contains_key(&self.end(end)).then_some(Vertex::New(end)),
        };
        let source = vertex(named.ends[0])?;
        let target = vertex(named.ends[1])?;
        Some((Pair { label: named.edge_label, source, target }, number))
    }

    /// The last change of the entire pair decides, and the changes after it.
    fn drop_overwritten(&self, edits: &mut Vec<(Pair, u32)>) {
        let same = |edits: &[(Pair, u32)]| edits[0].0 == edits[1].0;
        if !edits.windows(2).any(same) {
            return;
        }
        let mut kept = Vec::with_capacity(edits.len());
        for edits in edits.chunk_by(|a, b| a.0 == b.0) {
            let from = edits.iter().rposition(|(_, number)| self.resets(*number)).unwrap_or(0);
            kept.extend_from_slice(&edits[from..]);
        }
        *edits = kept;
    }

    /// Whether nothing stays of the edges that there were between two vertices.
    pub(super) fn resets(&self, number: u32) -> bool {
        match self.change(number).change {
            Single::Row(columns, _) => columns.replaces(),
            Single::One(Operation::UpsertEdge { key, replace, .. }) => key.is_none() && *replace,
            Single::One(Operation::DeleteEdge { key, .. }) => key.is_none(),
            Single::One(_) => false,
        }
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
        if !self.added.contains_key(&end) {
            if self.withdrawn.contains(&number) {
                return refused(at, Refusal::Other, format!("the same batch deletes {end}"));
            }
            if !self.batch.create_missing {
                return refused(at, Refusal::MissingEnd, format!("there is no vertex {end}"));
            }
            let declared = snapshot.schema().label_id(&end.label).is_some() || self.introduced.contains(&end.label);
            if !declared {
                return refused(at, Refusal::Other, no_label(&end.label));
            }
            self.added.insert(end, VertexRow::Made(Properties::new()));
        }
        Ok(Vertex::New(number))
    }

    fn edit(&self, number: u32) -> Edit {
        match self.change(number).change {
            Single::Row(columns, row) => {
                Edit { key: None, properties: Some(columns.properties_at(row)), replace: columns.replaces() }
            }
            Single::One(Operation::UpsertEdge { key, properties, replace, .. }) => {
                Edit { key: key.clone(), properties: Some(properties.clone()), replace: *replace }
            }
            Single::One(Operation::DeleteEdge { key, .. }) => {
                Edit { key: key.clone(), properties: None, replace: true }
            }
            Single::One(_) => Edit::default(),
        }
    }
}

/// The row of a vertex that is upserted once more.
fn then(names: &Names, batch: &Batch, before: &mut VertexRow, row: VertexRow, replace: bool) -> VertexRow {
    if replace {
        return row;
    }
    let mut row = row;
    let mut properties = made(names, batch, before);
    properties.extend(made(names, batch, &mut row));
    VertexRow::Made(properties)
}

/// A row by itself; what is left of it is not needed any more.
fn made(names: &Names, batch: &Batch, row: &mut VertexRow) -> Properties {
    match row {
        VertexRow::Made(properties) => std::mem::take(properties),
        VertexRow::Of(number) => match names.change(batch, *number).change {
            Single::Row(columns, row) => columns.properties_at(row),
            Single::One(one) => one.properties().cloned().unwrap_or_default(),
        },
    }
}

/// Edge types that the operations of a batch upsert before one of them deletes edges.
#[derive(Default)]
struct UpsertedTypes<'a> {
    /// The first operation that was not looked at.
    next: usize,
    /// Edge label and labels of the ends, with the names of edge keys.
    types: BTreeMap<[&'a Name; 3], BTreeSet<&'a Name>>,
}

impl<'a> UpsertedTypes<'a> {
    /// Whether there are such edges by then, with such a key if the deletion names one.
    fn has_before(&mut self, batch: &'a Batch, operation: usize, deletion: &Operation) -> bool {
        for earlier in &batch.operations[self.next..operation] {
            match earlier {
                Operation::UpsertEdge { label, source, target, key, properties, .. } => {
                    let names = self.types.entry([label, &source.label, &target.label]).or_default();
                    names.extend(key.iter().map(|key| &key.property));
                    names.extend(properties.names());
                }
                Operation::UpsertColumns(columns) => {
                    let Some([source, target]) = columns.ends().filter(|_| !columns.is_empty()) else { continue };
                    let names = self.types.entry([columns.label(), source, target]).or_default();
                    names.extend(columns.properties().iter().map(|column| &column.name));
                }
                _ => {}
            }
        }
        self.next = operation;
        let Operation::DeleteEdge { label, source, target, key } = deletion else { return false };
        let found = self.types.get(&[label, &source.label, &target.label]);
        found.is_some_and(|names| key.as_ref().is_none_or(|key| names.contains(&key.property)))
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

/// Checks that an edge's key has a value, and that its properties do not contradict it.
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

/// It is an error if such edges, or edges with such a key, do not exist.
fn check_edge_type(
    at: At<'_>,
    label: &str,
    [source, target]: [&VertexRef; 2],
    key: Option<&EdgeKey>,
    snapshot: &Snapshot,
) -> Result<(), EngineError> {
    let labels = (label_of(source, at, snapshot)?, label_of(target, at, snapshot)?);
    let mut types = snapshot.schema().edge_types.iter();
    let of = types.find(|it| (&*it.label, it.source, it.target) == (label, labels.0, labels.1));
    let Some(of) = of else {
        let source = &source.label;
        let target = &target.label;
        return refused(at, Refusal::Other, format!("the graph has no edges {label} from {source} to {target}"));
    };
    match key.filter(|key| of.properties.iter().all(|property| property.name != key.property)) {
        Some(key) => refused(at, Refusal::Other, format!("edges {label} have no property {}", key.property)),
        None => Ok(()),
    }
}

/// The label of a vertex; that there is none is an error.
fn label_of(end: &VertexRef, at: At<'_>, snapshot: &Snapshot) -> Result<LabelId, EngineError> {
    match snapshot.schema().label_id(&end.label) {
        Some(label) => Ok(label),
        None => refused(at, Refusal::Other, no_label(&end.label)),
    }
}

fn no_label(label: &str) -> String {
    format!("the graph has no vertex label {label}")
}

pub(super) fn refused<T>(at: At<'_>, refusal: Refusal, why: String) -> Result<T, EngineError> {
    Err(refusal_of(at, refusal, why))
}

/// The error that a change is not allowed.
pub(super) fn refusal_of(at: At<'_>, refusal: Refusal, why: String) -> EngineError {
    let operation = Box::new(at.single());
    EngineError::Refused { operation, number: at.operation, row: at.row(), refusal, why }
}
