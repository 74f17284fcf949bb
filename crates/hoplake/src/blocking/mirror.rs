//! Graphs, queries and commits without async: their methods, by signature.
//!
//! A method is written as it stands in the async facade, without its body and documentation. What the macro makes of it
//! calls the method of the same name there, and waits for the answer if that is `async`. `as` names what an answer is
//! wrapped in.

use std::{convert::identity, sync::Arc, time::Duration};

use super::{Diff, Log, wait};
use crate::{
    Batch, ChangeCounts, Committed, Compacted, CompactionSettings, Cost, Degree, DescribedWalks, EdgeId, EdgeRows,
    EdgeTypeId, Edges, Error, FoundPath, Frontier, GraphInfo, Held, Hop, Key, Limits, Manifest, Name, Neighbour,
    OpenSettings, Operation, PathQuery, Paths, PriceList, Reached, Reader, Rows, RunsOf, Schema, StartKey, Store,
    Traversal, TraversalAnswer, TraversalRequest, VacuumSettings, Vacuumed, Value, Verification, Verified, VertexId,
    Walk, WalkCount, WeightedPath, WeightedPathQuery,
    compute::{Algorithm, ComputeOptions, ComputeProgress, Computed},
};

/// The methods of a type with these signatures, one after the other.
macro_rules! mirror {
    // One signature at a time, and the macro again for the rest: a repetition cannot choose between `async fn` and `fn`.
    ($of:ident: async fn $name:ident $arguments:tt -> $answer:ty $(as $wrap:path)?; $($rest:tt)*) => {
        method!($of $name $arguments -> $answer, wait $(, $wrap)?);
        mirror!($of: $($rest)*);
    };
    ($of:ident: fn $name:ident $arguments:tt -> $answer:ty; $($rest:tt)*) => {
        method!($of $name $arguments -> $answer, identity);
        mirror!($of: $($rest)*);
    };
    ($of:ident:) => {};
}

/// One method, by what it takes itself as.
macro_rules! method {
    // An arm for each receiver: a fragment cannot match `&mut self`, `&self` and none alike.
    ($of:ident $name:ident (&mut $self:ident $(, $argument:ident: $type:ty)*) -> $answer:ty, $ask:ident) => {
        #[doc = mirrored!($of, $name)]
        pub fn $name(&mut $self $(, $argument: $type)*) -> $answer {
            $ask($self.0.$name($($argument),*))
        }
    };
    ($of:ident $name:ident (&$self:ident $(, $argument:ident: $type:ty)*) -> $answer:ty, $ask:ident) => {
        #[doc = mirrored!($of, $name)]
        pub fn $name(&$self $(, $argument: $type)*) -> $answer {
            $ask($self.0.$name($($argument),*))
        }
    };
    ($of:ident $name:ident ($($argument:ident: $type:ty),*) -> $answer:ty, $ask:ident $(, $wrap:path)?) => {
        #[doc = mirrored!($of, $name)]
        pub fn $name($($argument: $type),*) -> $answer {
            $ask(crate::$of::$name($($argument),*))$(.map($wrap))?
        }
    };
}

/// The methods with these signatures that answer the batch itself, so that calls can follow each other.
macro_rules! chained {
    ($(fn $name:ident $(<$($generic:ident: $bound:path),+>)? (&mut $self:ident $(, $argument:ident: $type:ty)*);)*) => {
        $(
            #[doc = mirrored!(Commit, $name)]
            pub fn $name $(<$($generic: $bound),+>)? (&mut $self $(, $argument: $type)*) -> &mut Self {
                $self.0.$name($($argument),*);
                $self
            }
        )*
    };
}

macro_rules! mirrored {
    ($of:ident, $name:ident) => {
        concat!(
            "As [`",
            stringify!($of),
            "::",
            stringify!($name),
            "`](crate::",
            stringify!($of),
            "::",
            stringify!($name),
            ")."
        )
    };
}

/// An open graph; see [`Graph`](crate::Graph). Each method waits for what the method of the same name there promises,
/// and fails as that does.
#[derive(Debug, Clone)]
pub struct Graph(crate::Graph);

impl From<crate::Graph> for Graph {
    fn from(graph: crate::Graph) -> Self {
        Self(graph)
    }
}

#[rustfmt::skip]
impl Graph {
    mirror! { Graph:
        async fn open(url: &str) -> Result<Self, Error> as Self;
        async fn open_with(store: Store, settings: &OpenSettings) -> Result<Self, Error> as Self;
        async fn open_through(reader: Reader, settings: &OpenSettings) -> Result<Self, Error> as Self;
        async fn refresh(&mut self) -> Result<bool, Error>;
        async fn is_there(&self) -> Result<bool, Error>;
        fn is_edge_count_exact(&self, edge_type: EdgeTypeId) -> bool;
        fn source_position(&self, source: &str) -> Option<&str>;
        fn version(&self) -> u64;
        fn schema(&self) -> &Schema;
        fn manifest(&self) -> &Manifest;
        fn open_cost(&self) -> Cost;
        fn store(&self) -> &Store;
        fn prices(&self) -> &PriceList;
        async fn info(&self) -> Result<GraphInfo, Error>;
        async fn verify(&self, progress: impl Fn(u64)) -> Result<Verified, Error>;
        async fn verify_all(store: &Store, progress: impl Fn(u64)) -> Result<Verification, Error>;
        fn set_commit_timeout(&self, timeout: Duration) -> ();
        async fn apply(&self, batch: Batch) -> Result<Committed, Error>;
        async fn check(&self, batch: Batch) -> Result<ChangeCounts, Error>;
        async fn versions(store: &Store) -> Result<Vec<u64>, Error>;
        async fn log(store: &Store) -> Result<Log, Error> as Log::new;
        async fn version_as_of(store: &Store, unix_ms: u64) -> Result<u64, Error>;
        async fn tag(store: &Store, name: &str, version: Option<u64>) -> Result<Option<u64>, Error>;
        async fn newest(store: &Store) -> Result<Manifest, Error>;
        async fn tagged(store: &Store, name: &str) -> Result<u64, Error>;
        async fn restore(store: &Store, version: u64, message: &str) -> Result<u64, Error>;
        async fn clone_to(store: &Store, version: Option<u64>, target: &Store) -> Result<String, Error>;
        async fn compact(store: &Store, settings: &CompactionSettings) -> Result<Compacted, Error>;
        async fn compact_until(store: &Store, settings: &CompactionSettings, stop: impl Future<Output = ()>)
            -> Result<Compacted, Error>;
        async fn compaction_is_due(&self, settings: &CompactionSettings) -> Result<bool, Error>;
        async fn runs(&self, settings: &CompactionSettings) -> Result<Vec<RunsOf>, Error>;
        async fn vacuum(store: &Store, settings: &VacuumSettings) -> Result<Vacuumed, Error>;
    }
}

impl Graph {
    /// The graph, for async code.
    pub fn as_async(&self) -> &crate::Graph {
        &self.0
    }

    /// Begins a query.
    pub fn query(&self) -> Query {
        Query(self.0.query())
    }

    /// Begins a batch of changes that is based on the open version.
    pub fn begin(&self) -> Commit {
        Commit(self.0.begin())
    }

    /// The differences in `other`, another version of the same graph, of these labels or of all.
    ///
    /// # Errors
    /// As [`Graph::diff`](crate::Graph::diff).
    pub fn diff(&self, other: &Self, labels: &[String]) -> Result<Diff, Error> {
        self.0.diff(&other.0, labels).map(Diff::new)
    }
}

/// A query; see [`Query`](crate::Query). Each method waits for what the method of the same name there promises, and
/// fails as that does.
#[derive(Debug)]
pub struct Query(crate::Query);

#[rustfmt::skip]
impl Query {
    mirror! { Query:
        fn cost(&self) -> Cost;
        fn cost_usd(&self) -> f64;
        fn label_of(&self, vertex: VertexId) -> String;
        fn limit(&mut self, limits: &Limits) -> ();
        async fn vertex(&mut self, label: &str, key: impl Into<Key>) -> Result<Option<VertexId>, Error>;
        async fn vertices(&mut self, keys: &[(&str, Key)]) -> Result<Vec<Option<VertexId>>, Error>;
        async fn named(&mut self, starts: &[StartKey]) -> Result<Vec<VertexId>, Error>;
        async fn start_vertices(&mut self, starts: &[StartKey]) -> Result<Held<Vec<VertexId>>, Error>;
        async fn neighbors(&mut self, vertices: &[VertexId], hop: &Hop) -> Result<Held<Edges>, Error>;
        async fn first_neighbors(
            &mut self,
            vertices: &[VertexId],
            hop: &Hop,
            limit: usize
        ) -> Result<Held<Edges>, Error>;
        async fn edges(&mut self, ids: &[EdgeId]) -> Result<Vec<Option<Neighbour>>, Error>;
        async fn degrees(&mut self, vertices: &[VertexId], hop: &Hop) -> Result<Held<Vec<Degree>>, Error>;
        async fn keys(&mut self, vertices: &Frontier) -> Result<Held<Vec<Key>>, Error>;
        async fn keys_of(&mut self, vertices: &[VertexId]) -> Result<Held<Vec<Key>>, Error>;
        async fn properties(&mut self, vertices: &Frontier, names: &[String]) -> Result<Held<Vec<Rows>>, Error>;
        async fn edge_properties(&mut self, edges: &Edges, names: &[String]) -> Result<Held<Vec<EdgeRows>>, Error>;
        async fn traverse(&mut self, traversal: Traversal) -> Result<Held<Reached>, Error>;
        async fn paths(&mut self, traversal: Traversal, wanted: Option<usize>) -> Result<Paths, Error>;
        async fn next_walks(&mut self, paths: &mut Paths, most: usize) -> Result<Held<Vec<Walk>>, Error>;
        async fn count_walks(&mut self, traversal: Traversal) -> Result<WalkCount, Error>;
        async fn run(&mut self, request: &TraversalRequest) -> Result<TraversalAnswer, Error>;
        async fn shortest_path(&mut self, query: PathQuery) -> Result<FoundPath, Error>;
        async fn weighted_path(&mut self, query: WeightedPathQuery) -> Result<Option<WeightedPath>, Error>;
        async fn neighborhood(&mut self, starts: &[VertexId], hop: &Hop, depth: usize) -> Result<Held<Reached>, Error>;
        async fn compute(&mut self, algorithm: &Algorithm, options: &ComputeOptions, observe: impl FnMut(&ComputeProgress) + Send) -> Result<Computed, Error>;
        async fn top(&mut self, computed: &Arc<Computed>, most: usize) -> Result<Vec<VertexId>, Error>;
        async fn describe_walks(&mut self, walks: &[Walk], names: &[String]) -> Result<Held<DescribedWalks>, Error>;
    }
}

/// A batch of changes to a graph; see [`Commit`](crate::Commit). Nothing happens before [`Commit::commit`].
#[derive(Debug)]
pub struct Commit(crate::Commit);

#[rustfmt::skip]
impl Commit {
    chained! {
        fn upsert_vertex<N: Into<Name>, V: Into<Value>>(
            &mut self, label: &str, key: impl Into<Key>, properties: impl IntoIterator<Item = (N, V)>);
        fn replace_vertex<N: Into<Name>, V: Into<Value>>(
            &mut self, label: &str, key: impl Into<Key>, properties: impl IntoIterator<Item = (N, V)>);
        fn delete_vertex(&mut self, label: &str, key: impl Into<Key>);
        fn upsert_edge<N: Into<Name>, V: Into<Value>>(
            &mut self, label: &str, source: (&str, impl Into<Key>), target: (&str, impl Into<Key>),
            properties: impl IntoIterator<Item = (N, V)>);
        fn delete_edge(&mut self, label: &str, source: (&str, impl Into<Key>), target: (&str, impl Into<Key>));
        fn push(&mut self, operation: Operation);
        fn message(&mut self, message: impl Into<String>);
        fn source_position(&mut self, source: impl Into<String>, position: impl Into<String>);
        fn create_missing(&mut self);
        fn strict(&mut self);
    }
    mirror! { Commit:
        async fn commit(&mut self) -> Result<Committed, Error>;
    }
}
