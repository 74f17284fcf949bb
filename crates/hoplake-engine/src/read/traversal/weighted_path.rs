//! Shortest paths between two vertices by a property of edges, searched from both ends (Dijkstra: *A note on two problems in connexion with
//! graphs*, 1959; Pohl: *Bi-directional search*, 1971).
//!
//! A store returns a thousand lists as fast as one, so each step reads the edges of many vertices at both ends: the nearest that wait, twice
//! as many as in the step before. For some of them a shorter way is found later, and their edges are read again, from the cache. The
//! result does not depend on it. Let *a* and *b* be the least distances that wait at the two sides. A vertex nearer than *a* to its side's
//! end has its final distance there: on its shortest way, the first vertex whose edges were not read at its final distance would wait with
//! less than *a*. So if a path is shorter than *a* + *b*, its last vertex nearer than *a* has handed on the way to the next one, which is nearer
//! than *b* to the other end, and the sides have met there. Once *a* + *b* is at least the length of the best path so far, the search is over.
//!
//! A step takes one wave for lists and one for weights, and one more for a condition.

use std::{
    cmp::Ordering,
    collections::{BinaryHeap, HashMap},
    sync::Arc,
};

use futures::future::{BoxFuture, try_join};
use hoplake_format::VertexId;
use hoplake_storage::{Branch, MemoryHold, QueryContext, StorageError};

use crate::{
    Edges, EngineError, Frontier, Held, Neighbour, Snapshot, Walk,
    pieces::STEP,
    read::{
        adjacency::{End, check_hop},
        hop::Hop,
        traversal::{Limits, Watch},
        weights::check_weight,
    },
};

/// A shortest path to look for, by the weights of its edges.
#[derive(Debug, Clone, PartialEq)]
pub struct WeightedPathQuery {
    /// Where it begins.
    pub from: VertexId,
    /// Where it ends.
    pub to: VertexId,
    /// Which edges it may take, and in which direction.
    pub hop: Hop,
    /// The property of edges that is their weight: an int64 or float64 of 0 or more that each edge has.
    pub weight: String,
    /// Whether the path has its edges, and not only its vertices.
    pub edges: bool,
    /// Longer paths do not count, and are not looked for.
    pub length_max: Option<f64>,
    /// What ends the search early.
    pub limits: Limits,
}

/// A shortest path by weight.
#[derive(Debug, Clone, PartialEq)]
pub struct WeightedPath {
    /// Its vertices and edges.
    pub walk: Walk,
    /// The sum of the weights of its edges, added up from its beginning.
    pub length: f64,
}

/// Vertices whose edges the first step reads at each end.
const STEP_FIRST: usize = 64;
/// Vertices whose edges a step reads at each end at most.
const STEP_MAX: usize = 1 << 14;
/// What a known vertex takes: 81 bytes a slot, in a table of which at least 7/16 are used, and half as much again while it grows.
const KNOWN_BYTES: u64 = 280;
/// What a waiting one takes, in a heap that may be half empty.
const WAITING_BYTES: u64 = 32;

/// A vertex that one side has reached.
#[derive(Debug, Clone, Copy)]
struct SearchNode {
    distance: f64,
    /// The edge by which it was reached, as this side follows it, and its weight.
    edge: Option<(Neighbour, f64)>,
}

/// A vertex in the priority queue, whose edges are to be read.
#[derive(Debug, Clone, Copy, PartialEq)]
struct QueuedVertex {
    distance: f64,
    vertex: VertexId,
}

impl Eq for QueuedVertex {}

impl Ord for QueuedVertex {
    /// The nearest is the greatest; of several, the first by id.
    fn cmp(&self, other: &Self) -> Ordering {
        other.distance.total_cmp(&self.distance).then(other.vertex.cmp(&self.vertex))
    }
}

impl PartialOrd for QueuedVertex {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// One side of the search.
struct Side {
    hop: Hop,
    /// At which end of the edges that this side follows is the vertex that a path reaches by them, and that conditions are on.
    end: End,
    known: HashMap<VertexId, SearchNode>,
    /// The nearest first; also with distances that have become shorter since.
    waiting: BinaryHeap<QueuedVertex>,
    step: usize,
    memory: MemoryHold,
}

/// The best path so far.
struct Best {
    length: f64,
    /// `None` if none was found.
    meeting: Option<VertexId>,
}

impl Side {
    fn new(vertex: VertexId, hop: Hop, end: End, context: &QueryContext) -> Result<Self, StorageError> {
        Ok(Self {
            hop,
            end,
            known: HashMap::from([(vertex, SearchNode { distance: 0.0, edge: None })]),
            waiting: BinaryHeap::from([QueuedVertex { distance: 0.0, vertex }]),
            step: STEP_FIRST,
            memory: context.hold(0)?,
        })
    }

    /// What it takes, if it gets to know this number of vertices more.
    fn bytes(&self, more: usize) -> u64 {
        let known = (self.known.len() + more) as u64 * KNOWN_BYTES;
        known + (self.waiting.len() + more) as u64 * WAITING_BYTES
    }

    /// The least distance that waits; infinity if none does.
    fn least(&mut self) -> f64 {
        while let Some(next) = self.waiting.peek() {
            if self.known.get(&next.vertex).is_some_and(|known| known.distance == next.distance) {
                return next.distance;
            }
            self.waiting.pop();
        }
        f64::INFINITY
    }

    /// The nearest vertices that wait and may be on a path shorter than the best, where `opposite` waits at the other side.
    fn take(&mut self, opposite: f64, best: f64) -> Frontier {
        let mut taken = Vec::new();
        while taken.len() < self.step && self.least() + opposite < best {
            taken.extend(self.waiting.pop().map(|next| next.vertex));
        }
        self.step = (self.step * 2).min(STEP_MAX);
        taken.into_iter().collect()
    }

    /// The edges of some vertices, and their weights.
    async fn read(
        &self,
        snapshot: &Arc<Snapshot>,
        frontier: &Frontier,
        weight: &str,
        mut line: Branch,
    ) -> Result<(Held<Edges>, Held<Vec<f64>>, Branch), EngineError> {
        // Which tables have weights follows from the schema, so their ends are read in the wave of the first lists.
        let tables: Vec<_> = self.hop.edges(snapshot.schema()).map(|of| (of.edge_type, of.direction)).collect();
        let mut loading = line.clone();
        let loaded = snapshot.properties().load_edge_metadata(&tables, &mut loading);
        let read = snapshot.adjacency().neighbours_of(frontier, &self.hop, self.end, &mut line);
        let (edges, ()) = try_join(read, loaded).await?;
        line.join([&loading]);
        let weights = snapshot.edge_weights(&edges, weight, &mut line).await?;
        Ok((edges, weights, line))
    }

    /// Follows edges to the vertices that they lead to. Returns how many of those are new.
    async fn relax(
        &mut self,
        other: &Self,
        edges: &Edges,
        weights: &[f64],
        best: &mut Best,
        context: &QueryContext,
    ) -> Result<usize, StorageError> {
        let before = self.known.len();
        let mut pace = context.pace();
        for begin in (0..edges.len()).step_by(STEP) {
            let range = begin..edges.len().min(begin + STEP);
            let bytes = self.bytes(range.len());
            context.resize(&mut self.memory, bytes)?;
            pace.rest(range.len() as u64 * 8).await?;
            for at in range {
                let Some(edge) = edges.get(at) else { break };
                let weight = weights[at];
                let Some(from) = self.known.get(&edge.from) else { continue };
                let distance = from.distance + weight;
                let known = self.known.get(&edge.to).map_or(f64::INFINITY, |known| known.distance);
                // Of equally short ways the first stays. An edge of infinite weight is on no path.
                if distance >= known {
                    continue;
                }
                self.known.insert(edge.to, SearchNode { distance, edge: Some((edge, weight)) });
                self.waiting.push(QueuedVertex { distance, vertex: edge.to });
                let Some(opposite) = other.known.get(&edge.to) else { continue };
                let length = distance + opposite.distance;
                if length < best.length {
                    *best = Best { length, meeting: Some(edge.to) };
                }
            }
        }
        let bytes = self.bytes(0);
        context.resize(&mut self.memory, bytes)?;
        Ok(self.known.len() - before)
    }

    /// From a known vertex back to this side's end: the vertices, and the edges between them with their weights.
    fn trail(&self, vertex: VertexId) -> (Vec<VertexId>, Vec<(Neighbour, f64)>) {
        let mut vertices = vec![vertex];
        let mut edges = Vec::new();
        let mut at = vertex;
        while let Some(edge) = self.known.get(&at).and_then(|known| known.edge) {
            at = edge.0.from;
            vertices.push(at);
            edges.push(edge);
        }
        (vertices, edges)
    }
}

/// The path from end to end through a vertex that both sides know.
fn joined(sides: &[Side; 2], meeting: VertexId) -> WeightedPath {
    let (mut vertices, mut edges) = sides[0].trail(meeting);
    vertices.reverse();
    edges.reverse();
    let (after, edges_after) = sides[1].trail(meeting);
    vertices.extend(after.into_iter().skip(1));
    edges.extend(edges_after);
    // From 0, and not by `sum`, whose sum of nothing is -0.
    let length = edges.iter().fold(0.0, |length, (_, weight)| length + weight);
    WeightedPath { walk: Walk { vertices, edges: edges.into_iter().map(|(edge, _)| edge).collect() }, length }
}

impl Snapshot {
    /// A shortest path by the weights of its edges; `None` if there is none. Of several the answer is always the same one in a version:
    /// which one, depends on how the graph was loaded. An edge of infinite weight is on no path. Each step reads the edges of up to 16,384
    /// vertices at each end, in two waves.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] if the edges of a type that the hop follows do not have the property; [`EngineError::Invalid`] if it is not a
    /// number, or if an edge that the search reaches, which the error names, has none or a negative one; otherwise as
    /// [`Snapshot::shortest_path`].
    pub fn weighted_path<'a>(
        self: &'a Arc<Self>,
        query: &'a WeightedPathQuery,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Option<WeightedPath>, EngineError>> {
        Box::pin(async move {
            let WeightedPathQuery { from, to, hop, weight, edges: has_edges, length_max, limits } = query;
            let context = &branch.context().clone();
            check_hop(self.schema(), hop)?;
            for of in hop.edges(self.schema()) {
                self.schema().edge_type(of.edge_type).map_or(Ok(()), |edge| check_weight(edge, weight))?;
            }
            let mut watch = Watch::new(limits, self, context);
            let mut sides = [
                Side::new(*from, hop.clone(), End::Far, context)?,
                Side::new(*to, hop.reversed(), End::Near, context)?,
            ];
            let mut best = match from == to {
                true => Best { length: 0.0, meeting: Some(*from) },
                // A path as long as that still counts.
                false => Best { length: length_max.map_or(f64::INFINITY, f64::next_up), meeting: None },
            };
            loop {
                let least = [sides[0].least(), sides[1].least()];
                if least[0] + least[1] >= best.length {
                    break;
                }
                let frontiers = [sides[0].take(least[1], best.length), sides[1].take(least[0], best.length)];
                let [first, second] = &sides;
                let read = try_join(
                    first.read(self, &frontiers[0], weight, branch.clone()),
                    second.read(self, &frontiers[1], weight, branch.clone()),
                );
                let ((edges, weights, line), (edges_against, weights_against, line_against)) = read.await?;
                branch.join([&line, &line_against]);
                let [first, second] = &mut sides;
                let reached = first.relax(second, &edges, &weights, &mut best, context).await?
                    + second.relax(first, &edges_against, &weights_against, &mut best, context).await?;
                watch.visited(reached)?;
            }
            let mut found = best.meeting.map(|meeting| joined(&sides, meeting));
            if let Some(path) = &mut found
                && !has_edges
            {
                path.walk.edges.clear();
            }
            Ok(found)
        })
    }
}
