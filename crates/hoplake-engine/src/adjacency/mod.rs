//! Neighbours of sets of vertices: one wave a hop, whatever the size of the set.
//!
//! A hop becomes a [`plan`]: which blocks of which sections hold the lists of which sources. All blocks of all
//! sections are then one read, and each is decoded as it arrives, so that memory holds the blocks in flight and the
//! result, not the plan's bytes. Only lists that several parts of an edge type may change wait for each other
//! ([`merge`]).

mod conditions;
pub(crate) mod merge;
mod plan;

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    sync::Arc,
};

use bytes::Bytes;
use hoplake_format::{
    Direction, EdgeTypeId, FormatError, LabelId, VertexId,
    adjacency::{Block, Lists},
};
use hoplake_storage::{QueryContext, Wave};
use tokio::task::JoinSet;

use crate::{
    EngineError, Frontier, Snapshot,
    frontier::OrdinalCollector,
    traversal::{Hop, HopDirection, Queue},
};
use merge::Merger;
use plan::{EdgesOf, ListTask};

pub(crate) use plan::Plan;

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
    /// Which part holds it: the newest version whose changes the part has.
    pub part: u64,
    /// Its position in the part's adjacency of that direction.
    pub position: u64,
}

/// How many edges of a hop a vertex has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Degree {
    /// The vertex.
    pub vertex: VertexId,
    /// Its edges.
    pub edges: u64,
}

/// What becomes of the lists that are found.
pub(crate) trait Sink: Send + 'static {
    /// Takes lists of one part, which is named by its newest version. A source may have several.
    fn take(&mut self, of: EdgesOf, part: u64, lists: &Lists) -> Result<(), FormatError>;
}

impl Snapshot {
    /// Reads the blocks of a plan in one wave and gives the lists to `sinks`, one for each part of the
    /// work; more than one part decodes on more than one thread.
    pub(crate) async fn run_plan<S: Sink>(
        self: &Arc<Self>,
        frontier: &Arc<Frontier>,
        plan: Plan,
        mut sinks: Vec<S>,
        context: &QueryContext,
    ) -> Result<(Vec<S>, Wave), EngineError> {
        // Handing work over costs some microseconds; a few blocks are decoded in that time.
        let parts = sinks.len().min(plan.all_tasks().count() / 16).max(1);
        if parts == 1 {
            let wave = self.run_part(frontier, &plan, &mut sinks[0], context).await?;
            return Ok((sinks, wave));
        }
        let ready = plan.ready;
        // A set of tasks, so that whoever drops the query ends them all.
        let mut running = JoinSet::new();
        for (plan, mut sink) in plan.cut(parts).into_iter().zip(sinks) {
            let (snapshot, frontier, context) = (self.clone(), frontier.clone(), context.clone());
            running.spawn(async move {
                let wave = snapshot.run_part(&frontier, &plan, &mut sink, &context).await?;
                Ok::<_, EngineError>((sink, wave))
            });
        }
        let mut results = Vec::new();
        while let Some(result) = running.join_next().await {
            results.push(result.map_err(|error| EngineError::Internal(format!("a task stopped: {error}")))??);
        }
        let wave = results.iter().map(|(_, wave)| *wave).max().unwrap_or(ready);
        Ok((results.into_iter().map(|(sink, _)| sink).collect(), wave))
    }

    pub(crate) async fn run_part<S: Sink>(
        &self,
        frontier: &Frontier,
        plan: &Plan,
        sink: &mut S,
        context: &QueryContext,
    ) -> Result<Wave, EngineError> {
        let tasks: Vec<&ListTask> = plan.all_tasks().collect();
        let requests = self.requests(tasks.iter().copied())?;
        let mut mergers: Vec<Merger> = plan.merges.iter().map(|_| Merger::default()).collect();
        // Tasks of merges follow the single ones; where each merge's end.
        let mut end = plan.tasks.len();
        let ends: Vec<usize> = plan
            .merges
            .iter()
            .map(|merge| {
                end += merge.tasks.len();
                end
            })
            .collect();
        let mut lists = Lists::default();
        let take = |index: usize, payload: Bytes| {
            let task = tasks[index];
            let merge = (index >= plan.tasks.len()).then(|| ends.partition_point(|end| *end <= index));
            let sources = match merge {
                Some(merge) => &plan.merges[merge].sources[task.sources.clone()],
                None => &frontier.ordinals(task.of.near)[task.sources.clone()],
            };
            let read = read_lists(&payload, sources, &mut lists).and_then(|()| match merge {
                Some(merge) => {
                    mergers[merge].take(task, &lists);
                    Ok(())
                }
                None => sink.take(task.of, task.place.versions.until, &lists),
            });
            read.map_err(|source| {
                let place = self.reader().store().place(&requests[index].object.name);
                EngineError::Format { place: format!("{place}, {:?}, block {}", task.of, task.block), source }
            })
        };
        let wave = self.reader().read_each(plan.ready, &requests, context, take).await?;
        if wave > plan.ready {
            self.read_whole(tasks.iter().map(|task| task.place), context);
        }
        let finished = mergers.into_iter().try_for_each(|merger| merger.finish(sink));
        finished.map_err(EngineError::format(self.reader().store().url()))?;
        Ok(wave)
    }

    /// The set that a hop from `frontier` reaches, and how many edges led there. Whom each block reaches is
    /// told to the queue of `next`, with the number of the hop to come, as soon as the block is here.
    pub(crate) async fn neighbour_set(
        self: &Arc<Self>,
        frontier: &Arc<Frontier>,
        hop: &Hop,
        parallelism: usize,
        next: Option<(Arc<Queue>, usize)>,
        after: Wave,
        context: &QueryContext,
    ) -> Result<(Frontier, u64, Wave), EngineError> {
        let plan = self.plan_hop(frontier, hop, after, context).await?;
        let sink = |_| SetSink { snapshot: self.clone(), sets: BTreeMap::new(), edges: 0, next: next.clone() };
        let sinks = (0..parallelism.max(1)).map(sink);
        let (sinks, wave) = self.run_plan(frontier, plan, sinks.collect(), context).await?;
        let mut edges = 0;
        let mut sets: BTreeMap<LabelId, OrdinalCollector> = BTreeMap::new();
        for sink in sinks {
            edges += sink.edges;
            for (label, set) in sink.sets {
                match sets.entry(label) {
                    Entry::Vacant(entry) => drop(entry.insert(set)),
                    Entry::Occupied(mut entry) => {
                        let place = self.reader().store().url();
                        entry
                            .get_mut()
                            .merge(set)
                            .then_some(())
                            .ok_or_else(outside)
                            .map_err(EngineError::format(place))?;
                    }
                }
            }
        }
        let mut reached = Frontier::default();
        for (label, set) in sets {
            let place = self.reader().store().url();
            reached.set(label, set.finish().ok_or_else(outside).map_err(EngineError::format(place))?);
        }
        Ok((reached, edges, wave))
    }

    /// The edges of a hop from `frontier` that fulfil the hop's conditions, in the order of vertex left,
    /// edge type, direction, vertex reached and position. One wave, and one for properties in conditions.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] if the graph has no edge label of that name; [`EngineError::Invalid`] if a
    /// condition names no property or compares it with a wrong value; the store's; [`EngineError::Format`] if
    /// a block is damaged.
    pub async fn neighbours(
        &self,
        frontier: &Frontier,
        hop: &Hop,
        after: Wave,
        context: &QueryContext,
    ) -> Result<(Vec<Neighbour>, Wave), EngineError> {
        self.check_hop(hop)?;
        let plan = self.plan_hop(frontier, hop, after, context).await?;
        let mut sink = EdgeSink { edges: Vec::new() };
        let touched = self.touch_predicates(frontier, hop, after, context);
        let read = self.run_part(frontier, &plan, &mut sink, context);
        let (wave, touched) = futures::future::try_join(read, touched).await?;
        let mut edges = sink.edges;
        edges.sort_unstable_by_key(|edge| (edge.from, edge.edge_type, edge.direction, edge.to, edge.position));
        if edges.iter().any(|edge| !self.has_vertex(edge.to)) {
            return Err(EngineError::format(self.reader().store().url())(outside()));
        }
        self.keep_fulfilling(edges, hop, wave, wave.max(touched), context).await
    }

    /// All pairs of an edge type with one of these sources that some part mentions which has changes of later versions
    /// than `newer_than`: those that have edges, and those that have none any more. One wave.
    pub(crate) async fn mentioned_pairs(
        &self,
        edge_type: EdgeTypeId,
        sources: &Frontier,
        newer_than: u64,
        after: Wave,
        context: &QueryContext,
    ) -> Result<(BTreeSet<(VertexId, VertexId)>, Wave), EngineError> {
        let Some(described) = self.schema().edge_type(edge_type) else { return Ok((BTreeSet::new(), after)) };
        let (near, far) = (described.source, described.target);
        let of = EdgesOf { edge_type, direction: Direction::Out, near, far };
        let plan = self.plan_mentions(of, sources.ordinals(near), newer_than, after, context).await?;
        let mut sink = EdgeSink { edges: Vec::new() };
        let wave = self.run_part(sources, &plan, &mut sink, context).await?;
        Ok((sink.edges.iter().map(|edge| (edge.from, edge.to)).collect(), wave))
    }

    /// The degrees of vertices along a hop, in the order of the set. One wave.
    ///
    /// # Errors
    /// As [`Self::neighbours`].
    pub async fn degrees(
        &self,
        frontier: &Frontier,
        hop: &Hop,
        after: Wave,
        context: &QueryContext,
    ) -> Result<(Vec<Degree>, Wave), EngineError> {
        let (edges, wave) = self.neighbours(frontier, hop, after, context).await?;
        let mut edges = edges.iter().peekable();
        let degree = |vertex: VertexId| {
            let mut count = 0;
            while edges.next_if(|edge| edge.from == vertex).is_some() {
                count += 1;
            }
            Degree { vertex, edges: count }
        };
        Ok((frontier.vertices().map(degree).collect(), wave))
    }
}

impl HopDirection {
    /// The directions that it follows.
    pub(crate) fn each(self) -> &'static [Direction] {
        match self {
            Self::Out => &[Direction::Out],
            Self::In => &[Direction::In],
            Self::Both => &Direction::ALL,
        }
    }
}

fn read_lists(payload: &[u8], sources: &[u64], lists: &mut Lists) -> Result<(), FormatError> {
    lists.clear();
    let block = Block::parse(payload)?;
    let (first, last) = (block.first_source(), block.last_source());
    // Every source of the block is wanted: one pass over it is cheaper than many jumps into it.
    let dense = sources.first().is_some_and(|source| *source <= first)
        && sources.last().is_some_and(|source| *source >= last)
        && sources.last().zip(sources.first()).is_some_and(|(to, from)| to - from + 1 == sources.len() as u64);
    if dense { block.decode_all(lists) } else { block.lists(sources, lists) }
}

fn outside() -> FormatError {
    FormatError::corrupt("adjacency block", "it names a vertex that the label does not have")
}

/// Collects the set that is reached.
struct SetSink {
    snapshot: Arc<Snapshot>,
    sets: BTreeMap<LabelId, OrdinalCollector>,
    edges: u64,
    next: Option<(Arc<Queue>, usize)>,
}

impl Sink for SetSink {
    fn take(&mut self, of: EdgesOf, _part: u64, lists: &Lists) -> Result<(), FormatError> {
        self.edges += lists.targets.len() as u64;
        if let Some((queue, hop)) = &self.next {
            queue.offer(*hop, lists.targets.iter().filter_map(|target| VertexId::new(of.far, *target)));
        }
        let universe = self.snapshot.ordinal_count(of.far);
        let set = self.sets.entry(of.far).or_insert_with(|| OrdinalCollector::new(universe));
        set.extend(&lists.targets).then_some(()).ok_or_else(outside)
    }
}

/// Collects every edge.
pub(crate) struct EdgeSink {
    pub(crate) edges: Vec<Neighbour>,
}

impl Sink for EdgeSink {
    fn take(&mut self, of: EdgesOf, part: u64, lists: &Lists) -> Result<(), FormatError> {
        let EdgesOf { edge_type, direction, near, far } = of;
        for (source, first_edge, targets) in lists.iter() {
            let from = VertexId::new(near, source).ok_or_else(outside)?;
            for (position, target) in (first_edge..).zip(targets) {
                let to = VertexId::new(far, *target).ok_or_else(outside)?;
                self.edges.push(Neighbour { from, to, edge_type, direction, part, position });
            }
        }
        Ok(())
    }
}
