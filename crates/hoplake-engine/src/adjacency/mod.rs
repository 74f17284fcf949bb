//! Neighbours of sets of vertices: one wave a hop, whatever the size of the set.
//!
//! A hop becomes a [`plan`]: which blocks of which sections hold the lists of which sources. All blocks of all
//! sections are then one read, and each is decoded as it arrives, so that memory holds the blocks in flight and the
//! result, not the plan's bytes. Only lists that several parts of an edge type may change wait for each other
//! ([`merge`]).

mod conditions;
mod layer;
pub(crate) mod merge;
mod plan;
mod planner;

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

use bytes::Bytes;
use futures::future::BoxFuture;
use hoplake_format::{
    Direction, EdgeTypeId, FormatError, LabelId, VertexId,
    adjacency::{Block, Lists},
};
use hoplake_storage::{Branch, QueryContext, StorageError};
use tokio::task::JoinSet;

use crate::{
    EngineError, Frontier, Held, Snapshot,
    frontier::{OrdinalCollector, SinkError, outside},
    memory::HeldVec,
    pieces::{STEP, sort_by_key},
    traversal::{Hop, HopDirection, Queue},
};
use merge::Merger;
use plan::EdgesOf;

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
    fn take(&mut self, of: EdgesOf, part: u64, lists: &Lists) -> Result<(), SinkError>;
}

impl Snapshot {
    /// Reads the blocks of a plan in one wave and gives the lists to `sinks`, one for each part of the
    /// work; more than one part decodes on more than one thread.
    pub(crate) async fn run_plan<S: Sink>(
        self: &Arc<Self>,
        frontier: &Arc<Frontier>,
        plan: Plan,
        mut sinks: Vec<S>,
        branch: &mut Branch,
    ) -> Result<Vec<S>, EngineError> {
        // Handing work over costs some microseconds; a few blocks are decoded in that time.
        let parts = sinks.len().min(plan.all_tasks().count() / 16).max(1);
        if parts == 1 {
            self.run_part(frontier, &plan, &mut sinks[0], branch).await?;
            return Ok(sinks);
        }
        // A set of tasks, so that whoever drops the query ends them all.
        let mut running = JoinSet::new();
        for (plan, mut sink) in plan.cut(parts).into_iter().zip(sinks) {
            let (snapshot, frontier, mut line) = (self.clone(), frontier.clone(), branch.clone());
            running.spawn(async move {
                snapshot.run_part(&frontier, &plan, &mut sink, &mut line).await?;
                Ok::<_, EngineError>((sink, line))
            });
        }
        let mut results = Vec::new();
        while let Some(result) = running.join_next().await {
            results.push(result.map_err(|error| EngineError::Internal(format!("a task stopped: {error}")))??);
        }
        branch.join(results.iter().map(|(_, line)| line));
        Ok(results.into_iter().map(|(sink, _)| sink).collect())
    }

    pub(crate) async fn run_part<S: Sink>(
        &self,
        frontier: &Frontier,
        plan: &Plan,
        sink: &mut S,
        branch: &mut Branch,
    ) -> Result<(), EngineError> {
        let context = branch.context().clone();
        let tasks: Vec<&ListTask> = plan.all_tasks().collect();
        let requests = self.requests(tasks.iter().copied())?;
        let merger = |_| Merger::new(&context);
        let mut mergers = plan.merges.iter().map(merger).collect::<Result<Vec<_>, _>>()?;
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
            let read = read_lists(&payload, sources, &mut lists).map_err(SinkError::from);
            let taken = read.and_then(|()| match merge {
                Some(merge) => Ok(mergers[merge].take(task, &lists)?),
                None => sink.take(task.of, task.until, &lists),
            });
            taken.map_err(|error| {
                let place = self.reader().store().place(&requests[index].object.name);
                error.at(format!("{place}, {:?}, block at byte {}", task.of, task.block.start))
            })
        };
        let before = branch.wave();
        self.reader().read_each(&requests, branch, take).await?;
        if branch.wave() > before {
            self.read_whole(tasks.iter().map(|task| task.place), &context);
        }
        let mut pace = context.pace();
        for merger in mergers {
            let units = merger.len() as u64 * 16;
            merger.finish(sink).map_err(|error| error.at(self.reader().store().url()))?;
            pace.rest(units).await?;
        }
        Ok(())
    }

    /// The set that a hop from `frontier` reaches, and how many edges led there. Whom each block reaches is
    /// told to the queue of `next`, with the number of the hop to come, as soon as the block is here.
    pub(crate) async fn neighbour_set(
        self: &Arc<Self>,
        frontier: &Arc<Frontier>,
        hop: &Hop,
        parallelism: usize,
        next: Option<(Arc<Queue>, usize)>,
        branch: &mut Branch,
    ) -> Result<(Held<Frontier>, u64), EngineError> {
        let plan = self.plan_hop(frontier, hop, branch).await?;
        let context = branch.context().clone();
        let sink = |_| SetSink {
            snapshot: self.clone(),
            sets: BTreeMap::new(),
            edges: 0,
            next: next.clone(),
            context: context.clone(),
        };
        let sinks = (0..parallelism.max(1)).map(sink);
        let sinks = self.run_plan(frontier, plan, sinks.collect(), branch).await?;
        let edges = sinks.iter().map(|sink| sink.edges).sum();
        let sets = sinks.into_iter().map(|sink| sink.sets);
        let reached = union(sets, &context).await.map_err(|error| error.at(self.reader().store().url()))?;
        Ok((reached, edges))
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
            let mut touching = branch.clone();
            let touched = self.touch_predicates(frontier, hop, &mut touching);
            let read = async {
                let plan = self.plan_hop(frontier, hop, branch).await?;
                let mut sink = EdgeSink::new(branch.context())?;
                self.run_part(frontier, &plan, &mut sink, branch).await?;
                Ok(sink.edges)
            };
            let (mut edges, ()) = futures::future::try_join(read, touched).await?;
            branch.join([&touching]);
            let context = branch.context().clone();
            let order = |edge: &Neighbour| (edge.from, edge.edge_type, edge.direction, edge.to, edge.position);
            sort_by_key(edges.items(), order, &context).await?;
            let mut pace = context.pace();
            for step in edges.chunks(STEP) {
                if step.iter().any(|edge| !self.has_vertex(edge.to)) {
                    return Err(EngineError::format(self.reader().store().url())(outside()));
                }
                pace.rest(step.len() as u64).await?;
            }
            let edges = edges.finish();
            self.keep_fulfilling(edges, hop, branch).await
        })
    }

    /// All pairs of an edge type with one of these sources that some part mentions which has changes of later versions
    /// than `newer_than`: those that have edges, and those that have none any more. Ascending, perhaps with repeats. One wave.
    pub(crate) async fn mentioned_pairs(
        &self,
        edge_type: EdgeTypeId,
        sources: &Frontier,
        newer_than: u64,
        branch: &mut Branch,
    ) -> Result<Vec<(VertexId, VertexId)>, EngineError> {
        let Some(described) = self.schema().edge_type(edge_type) else { return Ok(Vec::new()) };
        let (near, far) = (described.source, described.target);
        let of = EdgesOf { edge_type, direction: Direction::Out, near, far };
        let plan = self.plan_mentions(of, sources.ordinals(near), newer_than, branch).await?;
        let mut sink = EdgeSink::new(branch.context())?;
        self.run_part(sources, &plan, &mut sink, branch).await?;
        let mut pairs: Vec<_> = sink.edges.iter().map(|edge| (edge.from, edge.to)).collect();
        pairs.sort_unstable();
        Ok(pairs)
    }

    /// The degrees of vertices along a hop, in the order of the set. One wave.
    ///
    /// # Errors
    /// As [`Self::neighbours`].
    pub fn degrees<'a>(
        &'a self,
        frontier: &'a Frontier,
        hop: &'a Hop,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Vec<Degree>, EngineError>> {
        Box::pin(async move {
            let edges = self.neighbours(frontier, hop, branch).await?;
            let mut at = 0;
            let mut pace = branch.context().pace();
            let mut degrees = Vec::with_capacity(frontier.len());
            for vertex in frontier.vertices() {
                let count = edges[at..].partition_point(|edge| edge.from == vertex);
                at += count;
                degrees.push(Degree { vertex, edges: count as u64 });
                pace.rest(32).await?;
            }
            Ok(degrees)
        })
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

/// The collector of a label, which has `universe` ordinals.
fn collector<'a>(
    sets: &'a mut BTreeMap<LabelId, OrdinalCollector>,
    label: LabelId,
    universe: u64,
    context: &QueryContext,
) -> Result<&'a mut OrdinalCollector, StorageError> {
    Ok(match sets.entry(label) {
        Entry::Occupied(entry) => entry.into_mut(),
        Entry::Vacant(entry) => entry.insert(OrdinalCollector::new(universe, context)?),
    })
}

/// What several tasks collected, as one set.
async fn union(
    parts: impl Iterator<Item = BTreeMap<LabelId, OrdinalCollector>>,
    context: &QueryContext,
) -> Result<Held<Frontier>, SinkError> {
    let mut pace = context.pace();
    let mut sets: BTreeMap<LabelId, OrdinalCollector> = BTreeMap::new();
    for (label, set) in parts.flatten() {
        match sets.entry(label) {
            Entry::Vacant(entry) => drop(entry.insert(set)),
            Entry::Occupied(mut entry) => entry.get_mut().merge(set, &mut pace).await?,
        }
    }
    let mut reached = Frontier::default();
    let mut memory = context.hold(0)?;
    for (label, set) in sets {
        let (ordinals, held) = set.finish(&mut pace).await?;
        reached.set(label, ordinals);
        memory.join(held);
    }
    Ok(Held::new(reached, memory))
}

/// Collects the set that is reached.
struct SetSink {
    snapshot: Arc<Snapshot>,
    sets: BTreeMap<LabelId, OrdinalCollector>,
    edges: u64,
    next: Option<(Arc<Queue>, usize)>,
    context: QueryContext,
}

impl Sink for SetSink {
    fn take(&mut self, of: EdgesOf, _part: u64, lists: &Lists) -> Result<(), SinkError> {
        self.edges += lists.targets.len() as u64;
        if let Some((queue, hop)) = &self.next {
            queue.offer(*hop, lists.targets.iter().filter_map(|target| VertexId::new(of.far, *target)));
        }
        let universe = self.snapshot.ordinal_count(of.far);
        collector(&mut self.sets, of.far, universe, &self.context)?.extend(&lists.targets)
    }
}

/// Collects every edge.
pub(crate) struct EdgeSink {
    pub(crate) edges: HeldVec<Neighbour>,
}

impl EdgeSink {
    pub(crate) fn new(context: &QueryContext) -> Result<Self, StorageError> {
        Ok(Self { edges: HeldVec::new(context)? })
    }
}

impl Sink for EdgeSink {
    fn take(&mut self, of: EdgesOf, part: u64, lists: &Lists) -> Result<(), SinkError> {
        let EdgesOf { edge_type, direction, near, far } = of;
        self.edges.reserve(lists.targets.len())?;
        for (source, first_edge, targets) in lists.iter() {
            let from = VertexId::new(near, source).ok_or_else(outside)?;
            for (position, target) in (first_edge..).zip(targets) {
                let to = VertexId::new(far, *target).ok_or_else(outside)?;
                self.edges.push(Neighbour { from, to, edge_type, direction, part, position })?;
            }
        }
        Ok(())
    }
}
