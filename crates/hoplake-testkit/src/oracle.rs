//! A naive property graph in memory, to hold the engine's answers against.
//!
//! **What it is.** Vertices and edges in two lists, and reference functions that follow the definitions
//! word by word: every question scans all edges. It is right because there is nothing in it to get wrong;
//! it is for graphs of thousands of edges, not millions.
//!
//! **What it fixes.** The semantics that the engine must match:
//!
//! - Parallel edges are kept, and count in neighbours, degrees and walks.
//! - `Both` follows an edge from either end. A self-loop has two ends, so under `Both` it makes its vertex
//!   a neighbour of itself twice.
//! - Under [`VisitPolicy::PerDepth`] the set at depth d is the end vertices of all walks of d hops; under
//!   [`VisitPolicy::Global`] a vertex appears only at the first depth that reaches it, starts included.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

/// A vertex: its index in [`Oracle::vertices`].
pub type Vertex = usize;

/// The key of a vertex, unique within its label.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A 64-bit integer.
    Int(i64),
    /// A string.
    Text(String),
}

/// The value of a property.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub enum Value {
    /// A truth value.
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
    /// A 64-bit floating-point number.
    Float(f64),
    /// A string.
    Text(String),
}

/// Properties by name.
pub type Properties = BTreeMap<String, Value>;

/// A vertex's label, key and properties.
#[derive(Debug, Clone, PartialEq)]
pub struct VertexRecord {
    /// The label.
    pub label: String,
    /// The key.
    pub key: Key,
    /// The properties.
    pub properties: Properties,
}

/// An edge.
#[derive(Debug, Clone, PartialEq)]
pub struct Edge {
    /// The label.
    pub label: String,
    /// Where it begins.
    pub source: Vertex,
    /// Where it ends.
    pub target: Vertex,
    /// The properties.
    pub properties: Properties,
}

/// Which way an edge is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From source to target.
    Out,
    /// From target to source.
    In,
    /// Either way.
    Both,
}

/// How often a traversal may meet a vertex.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VisitPolicy {
    /// Once at each depth.
    PerDepth,
    /// Once, at the first depth that reaches it.
    Global,
}

type Filter = dyn Fn(&Oracle, &Edge, Vertex) -> bool + Send + Sync;

/// One step of a traversal.
#[derive(Clone)]
pub struct Hop {
    /// The edge labels to follow; `None` follows any.
    pub labels: Option<BTreeSet<String>>,
    /// Which way.
    pub direction: Direction,
    filter: Option<Arc<Filter>>,
}

impl Hop {
    /// Follows edges of one of `labels`.
    pub fn new<L: Into<String>>(direction: Direction, labels: impl IntoIterator<Item = L>) -> Self {
        Self { labels: Some(labels.into_iter().map(Into::into).collect()), direction, filter: None }
    }

    /// Follows edges of any label.
    pub fn any(direction: Direction) -> Self {
        Self { labels: None, direction, filter: None }
    }

    /// Follows only edges for which `keep(graph, edge, vertex reached)` holds.
    pub fn keeping(mut self, keep: impl Fn(&Oracle, &Edge, Vertex) -> bool + Send + Sync + 'static) -> Self {
        self.filter = Some(Arc::new(keep));
        self
    }

    fn follows(&self, graph: &Oracle, edge: &Edge, reached: Vertex) -> bool {
        self.labels.as_ref().is_none_or(|labels| labels.contains(&edge.label))
            && self.filter.as_ref().is_none_or(|keep| keep(graph, edge, reached))
    }
}

impl fmt::Debug for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let filtered = self.filter.is_some();
        write!(f, "Hop({:?} {:?}{})", self.direction, self.labels, if filtered { " filtered" } else { "" })
    }
}

/// A labelled property multigraph.
#[derive(Debug, Clone, Default)]
pub struct Oracle {
    /// The vertices; a [`Vertex`] is an index into them.
    pub vertices: Vec<VertexRecord>,
    /// The edges.
    pub edges: Vec<Edge>,
}

impl Oracle {
    /// A graph of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a vertex without properties. The caller keeps keys unique within a label.
    pub fn add_vertex(&mut self, label: impl Into<String>, key: Key) -> Vertex {
        self.vertices.push(VertexRecord { label: label.into(), key, properties: Properties::new() });
        self.vertices.len() - 1
    }

    /// Adds an edge without properties, and returns its index in [`Oracle::edges`].
    pub fn add_edge(&mut self, source: Vertex, label: impl Into<String>, target: Vertex) -> usize {
        assert!(source.max(target) < self.vertices.len(), "an edge joins vertices of the graph");
        self.edges.push(Edge { label: label.into(), source, target, properties: Properties::new() });
        self.edges.len() - 1
    }

    /// The vertex with this label and key.
    pub fn find(&self, label: &str, key: &Key) -> Option<Vertex> {
        self.vertices.iter().position(|vertex| vertex.label == label && vertex.key == *key)
    }

    /// The neighbours of `vertex` through `hop`, ascending, each as often as edges lead to it.
    pub fn neighbours(&self, vertex: Vertex, hop: &Hop) -> Vec<Vertex> {
        let mut reached = Vec::new();
        for edge in &self.edges {
            let leaves = hop.direction != Direction::In && edge.source == vertex;
            if leaves && hop.follows(self, edge, edge.target) {
                reached.push(edge.target);
            }
            let enters = hop.direction != Direction::Out && edge.target == vertex;
            if enters && hop.follows(self, edge, edge.source) {
                reached.push(edge.source);
            }
        }
        reached.sort_unstable();
        reached
    }

    /// How many neighbours `vertex` has through `hop`, with multiplicity.
    pub fn degree(&self, vertex: Vertex, hop: &Hop) -> usize {
        self.neighbours(vertex, hop).len()
    }

    /// The set of vertices at each depth: entry 0 holds the starts, entry d what hop d leads to.
    pub fn traverse(&self, starts: &[Vertex], hops: &[Hop], policy: VisitPolicy) -> Vec<BTreeSet<Vertex>> {
        let mut depths = vec![BTreeSet::from_iter(starts.iter().copied())];
        let mut seen = depths[0].clone();
        for hop in hops {
            let frontier = depths.last().expect("depth 0 holds the starts");
            let mut next: BTreeSet<Vertex> = frontier.iter().flat_map(|&vertex| self.neighbours(vertex, hop)).collect();
            if policy == VisitPolicy::Global {
                next.retain(|vertex| !seen.contains(vertex));
                seen.extend(&next);
            }
            depths.push(next);
        }
        depths
    }

    /// Every walk from a start along all `hops`, as its vertices, in ascending order. Walks over parallel
    /// edges are walks of their own, so the list is a multiset; a start given twice counts once.
    pub fn walks(&self, starts: &[Vertex], hops: &[Hop]) -> Vec<Vec<Vertex>> {
        let mut walks: Vec<Vec<Vertex>> =
            BTreeSet::from_iter(starts.iter().copied()).into_iter().map(|start| vec![start]).collect();
        for hop in hops {
            let extend = |walk: Vec<Vertex>| {
                let end = *walk.last().expect("a walk holds its start");
                let longer = move |next| walk.iter().copied().chain([next]).collect();
                self.neighbours(end, hop).into_iter().map(longer).collect::<Vec<_>>()
            };
            walks = walks.into_iter().flat_map(extend).collect();
        }
        walks.sort_unstable();
        walks
    }

    /// The number of [`Oracle::walks`], counted without listing them.
    pub fn walk_count(&self, starts: &[Vertex], hops: &[Hop]) -> u128 {
        let mut ending_at: BTreeMap<Vertex, u128> = starts.iter().map(|&start| (start, 1)).collect();
        for hop in hops {
            let mut next = BTreeMap::new();
            for (&vertex, &walks) in &ending_at {
                for neighbour in self.neighbours(vertex, hop) {
                    *next.entry(neighbour).or_default() += walks;
                }
            }
            ending_at = next;
        }
        ending_at.values().sum()
    }

    /// The least number of hops from `from` to `to`, each along `hop`; `None` if no walk leads there.
    pub fn shortest_path_length(&self, from: Vertex, to: Vertex, hop: &Hop) -> Option<usize> {
        self.distances(from, hop).get(&to).copied()
    }

    /// How many vertices lie 1 to `hop_count` hops from `vertex`. The vertex itself is not one of them.
    pub fn neighbourhood_count(&self, vertex: Vertex, hop: &Hop, hop_count: usize) -> usize {
        self.distances(vertex, hop).values().filter(|distance| (1..=hop_count).contains(*distance)).count()
    }

    /// The distance of every vertex that can be reached from `from`, by textbook breadth-first search.
    fn distances(&self, from: Vertex, hop: &Hop) -> BTreeMap<Vertex, usize> {
        let mut distances = BTreeMap::from([(from, 0)]);
        let mut queue = VecDeque::from([from]);
        while let Some(vertex) = queue.pop_front() {
            for neighbour in self.neighbours(vertex, hop) {
                if !distances.contains_key(&neighbour) {
                    distances.insert(neighbour, distances[&vertex] + 1);
                    queue.push_back(neighbour);
                }
            }
        }
        distances
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ```text
    /// a ══knows══> b ──knows──> c ──knows──> a      (a to b twice)
    /// b ──likes──> d      d ──likes──> d      e alone
    /// ```
    fn example() -> Oracle {
        let mut graph = Oracle::new();
        for key in ["a", "b", "c"] {
            graph.add_vertex("Person", Key::Text(key.into()));
        }
        graph.add_vertex("Post", Key::Int(1));
        graph.add_vertex("Post", Key::Int(2));
        for (source, label, target) in
            [(0, "knows", 1), (0, "knows", 1), (1, "knows", 2), (2, "knows", 0), (1, "likes", 3), (3, "likes", 3)]
        {
            graph.add_edge(source, label, target);
        }
        graph
    }

    fn hop(direction: Direction, label: &str) -> Hop {
        Hop::new(direction, [label])
    }

    fn sets(depths: &[&[Vertex]]) -> Vec<BTreeSet<Vertex>> {
        depths.iter().map(|depth| depth.iter().copied().collect()).collect()
    }

    #[test]
    fn neighbours_keep_parallel_edges_and_both_ends_of_loops() {
        let graph = example();
        assert_eq!(graph.neighbours(0, &hop(Direction::Out, "knows")), [1, 1]);
        assert_eq!(graph.neighbours(0, &hop(Direction::In, "knows")), [2]);
        assert_eq!(graph.neighbours(0, &hop(Direction::Both, "knows")), [1, 1, 2]);
        assert_eq!(graph.neighbours(1, &Hop::any(Direction::Out)), [2, 3]);
        assert_eq!(graph.neighbours(1, &Hop::new(Direction::Out, ["knows", "likes"])), [2, 3]);
        assert_eq!(graph.neighbours(3, &hop(Direction::Out, "likes")), [3]);
        assert_eq!(graph.neighbours(3, &hop(Direction::Both, "likes")), [1, 3, 3]);
        assert_eq!(graph.degree(4, &Hop::any(Direction::Both)), 0);
        assert_eq!(graph.neighbours(1, &Hop::new(Direction::Out, [""; 0])), [0; 0], "no label is not any label");
    }

    #[test]
    fn vertices_are_found_within_their_label() {
        let graph = example();
        assert_eq!(graph.find("Post", &Key::Int(2)), Some(4));
        assert_eq!(graph.find("Person", &Key::Int(2)), None);
        assert_eq!(graph.find("Person", &Key::Text("c".into())), Some(2));
    }

    #[test]
    fn visit_policies_differ_where_a_walk_returns() {
        let graph = example();
        let hops = vec![hop(Direction::Both, "knows"); 2];
        assert_eq!(graph.traverse(&[0], &hops, VisitPolicy::PerDepth), sets(&[&[0], &[1, 2], &[0, 1, 2]]));
        assert_eq!(graph.traverse(&[0], &hops, VisitPolicy::Global), sets(&[&[0], &[1, 2], &[]]));
        let around = vec![hop(Direction::Out, "knows"); 3];
        assert_eq!(graph.traverse(&[0], &around, VisitPolicy::PerDepth), sets(&[&[0], &[1], &[2], &[0]]));
        assert_eq!(graph.traverse(&[0], &around, VisitPolicy::Global), sets(&[&[0], &[1], &[2], &[]]));
        assert_eq!(graph.traverse(&[0, 1, 0], &around[..1], VisitPolicy::Global), sets(&[&[0, 1], &[2]]));
    }

    #[test]
    fn filters_see_the_edge_and_the_vertex_reached() {
        let mut graph = example();
        graph.edges[1].properties.insert("since".into(), Value::Int(2020));
        let recent = hop(Direction::Out, "knows").keeping(|_, edge, _| edge.properties.contains_key("since"));
        assert_eq!(graph.neighbours(0, &recent), [1]);
        assert_eq!(graph.neighbours(1, &recent), [0; 0]);
        let posts = Hop::any(Direction::Both).keeping(|graph, _, reached| graph.vertices[reached].label == "Post");
        assert_eq!(graph.neighbours(1, &posts), [3]);
    }

    #[test]
    fn walks_multiply_over_parallel_edges() {
        let graph = example();
        let hops = [hop(Direction::Out, "knows"), Hop::any(Direction::Out)];
        let expected = [[0, 1, 2], [0, 1, 2], [0, 1, 3], [0, 1, 3]];
        assert_eq!(graph.walks(&[0, 0], &hops), expected);
        assert_eq!(graph.walk_count(&[0, 0], &hops), 4);
        // Both ways over the triangle a, b, c from a: b by two edges, c by one; from b back by two or on by
        // one, from c likewise. Ends: a 2·2 + 1·1, b 1·1, c 2·1.
        let both = vec![hop(Direction::Both, "knows"); 2];
        assert_eq!(graph.walk_count(&[0], &both), 8);
        assert_eq!(graph.walks(&[0], &both).len(), 8);
        assert_eq!(graph.walks(&[4], &both), [[0; 0]; 0]);
        assert_eq!(graph.walks(&[4, 2], &[]), [[2], [4]]);
        assert_eq!(graph.walk_count(&[0], &vec![hop(Direction::Both, "likes"); 3]), 0);
        // From d: over b and back once, over either end of the loop and then three ways each.
        assert_eq!(graph.walk_count(&[3], &vec![hop(Direction::Both, "likes"); 2]), 7);
    }

    #[test]
    fn shortest_paths_follow_the_direction() {
        let graph = example();
        let out = Hop::any(Direction::Out);
        let both = Hop::any(Direction::Both);
        assert_eq!(graph.shortest_path_length(0, 2, &out), Some(2));
        assert_eq!(graph.shortest_path_length(0, 2, &both), Some(1));
        assert_eq!(graph.shortest_path_length(3, 0, &out), None);
        assert_eq!(graph.shortest_path_length(3, 0, &both), Some(2));
        assert_eq!(graph.shortest_path_length(0, 3, &hop(Direction::Out, "knows")), None);
        assert_eq!(graph.shortest_path_length(4, 4, &out), Some(0));
    }

    #[test]
    fn a_neighbourhood_leaves_out_its_centre() {
        let graph = example();
        let out = Hop::any(Direction::Out);
        assert_eq!((1..5).map(|hops| graph.neighbourhood_count(0, &out, hops)).collect::<Vec<_>>(), [1, 3, 3, 3]);
        assert_eq!(graph.neighbourhood_count(3, &Hop::any(Direction::Both), 1), 1);
        assert_eq!(graph.neighbourhood_count(0, &out, 0), 0);
    }
}
