//! Numbers for what a batch names, so that a million edges compare and sort as numbers.

use std::collections::{BTreeSet, HashMap};

use foldhash::fast::RandomState;
use hoplake_format::{KeyType, LABELS_MAX, LabelId, VertexId};
use hoplake_storage::Branch;

use super::{Batch, Columns, Name, Operation, VertexRef, columns::KeyRef};
use crate::{EngineError, Rejection, Snapshot};

/// A change of a batch: an operation, or a row of columns.
#[derive(Debug, Clone, Copy)]
pub(super) struct At<'a> {
    /// Its operation's number in the batch.
    pub(super) operation: usize,
    pub(super) change: Single<'a>,
}

/// A change by itself.
#[derive(Debug, Clone, Copy)]
pub(super) enum Single<'a> {
    One(&'a Operation),
    Row(&'a Columns, usize),
}

/// The vertices and edge labels that a batch names.
#[derive(Debug)]
pub(super) struct Names {
    /// By number.
    ends: Vec<FirstNamed>,
    /// By number.
    vertex_labels: Vec<Name>,
    /// By number.
    pub(super) edge_labels: Vec<Name>,
    /// The names in each change.
    pub(super) changes: Vec<Named>,
    /// The number of each operation's first change; nothing if each operation is one.
    first_changes: Vec<u32>,
}

/// Where a vertex is named first.
#[derive(Debug, Clone, Copy)]
struct FirstNamed {
    // The key stays in the batch: 12 bytes for each vertex instead of a copy of its key.
    change: u32,
    /// Which of its two ends.
    which: u32,
    /// The number of its label.
    label: u32,
}

/// The names in a change, by number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named {
    /// The source and the target of an edge; a vertex is both.
    pub(super) ends: [u32; 2],
    /// Of an edge.
    pub(super) edge_label: u32,
}

/// Numbers of the vertices of a label, by key.
#[derive(Debug, Default)]
struct KeyNumbers<'a> {
    int64: HashMap<i64, u32, RandomState>,
    text: HashMap<&'a str, u32, RandomState>,
}

impl KeyNumbers<'_> {
    fn reserve(&mut self, key_type: KeyType, keys: usize) {
        match key_type {
            KeyType::Int64 => self.int64.reserve(keys),
            KeyType::String => self.text.reserve(keys),
        }
    }
}

impl<'a> At<'a> {
    /// The row, if it is one of columns.
    pub(super) fn row(self) -> Option<usize> {
        match self.change {
            Single::One(_) => None,
            Single::Row(_, row) => Some(row),
        }
    }

    /// The operation that it is by itself.
    pub(super) fn single(self) -> Operation {
        match self.change {
            Single::One(operation) => operation.clone(),
            Single::Row(columns, row) => columns.operation(row),
        }
    }

    /// That it is not allowed.
    pub(super) fn rejected<T>(self, rejection: Rejection, why: String) -> Result<T, EngineError> {
        Err(self.rejection(rejection, why))
    }

    /// The error that it is not allowed.
    pub(super) fn rejection(self, rejection: Rejection, why: String) -> EngineError {
        // A row becomes an operation only here: an error shows it as the caller could have written it.
        let operation = Box::new(self.single());
        EngineError::Rejected { operation, number: self.operation, row: self.row(), rejection, why }
    }
}

impl Operation {
    /// The vertices that a single operation names: the source and the target of an edge; a vertex is both.
    fn ends(&self) -> Option<[&VertexRef; 2]> {
        match self {
            Self::UpsertVertex { vertex, .. } | Self::DeleteVertex { vertex } => Some([vertex, vertex]),
            Self::UpsertEdge { source, target, .. }
            | Self::DeleteEdge { source, target, .. }
            | Self::EditEdge { source, target, .. } => Some([source, target]),
            Self::UpsertColumns(_) => None,
        }
    }
}

/// Names as they are numbered.
struct Numbering<'a> {
    names: Names,
    keys: Vec<KeyNumbers<'a>>,
    vertex_labels: LabelNumbers<'a>,
    edge_labels: LabelNumbers<'a>,
}

/// Numbers of labels, in the order in which a batch names them. A batch may name as many labels as it has changes, so that a
/// search through those before each would take hours.
type LabelNumbers<'a> = HashMap<&'a str, u32, RandomState>;

/// The number of a label, which is added if it is not there.
fn number_of<'a>(numbers: &mut LabelNumbers<'a>, labels: &mut Vec<Name>, label: &'a Name) -> u32 {
    *numbers.entry(label.as_str()).or_insert_with(|| {
        labels.push(label.clone());
        labels.len() as u32 - 1
    })
}

impl<'a> Numbering<'a> {
    fn label(&mut self, label: &'a Name) -> u32 {
        let number = number_of(&mut self.vertex_labels, &mut self.names.vertex_labels, label);
        self.keys.resize_with(self.names.vertex_labels.len(), KeyNumbers::default);
        number
    }

    fn edge_label(&mut self, label: &'a Name) -> u32 {
        number_of(&mut self.edge_labels, &mut self.names.edge_labels, label)
    }

    /// The number of a vertex that the next change names.
    fn vertex(&mut self, label: u32, key: KeyRef<'a>, which: u32) -> u32 {
        let Names { ends, changes, .. } = &mut self.names;
        let first = || {
            ends.push(FirstNamed { change: changes.len() as u32, which, label });
            ends.len() as u32 - 1
        };
        let numbers = &mut self.keys[label as usize];
        match key {
            KeyRef::Int64(key) => *numbers.int64.entry(key).or_insert_with(first),
            KeyRef::String(key) => *numbers.text.entry(key).or_insert_with(first),
        }
    }

    fn end(&mut self, end: &'a VertexRef, which: u32) -> u32 {
        let label = self.label(&end.label);
        self.vertex(label, (&end.key).into(), which)
    }

    fn single(&mut self, operation: &'a Operation) {
        let (ends, label) = match operation {
            Operation::UpsertVertex { vertex, .. } | Operation::DeleteVertex { vertex } => {
                ([self.end(vertex, 0); 2], None)
            }
            Operation::UpsertEdge { label, source, target, .. }
            | Operation::DeleteEdge { label, source, target, .. }
            | Operation::EditEdge { label, source, target, .. } => {
                ([self.end(source, 0), self.end(target, 1)], Some(label))
            }
            Operation::UpsertColumns(columns) => return self.columns(columns),
        };
        let edge_label = label.map_or(0, |label| self.edge_label(label));
        self.names.changes.push(Named { ends, edge_label });
    }

    fn columns(&mut self, columns: &'a Columns) {
        let source = self.label(columns.end_label(0));
        // Each row may name another vertex: one allocation now instead of a rehash at each doubling.
        self.keys[source as usize].reserve(columns.key_type(0), columns.len());
        if columns.ends().is_none() {
            for row in 0..columns.len() {
                let vertex = self.vertex(source, columns.key(row, 0), 0);
                self.names.changes.push(Named { ends: [vertex; 2], edge_label: 0 });
            }
            return;
        }
        let target = self.label(columns.end_label(1));
        let edge_label = self.edge_label(columns.label());
        for row in 0..columns.len() {
            let source = self.vertex(source, columns.key(row, 0), 0);
            let target = self.vertex(target, columns.key(row, 1), 1);
            self.names.changes.push(Named { ends: [source, target], edge_label });
        }
    }
}

impl Names {
    /// Numbers what a batch names.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] if there is more than can be numbered; [`EngineError::Rejected`] if there are more labels than a
    /// graph can have.
    pub(super) fn of(batch: &Batch) -> Result<Self, EngineError> {
        let count = batch.changes();
        if u32::try_from(count).is_err() {
            return Err(EngineError::Invalid(format!("a batch has at most {} changes, and not {count}", u32::MAX)));
        }
        let mut first_changes = Vec::new();
        if batch.operations.iter().any(|operation| matches!(operation, Operation::UpsertColumns(_))) {
            let mut next = 0;
            first_changes.extend(batch.operations.iter().map(|operation| {
                next += operation.changes() as u32;
                next - operation.changes() as u32
            }));
        }
        let changes = Vec::with_capacity(count);
        let names =
            Self { ends: Vec::new(), vertex_labels: Vec::new(), edge_labels: Vec::new(), changes, first_changes };
        let vertex_labels = LabelNumbers::default();
        let edge_labels = LabelNumbers::default();
        let mut numbering = Numbering { names, keys: Vec::new(), vertex_labels, edge_labels };
        for (number, operation) in batch.operations.iter().enumerate() {
            numbering.single(operation);
            let Names { vertex_labels, edge_labels, .. } = &numbering.names;
            if vertex_labels.len().max(edge_labels.len()) > LABELS_MAX {
                let why = format!("with it the batch names more labels than the {LABELS_MAX} that a graph can have");
                let at = At { operation: number, change: Single::One(operation) };
                return at.rejected(Rejection::Other, why);
            }
        }
        Ok(numbering.names)
    }

    /// A change by its number.
    pub(super) fn change<'a>(&self, batch: &'a Batch, number: u32) -> At<'a> {
        let (operation, row) = match self.first_changes.is_empty() {
            true => (number as usize, 0),
            false => {
                // An operation without rows has the number of the next one's first change: the last with that number has the rows.
                let after = self.first_changes.partition_point(|first| *first <= number);
                (after - 1, (number - self.first_changes[after - 1]) as usize)
            }
        };
        let change = match &batch.operations[operation] {
            Operation::UpsertColumns(columns) => Single::Row(columns, row),
            single => Single::One(single),
        };
        At { operation, change }
    }

    /// All changes, with their numbers.
    pub(super) fn all<'a>(&self, batch: &'a Batch) -> impl Iterator<Item = (u32, At<'a>)> {
        let of = |(operation, it): (usize, &'a Operation)| {
            (0..it.changes()).map(move |row| match it {
                Operation::UpsertColumns(columns) => At { operation, change: Single::Row(columns, row) },
                single => At { operation, change: Single::One(single) },
            })
        };
        (0..).zip(batch.operations.iter().enumerate().flat_map(of))
    }

    /// A vertex by its number.
    pub(super) fn end(&self, batch: &Batch, number: u32) -> VertexRef {
        let FirstNamed { change, which, .. } = self.ends[number as usize];
        match self.change(batch, change).change {
            Single::Row(columns, row) => columns.end(row, which as usize),
            Single::One(operation) => match operation.ends() {
                Some(ends) => ends[which as usize].clone(),
                None => VertexRef::new("", ""),
            },
        }
    }

    /// The name of a vertex's label.
    pub(super) fn vertex_label(&self, number: u32) -> &Name {
        &self.vertex_labels[self.ends[number as usize].label as usize]
    }

    /// The vertices that a batch may add, by number.
    fn added(&self, batch: &Batch) -> Vec<bool> {
        let mut added = vec![batch.create_missing; self.ends.len()];
        for ((_, at), named) in self.all(batch).zip(&self.changes) {
            let is_upsert = match at.change {
                Single::One(operation) => matches!(operation, Operation::UpsertVertex { .. }),
                Single::Row(columns, _) => columns.ends().is_none(),
            };
            added[named.ends[0] as usize] |= is_upsert;
        }
        added
    }

    /// The labels of which rows will be read if their vertices exist: those that are changed in part, or have an index whose values
    /// change.
    fn tables_to_read(&self, batch: &Batch, snapshot: &Snapshot) -> BTreeSet<LabelId> {
        let schema = snapshot.schema();
        let manifest = snapshot.manifest();
        let mut tables = BTreeSet::new();
        for ((_, at), named) in self.all(batch).zip(&self.changes) {
            let is_whole = match at.change {
                Single::One(Operation::UpsertVertex { replace, .. }) => *replace,
                Single::One(Operation::DeleteVertex { .. }) => true,
                Single::Row(columns, _) if columns.ends().is_none() => columns.replaces(),
                Single::One(_) | Single::Row(..) => continue,
            };
            let name = &self.vertex_labels[self.ends[named.ends[0] as usize].label as usize];
            let Some(id) = schema.label_id(name).filter(|id| !tables.contains(id)) else { continue };
            let names = |property: &str| match at.change {
                Single::Row(columns, row) => columns.names(row, property),
                Single::One(one) => one.properties().is_some_and(|all| all.get(property).is_some()),
            };
            let properties = schema.label(id).into_iter().flat_map(|label| &label.properties);
            let is_partial = !is_whole && properties.into_iter().any(|property| !names(&property.name));
            if is_partial || manifest.indexes_of(id).next().is_some() {
                tables.insert(id);
            }
        }
        tables
    }

    /// The first change that names a vertex.
    pub(super) fn first_change(&self, number: u32) -> u32 {
        self.ends[number as usize].change
    }

    /// Which of the vertices exist, by number; and if the keys of the graph are unique, vertices of other labels that have the key of one
    /// that may be added, by the number of this. One wave.
    ///
    /// # Errors
    /// [`EngineError::Rejected`] if a key is not of its label's type; the store's.
    pub(super) async fn look_up(
        &self,
        batch: &Batch,
        snapshot: &Snapshot,
        branch: &mut Branch,
    ) -> Result<(Vec<Option<VertexId>>, Vec<(u32, VertexId)>), EngineError> {
        let schema = snapshot.schema();
        let labels = self.vertex_labels.iter().map(|name| {
            let id = schema.label_id(name)?;
            Some((id, schema.label(id)?.key_type))
        });
        let labels: Vec<_> = labels.collect();
        let mut numbers = Vec::with_capacity(self.ends.len());
        let mut keys = Vec::with_capacity(self.ends.len());
        // The same keys in other labels.
        let added = if snapshot.manifest().unique_keys { self.added(batch) } else { Vec::new() };
        let mut others = Vec::new();
        for (number, named) in self.ends.iter().enumerate() {
            let own = labels[named.label as usize];
            let is_added = added.get(number) == Some(&true);
            // A label that the graph does not have has no vertices to look up.
            if own.is_none() && !is_added {
                continue;
            }
            let end = self.end(batch, number as u32);
            let found = end.key.key_type();
            if is_added {
                let labels = (0u16..).map(LabelId).zip(&schema.vertex_labels);
                let labels =
                    labels.filter(|(id, label)| label.key_type == found && own.is_none_or(|(own, _)| own != *id));
                others.extend(labels.map(|(id, _)| (number, (id, end.key.clone()))));
            }
            let Some((id, key_type)) = own else { continue };
            if found != key_type {
                let why = format!("keys of {} are {key_type}, and {} is {found}", end.label, end.key);
                return self.change(batch, named.change).rejected(Rejection::Other, why);
            }
            numbers.push(number);
            keys.push((id, end.key));
        }
        let others: Vec<usize> = others
            .into_iter()
            .map(|(number, key)| {
                keys.push(key);
                number
            })
            .collect();
        let tables = self.tables_to_read(batch, snapshot);
        let mut found = snapshot.keys().look_up_before_rows(&keys, tables, branch).await?.into_iter();
        let mut known = vec![None; self.ends.len()];
        numbers.into_iter().zip(&mut found).for_each(|(number, found)| known[number] = found);
        let others = others.into_iter().zip(found).filter_map(|(number, other)| Some((number as u32, other?)));
        Ok((known, others.collect()))
    }
}
