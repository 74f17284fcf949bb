//! Numbers for what a batch names, so that a million edges compare and sort as numbers.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use hoplake_format::{LabelId, VertexId};
use hoplake_storage::{QueryContext, Wave};

use super::{
    Batch, EdgeKey, End, Operation,
    resolve::{number_of, refused},
};
use crate::{EngineError, Snapshot};

/// The vertices and edge labels that a batch names.
#[derive(Debug)]
pub(super) struct Names {
    /// Where each vertex is named first: an operation, and which of its two ends.
    ends: Vec<(u32, usize)>,
    /// By number.
    pub(super) edge_labels: Vec<String>,
    /// What each operation names.
    pub(super) operations: Vec<Named>,
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

    fn edge_label(&self) -> Option<&str> {
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
    pub(super) fn of(batch: &Batch) -> Result<Self, EngineError> {
        let mut names = Self { ends: Vec::new(), edge_labels: Vec::new(), operations: Vec::new() };
        names.operations.reserve(batch.operations.len());
        let mut numbers: HashMap<&End, u32, RandomState> = HashMap::default();
        let mut changed = Vec::new();
        for (at, operation) in batch.operations.iter().enumerate() {
            let [source, target] = operation.ends();
            let mut number = |end, which| {
                *numbers.entry(end).or_insert_with(|| {
                    names.ends.push((at as u32, which));
                    names.ends.len() as u32 - 1
                })
            };
            let ends = [number(source, 0), number(target, 1)];
            let label = operation.edge_label();
            if label.is_none() {
                let vertex = ends[0] as usize;
                changed.resize(names.ends.len().max(changed.len()), false);
                if std::mem::replace(&mut changed[vertex], true) {
                    return refused(operation, "the batch changes it twice".into());
                }
            }
            let edge_label = label.map_or(0, |label| number_of(&mut names.edge_labels, label));
            names.operations.push(Named { ends, edge_label });
        }
        Ok(names)
    }

    /// A vertex by its number.
    pub(super) fn end<'a>(&self, batch: &'a Batch, number: u32) -> &'a End {
        let (operation, which) = self.ends[number as usize];
        batch.operations[operation as usize].ends()[which]
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
                return refused(operation, "the batch changes it twice".into());
            }
            before.push(key);
        }
        Ok(())
    }

    /// Which of the vertices exist, by number. One wave.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] if a key is not of its label's type; the store's.
    pub(super) async fn look_up(
        &self,
        batch: &Batch,
        snapshot: &Snapshot,
        context: &QueryContext,
    ) -> Result<(Vec<Option<VertexId>>, Wave), EngineError> {
        let (mut numbers, mut keys) = (Vec::with_capacity(self.ends.len()), Vec::with_capacity(self.ends.len()));
        for number in 0..self.ends.len() {
            let end = self.end(batch, number as u32);
            let Some(id) = snapshot.schema().label_id(&end.label) else { continue };
            check_key_type(end, id, snapshot)?;
            numbers.push(number);
            keys.push((id, end.key.clone()));
        }
        let (found, wave) = snapshot.look_up(&keys, Wave(0), context).await?;
        let mut known = vec![None; self.ends.len()];
        numbers.into_iter().zip(found).for_each(|(number, found)| known[number] = found);
        Ok((known, wave))
    }
}

fn check_key_type(end: &End, label: LabelId, snapshot: &Snapshot) -> Result<(), EngineError> {
    match snapshot.schema().label(label).filter(|label| label.key_type != end.key.key_type()) {
        None => Ok(()),
        Some(label) => {
            let (expected, found) = (label.key_type, end.key.key_type());
            Err(EngineError::Invalid(format!("keys of {} are {expected}, but {end} is {found}", end.label)))
        }
    }
}
