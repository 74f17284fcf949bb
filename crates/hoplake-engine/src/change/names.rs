//! Numbers for what a batch names, so that a million edges compare and sort as numbers.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use hoplake_format::VertexId;
use hoplake_storage::Branch;

use super::{
    Batch, EdgeKey, End, Name, Operation,
    resolve::{number_of, refused},
};
use crate::{EngineError, Refusal, Snapshot};

/// The vertices and edge labels that a batch names.
#[derive(Debug)]
pub(super) struct Names {
    /// By number.
    ends: Vec<FirstNamed>,
    /// By number.
    vertex_labels: Vec<Name>,
    /// By number.
    pub(super) edge_labels: Vec<Name>,
    /// What each operation names.
    pub(super) operations: Vec<Named>,
}

/// Where a vertex is named first.
#[derive(Debug, Clone, Copy)]
struct FirstNamed {
    operation: u32,
    /// Which of its two ends.
    which: u32,
    /// The number of its label.
    label: u32,
}

/// What an operation names, by number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named {
    /// The source and the target of an edge; a vertex is both.
    pub(super) ends: [u32; 2],
    /// Of an edge.
    pub(super) edge_label: u32,
}

impl Operation {
    /// The vertices that it names: the source and the target of an edge; a vertex is both.
    fn ends(&self) -> [&End; 2] {
        match self {
            Self::UpsertVertex { vertex, .. } | Self::DeleteVertex { vertex } => [vertex, vertex],
            Self::UpsertEdge { source, target, .. } | Self::DeleteEdge { source, target, .. } => [source, target],
        }
    }

    fn edge_label(&self) -> Option<&Name> {
        match self {
            Self::UpsertVertex { .. } | Self::DeleteVertex { .. } => None,
            Self::UpsertEdge { label, .. } | Self::DeleteEdge { label, .. } => Some(label),
        }
    }

    fn edge_key(&self) -> Option<&EdgeKey> {
        match self {
            Self::UpsertVertex { .. } | Self::DeleteVertex { .. } => None,
            Self::UpsertEdge { key, .. } | Self::DeleteEdge { key, .. } => key.as_ref(),
        }
    }
}

impl Names {
    /// Numbers what a batch names; no vertex is changed twice.
    ///
    /// # Errors
    /// [`EngineError::Refused`] with the operation that changes a vertex again.
    pub(super) fn of<'a>(batch: &'a Batch) -> Result<Self, EngineError> {
        let count = batch.operations.len();
        let (ends, operations) = (Vec::new(), Vec::with_capacity(count));
        let mut names = Self { ends, vertex_labels: Vec::new(), edge_labels: Vec::new(), operations };
        let mut numbers: HashMap<_, u32, _> = HashMap::with_capacity_and_hasher(count, RandomState::default());
        let mut changed = Vec::new();
        for (at, operation) in batch.operations.iter().enumerate() {
            let mut number = |end: &'a End, which| {
                let label = number_of(&mut names.vertex_labels, &end.label);
                *numbers.entry((label, &end.key)).or_insert_with(|| {
                    names.ends.push(FirstNamed { operation: at as u32, which, label });
                    names.ends.len() as u32 - 1
                })
            };
            let ends = match operation.ends() {
                [vertex, same] if std::ptr::eq(vertex, same) => [number(vertex, 0); 2],
                [source, target] => [number(source, 0), number(target, 1)],
            };
            let label = operation.edge_label();
            if label.is_none() {
                let vertex = ends[0] as usize;
                changed.resize(names.ends.len().max(changed.len()), false);
                if std::mem::replace(&mut changed[vertex], true) {
                    return refused((at, operation), Refusal::Twice, "the batch changes it twice".into());
                }
            }
            let edge_label = label.map_or(0, |label| number_of(&mut names.edge_labels, label));
            names.operations.push(Named { ends, edge_label });
        }
        Ok(names)
    }

    /// A vertex by its number.
    pub(super) fn end<'a>(&self, batch: &'a Batch, number: u32) -> &'a End {
        let FirstNamed { operation, which, .. } = self.ends[number as usize];
        batch.operations[operation as usize].ends()[which as usize]
    }

    /// Refuses operations on one pair of vertices that are of the same edge. Keys of one property tell edges apart; without
    /// a key all edges between the two are meant.
    ///
    /// # Errors
    /// [`EngineError::Refused`] with the operation that changes an edge again.
    pub(super) fn check_apart(&self, batch: &Batch, numbers: impl Iterator<Item = u32>) -> Result<(), EngineError> {
        let mut before: Vec<Option<&EdgeKey>> = Vec::new();
        for number in numbers {
            let operation = &batch.operations[number as usize];
            let key = operation.edge_key();
            let apart = |a: &EdgeKey, b: &EdgeKey| a.property == b.property && a.value != b.value;
            if !before.iter().all(|other| key.zip(*other).is_some_and(|(a, b)| apart(a, b))) {
                return refused((number as usize, operation), Refusal::Twice, "the batch changes it twice".into());
            }
            before.push(key);
        }
        Ok(())
    }

    /// Which of the vertices exist, by number. One wave.
    ///
    /// # Errors
    /// [`EngineError::Refused`] if a key is not of its label's type; the store's.
    pub(super) async fn look_up(
        &self,
        batch: &Batch,
        snapshot: &Snapshot,
        branch: &mut Branch,
    ) -> Result<Vec<Option<VertexId>>, EngineError> {
        let schema = snapshot.schema();
        let labels = self.vertex_labels.iter().map(|name| {
            let id = schema.label_id(name)?;
            Some((id, schema.label(id)?.key_type))
        });
        let labels: Vec<_> = labels.collect();
        let (mut numbers, mut keys) = (Vec::with_capacity(self.ends.len()), Vec::with_capacity(self.ends.len()));
        for (number, named) in self.ends.iter().enumerate() {
            let Some((id, key_type)) = labels[named.label as usize] else { continue };
            let end = self.end(batch, number as u32);
            let found = end.key.key_type();
            if found != key_type {
                let operation = named.operation as usize;
                let why = format!("keys of {} are {key_type}, and {} is {found}", end.label, end.key);
                return refused((operation, &batch.operations[operation]), Refusal::Other, why);
            }
            numbers.push(number);
            keys.push((id, end.key.clone()));
        }
        let found = snapshot.look_up(&keys, branch).await?;
        let mut known = vec![None; self.ends.len()];
        numbers.into_iter().zip(found).for_each(|(number, found)| known[number] = found);
        Ok(known)
    }
}
