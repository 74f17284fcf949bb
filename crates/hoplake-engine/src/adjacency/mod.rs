//! Neighbours of sets of vertices: one wave a hop, whatever the size of the set.
//!
//! A hop becomes a [`plan`]: which blocks of which sections hold the lists of which sources. All blocks of all
//! sections are then one read, and each is decoded as it arrives, so that memory holds the blocks in flight and the
//! result, not the plan's bytes ([`pipeline`]). Only lists that several runs of an edge type may change wait for each
//! other ([`merge`]). What a hop is for decides what becomes of its lists ([`sinks`]): a set and degrees never hold its edges.

mod conditions;
mod first;
mod layer;
mod merge;
mod pipeline;
mod plan;
mod planner;
mod sinks;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use futures::future::BoxFuture;
use hoplake_format::{Direction, EdgeId, EdgeTypeId, LabelId, VertexId};
use hoplake_storage::{Branch, QueryContext};

use crate::{
    EngineError, Frontier, Held, Snapshot,
    frontier::{OrdinalCollector, SinkError, outside},
    hop::{EdgesOf, Hop},
    pieces::{STEP, sort_by_key},
    traversal::Queue,
};
use sinks::{DegreeSink, EdgeSink, SetSink, all_edges, collector, union};

pub(crate) use plan::{ListTask, Plan};

/// An edge, seen from the vertex that a hop left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Neighbour {
    /// The vertex that was left.
    pub from: VertexId,
    /// The vertex that was reached.
    pub to: VertexId,
    /// The edge's type.
    pub edge_type: EdgeTypeId,
    /// The direction in which it was followed.
    pub direction: Direction,
    /// Which run holds it: the newest version whose changes the run has.
    pub run: u64,
    /// Its position in the run's adjacency of that direction.
    pub position: u64,
    /// Which of the edges of its type from its source to its target, from 0.
    pub parallel: u32,
}

impl Neighbour {
    fn is_parallel(&self, other: &Self) -> bool {
        (self.from, self.edge_type, self.direction, self.to) == (other.from, other.edge_type, other.direction, other.to)
    }

    /// The edge, from whichever end it was followed.
    pub fn id(&self) -> EdgeId {
        let (source, target) = match self.direction {
            Direction::Out => (self.from, self.to),
            Direction::In => (self.to, self.from),
        };
        EdgeId { edge_type: self.edge_type, source, target, parallel: self.parallel }
    }
}

/// The order of the edges of a hop.
fn order(edge: &Neighbour) -> (VertexId, EdgeTypeId, Direction, VertexId, u64) {
    (edge.from, edge.edge_type, edge.direction, edge.to, edge.position)
}

/// How many edges of a hop a vertex has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Degree {
    /// The vertex.
    pub vertex: VertexId,
    /// Its edges.
    pub edges: u64,
}

impl Snapshot {
    /// The set that a hop from `frontier` reaches by a plan of it, and how many edges led there. Whom each block reaches is
    /// offered to the queue of `next` as soon as the block is here, if the hop has no conditions.
    pub(crate) async fn reach(
        self: &Arc<Self>,
        frontier: &Arc<Frontier>,
        hop: &Hop,
        plan: Plan,
        parallelism: usize,
        next: Option<(Arc<Queue>, usize)>,
        branch: &mut Branch,
    ) -> Result<(Held<Frontier>, u64), EngineError> {
        let context = branch.context().clone();
        let sinks = 0..parallelism.max(1);
        if hop.predicates.is_empty() {
            let sinks = sinks.map(|_| SetSink::new(self, next.clone(), &context)).collect();
            let sinks = self.run_plan(frontier, plan, sinks, branch).await?;
            let edges = sinks.iter().map(|sink| sink.edges).sum();
            let sets = sinks.into_iter().map(|sink| sink.sets);
            let reached = union(sets, &context).await.map_err(|error| error.at(self.reader().store().url()))?;
            return Ok((reached, edges));
        }
        let sinks = sinks.map(|_| EdgeSink::new(&context)).collect::<Result<_, _>>()?;
        let mut loading = branch.clone();
        let loaded = self.load_predicate_metadata(frontier, hop, &mut loading);
        let read = self.run_plan(frontier, plan, sinks, branch);
        let (sinks, ()) = futures::future::try_join(read, loaded).await?;
        branch.join([&loading]);
        let edges = all_edges(sinks, &context).await?;
        let mut pace = context.pace();
        for step in edges.chunks(STEP) {
            // Before the rows of a vertex that is not there are looked for.
            step.iter().try_for_each(|edge| self.check_end(edge))?;
            pace.rest(step.len() as u64).await?;
        }
        let edges = self.keep_fulfilling(edges, hop, branch).await?;
        Ok((self.targets(&edges, &context).await?, edges.len() as u64))
    }

    /// Refuses an edge to a vertex that the graph does not have.
    fn check_end(&self, edge: &Neighbour) -> Result<(), EngineError> {
        match self.has_vertex(edge.to) {
            true => Ok(()),
            false => Err(EngineError::format(self.reader().store().url())(outside())),
        }
    }

    /// The vertices that edges reach.
    pub(crate) async fn targets(
        &self,
        edges: &[Neighbour],
        context: &QueryContext,
    ) -> Result<Held<Frontier>, EngineError> {
        let mut sets: BTreeMap<LabelId, OrdinalCollector> = BTreeMap::new();
        let mut pace = context.pace();
        let mut ordinals = Vec::new();
        let failed = |error: SinkError| error.at(self.reader().store().url());
        for step in edges.chunks(STEP) {
            for run in step.chunk_by(|a, b| a.to.label() == b.to.label()) {
                ordinals.clear();
                ordinals.extend(run.iter().map(|edge| edge.to.ordinal()));
                let label = run[0].to.label();
                collector(&mut sets, label, self.ordinal_count(label), context)?.extend(&ordinals).map_err(failed)?;
            }
            pace.rest(step.len() as u64).await?;
        }
        union(std::iter::once(sets), context).await.map_err(failed)
    }

    /// The edges of a hop from `frontier` that fulfil the hop's conditions, in the order of vertex left,
    /// edge type, direction, vertex reached and position. One wave, and one for properties in conditions.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] if the graph has no edge label of that name; [`EngineError::Invalid`] if a
    /// condition names no property or compares it with a wrong value; the store's; [`EngineError::Format`] if
    /// a block is damaged.
    pub fn neighbours<'a>(
        &'a self,
        frontier: &'a Frontier,
        hop: &'a Hop,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Held<Vec<Neighbour>>, EngineError>> {
        Box::pin(async move {
            self.check_hop(hop)?;
            let mut loading = branch.clone();
            let loaded = self.load_predicate_metadata(frontier, hop, &mut loading);
            let read = async {
                let plan = self.plan_hop(frontier, hop, branch).await?;
                let mut sink = EdgeSink::new(branch.context())?;
                self.run_part(frontier, &plan, &mut sink, branch).await?;
                Ok(sink.edges)
            };
            let (mut edges, ()) = futures::future::try_join(read, loaded).await?;
            branch.join([&loading]);
            let context = branch.context().clone();
            sort_by_key(edges.items(), order, &context).await?;
            self.number_parallel(edges.items(), &context).await?;
            let edges = edges.finish();
            self.keep_fulfilling(edges, hop, branch).await
        })
    }

    /// Numbers parallel edges, which follow each other in the order of [`Self::neighbours`], and checks that all ends exist.
    async fn number_parallel(&self, edges: &mut [Neighbour], context: &QueryContext) -> Result<(), EngineError> {
        let mut pace = context.pace();
        let mut before: Option<Neighbour> = None;
        for step in edges.chunks_mut(STEP) {
            let length = step.len() as u64;
            for edge in step {
                self.check_end(edge)?;
                // All edges between two vertices lie in one run, in the same order from either end.
                edge.parallel = before.filter(|before| before.is_parallel(edge)).map_or(0, |it| it.parallel + 1);
                before = Some(*edge);
            }
            pace.rest(length).await?;
        }
        Ok(())
    }

    /// The edges with these ids, in their order, as seen from their sources. One wave.
    ///
    /// # Errors
    /// As [`Self::neighbours`].
    pub fn edges<'a>(
        &'a self,
        ids: &'a [EdgeId],
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Vec<Option<Neighbour>>, EngineError>> {
        Box::pin(async move {
            let edge_types = || ids.iter().filter_map(|id| self.schema().edge_type(id.edge_type));
            let labels: BTreeSet<_> = edge_types().map(|edge| edge.label.clone()).collect();
            if labels.is_empty() {
                return Ok(vec![None; ids.len()]);
            }
            let sources = ids.iter().map(|id| id.source).filter(|source| self.has_vertex(*source)).collect();
            let hop = Hop { labels: labels.into_iter().collect(), ..Hop::default() };
            let read = self.neighbours(&sources, &hop, branch).await?;
            let wanted: HashSet<_> = ids.iter().copied().collect();
            let mut found = HashMap::new();
            let mut pace = branch.context().pace();
            for step in read.chunks(STEP) {
                found.extend(step.iter().map(|edge| (edge.id(), *edge)).filter(|(id, _)| wanted.contains(id)));
                pace.rest(step.len() as u64 * 4).await?;
            }
            Ok(ids.iter().map(|id| found.get(id).copied()).collect())
        })
    }

    /// All pairs of an edge type with one of these sources that some run mentions which has changes of later versions
    /// than `newer_than`: those that have edges, and those that have none any more. Ascending, perhaps with repeats. One wave.
    pub(crate) async fn pairs_with_entries(
        &self,
        edge_type: EdgeTypeId,
        sources: &Frontier,
        newer_than: u64,
        branch: &mut Branch,
    ) -> Result<Vec<(VertexId, VertexId)>, EngineError> {
        let Some(of) = EdgesOf::new(self.schema(), edge_type, Direction::Out) else { return Ok(Vec::new()) };
        let plan = self.plan_entries(of, sources.ordinals(of.near), newer_than, branch).await?;
        let mut sink = EdgeSink::new(branch.context())?;
        self.run_part(sources, &plan, &mut sink, branch).await?;
        let mut pairs: Vec<_> = sink.edges.iter().map(|edge| (edge.from, edge.to)).collect();
        pairs.sort_unstable();
        Ok(pairs)
    }

    /// The degrees of vertices along a hop, in the order of the set. One wave, and one for properties in conditions.
    ///
    /// # Errors
    /// As [`Self::neighbours`].
    pub fn degrees<'a>(
        &'a self,
        frontier: &'a Frontier,
        hop: &'a Hop,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Held<Vec<Degree>>, EngineError>> {
        Box::pin(async move {
            let mut sink = DegreeSink::new(frontier, branch.context())?;
            if hop.predicates.is_empty() {
                self.check_hop(hop)?;
                let plan = self.plan_hop(frontier, hop, branch).await?;
                self.run_part(frontier, &plan, &mut sink, branch).await?;
            } else {
                let edges = self.neighbours(frontier, hop, branch).await?;
                let mut pace = branch.context().pace();
                for of_vertex in edges.chunk_by(|a, b| a.from == b.from) {
                    sink.add(of_vertex[0].from, of_vertex.len() as u64);
                    pace.rest(32).await?;
                }
            }
            Ok(sink.finish())
        })
    }
}
