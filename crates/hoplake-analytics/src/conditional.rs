//! Lists of the edges that match a condition.
//!
//! A scan reads lists without what the edges have besides their targets. So these lists are read as a hop reads them, of many vertices at a
//! time: a wave for the lists and one for the properties that the condition tests. An edge is kept only if its condition is true, neither
//! false nor unknown.
//!
//! A condition may be on the vertex that an edge reaches. Lists against its direction are read from that vertex, so that the same edges
//! are in the lists of both ends.

use std::{collections::VecDeque, ops::Range, sync::Arc};

use hoplake_engine::{
    DenseIds, Edges, EdgesOf, EngineError, Frontier, Held, Snapshot,
    traversal::{Hop, HopDirection},
};
use hoplake_format::{Direction, LabelId, VertexId};
use hoplake_storage::{Branch, MemoryHold};

use crate::{
    batch::Batch,
    selection::{Selected, edge_count},
};

/// Edges whose properties are read at a time, on average: each takes some 100 bytes meanwhile.
const READ_EDGES: u64 = 1 << 19;

/// Vertices whose edges are read at a time at most.
const READ_VERTICES: u64 = 1 << 16;

/// Edges of a batch, from which on no list is added to it.
const BATCH_EDGES: usize = 1 << 16;

/// An edge on its way into a batch: its ends, the place of its edge type and direction, and its weight.
type Entry = (u32, u32, u32, f64);

/// What an edge takes in a batch, with its list and its weight.
const BATCH_EDGE_BYTES: u64 = 4 + 12 + 8;

/// The lists of a range of vertices, in the order of dense ids.
pub(crate) struct ConditionalLists {
    snapshot: Arc<Snapshot>,
    ids: Arc<DenseIds>,
    /// In the direction in which the condition is evaluated.
    hop: Arc<Hop>,
    edges: Vec<EdgesOf>,
    weight: Option<String>,
    /// Labels to come, the first id of each, and the ids of it that are left.
    labels: VecDeque<(LabelId, u64, Range<u64>)>,
}

impl ConditionalLists {
    pub(crate) fn new(
        snapshot: &Arc<Snapshot>,
        selected: &Selected,
        hop: &Arc<Hop>,
        edges: &[EdgesOf],
        labels: VecDeque<(LabelId, u64, Range<u64>)>,
    ) -> Self {
        Self {
            snapshot: snapshot.clone(),
            ids: selected.ids.clone(),
            hop: hop.clone(),
            edges: edges.to_vec(),
            weight: selected.weight.clone(),
            labels,
        }
    }

    /// The next batches and what they take; none behind the last.
    pub(crate) async fn next(&mut self, branch: &mut Branch) -> Result<(Vec<Batch>, MemoryHold), EngineError> {
        let Some((label, base, left)) = self.labels.front_mut() else {
            return Ok((Vec::new(), branch.context().hold(0)?));
        };
        let label = *label;
        let base = *base;
        let of_label: Vec<EdgesOf> = self.edges.iter().filter(|of| of.near == label).copied().collect();
        let vertices = self.snapshot.ordinal_count(label).max(1);
        let edges_a_vertex = edge_count(&self.snapshot, &of_label).div_ceil(vertices).max(1);
        let end = left.end.min(left.start + (READ_EDGES / edges_a_vertex).clamp(1, READ_VERTICES));
        let read = left.start..end;
        left.start = end;
        if left.is_empty() {
            self.labels.pop_front();
        }
        let ordinals = read.start - base..read.end - base;
        let frontier: Frontier = ordinals.filter_map(|ordinal| VertexId::new(label, ordinal)).collect();
        let mut found: Vec<(Direction, Held<Edges>)> = Vec::new();
        for direction in Direction::ALL {
            if of_label.iter().any(|of| of.direction == direction) {
                found.push((direction, self.read(&frontier, direction, branch).await?));
            }
        }
        self.batches(read, &of_label, found, branch).await
    }

    /// The edges of some vertices in a direction that match the condition.
    async fn read(
        &self,
        frontier: &Frontier,
        direction: Direction,
        branch: &mut Branch,
    ) -> Result<Held<Edges>, EngineError> {
        let adjacency = self.snapshot.adjacency();
        match (direction, self.hop.direction) {
            (Direction::Out, HopDirection::Out) | (Direction::In, HopDirection::In) => {
                adjacency.neighbours(frontier, &self.hop, branch).await
            }
            _ => adjacency.neighbours_against(frontier, &self.hop, branch).await,
        }
    }

    /// What was read of some vertices, list by list.
    async fn batches(
        &self,
        vertices: Range<u64>,
        edges: &[EdgesOf],
        found: Vec<(Direction, Held<Edges>)>,
        branch: &mut Branch,
    ) -> Result<(Vec<Batch>, MemoryHold), EngineError> {
        let context = branch.context().clone();
        let count: usize = found.iter().map(|(_, edges)| edges.len()).sum();
        // A stable sort takes half as much again.
        let _entries = context.hold((count * size_of::<Entry>()) as u64 * 3 / 2)?;
        let memory = context.hold(count as u64 * BATCH_EDGE_BYTES)?;
        let mut entries: Vec<Entry> = Vec::with_capacity(count);
        let mut pace = context.pace();
        for (direction, found) in found {
            let weights = match &self.weight {
                Some(weight) => Some(self.snapshot.edge_weights(&found, weight, branch).await?),
                None => None,
            };
            let mut at = 0;
            for list in found.lists() {
                let is_same = |of: &EdgesOf| of.edge_type == list.edge_type && of.direction == direction;
                let place = edges.iter().position(is_same).unwrap_or(edges.len()) as u32;
                let from = self.id_of(list.from)?;
                for target in list.targets {
                    let weight = weights.as_ref().map_or(1.0, |weights| weights[at]);
                    entries.push((from, self.id_of(*target)?, place, weight));
                    at += 1;
                }
                pace.rest(list.targets.len() as u64 * 4 + 8).await?;
            }
        }
        // Parallel edges stay in the order in which they are stored.
        entries.sort_by_key(|(from, to, place, _)| (*from, *to, *place));
        pace.rest(count as u64 * 8).await?;
        Ok((split(vertices.start as u32..vertices.end as u32, &entries, self.weight.is_some()), memory))
    }

    fn id_of(&self, vertex: VertexId) -> Result<u32, EngineError> {
        let outside = || EngineError::Internal("an edge of a selection leads out of it".into());
        self.ids.of_vertex(vertex).map(|id| id as u32).ok_or_else(outside)
    }
}

/// Edges in the order of their ends as batches, which have all of these vertices.
fn split(vertices: Range<u32>, entries: &[Entry], is_weighted: bool) -> Vec<Batch> {
    let begin = |first: u32| Batch { vertices: first..first, offsets: vec![0], ..Batch::default() };
    let mut batches = Vec::new();
    let mut batch = begin(vertices.start);
    for list in entries.chunk_by(|a, b| a.0 == b.0) {
        let from = list[0].0;
        if batch.targets.len() >= BATCH_EDGES {
            let next = begin(batch.vertices.end);
            batches.push(std::mem::replace(&mut batch, next));
        }
        batch.vertices.end = from + 1;
        batch.with_lists.push(from);
        batch.targets.extend(list.iter().map(|(_, to, ..)| *to));
        if is_weighted {
            batch.weights.extend(list.iter().map(|(.., weight)| *weight));
        }
        batch.offsets.push(batch.targets.len());
    }
    batch.vertices.end = vertices.end;
    batches.push(batch);
    batches
}
