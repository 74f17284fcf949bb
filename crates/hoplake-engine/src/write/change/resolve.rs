//! Resolves a batch on a version of a graph: looks up which vertices exist, computes the new rows of vertices and edges, finds the edges
//! that are deleted with a vertex, and checks that the batch is valid.
//!
//! It reads in two waves: first the keys, then the rows and lists that the batch changes partly or deletes. New vertices get their ordinals
//! later, when the leader of the group commit has chosen the batches of a delta.
//!
//! A batch may have a million edges, most of them blind upserts. Therefore names are replaced by numbers first ([`Names`]), and properties
//! stay in the batch, uncopied, unless others have to be added to them.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, btree_map::Entry},
    sync::Arc,
};

use foldhash::fast::RandomState;
use futures::future::try_join4;
use hoplake_format::{Key, LabelId, VertexId};
use hoplake_storage::Branch;

use super::{
    Batch, EdgeKey, Name, Operation, Properties, Value, VertexRef,
    before::{Change, Groups},
    group::{Edit, Which},
    names::{At, Names, Single},
    resolved::{ChangedVertex, Edges, Group, Pair, Resolved, Vertex, VertexRow, Widening},
    strict::check_declared,
};
use crate::{EngineError, Rejection, Snapshot, read::property_index::Items};

impl Resolved {
    /// Resolves a batch.
    ///
    /// # Errors
    /// [`EngineError::Rejected`] with the operation that is not valid; the store's error.
    pub(crate) async fn of(
        batch: &Arc<Batch>,
        snapshot: &Arc<Snapshot>,
        branch: &mut Branch,
    ) -> Result<Self, EngineError> {
        batch.check_lengths(&snapshot.manifest().source_positions)?;
        check_declared(batch, snapshot.schema())?;
        let names = Names::of(batch)?;
        let (known, others) = names.look_up(batch, snapshot, branch).await?;
        let mut resolved = Self {
            batch: batch.clone(),
            names,
            known,
            shares_key: false,
            added: BTreeMap::new(),
            changed: BTreeMap::new(),
            gone: BTreeMap::new(),
            cleared: BTreeSet::new(),
            withdrawn: BTreeSet::new(),
            introduced: BTreeSet::new(),
            groups: Vec::new(),
            items_before: Items::default(),
            widens: Widening::None,
            retyped: BTreeSet::new(),
        };
        // Changes of vertices take effect first, so that an edge can name a vertex that a later change adds.
        resolved.take_vertices(snapshot)?;
        resolved.check_key_uniqueness(&others, snapshot)?;
        let edits = resolved.edits(snapshot)?;
        let changes = resolved.changes(&edits, snapshot);
        // Rows, groups, edges of deleted vertices and indexed values do not depend on each other: their reads are one wave.
        let mut branches = [branch.clone(), branch.clone(), branch.clone(), branch.clone()];
        let [for_rows, for_groups, for_deleted, for_items] = &mut branches;
        let partial_rows = resolved.complete_rows(snapshot, for_rows);
        let groups = resolved.groups_to_change(&edits, &changes, snapshot, for_groups);
        let deleted = resolved.edges_of_deleted(snapshot, for_deleted);
        let items = resolved.items_of_existing(snapshot, for_items);
        let (rows, groups, (removed, labels), items) = try_join4(partial_rows, groups, deleted, items).await?;
        branch.join(&branches);
        // The reads, which borrowed `resolved`, have ended. Edges of deleted vertices come last, since edges that the batch
        // writes take precedence over them.
        rows.into_iter().for_each(|(vertex, before)| resolved.complete(vertex, before));
        resolved.groups = resolved.groups_of(&edits, &changes, groups);
        resolved.names.edge_labels = labels;
        resolved.remove(removed);
        resolved.items_before = items;
        Ok(resolved)
    }

    /// Adds the properties that a partly changed row keeps from before.
    fn complete(&mut self, vertex: VertexId, mut before: Properties) {
        let Some(changed) = self.changed.get_mut(&vertex) else { return };
        before.extend(take_properties(&self.names, &self.batch, &mut changed.row));
        changed.row = VertexRow::Made(before);
    }

    /// The new edges of each pair. A pair that is changed partly starts from the edges that it had `before`.
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

    /// Adds the pairs that lose their edges because one of the two vertices is deleted. A vertex that is deleted and upserted again may have
    /// new edges.
    fn remove(&mut self, mut removed: BTreeSet<Pair>) {
        if removed.is_empty() {
            return;
        }
        let mut groups = std::mem::take(&mut self.groups);
        // A deleted vertex has no edges, whatever else the batch does with them.
        groups.retain(|group| !(removed.contains(&group.pair) && self.is_deleted_with_vertex(&group.pair)));
        // If the vertex was upserted again, the edges that the batch writes replace the old ones: their pair needs no tombstone.
        removed.retain(|pair| groups.binary_search_by_key(pair, |group| group.pair).is_err());
        groups.extend(removed.into_iter().map(|pair| Group { pair, edges: Edges::Made(Vec::new()), alone: true }));
        groups.sort_unstable_by_key(|group| group.pair);
        self.groups = groups;
    }

    /// Applies the changes of vertices in order.
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
                Operation::UpsertEdge { .. }
                | Operation::DeleteEdge { .. }
                | Operation::EditEdge { .. }
                | Operation::UpsertColumns(_) => {}
            }
        }
        Ok(())
    }

    /// Checks that keys stay unique across labels, if the graph requires it. `others` are vertices of other labels that have the key of a
    /// vertex of the batch, given by its number.
    fn check_key_uniqueness(&mut self, others: &[(u32, VertexId)], snapshot: &Snapshot) -> Result<(), EngineError> {
        let manifest = snapshot.manifest();
        if !manifest.unique_keys || self.added.is_empty() {
            return Ok(());
        }
        let remains = |(number, other): &&(u32, VertexId)| {
            !self.gone.contains_key(other) && self.added.contains_key(&self.end(*number))
        };
        let shared = others.iter().find(remains).copied();
        if !self.batch.keep_unique_keys {
            self.shares_key = shared.is_some();
            return Ok(());
        }
        let rejected =
            |number: u32, why: String| self.change(self.names.first_change(number)).rejected(Rejection::Other, why);
        if let Some((number, other)) = shared {
            let label = snapshot.schema().label(other.label()).map_or("?", |label| &label.name);
            let key = self.end(number).key;
            return rejected(
                number,
                format!("{label}:{key} already has the key {key}, and the keys of the graph are unique"),
            );
        }
        let mut gone: HashMap<LabelId, u64> = HashMap::new();
        self.gone.keys().for_each(|vertex| *gone.entry(vertex.label()).or_default() += 1);
        let labels = (0u16..).map(LabelId).zip(&snapshot.schema().vertex_labels).zip(&manifest.vertex_counts);
        let mut remaining = labels.filter(|((id, _), count)| count.live() > gone.get(id).copied().unwrap_or(0));
        let mut key_type = remaining.next().map(|((_, label), _)| label.key_type);
        let mut labels: HashMap<Key, Name, RandomState> = HashMap::default();
        for number in 0..self.known.len() as u32 {
            let end = self.end(number);
            if self.known[number as usize].is_some() || !self.added.contains_key(&end) {
                continue;
            }
            let VertexRef { label, key } = end;
            let found = key.key_type();
            let expected = *key_type.get_or_insert(found);
            if found != expected {
                let why = format!(
                    "{label}:{key} has a key of type {found}, and the keys of the graph are unique and of type {expected}"
                );
                return rejected(number, why);
            }
            if *labels.entry(key.clone()).or_insert_with(|| label.clone()) != label {
                let why = format!("two labels of the batch have the key {key}, and the keys of the graph are unique");
                return rejected(number, why);
            }
        }
        Ok(())
    }

    fn upsert_vertex(&mut self, number: u32, replace: bool) {
        let row = VertexRow::Of(number);
        let vertex = self.names.changes[number as usize].ends[0];
        let end = self.end(vertex);
        if let Some(known) = self.known[vertex as usize] {
            // A vertex that is deleted and upserted again keeps its ordinal, and loses its row and its edges.
            let returns = self.gone.remove(&known).is_some();
            if returns {
                self.cleared.insert(known);
            }
            match self.changed.entry(known) {
                Entry::Vacant(free) => drop(free.insert(ChangedVertex { end, row, replace: replace || returns })),
                Entry::Occupied(changed) => {
                    let changed = changed.into_mut();
                    changed.replace |= replace;
                    changed.row = merge_upsert(&self.names, &self.batch, &mut changed.row, row, replace);
                }
            }
            return;
        }
        self.withdrawn.remove(&vertex);
        // Checked first, since an insert needs a clone of the name.
        if !self.introduced.contains(&end.label) {
            self.introduced.insert(end.label.clone());
        }
        match self.added.entry(end) {
            Entry::Vacant(free) => drop(free.insert(row)),
            Entry::Occupied(added) => {
                let added = added.into_mut();
                *added = merge_upsert(&self.names, &self.batch, added, row, replace);
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
        // A label that this batch introduces is not in the schema yet.
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
            // An edge to it is an error even if the batch creates missing ends.
            None if self.added.remove(end).is_some() => drop(self.withdrawn.insert(vertex)),
            None => {}
        }
        Ok(())
    }

    /// The changes of edges with their pairs, sorted by pair and in the order of the batch, without those that a later change of the
    /// entire pair overwrites.
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
                Operation::EditEdge { properties, .. } => match properties {
                    Some(_) => edits.push(self.upserted_pair(numbers.start, at, snapshot)?),
                    None => edits.extend(self.deleted_pair(numbers.start)),
                },
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
        // By pair, then by number: the changes of a pair stay in the order of the batch.
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

    /// The pair of a deletion; `None` if one of its ends does not exist, since then it has no edges.
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

    /// Drops the changes of each pair that its last change of the entire pair overwrites.
    fn drop_overwritten(&self, edits: &mut Vec<(Pair, u32)>) {
        let have_one_pair = |edits: &[(Pair, u32)]| edits[0].0 == edits[1].0;
        if !edits.windows(2).any(have_one_pair) {
            return;
        }
        let mut kept = Vec::with_capacity(edits.len());
        for edits in edits.chunk_by(|a, b| a.0 == b.0) {
            let from = edits.iter().rposition(|(_, number)| self.resets(*number)).unwrap_or(0);
            kept.extend_from_slice(&edits[from..]);
        }
        *edits = kept;
    }

    /// The vertex at the end of an upserted edge, which is created if the batch allows it.
    fn end_to_be(&mut self, number: u32, at: At<'_>, snapshot: &Snapshot) -> Result<Vertex, EngineError> {
        if let Some(known) = self.known[number as usize] {
            return match self.gone.contains_key(&known) {
                true => at.rejected(Rejection::Other, format!("the same batch deletes {}", self.end(number))),
                false => Ok(Vertex::Known(known)),
            };
        }
        let end = self.end(number);
        if !self.added.contains_key(&end) {
            if self.withdrawn.contains(&number) {
                return at.rejected(Rejection::Other, format!("the same batch deletes {end}"));
            }
            if !self.batch.create_missing {
                return at.rejected(Rejection::MissingEnd, format!("there is no vertex {end}"));
            }
            let declared = snapshot.schema().label_id(&end.label).is_some() || self.introduced.contains(&end.label);
            if !declared {
                return at.rejected(Rejection::Other, no_label(&end.label));
            }
            self.added.insert(end, VertexRow::Made(Properties::new()));
        }
        Ok(Vertex::New(number))
    }

    fn edit(&self, number: u32) -> Edit {
        match self.change(number).change {
            Single::Row(columns, row) => {
                Edit { which: Which::All, properties: Some(columns.properties_at(row)), replace: columns.replaces() }
            }
            Single::One(Operation::UpsertEdge { key, properties, replace, .. }) => {
                Edit { which: Which::of_key(key), properties: Some(properties.clone()), replace: *replace }
            }
            Single::One(Operation::DeleteEdge { key, .. }) => {
                Edit { which: Which::of_key(key), properties: None, replace: true }
            }
            Single::One(Operation::EditEdge { number, properties, replace, .. }) => {
                let which = number.map_or(Which::Another, Which::Number);
                Edit { which, properties: properties.clone(), replace: *replace }
            }
            Single::One(_) => Edit::default(),
        }
    }
}

/// The row of a vertex that the batch upserts again.
fn merge_upsert(names: &Names, batch: &Batch, before: &mut VertexRow, row: VertexRow, replace: bool) -> VertexRow {
    if replace {
        return row;
    }
    let mut row = row;
    let mut properties = take_properties(names, batch, before);
    properties.extend(take_properties(names, batch, &mut row));
    VertexRow::Made(properties)
}

/// The properties of a row. They are moved out of a row of its own, and copied from one of the batch.
fn take_properties(names: &Names, batch: &Batch, row: &mut VertexRow) -> Properties {
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
    /// The first operation that was not examined yet.
    next: usize,
    /// Edge label and labels of the ends, with the names of properties.
    types: BTreeMap<[&'a Name; 3], BTreeSet<&'a Name>>,
}

impl<'a> UpsertedTypes<'a> {
    /// Whether an earlier operation upserts edges of the deletion's type, with the deletion's key property if it names one.
    fn has_before(&mut self, batch: &'a Batch, operation: usize, deletion: &Operation) -> bool {
        // Continues where the last deletion stopped, so that each operation is examined once, however many deletions there are.
        for earlier in &batch.operations[self.next..operation] {
            match earlier {
                Operation::EditEdge { label, source, target, properties: Some(properties), .. } => {
                    let names = self.types.entry([label, &source.label, &target.label]).or_default();
                    names.extend(properties.names());
                }
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

/// Checks that an edge's key is not null, and that its properties do not contradict it.
fn check_key(at: At<'_>, key: Option<&EdgeKey>, properties: &Properties) -> Result<(), EngineError> {
    let Some(EdgeKey { property, value }) = key else { return Ok(()) };
    if *value == Value::Null {
        return at.rejected(Rejection::Other, format!("its key {property} is null"));
    }
    match properties.get(property) {
        Some(other) if other != value => {
            at.rejected(Rejection::Other, format!("its key {property} is also given as {other}"))
        }
        _ => Ok(()),
    }
}

/// Checks that the edge type exists, and that it has the key property if one is named.
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
        return at.rejected(Rejection::Other, format!("the graph has no edges {label} from {source} to {target}"));
    };
    match key.filter(|key| of.properties.iter().all(|property| property.name != key.property)) {
        Some(key) => at.rejected(Rejection::Other, format!("edges {label} have no property {}", key.property)),
        None => Ok(()),
    }
}

/// The id of a vertex's label, which must exist.
fn label_of(end: &VertexRef, at: At<'_>, snapshot: &Snapshot) -> Result<LabelId, EngineError> {
    match snapshot.schema().label_id(&end.label) {
        Some(label) => Ok(label),
        None => at.rejected(Rejection::Other, no_label(&end.label)),
    }
}

fn no_label(label: &str) -> String {
    format!("the graph has no vertex label {label}")
}
