//! Queries that wait for their answers.

use super::wait;
use crate::{
    Cost, Degree, EdgeId, EdgeRows, Error, Frontier, Held, Hop, Key, Limits, Neighbour, PathQuery, Paths, Reached,
    Rows, StartKey, Traversal, TraversalAnswer, TraversalRequest, VertexId, WalkCount,
};

/// A query; see [`Query`](crate::Query). Each method waits for what the method of the same name there
/// promises, and fails as that does.
#[derive(Debug)]
pub struct Query(pub(super) crate::Query);

impl Query {
    /// What the query took so far.
    pub fn cost(&self) -> Cost {
        self.0.cost()
    }

    /// The same in US dollars, for requests and bytes.
    pub fn cost_usd(&self) -> f64 {
        self.0.cost_usd()
    }

    /// The name of a vertex's label.
    pub fn label_of(&self, vertex: VertexId) -> String {
        self.0.label_of(vertex)
    }

    /// Ends all that comes at these limits; its time begins now.
    pub fn limit(&mut self, limits: &Limits) {
        self.0.limit(limits);
    }

    /// The vertex with this label and key, if there is one.
    ///
    /// # Errors
    /// As [`Query::vertex`](crate::Query::vertex).
    pub fn vertex(&mut self, label: &str, key: impl Into<Key>) -> Result<Option<VertexId>, Error> {
        wait(self.0.vertex(label, key))
    }

    /// The vertices with these labels and keys, in their order.
    ///
    /// # Errors
    /// As [`Query::vertices`](crate::Query::vertices).
    pub fn vertices(&mut self, keys: &[(&str, Key)]) -> Result<Vec<Option<VertexId>>, Error> {
        wait(self.0.vertices(keys))
    }

    /// The vertices that a user names.
    ///
    /// # Errors
    /// As [`Query::named`](crate::Query::named).
    pub fn named(&mut self, starts: &[StartKey]) -> Result<Vec<VertexId>, Error> {
        wait(self.0.named(starts))
    }

    /// The edges of a hop from these vertices.
    ///
    /// # Errors
    /// As [`Query::neighbors`](crate::Query::neighbors).
    pub fn neighbors(&mut self, vertices: &[VertexId], hop: &Hop) -> Result<Held<Vec<Neighbour>>, Error> {
        wait(self.0.neighbors(vertices, hop))
    }

    /// The edges with these ids.
    ///
    /// # Errors
    /// As [`Query::edges`](crate::Query::edges).
    pub fn edges(&mut self, ids: &[EdgeId]) -> Result<Vec<Option<Neighbour>>, Error> {
        wait(self.0.edges(ids))
    }

    /// How many edges of a hop each of these vertices has.
    ///
    /// # Errors
    /// As [`Query::degrees`](crate::Query::degrees).
    pub fn degrees(&mut self, vertices: &[VertexId], hop: &Hop) -> Result<Held<Vec<Degree>>, Error> {
        wait(self.0.degrees(vertices, hop))
    }

    /// The keys of a set, in its order.
    ///
    /// # Errors
    /// As [`Query::keys`](crate::Query::keys).
    pub fn keys(&mut self, vertices: &Frontier) -> Result<Held<Vec<Key>>, Error> {
        wait(self.0.keys(vertices))
    }

    /// The keys of vertices, in their order.
    ///
    /// # Errors
    /// As [`Query::keys_of`](crate::Query::keys_of).
    pub fn keys_of(&mut self, vertices: &[VertexId]) -> Result<Held<Vec<Key>>, Error> {
        wait(self.0.keys_of(vertices))
    }

    /// Keys and properties of a set, a batch for each label.
    ///
    /// # Errors
    /// As [`Query::properties`](crate::Query::properties).
    pub fn properties(&mut self, vertices: &Frontier, names: &[String]) -> Result<Held<Vec<Rows>>, Error> {
        wait(self.0.properties(vertices, names))
    }

    /// Properties of edges.
    ///
    /// # Errors
    /// As [`Query::edge_properties`](crate::Query::edge_properties).
    pub fn edge_properties(&mut self, edges: &[Neighbour], names: &[String]) -> Result<Held<Vec<EdgeRows>>, Error> {
        wait(self.0.edge_properties(edges, names))
    }

    /// Runs a traversal.
    ///
    /// # Errors
    /// As [`Query::traverse`](crate::Query::traverse).
    pub fn traverse(&mut self, traversal: Traversal) -> Result<Held<Reached>, Error> {
        wait(self.0.traverse(traversal))
    }

    /// The walks of a traversal.
    ///
    /// # Errors
    /// As [`Query::paths`](crate::Query::paths).
    pub fn paths(&mut self, traversal: Traversal, wanted: Option<usize>) -> Result<Paths, Error> {
        wait(self.0.paths(traversal, wanted))
    }

    /// The next walks, `most` of them or those that are left.
    ///
    /// # Errors
    /// As [`Query::next_walks`](crate::Query::next_walks).
    pub fn next_walks(&mut self, paths: &mut Paths, most: usize) -> Result<Held<Vec<Vec<VertexId>>>, Error> {
        wait(self.0.next_walks(paths, most))
    }

    /// How many walks a traversal has.
    ///
    /// # Errors
    /// As [`Query::count_walks`](crate::Query::count_walks).
    pub fn count_walks(&mut self, traversal: Traversal) -> Result<WalkCount, Error> {
        wait(self.0.count_walks(traversal))
    }

    /// Runs a traversal from keys to properties.
    ///
    /// # Errors
    /// As [`Query::run`](crate::Query::run).
    pub fn run(&mut self, request: &TraversalRequest) -> Result<TraversalAnswer, Error> {
        wait(self.0.run(request))
    }

    /// A shortest path by number of edges.
    ///
    /// # Errors
    /// As [`Query::shortest_path`](crate::Query::shortest_path).
    pub fn shortest_path(&mut self, query: PathQuery) -> Result<Option<Vec<VertexId>>, Error> {
        wait(self.0.shortest_path(query))
    }

    /// The vertices within some hops of others.
    ///
    /// # Errors
    /// As [`Query::neighborhood`](crate::Query::neighborhood).
    pub fn neighborhood(&mut self, starts: &[VertexId], hop: &Hop, depth: usize) -> Result<Held<Reached>, Error> {
        wait(self.0.neighborhood(starts, hop, depth))
    }

    /// Labels and keys of the vertices of many paths.
    ///
    /// # Errors
    /// As [`Query::name_paths`](crate::Query::name_paths).
    pub fn name_paths(&mut self, paths: &[Vec<VertexId>]) -> Result<Vec<Vec<(String, Key)>>, Error> {
        wait(self.0.name_paths(paths))
    }
}
