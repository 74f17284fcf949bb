//! A graph, and what queries have changed of it and not committed yet.

use std::sync::Arc;

use hoplake_engine::{
    Snapshot,
    change::{Batch as ChangeBatch, Committed, Committer, LogicalTypes, Operation},
};
use hoplake_format::PreparedQueries;
use hoplake_storage::MemoryHold;

use crate::error::{Done, QueryError};

/// A graph that plans run on.
#[derive(Debug, Clone)]
pub struct Graph {
    /// The version that is read.
    pub snapshot: Arc<Snapshot>,
    /// What commits changes; without, steps that write are rejected.
    pub committer: Option<Arc<Committer>>,
}

/// What queries have changed together and not committed yet, and the graph as they see it.
#[derive(Debug, Clone)]
pub struct Transaction {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) changes: UncommittedChanges,
}

impl Transaction {
    /// A transaction that has changed nothing.
    pub fn new(graph: &Graph) -> Self {
        Self { snapshot: graph.snapshot.clone(), changes: UncommittedChanges::new(graph) }
    }

    /// Whether it has changed something.
    pub fn has_changes(&self) -> bool {
        self.changes.any()
    }

    /// How many changes a commit would have.
    pub fn changes(&self) -> usize {
        self.changes.count()
    }

    /// The prepared queries of the graph.
    pub fn queries(&self) -> &PreparedQueries {
        &self.snapshot.manifest().queries
    }

    /// Commits what was changed, as one version. Without changes it does nothing and makes no version.
    ///
    /// # Errors
    /// [`QueryError::Engine`]: a [conflict](hoplake_engine::EngineError::Conflict) if another writer changed the same elements since
    /// the transaction began, or the store's; nothing was changed then, but if it is
    /// [unknown](hoplake_engine::EngineError::Unknown).
    pub async fn commit(self) -> Result<Option<Committed>, QueryError> {
        self.changes.commit().await
    }
}

/// The changes of a transaction that are not committed yet.
#[derive(Debug, Clone)]
pub(crate) struct UncommittedChanges {
    committer: Option<Arc<Committer>>,
    /// The version that the changes were decided on.
    base: u64,
    /// Those of each step together: statements of a session copy a transaction, and share these.
    pub(crate) operations: Vec<Arc<Vec<Operation>>>,
    /// What the values of these are beyond their types.
    pub(super) logical_types: LogicalTypes,
    /// The memory of operations, and of the runs that have them, for as long as the transaction lives.
    pub(super) memory: Vec<Arc<MemoryHold>>,
}

impl UncommittedChanges {
    pub(crate) fn new(graph: &Graph) -> Self {
        let base = graph.snapshot.manifest().version;
        let operations = Vec::new();
        let memory = Vec::new();
        Self { committer: graph.committer.clone(), base, operations, logical_types: LogicalTypes::default(), memory }
    }

    pub(crate) fn any(&self) -> bool {
        self.operations.iter().any(|operations| !operations.is_empty())
    }

    pub(crate) fn are_allowed(&self) -> bool {
        self.committer.is_some()
    }

    pub(crate) fn count(&self) -> usize {
        self.operations.iter().flat_map(|operations| operations.iter()).map(Operation::changes).sum()
    }

    pub(crate) async fn commit(self) -> Done<Option<Committed>> {
        let Self { committer, base, operations, logical_types, memory } = self;
        let owned = |operations: Arc<Vec<Operation>>| Arc::try_unwrap(operations).unwrap_or_else(|it| it.to_vec());
        let operations: Vec<Operation> = operations.into_iter().flat_map(owned).collect();
        let Some(committer) = committer.filter(|_| !operations.is_empty()) else { return Ok(None) };
        let batch = ChangeBatch { base: Some(base), ..batch_of(operations, logical_types) };
        let committed = committer.commit(batch).await?;
        drop(memory);
        Ok(Some(committed))
    }
}

/// Where keys are unique, they are the ids of vertices. A query may not end that, not even together with another writer: all ids of the
/// graph would have another form.
pub(super) fn batch_of(operations: Vec<Operation>, logical_types: LogicalTypes) -> ChangeBatch {
    ChangeBatch { operations, logical_types, keep_unique_keys: true, ..ChangeBatch::default() }
}
