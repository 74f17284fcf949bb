//! A level of the algorithm: nodes, which are vertices or sets of vertices, and the weights of the edges between them.

use hoplake_storage::{MemoryHold, QueryContext, StorageError};

use super::pace::{NONE, Pace};
use crate::{Adjacency, Cursor};

/// Bytes of an entry.
const ENTRY_BYTES: u64 = 12;
/// Bytes of a node in a network.
const NODE_BYTES: u64 = 16;

/// Weighted lists of neighbours. An edge is in the lists of both its ends; what a node has with itself is in its own list once, with
/// twice the weight of its self-loops.
pub(super) struct Network {
    /// One more than there are nodes.
    offsets: Vec<u64>,
    targets: Vec<u32>,
    weights: Vec<f64>,
    /// The sum of each list.
    pub(super) strengths: Vec<f64>,
    /// The sum of all lists.
    pub(super) total: f64,
    _memory: MemoryHold,
}

/// Sums of weights by node or community, of which few are not 0.
pub(super) struct NodeWeights {
    weights: Vec<f64>,
    is_touched: Vec<bool>,
    /// Those that are, in the order in which they were.
    pub(super) touched: Vec<u32>,
}

impl NodeWeights {
    /// Bytes of a node.
    pub(super) const BYTES: u64 = 13;

    pub(super) fn new(nodes: usize) -> Self {
        Self { weights: vec![0.0; nodes], is_touched: vec![false; nodes], touched: Vec::with_capacity(nodes) }
    }

    pub(super) fn add(&mut self, node: u32, weight: f64) {
        if !std::mem::replace(&mut self.is_touched[node as usize], true) {
            self.touched.push(node);
        }
        self.weights[node as usize] += weight;
    }

    pub(super) fn get(&self, node: u32) -> f64 {
        self.weights[node as usize]
    }

    pub(super) fn clear(&mut self) {
        for node in self.touched.drain(..) {
            self.weights[node as usize] = 0.0;
            self.is_touched[node as usize] = false;
        }
    }
}

impl Network {
    /// The network of the vertices that exist, numbered by their places.
    pub(super) fn of<A: Adjacency>(lists: &A, places: &[u32], context: &QueryContext) -> Result<Self, StorageError> {
        let nodes = places.iter().filter(|place| **place != NONE).count();
        let _memory = context.hold(nodes as u64 * 4)?;
        let mut vertices = vec![NONE; nodes];
        for (vertex, place) in (0..).zip(places).filter(|(_, place)| **place != NONE) {
            vertices[*place as usize] = vertex;
        }
        let mut network = Self::with_room(nodes, lists.edges(), context)?;
        let mut cursor = lists.cursor();
        let mut pace = Pace::new(context);
        let widest = vertices.iter().map(|vertex| lists.degree(*vertex)).max().unwrap_or(0);
        let _memory_of_list = context.hold(widest as u64 * 16)?;
        let mut list: Vec<(u32, f64)> = Vec::with_capacity(widest);
        for vertex in vertices {
            let weights = lists.weighted().map_or(&[][..], |lists| lists.weights_of(vertex));
            let neighbours = cursor.neighbours(vertex);
            pace.step(neighbours.len() + 1)?;
            list.clear();
            list.extend(
                neighbours
                    .iter()
                    .enumerate()
                    .map(|(at, neighbour)| (places[*neighbour as usize], weights.get(at).copied().unwrap_or(1.0))),
            );
            // By weight, too, so that sums are the same whatever the order of parallel edges.
            list.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
            let merged = list.chunk_by(|a, b| a.0 == b.0);
            network.push(merged.map(|same| (same[0].0, same.iter().map(|entry| entry.1).sum())));
        }
        Ok(network.finished(context))
    }

    fn with_room(nodes: usize, entries: u64, context: &QueryContext) -> Result<Self, StorageError> {
        let memory = context.hold((nodes as u64 + 1) * NODE_BYTES + entries * ENTRY_BYTES)?;
        let mut offsets = Vec::with_capacity(nodes + 1);
        offsets.push(0);
        Ok(Self {
            offsets,
            targets: Vec::with_capacity(entries as usize),
            weights: Vec::with_capacity(entries as usize),
            strengths: Vec::with_capacity(nodes),
            total: 0.0,
            _memory: memory,
        })
    }

    /// Adds the next node.
    fn push(&mut self, list: impl Iterator<Item = (u32, f64)>) {
        let mut strength = 0.0;
        for (target, weight) in list {
            self.targets.push(target);
            self.weights.push(weight);
            strength += weight;
        }
        self.offsets.push(self.targets.len() as u64);
        self.strengths.push(strength);
    }

    /// With its total, and without the room that it did not need.
    fn finished(mut self, context: &QueryContext) -> Self {
        self.total = self.strengths.iter().sum();
        self.targets.shrink_to_fit();
        self.weights.shrink_to_fit();
        let bytes = self.offsets.len() as u64 * NODE_BYTES + self.targets.len() as u64 * ENTRY_BYTES;
        // Less than before: that is never rejected.
        let _ = context.resize(&mut self._memory, bytes);
        self
    }

    pub(super) fn len(&self) -> usize {
        self.strengths.len()
    }

    /// The mean weight of an entry; 0 if there is none.
    pub(super) fn mean_weight(&self) -> f64 {
        self.total / self.targets.len().max(1) as f64
    }

    /// The neighbours of a node, itself included if it has a self-loop, each once with the weight between both.
    pub(super) fn list(&self, node: u32) -> impl ExactSizeIterator<Item = (u32, f64)> + '_ {
        let edges = self.offsets[node as usize] as usize..self.offsets[node as usize + 1] as usize;
        self.targets[edges.clone()].iter().copied().zip(self.weights[edges].iter().copied())
    }

    /// A network with a node for each community, whose numbers are below `count`.
    pub(super) fn aggregate(
        &self,
        communities: &[u32],
        count: usize,
        context: &QueryContext,
    ) -> Result<Self, StorageError> {
        let _memory = context.hold(self.len() as u64 * 4 + count as u64 * (8 + NodeWeights::BYTES))?;
        // Nodes by community, by a counting sort.
        let mut begins = vec![0u32; count + 1];
        communities.iter().for_each(|community| begins[*community as usize + 1] += 1);
        (0..count).for_each(|community| begins[community + 1] += begins[community]);
        let mut nodes = vec![0; self.len()];
        let mut next = begins.clone();
        for (node, community) in (0..).zip(communities) {
            let place = &mut next[*community as usize];
            nodes[*place as usize] = node;
            *place += 1;
        }
        let mut network = Self::with_room(count, self.targets.len() as u64, context)?;
        let mut found = NodeWeights::new(count);
        let mut pace = Pace::new(context);
        for community in 0..count {
            for node in &nodes[begins[community] as usize..begins[community + 1] as usize] {
                let list = self.list(*node);
                pace.step(list.len() + 1)?;
                list.for_each(|(target, weight)| found.add(communities[target as usize], weight));
            }
            network.push(found.touched.iter().map(|target| (*target, found.get(*target))));
            found.clear();
        }
        Ok(network.finished(context))
    }

    /// The modularity of a partition: for each community the part of weights within it, less the square of its part of all weights times
    /// the resolution.
    pub(super) fn modularity(
        &self,
        partition: &[u32],
        resolution: f64,
        context: &QueryContext,
    ) -> Result<f64, StorageError> {
        if self.total == 0.0 {
            return Ok(0.0);
        }
        let _memory = context.hold(self.len() as u64 * 8)?;
        let mut pace = Pace::new(context);
        let mut sums = vec![0.0; self.len()];
        let mut within = 0.0;
        for (node, community) in (0..).zip(partition) {
            let list = self.list(node);
            pace.step(list.len() + 1)?;
            let is_within = |(target, _): &(u32, f64)| partition[*target as usize] == *community;
            within += list.filter(is_within).map(|(_, weight)| weight).sum::<f64>();
            sums[*community as usize] += self.strengths[node as usize];
        }
        let expected: f64 = sums.iter().map(|sum| (sum / self.total).powi(2)).sum();
        Ok(within / self.total - resolution * expected)
    }
}
