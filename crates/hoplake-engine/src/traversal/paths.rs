//! The walks of a traversal, one by one.
//!
//! The edges between the sets of two depths are kept, less those that lead nowhere; walks are then
//! enumerated from them without storing one. There can be very many more walks than edges.

use std::{collections::BTreeMap, sync::Arc};

use hoplake_format::VertexId;
use hoplake_storage::QueryContext;

use super::{Reached, Traversal, VisitPolicy};
use crate::{EngineError, Frontier, Snapshot};

/// All walks of a traversal: an iterator over lists of vertices, from a start to a vertex of the last depth.
/// Parallel edges make walks that look alike, as often as there are edges.
#[derive(Debug)]
pub struct Paths {
    starts: Vec<VertexId>,
    /// For each hop, the vertices reached from each vertex, with repeats for parallel edges.
    layers: Vec<BTreeMap<VertexId, Vec<VertexId>>>,
    /// For each depth, which of the alternatives comes next.
    positions: Vec<usize>,
    walk: Vec<VertexId>,
}

impl Snapshot {
    /// The walks of a traversal that its visit policy allows. Takes the same waves as the traversal and
    /// reads what it read from the cache once more.
    ///
    /// # Errors
    /// As [`Self::traverse`].
    pub async fn paths(
        self: &Arc<Self>,
        traversal: &Traversal,
        context: &QueryContext,
    ) -> Result<(Paths, Reached), EngineError> {
        let mut reached = self.traverse(traversal, context).await?;
        let mut layers = Vec::with_capacity(traversal.hops.len());
        for (hop, depths) in traversal.hops.iter().zip(reached.depths.windows(2)) {
            let (edges, wave) = self.neighbours(&depths[0], hop, reached.wave, context).await?;
            reached.wave = reached.wave.max(wave);
            let mut layer: BTreeMap<_, Vec<_>> = BTreeMap::new();
            for edge in
                edges.iter().filter(|edge| traversal.visit == VisitPolicy::PerDepth || depths[1].contains(edge.to))
            {
                layer.entry(edge.from).or_default().push(edge.to);
            }
            layers.push(layer);
        }
        drop_dead_ends(&mut layers);
        let starts: Frontier = traversal.starts.iter().copied().collect();
        let starts = starts.vertices().filter(|vertex| layers.first().is_none_or(|layer| layer.contains_key(vertex)));
        Ok((Paths::new(starts.collect(), layers), reached))
    }
}

/// Takes out edges from which no walk reaches the last depth.
fn drop_dead_ends(layers: &mut [BTreeMap<VertexId, Vec<VertexId>>]) {
    for depth in (1..layers.len()).rev() {
        let (before, after) = layers.split_at_mut(depth);
        let (layer, next) = (&mut before[depth - 1], &after[0]);
        layer.values_mut().for_each(|targets| targets.retain(|target| next.contains_key(target)));
        layer.retain(|_, targets| !targets.is_empty());
    }
}

impl Paths {
    fn new(starts: Vec<VertexId>, layers: Vec<BTreeMap<VertexId, Vec<VertexId>>>) -> Self {
        Self { starts, layers, positions: vec![0], walk: Vec::new() }
    }

    fn alternatives(&self, depth: usize) -> &[VertexId] {
        match depth.checked_sub(1) {
            None => &self.starts,
            Some(hop) => self.layers[hop].get(&self.walk[hop]).map_or(&[], Vec::as_slice),
        }
    }
}

impl Iterator for Paths {
    type Item = Vec<VertexId>;

    fn next(&mut self) -> Option<Vec<VertexId>> {
        while let Some(depth) = self.positions.len().checked_sub(1) {
            self.walk.truncate(depth);
            let Some(vertex) = self.alternatives(depth).get(self.positions[depth]).copied() else {
                self.positions.pop();
                continue;
            };
            self.positions[depth] += 1;
            self.walk.push(vertex);
            if depth == self.layers.len() {
                return Some(self.walk.clone());
            }
            self.positions.push(0);
        }
        None
    }
}
