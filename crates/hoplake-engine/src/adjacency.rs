//! Neighbours of sets of vertices: one wave a hop, whatever the size of the set.
//!
//! A hop becomes a plan: for every section it follows, which blocks hold the lists of which sources. The
//! resident index answers that without I/O. All blocks of all sections are then one read, and each is
//! decoded as it arrives, so that memory holds the blocks in flight and the result, not the plan's bytes.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use bytes::Bytes;
use futures::future::try_join_all;
use hoplake_format::{
    Direction, EdgeTypeId, FormatError, LabelId, TableOwner, VertexId,
    adjacency::{Block, Lists},
    segment::{BlockFirsts, SectionIndex, SectionKind},
};
use hoplake_storage::{BlockRequest, QueryContext, Wave};
use tokio::task::JoinSet;

use crate::{
    EngineError, Frontier, Predicate, Snapshot,
    frontier::OrdinalCollector,
    traversal::{Hop, HopDirection, Queue},
};

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
    /// Its position in the adjacency of that direction.
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

/// The lists of some sources in one block.
#[derive(Debug, Clone)]
pub(crate) struct ListTask {
    kind: SectionKind,
    near: LabelId,
    far: LabelId,
    block: usize,
    /// Which of the frontier's ordinals of the near label.
    sources: Range<usize>,
}

/// What becomes of the lists that a task finds.
pub(crate) trait Sink: Send + 'static {
    /// Takes the lists of one task.
    fn take(&mut self, task: &ListTask, lists: &Lists) -> Result<(), FormatError>;
}

/// The tasks of one hop and the wave in which the indexes they need were there.
pub(crate) struct Plan {
    pub(crate) tasks: Vec<ListTask>,
    pub(crate) ready: Wave,
}

impl Snapshot {
    /// Which blocks a hop from `frontier` reads.
    pub(crate) async fn plan_hop(
        &self,
        frontier: &Frontier,
        hop: &Hop,
        after: Wave,
        context: &QueryContext,
    ) -> Result<Plan, EngineError> {
        let mut plan = Plan { tasks: Vec::new(), ready: after };
        let mut wanted = Vec::new();
        for (near, ordinals) in frontier.by_label() {
            for direction in hop.direction.each() {
                for (edge_type, far) in self.edge_types_from(near, &hop.labels, *direction) {
                    let kind = SectionKind::Adjacency(edge_type, *direction);
                    wanted.push((ListTask { kind, near, far, block: 0, sources: 0..0 }, ordinals));
                }
            }
        }
        let kinds: Vec<_> = wanted.iter().map(|(base, _)| base.kind).collect();
        let (sections, ready) = self.sections_of(&kinds, after, context).await?;
        for ((base, ordinals), section) in wanted.iter().zip(sections) {
            if let Some(section) = section {
                plan_section(section.index, ordinals, base, &mut plan.tasks);
            }
        }
        plan.ready = ready;
        Ok(plan)
    }

    /// Reads the blocks of `tasks` in one wave and gives the lists to `sinks`, one for each part of the
    /// work; more than one part decodes on more than one thread.
    pub(crate) async fn run_tasks<S: Sink>(
        self: &Arc<Self>,
        frontier: &Arc<Frontier>,
        plan: Plan,
        sinks: Vec<S>,
        context: &QueryContext,
    ) -> Result<(Vec<S>, Wave), EngineError> {
        let Plan { tasks, ready } = plan;
        // Handing work over costs some microseconds; a few blocks are decoded in that time.
        let parts = sinks.len().min(tasks.len() / 16).max(1);
        if parts == 1 {
            let mut sinks = sinks;
            let wave = self.run_part(frontier, &tasks, &mut sinks[0], ready, context).await?;
            return Ok((sinks, wave));
        }
        let size = tasks.len().div_ceil(parts);
        // A set of tasks, so that whoever drops the query ends them all.
        let mut running = JoinSet::new();
        for (tasks, mut sink) in tasks.chunks(size).zip(sinks) {
            let (snapshot, frontier, context) = (self.clone(), frontier.clone(), context.clone());
            let tasks = tasks.to_vec();
            running.spawn(async move {
                let wave = snapshot.run_part(&frontier, &tasks, &mut sink, ready, &context).await?;
                Ok::<_, EngineError>((sink, wave))
            });
        }
        let mut results = Vec::new();
        while let Some(result) = running.join_next().await {
            results.push(result.map_err(|error| EngineError::Invalid(error.to_string()))??);
        }
        let wave = results.iter().map(|(_, wave)| *wave).max().unwrap_or(ready);
        Ok((results.into_iter().map(|(sink, _)| sink).collect(), wave))
    }

    /// The blocks that tasks read, in their order; the indexes they need are resident.
    pub(crate) fn requests(&self, tasks: &[ListTask]) -> Result<Vec<BlockRequest<'_>>, EngineError> {
        let request = |task: &ListTask| {
            let missing = || EngineError::Invalid(format!("the index of {:?} is not resident", task.kind));
            Ok(self.resident_section(task.kind).ok_or_else(missing)?.request(task.block))
        };
        tasks.iter().map(request).collect()
    }

    pub(crate) async fn run_part<S: Sink>(
        &self,
        frontier: &Frontier,
        tasks: &[ListTask],
        sink: &mut S,
        after: Wave,
        context: &QueryContext,
    ) -> Result<Wave, EngineError> {
        let requests = self.requests(tasks)?;
        let mut lists = Lists::default();
        let take = |index: usize, payload: Bytes| {
            let task = &tasks[index];
            let sources = &frontier.ordinals(task.near)[task.sources.clone()];
            let read = read_lists(&payload, sources, &mut lists).and_then(|()| sink.take(task, &lists));
            read.map_err(|source| {
                let place = self.reader().store().place(&requests[index].object.name);
                EngineError::Format { place: format!("{place}, {:?}, block {}", task.kind, task.block), source }
            })
        };
        let wave = self.reader().read_each(after, &requests, context, take).await?;
        if wave > after {
            self.read_whole(tasks.iter().map(|task| task.kind));
        }
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
        let (sinks, wave) = self.run_tasks(frontier, plan, sinks.collect(), context).await?;
        let mut edges = 0;
        let mut sets: BTreeMap<LabelId, OrdinalCollector> = BTreeMap::new();
        for sink in sinks {
            edges += sink.edges;
            for (label, set) in sink.sets {
                match sets.entry(label) {
                    std::collections::btree_map::Entry::Vacant(entry) => drop(entry.insert(set)),
                    std::collections::btree_map::Entry::Occupied(mut entry) => {
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
    /// edge type, direction and position. One wave, and one for properties in conditions.
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
        let read = self.run_part(frontier, &plan.tasks, &mut sink, plan.ready, context);
        let (wave, touched) = futures::future::try_join(read, touched).await?;
        let mut edges = sink.edges;
        edges.sort_unstable_by_key(|edge| (edge.from, edge.edge_type, edge.direction, edge.position));
        if edges.iter().any(|edge| !self.has_vertex(edge.to)) {
            return Err(EngineError::format(self.reader().store().url())(outside()));
        }
        self.keep_fulfilling(edges, hop, wave, wave.max(touched), context).await
    }

    /// The edges that fulfil all conditions of a hop. The properties of all conditions are one wave
    /// after `ready`; without conditions, the wave is that of the edges.
    async fn keep_fulfilling(
        &self,
        edges: Vec<Neighbour>,
        hop: &Hop,
        read: Wave,
        ready: Wave,
        context: &QueryContext,
    ) -> Result<(Vec<Neighbour>, Wave), EngineError> {
        if hop.predicates.is_empty() {
            return Ok((edges, read));
        }
        let mut of_property: BTreeMap<&str, Vec<&Predicate>> = BTreeMap::new();
        hop.predicates.iter().for_each(|it| of_property.entry(&it.property).or_default().push(it));
        let checks =
            of_property.iter().map(|(name, conditions)| self.fulfilling(&edges, name, conditions, ready, context));
        let (masks, waves): (Vec<_>, Vec<_>) = try_join_all(checks).await?.into_iter().unzip();
        let wave = waves.into_iter().max().unwrap_or(ready);
        let kept = |(row, edge): (usize, Neighbour)| masks.iter().all(|mask| mask[row]).then_some(edge);
        Ok((edges.into_iter().enumerate().filter_map(kept).collect(), wave))
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

    /// Where a condition of a hop along an edge type finds its property.
    fn property_owner(&self, edge_type: EdgeTypeId, direction: Direction, name: &str) -> Option<PropertyPlace> {
        let edge = self.schema().edge_type(edge_type)?;
        if let Some(property) = edge.properties.iter().find(|property| property.name == name) {
            return Some(PropertyPlace { owner: TableOwner::Edges(edge_type, direction), kind: property.kind });
        }
        let far = edge.far(direction);
        let property = self.schema().label(far)?.properties.iter().find(|property| property.name == name)?;
        Some(PropertyPlace { owner: TableOwner::Vertices(far), kind: property.kind })
    }

    /// Refuses conditions that nothing along the hop could ever fulfil for want of the property.
    pub(crate) fn check_predicates(&self, hop: &Hop) -> Result<(), EngineError> {
        for predicate in &hop.predicates {
            let mut known = false;
            for (edge_type, edge) in self.schema().edge_types() {
                if !hop.labels.is_empty() && !hop.labels.contains(&edge.label) {
                    continue;
                }
                for direction in hop.direction.each() {
                    if let Some(place) = self.property_owner(edge_type, *direction, &predicate.property) {
                        predicate.literal(place.kind)?;
                        known = true;
                    }
                }
            }
            if !known {
                let message = format!(
                    "neither the edges of {hop} nor the vertices they reach have a property {:?}",
                    predicate.property
                );
                return Err(EngineError::Invalid(message));
            }
        }
        Ok(())
    }

    async fn touch_predicates(
        &self,
        frontier: &Frontier,
        hop: &Hop,
        after: Wave,
        context: &QueryContext,
    ) -> Result<Wave, EngineError> {
        let mut touches = Vec::new();
        for predicate in &hop.predicates {
            for (near, _) in frontier.by_label() {
                for direction in hop.direction.each() {
                    for (edge_type, _) in self.edge_types_from(near, &hop.labels, *direction) {
                        if let Some(place) = self.property_owner(edge_type, *direction, &predicate.property) {
                            touches.push(self.touch_tables(place.owner, after, context));
                        }
                    }
                }
            }
        }
        Ok(try_join_all(touches).await?.into_iter().max().unwrap_or(after))
    }

    /// Which edges fulfil all `conditions`, which are on one property.
    async fn fulfilling(
        &self,
        edges: &[Neighbour],
        property: &str,
        conditions: &[&Predicate],
        after: Wave,
        context: &QueryContext,
    ) -> Result<(Vec<bool>, Wave), EngineError> {
        let mut rows: BTreeMap<TableOwner, (PropertyPlace, Vec<u64>)> = BTreeMap::new();
        let mut owners = Vec::with_capacity(edges.len());
        for edge in edges {
            let place = self.property_owner(edge.edge_type, edge.direction, property);
            owners.push(place.map(|place| place.owner));
            if let Some(place) = place {
                let row = match place.owner {
                    TableOwner::Edges(..) => edge.position,
                    TableOwner::Vertices(_) => edge.to.ordinal(),
                };
                rows.entry(place.owner).or_insert((place, Vec::new())).1.push(row);
            }
        }
        let column = [property.to_owned()];
        let reads = rows.iter().map(|(owner, (_, rows))| self.table_rows(*owner, rows, &column, after, context));
        let read = try_join_all(reads).await?;
        let wave = read.iter().map(|(_, wave)| *wave).max().unwrap_or(after);
        let mut masks = BTreeMap::new();
        for ((owner, (place, _)), (batch, _)) in rows.iter().zip(read) {
            let mut mask = vec![true; batch.num_rows()];
            for condition in conditions {
                let fulfilled = condition.evaluate(batch.column(0), &condition.literal(place.kind)?)?;
                mask.iter_mut().zip(fulfilled).for_each(|(all, one)| *all &= one);
            }
            masks.insert(*owner, mask.into_iter());
        }
        let fulfils = |owner: Option<TableOwner>| owner.and_then(|owner| masks.get_mut(&owner)?.next()) == Some(true);
        Ok((owners.into_iter().map(fulfils).collect(), wave))
    }
}

#[derive(Debug, Clone, Copy)]
struct PropertyPlace {
    owner: TableOwner,
    kind: hoplake_format::PropertyType,
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

/// Which blocks of a section hold the lists of `ordinals`, which ascend.
fn plan_section(index: &SectionIndex, ordinals: &[u64], base: &ListTask, tasks: &mut Vec<ListTask>) {
    let BlockFirsts::Sources(firsts) = &index.firsts else { return };
    let mut at = ordinals.partition_point(|ordinal| firsts.first().is_none_or(|first| ordinal < first));
    while at < ordinals.len() {
        let blocks = index.blocks_of_source(ordinals[at]);
        let Some(last) = blocks.end.checked_sub(1) else { return };
        // All blocks but the last hold nothing but this one hub.
        for block in blocks.start..last {
            tasks.push(ListTask { block, sources: at..at + 1, ..base.clone() });
        }
        let next = firsts.get(last + 1).copied().unwrap_or(u64::MAX);
        let end = at + 1 + ordinals[at + 1..].partition_point(|ordinal| *ordinal < next);
        tasks.push(ListTask { block: last, sources: at..end, ..base.clone() });
        at = end;
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
    fn take(&mut self, task: &ListTask, lists: &Lists) -> Result<(), FormatError> {
        self.edges += lists.targets.len() as u64;
        if let Some((queue, hop)) = &self.next {
            queue.offer(*hop, lists.targets.iter().filter_map(|target| VertexId::new(task.far, *target)));
        }
        let universe = self.snapshot.vertex_count(task.far);
        let set = self.sets.entry(task.far).or_insert_with(|| OrdinalCollector::new(universe));
        set.extend(&lists.targets).then_some(()).ok_or_else(outside)
    }
}

/// Collects every edge.
pub(crate) struct EdgeSink {
    pub(crate) edges: Vec<Neighbour>,
}

impl Sink for EdgeSink {
    fn take(&mut self, task: &ListTask, lists: &Lists) -> Result<(), FormatError> {
        let SectionKind::Adjacency(edge_type, direction) = task.kind else { return Ok(()) };
        for (source, first_edge, targets) in lists.iter() {
            let from = VertexId::new(task.near, source).ok_or_else(outside)?;
            for (position, target) in (first_edge..).zip(targets) {
                let to = VertexId::new(task.far, *target).ok_or_else(outside)?;
                self.edges.push(Neighbour { from, to, edge_type, direction, position });
            }
        }
        Ok(())
    }
}
