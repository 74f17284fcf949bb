//! Changing a graph: batches that are applied completely or not at all.

use std::{sync::Arc, time::Duration};

use arrow_array::RecordBatch;
use hoplake_engine::change::{Batch, Columns, Committed, EdgeKey, Name, Operation, Value, VertexRef};
use hoplake_format::{ChangeCounts, Key};

use crate::{Error, ErrorKind, Graph, tables};

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
    /// Shared with the committer only while it is being committed.
    batch: Arc<Batch>,
    /// The version that has it.
    committed: Option<u64>,
}

impl Graph {
    /// Begins a batch of changes that is based on the open version: what another writer changes of the same vertices
    /// and edges until it is committed is a [`Conflict`](crate::ErrorKind::Conflict).
    pub fn begin(&self) -> Commit {
        let batch = Arc::new(Batch { base: Some(self.version()), ..Batch::default() });
        Commit { graph: self.clone(), batch, committed: None }
    }

    /// Applies a batch, all of it or nothing, as the next version or as a part of it: batches that are applied at the
    /// same time through clones of one graph share a version. The graph itself stays at its version.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) that names the operation which is not allowed,
    /// [`Conflict`](crate::ErrorKind::Conflict) if the batch has a base and an item of it changed since,
    /// [`Unknown`](crate::ErrorKind::Unknown) if it is unknown whether it was published; the store's, and
    /// then it was not.
    pub async fn apply(&self, batch: impl Into<Arc<Batch>>) -> Result<Committed, Error> {
        Ok(self.committer().commit(batch).await?)
    }

    /// How long a commit may take from now on, through this graph and its clones; 2 minutes
    /// ([`COMMIT_TIMEOUT_MS`](crate::COMMIT_TIMEOUT_MS)) unless it was set. Beyond that it ends: as
    /// [`Unavailable`](crate::ErrorKind::Unavailable) if nothing was published, as
    /// [`Unknown`](crate::ErrorKind::Unknown) if it is unknown whether the version was.
    pub fn set_commit_timeout(&self, timeout: Duration) {
        self.committer().set_timeout_ms(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
    }

    /// The result that a batch would have on the newest version now. Writes nothing.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub async fn check(&self, batch: impl Into<Arc<Batch>>) -> Result<ChangeCounts, Error> {
        Ok(self.committer().check(batch.into(), &mut self.context().branch()).await?)
    }
}

impl Commit {
    /// Adds or changes the vertex: it gets these properties, and keeps others.
    pub fn upsert_vertex<N: Into<Name>, V: Into<Value>>(
        &mut self,
        label: &str,
        key: impl Into<Key>,
        properties: impl IntoIterator<Item = (N, V)>,
    ) -> &mut Self {
        let vertex = VertexRef::new(label, key);
        self.push(Operation::UpsertVertex { vertex, properties: properties.into_iter().collect(), replace: false })
    }

    /// Adds or replaces the vertex: it has these properties and no others.
    pub fn replace_vertex<N: Into<Name>, V: Into<Value>>(
        &mut self,
        label: &str,
        key: impl Into<Key>,
        properties: impl IntoIterator<Item = (N, V)>,
    ) -> &mut Self {
        let vertex = VertexRef::new(label, key);
        self.push(Operation::UpsertVertex { vertex, properties: properties.into_iter().collect(), replace: true })
    }

    /// Deletes the vertex and all its edges. Without the vertex, nothing happens.
    pub fn delete_vertex(&mut self, label: &str, key: impl Into<Key>) -> &mut Self {
        self.push(Operation::DeleteVertex { vertex: VertexRef::new(label, key) })
    }

    /// There is one edge of this label from the one vertex to the other, with these properties; others it keeps.
    pub fn upsert_edge<N: Into<Name>, V: Into<Value>>(
        &mut self,
        label: &str,
        source: (&str, impl Into<Key>),
        target: (&str, impl Into<Key>),
        properties: impl IntoIterator<Item = (N, V)>,
    ) -> &mut Self {
        let source = VertexRef::new(source.0, source.1);
        let target = VertexRef::new(target.0, target.1);
        let properties = properties.into_iter().collect();
        self.push(Operation::UpsertEdge { label: label.into(), source, target, key: None, properties, replace: false })
    }

    /// As [`Self::upsert_edge`], of one edge among several between the two vertices: the one whose property has this value, which it
    /// gets if there is none.
    ///
    /// ```
    /// # async fn example() -> Result<(), hoplake::Error> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let file = folder.path().join("pays.csv");
    /// # std::fs::write(&file, "1,2\n").unwrap();
    /// # hoplake::load("memory://edge-by-key", hoplake::LoadOptions::from_paths([&file])).await?;
    /// let mut graph = hoplake::Graph::open("memory://edge-by-key").await?;
    /// let mut commit = graph.begin();
    /// for payment in [17, 18] {
    ///     commit.upsert_edge_by(("id", payment), "pays", ("vertex", 1), ("vertex", 2), [("amount", 10)]);
    /// }
    /// commit.commit().await?;
    /// graph.refresh().await?;
    /// assert_eq!(graph.query().from("vertex:1")?.out("pays").walks(9).await?.len(), 2);
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
    /// ```
    pub fn upsert_edge_by<N: Into<Name>, V: Into<Value>>(
        &mut self,
        (property, value): (&str, impl Into<Value>),
        label: &str,
        source: (&str, impl Into<Key>),
        target: (&str, impl Into<Key>),
        properties: impl IntoIterator<Item = (N, V)>,
    ) -> &mut Self {
        let source = VertexRef::new(source.0, source.1);
        let target = VertexRef::new(target.0, target.1);
        let key = Some(EdgeKey { property: property.into(), value: value.into() });
        let properties = properties.into_iter().collect();
        self.push(Operation::UpsertEdge { label: label.into(), source, target, key, properties, replace: false })
    }

    /// Deletes all edges of this label from the one vertex to the other.
    pub fn delete_edge(
        &mut self,
        label: &str,
        source: (&str, impl Into<Key>),
        target: (&str, impl Into<Key>),
    ) -> &mut Self {
        let source = VertexRef::new(source.0, source.1);
        let target = VertexRef::new(target.0, target.1);
        self.push(Operation::DeleteEdge { label: label.into(), source, target, key: None })
    }

    /// Upserts of vertices of a label, a row each: the keys are in column `key`, as int64 or utf8, and every other
    /// column is a property of its name. A null is not named: the property keeps its value. Columns may have any type
    /// that a [load](crate::load) accepts.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) if a column lacks, is of a wrong type, or has a value that its type of
    /// property does not hold. Whether the rows fit the graph is found out by the commit.
    pub fn upsert_vertices(&mut self, label: &str, rows: &RecordBatch) -> Result<&mut Self, Error> {
        Ok(self.upsert_columns(tables::vertex_columns(label, rows)?))
    }

    /// Upserts of edges of a label from vertices of one label to vertices of another, a row each: the keys of their
    /// ends are in the columns `source` and `target`, and every other column is a property, as of
    /// [vertices](Self::upsert_vertices).
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::{Int64Array, RecordBatch};
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let file = folder.path().join("knows.csv");
    /// # std::fs::write(&file, "1,2\n2,3\n").unwrap();
    /// # hoplake::load("memory://columns", hoplake::LoadOptions::from_paths([&file])).await?;
    /// let graph = hoplake::Graph::open("memory://columns").await?;
    /// let ints = |values: [i64; 2]| Arc::new(Int64Array::from(values.to_vec())) as _;
    /// let rows = RecordBatch::try_from_iter([
    ///     ("source", ints([1, 3])),
    ///     ("target", ints([3, 1])),
    ///     ("since", ints([2025, 2026])),
    /// ])?;
    /// let mut commit = graph.begin();
    /// commit.upsert_edges("knows", ("vertex", "vertex"), &rows)?;
    /// assert_eq!(commit.commit().await?.counts.edges_written, 2);
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Self::upsert_vertices`].
    pub fn upsert_edges(
        &mut self,
        label: &str,
        (source, target): (&str, &str),
        rows: &RecordBatch,
    ) -> Result<&mut Self, Error> {
        Ok(self.upsert_columns(tables::edge_columns(label, (source, target), rows)?))
    }

    /// Upserts as columns, such as [replacing](Columns::replacing) ones.
    pub fn upsert_columns(&mut self, columns: Columns) -> &mut Self {
        self.push(Operation::UpsertColumns(Arc::new(columns)))
    }

    /// Adds any change, such as one of an edge that a key distinguishes from others between the same two vertices.
    pub fn push(&mut self, operation: Operation) -> &mut Self {
        self.batch().operations.push(operation);
        self
    }

    /// A message to keep with the version, of at most [`MESSAGE_BYTES_MAX`](crate::MESSAGE_BYTES_MAX).
    pub fn message(&mut self, message: impl Into<String>) -> &mut Self {
        self.batch().message = message.into();
        self
    }

    /// Up to where a source was read once this is applied; it becomes visible with the changes.
    pub fn source_position(&mut self, source: impl Into<String>, position: impl Into<String>) -> &mut Self {
        self.batch().source_positions.insert(source.into(), position.into());
        self
    }

    /// Applies the changes only if the source was read up to here in the version before, or not at all if it is `None`;
    /// otherwise they are a [`Conflict`](crate::ErrorKind::Conflict). Of two feeds that read the same, each batch of
    /// the source is applied by one of them, if both set the position from which they continue.
    ///
    /// ```
    /// # async fn example() -> Result<(), hoplake::Error> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let file = folder.path().join("knows.csv");
    /// # std::fs::write(&file, "1,2\n2,3\n").unwrap();
    /// # hoplake::load("memory://positions", hoplake::LoadOptions::from_paths([&file])).await?;
    /// let graph = hoplake::Graph::open("memory://positions").await?;
    /// for attempt in 0..2 {
    ///     let mut commit = graph.begin();
    ///     commit.upsert_vertex("Person", 7, [("name", "Ann")]).if_position("crm", None).source_position("crm", "41");
    ///     assert_eq!(commit.commit().await.is_ok(), attempt == 0);
    /// }
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
    /// ```
    pub fn if_position(&mut self, source: impl Into<String>, position: Option<&str>) -> &mut Self {
        self.batch().if_positions.insert(source.into(), position.map(str::to_owned));
        self
    }

    /// A name for the batch: if one of the last [`IDEMPOTENCY_KEYS_MAX`](crate::IDEMPOTENCY_KEYS_MAX) batches of the graph that have one
    /// has this one, it was applied before. Then it is not applied again, and [`Committed::repeated`] is set. So a batch whose outcome is
    /// not known can be sent again, by any process.
    pub fn idempotency_key(&mut self, key: impl Into<String>) -> &mut Self {
        self.batch().idempotency_key = Some(key.into());
        self
    }

    /// Makes ends of edges that are not there, without properties; otherwise they are an error. Their labels have to be
    /// in the graph, or of vertices that the batch upserts.
    pub fn create_missing(&mut self) -> &mut Self {
        self.batch().create_missing = true;
        self
    }

    /// A label, an edge type or a property that the graph does not have is an error; otherwise an upsert adds it.
    pub fn strict(&mut self) -> &mut Self {
        self.batch().strict = true;
        self
    }

    /// Applies all of it, or nothing. After an error the batch is as it was, and can be committed again.
    ///
    /// # Errors
    /// As [`Graph::apply`]; [`Invalid`](ErrorKind::Invalid) if it was committed already: what comes next is a batch of its own.
    pub async fn commit(&mut self) -> Result<Committed, Error> {
        if let Some(version) = self.committed {
            let message = format!("this batch was committed as version {version}; begin another one");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let committed = self.graph.committer().commit(self.batch.clone()).await?;
        self.committed = Some(committed.version);
        Ok(committed)
    }

    fn batch(&mut self) -> &mut Batch {
        // Copied only if a commit of it was given up while it was under way.
        Arc::make_mut(&mut self.batch)
    }
}
