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
    Edges, EngineError, Frontier, Snapshot,
    adjacency::End,
    hop::Hop,
    pieces::{STEP, sort_by_key},
    traversal::{Limits, Watch},
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
    /// What ends the search early.
    pub limits: Limits,
}

/// One side of the search.
struct Side {
    hop: Hop,
    /// At which end of the edges that this side follows is the vertex that a path reaches by them, and that conditions are on.
    end: End,
    frontier: Frontier,
    /// Every vertex known, and the one it was first reached from.
    parents: HashMap<VertexId, Option<VertexId>>,
    depth: usize,
    memory: MemoryHold,
}

/// What a known vertex takes: itself and its parent, in a table of which at most 7/8 and at least 7/16 are used, and its
/// place in a frontier.
const KNOWN_BYTES: u64 = 64;

impl Side {
    fn new(vertex: VertexId, hop: Hop, end: End, context: &QueryContext) -> Result<Self, StorageError> {
        let frontier = std::iter::once(vertex).collect();
        let memory = context.hold(0)?;
        Ok(Self { hop, end, frontier, parents: HashMap::from([(vertex, None)]), depth: 0, memory })
    }

    /// Moves on along edges, in the order of the vertex left, so that the smallest parent wins.
    async fn advance(&mut self, edges: &Edges, context: &QueryContext) -> Result<(), StorageError> {
        let mut pace = context.pace();
        let mut new: Vec<VertexId> = Vec::new();
        for list in edges.lists() {
            for step in list.targets.chunks(STEP) {
                context.resize(&mut self.memory, (self.parents.len() + step.len()) as u64 * KNOWN_BYTES)?;
                for to in step {
                    if let Entry::Vacant(entry) = self.parents.entry(*to) {
                        entry.insert(Some(list.from));
                        new.push(*to);
                    }
                }
                pace.rest(step.len() as u64 * 4).await?;
            }
        }
        context.resize(&mut self.memory, self.parents.len() as u64 * KNOWN_BYTES)?;
        sort_by_key(&mut new, |vertex| *vertex, context).await?;
        self.frontier = Frontier::of_sorted(&new, &mut pace).await?;
        self.depth += 1;
        Ok(())
    }

    /// From a known vertex back to this side's end.
    fn trail(&self, vertex: VertexId) -> Vec<VertexId> {
        std::iter::successors(Some(vertex), |vertex| self.parents.get(vertex).copied().flatten()).collect()
    }
}

impl Snapshot {
    /// The vertices of a shortest path, both ends included; `None` if there is none within the length. Of several shortest
    /// paths the answer is always the same one.
    ///
    /// # Errors
    /// As [`Snapshot::traverse`].
    pub fn shortest_path<'a>(
        self: &'a Arc<Self>,
        query: &'a PathQuery,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Option<Vec<VertexId>>, EngineError>> {
        Box::pin(async move {
            let context = &branch.context().clone();
            self.check_hop(&query.hop)?;
            let mut watch = Watch::new(&query.limits, self, context);
            let mut sides = [
                Side::new(query.from, query.hop.clone(), End::Far, context)?,
                Side::new(query.to, query.hop.reversed(), End::Near, context)?,
            ];
            if query.from == query.to {
                return Ok(Some(vec![query.from]));
            }
            while sides[0].depth + sides[1].depth < query.depth_max
                && sides.iter().all(|side| !side.frontier.is_empty())
            {
                // The side with the smaller frontier reads less (cardinality comparison: Pohl, *Bi-directional search*, 1971).
                let smaller = usize::from(sides[1].frontier.len() < sides[0].frontier.len());
                let side = &mut sides[smaller];
                let edges = self.neighbours_of(&side.frontier, &side.hop, side.end, branch).await?;
                side.advance(&edges, context).await?;
                drop(edges);
                watch.visited(side.frontier.len())?;
                let other = &sides[1 - smaller];
                // On a path of as many edges as both depths before this step, the sides would have met. Every meeting now is on a path
                // of one edge more, so the first is as short as any.
                let meeting = sides[smaller].frontier.vertices().find(|vertex| other.parents.contains_key(vertex));
                if let Some(vertex) = meeting {
                    let mut path = sides[0].trail(vertex);
                    path.reverse();
                    path.extend(sides[1].trail(vertex).into_iter().skip(1));
                    return Ok(Some(path));
                }
            }
            Ok(None)
        })
    }
}
