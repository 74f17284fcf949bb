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
mod queue;
mod sink;
mod sinks;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use futures::future::BoxFuture;
use hoplake_format::{Direction, EdgeId, EdgeTypeId, LabelId, VertexId};
use hoplake_storage::{Branch, QueryContext};

use crate::{
    Edges, EngineError, Frontier, Held, Neighbour, Snapshot,
    pieces::STEP,
    read::{
        edges::EdgesBuilder,
        frontier::{OrdinalCollector, SinkError, outside},
        hop::{EdgesOf, Hop},
    },
};
use conditions::EdgeConditions;
use sinks::{DegreeSink, EdgeSink, SetSink, all_edges, collector, union};

pub(crate) use conditions::{End, check_hop, is_on_vertices, vertex_property};
pub(crate) use plan::{ListTask, Plan};
pub(crate) use queue::Queue;
pub use sinks::Degree;

/// The edges of a version, hop by hop.
#[derive(Debug, Clone, Copy)]
pub struct Adjacency<'a> {
    snapshot: &'a Arc<Snapshot>,
}

impl<'a> Adjacency<'a> {
    pub(crate) fn new(snapshot: &'a Arc<Snapshot>) -> Self {
        Self { snapshot }
    }

    /// The set that a hop from `frontier` reaches by a plan of it, and how many edges led there. Whom each block reaches is
    /// offered to the queue of `next` as soon as the block is here, if the hop has no condition.
    pub(crate) async fn reach(
        self,
        frontier: &Arc<Frontier>,
        hop: &Hop,
        plan: Plan,
        parallelism: usize,
        next: Option<(Arc<Queue>, usize)>,
        branch: &mut Branch,
    ) -> Result<(Held<Frontier>, u64), EngineError> {
        let context = branch.context().clone();
        let sinks = 0..parallelism.max(1);
        // Without a condition the edges are not needed: each task keeps the vertices reached, and the sets are united at the end.
        if hop.condition.is_none() {
            let sinks = sinks.map(|_| SetSink::new(self.snapshot, next.clone(), &context)).collect();
            let sinks = self.run_plan(frontier, plan, sinks, branch).await?;
            let edges = sinks.iter().map(|sink| sink.edges).sum();
            let sets = sinks.into_iter().map(|sink| sink.sets);
            let reached =
                union(sets, &context).await.map_err(|error| error.at(self.snapshot.reader().store().url()))?;
            return Ok((reached, edges));
        }
        let sinks = sinks.map(|_| EdgeSink::new(&context)).collect::<Result<_, _>>()?;
        // Which tables a condition needs follows from the schema, so their ends are read in the wave of the lists.
        let mut loading = branch.clone();
        let conditions = EdgeConditions::new(self.snapshot, End::Far);
        let loaded = conditions.load_metadata(frontier, hop, &mut loading);
        let read = self.run_plan(frontier, plan, sinks, branch);
        let (sinks, ()) = futures::future::try_join(read, loaded).await?;
        branch.join([&loading]);
        let edges = all_edges(sinks, &context).await?;
        // Before the rows of a vertex that is not there are looked for.
        self.check_ends(edges.targets(), &context).await?;
        let edges = conditions.keep_matching(edges.finish(), hop.condition.as_ref(), branch).await?;
        Ok((self.set_of(edges.targets(), &context).await?, edges.len() as u64))
    }

    /// Rejects edges to vertices that the graph does not have.
    async fn check_ends(self, ends: &[VertexId], context: &QueryContext) -> Result<(), EngineError> {
        let mut pace = context.pace();
        for step in ends.chunks(STEP) {
            // Targets of one list have one label, so the count is looked up for each run of a label and not for each edge.
            for run in step.chunk_by(|a, b| a.label() == b.label()) {
                let count = self.snapshot.ordinal_count(run[0].label());
                if run.iter().any(|vertex| vertex.ordinal() >= count) {
                    return Err(EngineError::format(self.snapshot.reader().store().url())(outside()));
                }
            }
            pace.rest(step.len() as u64).await?;
        }
        Ok(())
    }

    /// The set of some vertices, which may repeat.
    async fn set_of(self, vertices: &[VertexId], context: &QueryContext) -> Result<Held<Frontier>, EngineError> {
        let mut sets: BTreeMap<LabelId, OrdinalCollector> = BTreeMap::new();
        let mut pace = context.pace();
        let mut ordinals = Vec::new();
        let failed = |error: SinkError| error.at(self.snapshot.reader().store().url());
        for step in vertices.chunks(STEP) {
            for run in step.chunk_by(|a, b| a.label() == b.label()) {
                ordinals.clear();
                ordinals.extend(run.iter().map(|vertex| vertex.ordinal()));
                let label = run[0].label();
                collector(&mut sets, label, self.snapshot.ordinal_count(label), context)?
                    .extend(&ordinals)
                    .map_err(failed)?;
            }
            pace.rest(step.len() as u64).await?;
        }
        union(std::iter::once(sets), context).await.map_err(failed)
    }

    /// The edges of a hop from `frontier` that match the hop's condition, in the order of vertex left,
    /// edge type, direction, vertex reached and position. One wave, and one for properties in conditions.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] if the graph has no edge label of that name; [`EngineError::Invalid`] if a
    /// condition names no property or compares it with a wrong value; the store's; [`EngineError::Format`] if
    /// a block is damaged.
    pub fn neighbours(
        self,
        frontier: &'a Frontier,
        hop: &'a Hop,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Held<Edges>, EngineError>> {
        Box::pin(async move {
            check_hop(self.snapshot.schema(), hop)?;
            self.neighbours_of(frontier, hop, End::Far, branch).await
        })
    }

    /// The hop's edges that end in `frontier`, in the order of the reversed hop.
    /// The hop's condition is on the vertex that the hop reaches, which here is the one that each edge is read from.
    ///
    /// # Errors
    /// As [`Self::neighbours`].
    pub fn neighbours_against(
        self,
        frontier: &'a Frontier,
        hop: &'a Hop,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Held<Edges>, EngineError>> {
        Box::pin(async move {
            check_hop(self.snapshot.schema(), hop)?;
            self.neighbours_of(frontier, &hop.reversed(), End::Near, branch).await
        })
    }

    /// As [`Self::neighbours`] of a hop that was checked, with a condition on the vertex at one end of each edge.
    pub(crate) fn neighbours_of(
        self,
        frontier: &'a Frontier,
        hop: &'a Hop,
        end: End,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Held<Edges>, EngineError>> {
        Box::pin(async move {
            let conditions = EdgeConditions::new(self.snapshot, end);
            let mut edges = self.edges_of(frontier, hop, conditions, branch).await?;
            // Before conditions remove edges: the number is part of an edge's id, and counts all edges between the two vertices.
            edges.number_parallel(&mut None, &mut branch.context().pace()).await?;
            conditions.keep_matching(edges.finish(), hop.condition.as_ref(), branch).await
        })
    }

    /// The edges of a hop in their order, whatever its condition, whose metadata is read with them.
    async fn edges_of(
        self,
        frontier: &Frontier,
        hop: &Hop,
        conditions: EdgeConditions<'_>,
        branch: &mut Branch,
    ) -> Result<EdgesBuilder, EngineError> {
        let mut loading = branch.clone();
        let loaded = conditions.load_metadata(frontier, hop, &mut loading);
        let read = async {
            let plan = self.plan_hop(frontier, hop, branch).await?;
            let mut sink = EdgeSink::new(branch.context())?;
            self.run_part(frontier, &plan, &mut sink, branch).await?;
            Ok(sink.edges)
        };
        let (mut edges, ()) = futures::future::try_join(read, loaded).await?;
        branch.join([&loading]);
        let context = branch.context().clone();
        edges.sort().await?;
        self.check_ends(edges.targets(), &context).await?;
        Ok(edges)
    }

    /// The edges with these ids, in their order, as seen from their sources. One wave.
    ///
    /// # Errors
    /// As [`Self::neighbours`].
    pub fn edges(
        self,
        ids: &'a [EdgeId],
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Vec<Option<Neighbour>>, EngineError>> {
        Box::pin(async move {
            let edge_types = || ids.iter().filter_map(|id| self.snapshot.schema().edge_type(id.edge_type));
            let labels: BTreeSet<_> = edge_types().map(|edge| edge.label.clone()).collect();
            if labels.is_empty() {
                return Ok(vec![None; ids.len()]);
            }
            let sources = ids.iter().map(|id| id.source).filter(|source| self.snapshot.has_vertex(*source)).collect();
            let hop = Hop { labels: labels.into_iter().collect(), ..Hop::default() };
            let read = self.neighbours(&sources, &hop, branch).await?;
            let wanted: HashSet<_> = ids.iter().copied().collect();
            let mut found = HashMap::new();
            let mut pace = branch.context().pace();
            for edge in read.iter() {
                if wanted.contains(&edge.id()) {
                    found.insert(edge.id(), edge);
                }
                pace.rest(4).await?;
            }
            Ok(ids.iter().map(|id| found.get(id).copied()).collect())
        })
    }

    /// All pairs of an edge type with one of these sources that have an entry in a run with changes of later versions
    /// than `newer_than`: those that have edges, and those that have none any more. Ascending, perhaps with repeats. One wave.
    pub(crate) async fn pairs_with_entries(
        self,
        edge_type: EdgeTypeId,
        sources: &Frontier,
        newer_than: u64,
        branch: &mut Branch,
    ) -> Result<Vec<(VertexId, VertexId)>, EngineError> {
        let Some(of) = EdgesOf::new(self.snapshot.schema(), edge_type, Direction::Out) else { return Ok(Vec::new()) };
        let plan = self.plan_entries(of, sources.ordinals(of.near).view(), newer_than, branch).await?;
        let mut sink = EdgeSink::new(branch.context())?;
        self.run_part(sources, &plan, &mut sink, branch).await?;
        let edges = sink.edges.finish();
        let mut pairs: Vec<_> = edges.iter().map(|edge| (edge.from, edge.to)).collect();
        // Edges and tombstones are not distinguished here: either one means that the pair changed.
        pairs.sort_unstable();
        Ok(pairs)
    }

    /// The degrees of vertices along a hop, in the order of the set. One wave, and one for properties in conditions.
    ///
    /// # Errors
    /// As [`Self::neighbours`].
    pub fn degrees(
        self,
        frontier: &'a Frontier,
        hop: &'a Hop,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Held<Vec<Degree>>, EngineError>> {
        Box::pin(async move {
            let mut sink = DegreeSink::new(frontier, branch.context())?;
            if hop.condition.is_none() {
                check_hop(self.snapshot.schema(), hop)?;
                let plan = self.plan_hop(frontier, hop, branch).await?;
                self.run_part(frontier, &plan, &mut sink, branch).await?;
            } else {
                // A condition decides by edge, so the edges have to be there before they are counted.
                check_hop(self.snapshot.schema(), hop)?;
                let conditions = EdgeConditions::new(self.snapshot, End::Far);
                let edges = self.edges_of(frontier, hop, conditions, branch).await?.finish();
                let matching = conditions.matching(&edges, hop.condition.as_ref(), branch).await?;
                let mut at = 0;
                let mut begin = 0;
                let mut pace = branch.context().pace();
                for list in edges.lists() {
                    let length = list.targets.len();
                    let count = match &matching {
                        Some(matching) => matching.slice(begin, length).count_set_bits(),
                        None => length,
                    };
                    begin += length;
                    if count > 0 {
                        at = sink.add(at, list.from, count as u64);
                    }
                    pace.rest(32 + length as u64 / 64).await?;
                }
            }
            Ok(sink.finish())
        })
    }
}
