//! What becomes of the lists of a hop: a set, edges, or degrees.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

use hoplake_format::{LabelId, VertexId, adjacency::Lists};
use hoplake_storage::{MemoryHold, QueryContext, StorageError};

use super::{Degree, Neighbour, pipeline::Sink};
use crate::{
    Frontier, Held, Snapshot,
    frontier::{OrdinalCollector, SinkError, outside},
    hop::EdgesOf,
    memory::{HeldVec, bytes_of},
    pieces::{STEP, position_of},
    traversal::Queue,
};

/// The collector of a label, which has `universe` ordinals.
pub(super) fn collector<'a>(
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
pub(super) async fn union(
    runs: impl Iterator<Item = BTreeMap<LabelId, OrdinalCollector>>,
    context: &QueryContext,
) -> Result<Held<Frontier>, SinkError> {
    let mut pace = context.pace();
    let mut sets: BTreeMap<LabelId, OrdinalCollector> = BTreeMap::new();
    for (label, set) in runs.flatten() {
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
pub(super) struct SetSink {
    snapshot: Arc<Snapshot>,
    pub(super) sets: BTreeMap<LabelId, OrdinalCollector>,
    pub(super) edges: u64,
    next: Option<(Arc<Queue>, usize)>,
    context: QueryContext,
}

impl SetSink {
    /// Whom each block reaches is offered to the queue of `next`, with the number of the hop to come, as soon as the block is
    /// here.
    pub(super) fn new(snapshot: &Arc<Snapshot>, next: Option<(Arc<Queue>, usize)>, context: &QueryContext) -> Self {
        Self { snapshot: snapshot.clone(), sets: BTreeMap::new(), edges: 0, next, context: context.clone() }
    }
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
    fn take(&mut self, of: EdgesOf, run: u64, lists: &Lists) -> Result<(), SinkError> {
        let EdgesOf { edge_type, direction, near, far } = of;
        self.edges.reserve(lists.targets.len())?;
        for (source, first_edge, targets) in lists.iter() {
            let from = VertexId::new(near, source).ok_or_else(outside)?;
            for (position, target) in (first_edge..).zip(targets) {
                let to = VertexId::new(far, *target).ok_or_else(outside)?;
                self.edges.push(Neighbour { from, to, edge_type, direction, run, position, parallel: 0 })?;
            }
        }
        Ok(())
    }
}

/// The edges of several sinks, in no order.
pub(super) async fn all_edges(
    sinks: Vec<EdgeSink>,
    context: &QueryContext,
) -> Result<Held<Vec<Neighbour>>, StorageError> {
    let mut sinks = sinks.into_iter().map(|sink| sink.edges);
    let Some(mut all) = sinks.next() else { return Ok(HeldVec::new(context)?.finish()) };
    let mut pace = context.pace();
    for edges in sinks {
        all.reserve(edges.len())?;
        for step in edges.chunks(STEP) {
            all.items().extend_from_slice(step);
            pace.rest(step.len() as u64).await?;
        }
    }
    Ok(all.finish())
}

/// Counts the edges of each vertex of a frontier: 8 bytes a vertex, whatever its degree.
pub(super) struct DegreeSink<'a> {
    frontier: &'a Frontier,
    /// In the order of the frontier's ordinals.
    counts: BTreeMap<LabelId, Vec<u64>>,
    memory: MemoryHold,
}

impl<'a> DegreeSink<'a> {
    pub(super) fn new(frontier: &'a Frontier, context: &QueryContext) -> Result<Self, StorageError> {
        let memory = context.hold(bytes_of::<(u64, Degree)>(frontier.len()))?;
        let counts = frontier.by_label().map(|(label, ordinals)| (label, vec![0; ordinals.len()])).collect();
        Ok(Self { frontier, counts, memory })
    }

    /// Counts edges of a vertex.
    pub(super) fn add(&mut self, vertex: VertexId, edges: u64) {
        let position = self.frontier.ordinals(vertex.label()).binary_search(&vertex.ordinal());
        if let (Ok(position), Some(counts)) = (position, self.counts.get_mut(&vertex.label())) {
            counts[position] += edges;
        }
    }

    pub(super) fn finish(self) -> Held<Vec<Degree>> {
        let counts = self.counts.into_values().flatten();
        let degrees = self.frontier.vertices().zip(counts).map(|(vertex, edges)| Degree { vertex, edges });
        Held::new(degrees.collect(), self.memory)
    }
}

impl Sink for DegreeSink<'_> {
    fn take(&mut self, of: EdgesOf, _part: u64, lists: &Lists) -> Result<(), SinkError> {
        let Some(counts) = self.counts.get_mut(&of.near) else { return Ok(()) };
        let ordinals = self.frontier.ordinals(of.near);
        let mut at = 0;
        for (source, _, targets) in lists.iter() {
            // Lists ascend by source.
            at = position_of(ordinals, at, source);
            if ordinals.get(at) == Some(&source) {
                counts[at] += targets.len() as u64;
            }
        }
        Ok(())
    }
}
