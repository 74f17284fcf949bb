//! What becomes of the lists of a hop: a set, edges, or degrees.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

use hoplake_format::{LabelId, VertexId, adjacency::Lists};
use hoplake_storage::{MemoryHold, QueryContext, StorageError};

use super::{Queue, sink::Sink};
use crate::{
    Frontier, Held, Snapshot,
    memory::bytes_of,
    pieces::end_of,
    read::{
        edges::{EdgesBuilder, Stored},
        frontier::{OrdinalCollector, SinkError, outside},
        hop::EdgesOf,
    },
};

/// How many edges of a hop a vertex has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Degree {
    /// The vertex.
    pub vertex: VertexId,
    /// Its edges.
    pub edges: u64,
}

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
        // The collector rejects ordinals beyond this count, so a damaged block cannot grow the bitmap.
        let universe = self.snapshot.ordinal_count(of.far);
        collector(&mut self.sets, of.far, universe, &self.context)?.extend(&lists.targets)
    }
}

/// Collects every edge.
pub(crate) struct EdgeSink {
    pub(crate) edges: EdgesBuilder,
}

impl EdgeSink {
    pub(crate) fn new(context: &QueryContext) -> Result<Self, StorageError> {
        Ok(Self { edges: EdgesBuilder::new(context)? })
    }
}

impl Sink for EdgeSink {
    fn take(&mut self, of: EdgesOf, run: u64, lists: &Lists) -> Result<(), SinkError> {
        let EdgesOf { edge_type, direction, near, far } = of;
        self.edges.reserve(lists.targets.len())?;
        // Whether an end exists is checked once all edges are here; this check is that each is an ordinal at all, so that the filter
        // below drops nothing and positions stay right.
        if lists.targets.iter().any(|target| *target > VertexId::ORDINAL_MAX) {
            return Err(outside().into());
        }
        let stored = self.edges.number(Stored { edge_type, direction, run });
        for (source, first_edge, targets) in lists.iter() {
            let from = VertexId::new(near, source).ok_or_else(outside)?;
            let targets = targets.iter().filter_map(|target| VertexId::new(far, *target));
            self.edges.push(from, stored, first_edge, targets, false)?;
        }
        Ok(())
    }
}

/// The edges of several sinks, in no order.
pub(super) async fn all_edges(sinks: Vec<EdgeSink>, context: &QueryContext) -> Result<EdgesBuilder, StorageError> {
    let mut sinks = sinks.into_iter().map(|sink| sink.edges);
    let Some(mut all) = sinks.next() else { return EdgesBuilder::new(context) };
    let mut pace = context.pace();
    for edges in sinks {
        all.append(edges.finish().all(), &mut pace).await?;
    }
    Ok(all)
}

/// Counts the edges of each vertex of a frontier: 16 bytes a vertex, whatever its degree.
pub(super) struct DegreeSink {
    /// In order.
    degrees: Vec<Degree>,
    memory: MemoryHold,
}

impl DegreeSink {
    pub(super) fn new(frontier: &Frontier, context: &QueryContext) -> Result<Self, StorageError> {
        let memory = context.hold(bytes_of::<Degree>(frontier.len()))?;
        let degrees = frontier.vertices().map(|vertex| Degree { vertex, edges: 0 }).collect();
        Ok(Self { degrees, memory })
    }

    /// Counts edges of a vertex, and returns where it looked; it is sought from there on.
    pub(super) fn add(&mut self, from: usize, vertex: VertexId, edges: u64) -> usize {
        let at = end_of(&self.degrees, from, |degree| degree.vertex < vertex);
        if let Some(degree) = self.degrees.get_mut(at).filter(|degree| degree.vertex == vertex) {
            degree.edges += edges;
        }
        at
    }

    pub(super) fn finish(self) -> Held<Vec<Degree>> {
        Held::new(self.degrees, self.memory)
    }
}

impl Sink for DegreeSink {
    fn take(&mut self, of: EdgesOf, _part: u64, lists: &Lists) -> Result<(), SinkError> {
        let mut at = 0;
        for (source, _, targets) in lists.iter() {
            // Lists ascend by source.
            at = self.add(at, VertexId::new(of.near, source).ok_or_else(outside)?, targets.len() as u64);
        }
        Ok(())
    }
}
