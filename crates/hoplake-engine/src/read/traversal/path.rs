//! Shortest paths by number of edges, searched from both ends.
//!
//! Each step expands the smaller of the two frontiers by a whole level, so that the first vertex that
//! both sides know lies on a shortest path. One wave a step, and one more for a condition: a path of length n takes n waves at most,
//! or 2n. A condition is on each edge and on the vertex that the path reaches by it, from whichever end the edge is found.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use futures::future::BoxFuture;
use hoplake_format::VertexId;
use hoplake_storage::{Branch, MemoryHold, QueryContext, StorageError};

use crate::{
    Edges, EngineError, Frontier, Neighbour, Snapshot, Walk,
    pieces::{STEP, sort_by_key},
    read::{
        adjacency::{End, check_hop},
        hop::Hop,
        traversal::{Limits, Watch},
    },
};

/// A shortest path to look for.
#[derive(Debug, Clone, PartialEq)]
pub struct PathQuery {
    /// Where it begins.
    pub from: VertexId,
    /// Where it ends.
    pub to: VertexId,
    /// Which edges it may take, and in which direction.
    pub hop: Hop,
    /// The longest path that counts, in edges.
    pub depth_max: usize,
    /// Whether the path is to have its edges: of several between two vertices the first that the search finds, in the order of edge
    /// types. Takes no request more, and memory for an edge for each vertex known.
    pub edges: bool,
    /// What ends the search early.
    pub limits: Limits,
}

/// What a search for a shortest path found.
#[derive(Debug, Clone, PartialEq)]
pub enum FoundPath {
    /// A shortest path, both ends included.
    Path(Walk),
    /// None of any length: all that one of the ends reaches was seen.
    None,
    /// None within [`PathQuery::depth_max`]; there may be a longer one.
    NoneWithin,
}

impl FoundPath {
    /// The path, if there is one.
    pub fn into_path(self) -> Option<Walk> {
        match self {
            Self::Path(path) => Some(path),
            Self::None | Self::NoneWithin => None,
        }
    }
}

/// One side of the search.
struct Side {
    hop: Hop,
    /// At which end of the edges that this side follows is the vertex that a path reaches by them, and that conditions are on.
    end: End,
    frontier: Frontier,
    /// Every vertex known, and the one it was first reached from.
    parents: HashMap<VertexId, Option<VertexId>>,
    /// The edge by which each was first reached, if the path is to have its edges.
    edges: Option<HashMap<VertexId, Neighbour>>,
    depth: usize,
    memory: MemoryHold,
}

/// What a known vertex takes: itself and its parent, in a table of which at most 7/8 and at least 7/16 are used, and its
/// place in a frontier.
const KNOWN_BYTES: u64 = 64;
/// What the edge to a known vertex takes: 48 bytes and one, in such a table.
const EDGE_BYTES: u64 = 112;

impl Side {
    fn new(vertex: VertexId, query: &PathQuery, end: End, context: &QueryContext) -> Result<Self, StorageError> {
        let hop = if end == End::Far { query.hop.clone() } else { query.hop.reversed() };
        let frontier = std::iter::once(vertex).collect();
        let parents = HashMap::from([(vertex, None)]);
        let edges = query.edges.then(HashMap::new);
        Ok(Self { hop, end, frontier, parents, edges, depth: 0, memory: context.hold(0)? })
    }

    /// The memory of so many known vertices.
    fn bytes(&self, known: usize) -> u64 {
        known as u64 * (KNOWN_BYTES + if self.edges.is_some() { EDGE_BYTES } else { 0 })
    }

    /// Moves on along edges, in the order of the vertex left, so that the smallest parent wins.
    async fn advance(&mut self, edges: &Edges, context: &QueryContext) -> Result<(), StorageError> {
        let mut pace = context.pace();
        let mut new: Vec<VertexId> = Vec::new();
        let mut at = 0;
        for list in edges.lists() {
            for step in list.targets.chunks(STEP) {
                let bytes = self.bytes(self.parents.len() + step.len());
                context.resize(&mut self.memory, bytes)?;
                for (at, to) in (at..).zip(step) {
                    if let Entry::Vacant(entry) = self.parents.entry(*to) {
                        entry.insert(Some(list.from));
                        new.push(*to);
                        if let Some(known) = &mut self.edges {
                            known.extend(edges.get(at).map(|edge| (*to, edge)));
                        }
                    }
                }
                at += step.len();
                pace.rest(step.len() as u64 * 4).await?;
            }
        }
        let bytes = self.bytes(self.parents.len());
        context.resize(&mut self.memory, bytes)?;
        sort_by_key(&mut new, |vertex| *vertex, context).await?;
        self.frontier = Frontier::of_sorted(&new, &mut pace).await?;
        self.depth += 1;
        Ok(())
    }

    /// From a known vertex back to this side's end.
    fn trail(&self, vertex: VertexId) -> Vec<VertexId> {
        std::iter::successors(Some(vertex), |vertex| self.parents.get(vertex).copied().flatten()).collect()
    }

    /// The edges by which vertices were first reached.
    fn edges_to(&self, vertices: &[VertexId]) -> impl Iterator<Item = Neighbour> {
        let edges = self.edges.as_ref();
        vertices.iter().filter_map(move |vertex| edges?.get(vertex).copied())
    }
}

/// The path that two sides have found, from end to end, where they have met in a vertex.
fn joined(sides: &[Side; 2], meeting: VertexId) -> Walk {
    let mut vertices = sides[0].trail(meeting);
    vertices.reverse();
    let middle = vertices.len() - 1;
    vertices.extend(sides[1].trail(meeting).into_iter().skip(1));
    let last = vertices.len() - 1;
    // The first side reached each vertex from the one before, the other side from the one behind.
    let edges = sides[0].edges_to(&vertices[1..=middle]).chain(sides[1].edges_to(&vertices[middle..last]));
    let edges = edges.collect();
    Walk { vertices, edges }
}

impl Snapshot {
    /// A shortest path. Of several the answer is always the same one in a version: which one, depends on how the graph was loaded.
    ///
    /// # Errors
    /// As [`Snapshot::traverse`].
    pub fn shortest_path<'a>(
        self: &'a Arc<Self>,
        query: &'a PathQuery,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<FoundPath, EngineError>> {
        Box::pin(async move {
            let context = &branch.context().clone();
            check_hop(self.schema(), &query.hop)?;
            let mut watch = Watch::new(&query.limits, self, context);
            let mut sides =
                [Side::new(query.from, query, End::Far, context)?, Side::new(query.to, query, End::Near, context)?];
            if query.from == query.to {
                return Ok(FoundPath::Path(Walk { vertices: vec![query.from], edges: Vec::new() }));
            }
            while sides[0].depth + sides[1].depth < query.depth_max
                && sides.iter().all(|side| !side.frontier.is_empty())
            {
                // The side with the smaller frontier reads less (cardinality comparison: Pohl, *Bi-directional search*, 1971).
                let smaller = usize::from(sides[1].frontier.len() < sides[0].frontier.len());
                let side = &mut sides[smaller];
                let edges = self.adjacency().neighbours_of(&side.frontier, &side.hop, side.end, branch).await?;
                side.advance(&edges, context).await?;
                drop(edges);
                watch.visited(side.frontier.len())?;
                let other = &sides[1 - smaller];
                // On a path of as many edges as both depths before this step, the sides would have met. Every meeting now is on a path
                // of one edge more, so the first is as short as any.
                let meeting = sides[smaller].frontier.vertices().find(|vertex| other.parents.contains_key(vertex));
                if let Some(vertex) = meeting {
                    return Ok(FoundPath::Path(joined(&sides, vertex)));
                }
            }
            let is_exhausted = sides.iter().any(|side| side.frontier.is_empty());
            Ok(if is_exhausted { FoundPath::None } else { FoundPath::NoneWithin })
        })
    }
}
