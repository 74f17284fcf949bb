//! Changing a graph: batches that are applied whole or not at all.

use std::time::Duration;

use hoplake_engine::change::{Batch, Committed, End, Name, Operation, Value};
use hoplake_format::{ChangeCounts, Key};
use hoplake_storage::QueryContext;

use crate::{Error, Graph};

/// A batch of changes to a graph. Nothing happens before [`Commit::commit`].
///
/// ```
/// # async fn example() -> Result<(), hoplake::Error> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let file = folder.path().join("knows.csv");
/// # std::fs::write(&file, "1,2\n2,3\n").unwrap();
/// # hoplake::load("memory://commit", hoplake::LoadOptions::from_paths([&file])).await?;
/// let mut graph = hoplake::Graph::open("memory://commit").await?;
/// let mut commit = graph.begin();
/// commit.upsert_vertex("vertex", 4, [("name", "Ann")]).upsert_edge("edge", ("vertex", 3), ("vertex", 4), [("since", 2026)]);
/// let committed = commit.message("Ann joins").commit().await?;
/// assert_eq!(committed.counts.vertices_added, 1);
///
/// graph.refresh().await?; // a reader keeps its version until it asks
/// assert_eq!(graph.version(), committed.version);
/// # Ok(())
/// # }
/// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Debug)]
pub struct Commit {
    graph: Graph,
    batch: Batch,
}

impl Graph {
    /// Begins a batch of changes that is based on the open version: what another writer changes of the same vertices
    /// and edges until it is committed is a [`Conflict`](crate::ErrorKind::Conflict).
    pub fn begin(&self) -> Commit {
        Commit { graph: self.clone(), batch: Batch { base: Some(self.version()), ..Batch::default() } }
    }

    /// Applies a batch, all of it or nothing, as the next version or as a part of it: batches that are applied at the same
    /// time through clones of one graph share a version. The graph itself stays at its version.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) that names the operation which is not allowed,
    /// [`Conflict`](crate::ErrorKind::Conflict) if the batch has a base and an item of it changed since,
    /// [`Unknown`](crate::ErrorKind::Unknown) if the store does not say whether it was published; the store's, and
    /// then it was not.
    pub async fn apply(&self, batch: Batch) -> Result<Committed, Error> {
        Ok(self.committer().commit(batch).await?)
    }

    /// How long a commit may take from now on, through this graph and its clones; 2 minutes ([`COMMIT_TIMEOUT_MS`](crate::COMMIT_TIMEOUT_MS)) unless
    /// it was set. Beyond that it ends: as [`Unavailable`](crate::ErrorKind::Unavailable) if nothing was published, as
    /// [`Unknown`](crate::ErrorKind::Unknown) if the store did not say whether the version was.
    pub fn set_commit_timeout(&self, timeout: Duration) {
        self.committer().set_timeout_ms(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
    }

    /// What a batch would come to if it were applied to the newest version now. Nothing is written.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub async fn check(&self, batch: &Batch) -> Result<ChangeCounts, Error> {
        Ok(self.committer().check(batch.clone(), &mut QueryContext::new().branch()).await?)
    }
}

impl Commit {
    /// The vertex is there from then on, with these properties; others it keeps.
    pub fn upsert_vertex<N: Into<Name>, V: Into<Value>>(
        &mut self,
        label: &str,
        key: impl Into<Key>,
        properties: impl IntoIterator<Item = (N, V)>,
    ) -> &mut Self {
        let vertex = End::new(label, key);
        self.push(Operation::UpsertVertex { vertex, properties: properties.into_iter().collect(), whole: false })
    }

    /// The vertex is there from then on, with these properties and no others.
    pub fn replace_vertex<N: Into<Name>, V: Into<Value>>(
        &mut self,
        label: &str,
        key: impl Into<Key>,
        properties: impl IntoIterator<Item = (N, V)>,
    ) -> &mut Self {
        let vertex = End::new(label, key);
        self.push(Operation::UpsertVertex { vertex, properties: properties.into_iter().collect(), whole: true })
    }

    /// The vertex is gone from then on, and all its edges. If it is not there, nothing happens.
    pub fn delete_vertex(&mut self, label: &str, key: impl Into<Key>) -> &mut Self {
        self.push(Operation::DeleteVertex { vertex: End::new(label, key) })
    }

    /// There is one edge of this label from the one vertex to the other, with these properties; others it keeps.
    pub fn upsert_edge<N: Into<Name>, V: Into<Value>>(
        &mut self,
        label: &str,
        source: (&str, impl Into<Key>),
        target: (&str, impl Into<Key>),
        properties: impl IntoIterator<Item = (N, V)>,
    ) -> &mut Self {
        let (source, target) = (End::new(source.0, source.1), End::new(target.0, target.1));
        let properties = properties.into_iter().collect();
        self.push(Operation::UpsertEdge { label: label.into(), source, target, key: None, properties, whole: false })
    }

    /// There is no edge of this label from the one vertex to the other from then on.
    pub fn delete_edge(
        &mut self,
        label: &str,
        source: (&str, impl Into<Key>),
        target: (&str, impl Into<Key>),
    ) -> &mut Self {
        let (source, target) = (End::new(source.0, source.1), End::new(target.0, target.1));
        self.push(Operation::DeleteEdge { label: label.into(), source, target, key: None })
    }

    /// Adds any change, such as one of an edge that a key tells from others between the same two vertices.
    pub fn push(&mut self, operation: Operation) -> &mut Self {
        self.batch.operations.push(operation);
        self
    }

    /// A message to keep with the version.
    pub fn message(&mut self, message: impl Into<String>) -> &mut Self {
        self.batch.message = message.into();
        self
    }

    /// Up to where a source was read once this is applied; it becomes visible with the changes.
    pub fn source_position(&mut self, source: impl Into<String>, position: impl Into<String>) -> &mut Self {
        self.batch.source_positions.insert(source.into(), position.into());
        self
    }

    /// Makes ends of edges that are not there, without properties; otherwise they are an error. Their labels have to be in the
    /// graph, or of vertices that the batch upserts.
    pub fn create_missing(&mut self) -> &mut Self {
        self.batch.create_missing = true;
        self
    }

    /// A label, an edge type or a property that the graph does not have is an error; otherwise an upsert adds it.
    pub fn strict(&mut self) -> &mut Self {
        self.batch.strict = true;
        self
    }

    /// Applies all of it, or nothing.
    ///
    /// # Errors
    /// As [`Graph::apply`].
    pub async fn commit(&mut self) -> Result<Committed, Error> {
        self.graph.apply(std::mem::take(&mut self.batch)).await
    }
}
