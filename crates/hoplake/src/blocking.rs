//! The facade without async: the same steps, each waiting for its answer.
//!
//! ```
//! use hoplake::{LoadOptions, blocking::{Graph, load}};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let csv = folder.path().join("knows.csv");
//! # std::fs::write(&csv, "# who knows whom\n1,2\n2,3\n").unwrap();
//! load("memory://docs/blocking", LoadOptions::from_paths([csv]))?;
//! let graph = Graph::open("memory://docs/blocking")?;
//! let mut query = graph.query();
//! let start = query.vertex("vertex", 1)?;
//! assert!(start.is_some());
//! # Ok::<(), hoplake::Error>(())
//! ```

use std::sync::Arc;

use hoplake_storage::Store;
use tokio::runtime::{Builder, Runtime};

use crate::{
    Cost, Degree, EdgeRows, Error, ErrorKind, Frontier, Hop, Key, LoadOptions, LoadReport, Neighbour, OpenSettings,
    PathQuery, Paths, Reached, Rows, StartKey, Traversal, TraversalAnswer, TraversalRequest, VertexId,
};

fn runtime() -> Result<Runtime, Error> {
    let failed = |error| Error::new(ErrorKind::Internal, format!("could not start the threads of a runtime: {error}"));
    Builder::new_multi_thread().enable_all().build().map_err(failed)
}

/// Loads a graph; see [`load`](crate::load).
///
/// # Errors
/// As [`load`](crate::load).
pub fn load(url: &str, options: LoadOptions) -> Result<LoadReport, Error> {
    runtime()?.block_on(crate::load(url, options))
}

/// An open graph; see [`Graph`](crate::Graph).
#[derive(Debug, Clone)]
pub struct Graph {
    graph: crate::Graph,
    runtime: Arc<Runtime>,
}

impl Graph {
    /// Opens the newest version of a graph; see [`Graph::open`](crate::Graph::open).
    ///
    /// # Errors
    /// As [`Graph::open`](crate::Graph::open).
    pub fn open(url: &str) -> Result<Self, Error> {
        Self::open_with(Store::open(url)?, &OpenSettings::default())
    }

    /// Opens a graph at a store at hand; see [`Graph::open_with`](crate::Graph::open_with).
    ///
    /// # Errors
    /// As [`Graph::open`](crate::Graph::open).
    pub fn open_with(store: Store, settings: &OpenSettings) -> Result<Self, Error> {
        let runtime = runtime()?;
        let graph = runtime.block_on(crate::Graph::open_with(store, settings))?;
        Ok(Self { graph, runtime: Arc::new(runtime) })
    }

    /// The graph, for whatever needs no waiting.
    pub fn as_async(&self) -> &crate::Graph {
        &self.graph
    }

    /// Begins a query.
    pub fn query(&self) -> Query {
        Query { query: self.graph.query(), runtime: self.runtime.clone() }
    }
}

/// A query; see [`Query`](crate::Query). Each method waits for what the method of the same name there
/// promises, and fails as that does.
#[derive(Debug)]
pub struct Query {
    query: crate::Query,
    runtime: Arc<Runtime>,
}

impl Query {
    /// What the query took so far.
    pub fn cost(&self) -> Cost {
        self.query.cost()
    }

    /// The vertex with this label and key, if there is one.
    ///
    /// # Errors
    /// As [`Query::vertex`](crate::Query::vertex).
    pub fn vertex(&mut self, label: &str, key: impl Into<Key>) -> Result<Option<VertexId>, Error> {
        self.runtime.block_on(self.query.vertex(label, key))
    }

    /// The vertices with these labels and keys, in their order.
    ///
    /// # Errors
    /// As [`Query::vertices`](crate::Query::vertices).
    pub fn vertices(&mut self, keys: &[(&str, Key)]) -> Result<Vec<Option<VertexId>>, Error> {
        self.runtime.block_on(self.query.vertices(keys))
    }

    /// The vertices that a user names.
    ///
    /// # Errors
    /// As [`Query::named`](crate::Query::named).
    pub fn named(&mut self, starts: &[StartKey]) -> Result<Vec<VertexId>, Error> {
        self.runtime.block_on(self.query.named(starts))
    }

    /// The edges of a hop from these vertices.
    ///
    /// # Errors
    /// As [`Query::neighbors`](crate::Query::neighbors).
    pub fn neighbors(&mut self, vertices: &[VertexId], hop: &Hop) -> Result<Vec<Neighbour>, Error> {
        self.runtime.block_on(self.query.neighbors(vertices, hop))
    }

    /// How many edges of a hop each of these vertices has.
    ///
    /// # Errors
    /// As [`Query::degrees`](crate::Query::degrees).
    pub fn degrees(&mut self, vertices: &[VertexId], hop: &Hop) -> Result<Vec<Degree>, Error> {
        self.runtime.block_on(self.query.degrees(vertices, hop))
    }

    /// The keys of a set, in its order.
    ///
    /// # Errors
    /// As [`Query::keys`](crate::Query::keys).
    pub fn keys(&mut self, vertices: &Frontier) -> Result<Vec<Key>, Error> {
        self.runtime.block_on(self.query.keys(vertices))
    }

    /// Keys and properties of a set, a batch for each label.
    ///
    /// # Errors
    /// As [`Query::properties`](crate::Query::properties).
    pub fn properties(&mut self, vertices: &Frontier, names: &[String]) -> Result<Vec<Rows>, Error> {
        self.runtime.block_on(self.query.properties(vertices, names))
    }

    /// Properties of edges.
    ///
    /// # Errors
    /// As [`Query::edge_properties`](crate::Query::edge_properties).
    pub fn edge_properties(&mut self, edges: &[Neighbour], names: &[String]) -> Result<Vec<EdgeRows>, Error> {
        self.runtime.block_on(self.query.edge_properties(edges, names))
    }

    /// Runs a traversal.
    ///
    /// # Errors
    /// As [`Query::traverse`](crate::Query::traverse).
    pub fn traverse(&mut self, traversal: Traversal) -> Result<Reached, Error> {
        self.runtime.block_on(self.query.traverse(traversal))
    }

    /// The walks of a traversal.
    ///
    /// # Errors
    /// As [`Query::paths`](crate::Query::paths).
    pub fn paths(&mut self, traversal: Traversal) -> Result<(Paths, Reached), Error> {
        self.runtime.block_on(self.query.paths(traversal))
    }

    /// Runs a traversal from keys to properties.
    ///
    /// # Errors
    /// As [`Query::run`](crate::Query::run).
    pub fn run(&mut self, request: &TraversalRequest) -> Result<TraversalAnswer, Error> {
        self.runtime.block_on(self.query.run(request))
    }

    /// A shortest path by number of edges.
    ///
    /// # Errors
    /// As [`Query::shortest_path`](crate::Query::shortest_path).
    pub fn shortest_path(&mut self, query: PathQuery) -> Result<Option<Vec<VertexId>>, Error> {
        self.runtime.block_on(self.query.shortest_path(query))
    }

    /// The vertices within some hops of others.
    ///
    /// # Errors
    /// As [`Query::neighborhood`](crate::Query::neighborhood).
    pub fn neighborhood(&mut self, starts: &[VertexId], hop: &Hop, depth: usize) -> Result<Reached, Error> {
        self.runtime.block_on(self.query.neighborhood(starts, hop, depth))
    }
}
