//! What a traversal that does not go level by level has visited.

use std::{collections::HashSet, time::Instant};

use hoplake_format::VertexId;
use hoplake_storage::{Cost, QueryContext, Wave};

use super::{DepthProfile, Reached, Traversal};
use crate::Frontier;

/// The answer of one expansion: the depth it left, whom it reached, over how many edges, in which wave.
pub(super) struct Expanded {
    pub(super) depth: usize,
    pub(super) reached: Frontier,
    pub(super) edges: u64,
    pub(super) wave: Wave,
    /// The wait in which it came.
    pub(super) wait: u32,
}

/// The vertices seen at each depth, and the account of the whole.
pub(super) struct Visits {
    seen: Vec<HashSet<VertexId>>,
    profile: Vec<DepthProfile>,
    after: Wave,
    wave: Wave,
    /// The wait in which the latest answer came, and the longest run of them.
    wait: u32,
    waits: u32,
    begun: Instant,
    before: Cost,
}

impl Visits {
    pub(super) fn new(traversal: &Traversal, context: &QueryContext) -> Self {
        let hops = traversal.hops.len();
        let mut seen = vec![HashSet::new(); hops + 1];
        seen[0].extend(&traversal.starts);
        let profile = vec![DepthProfile::default(); hops];
        let (after, begun, before) = (traversal.after, Instant::now(), context.cost());
        Self { seen, profile, after, wave: after, wait: 0, waits: 0, begun, before }
    }

    /// After which wait an expansion begins whose vertices were known after another: it also waited for the answer that
    /// made room for it.
    pub(super) fn begins_after(&self, known: u32) -> u32 {
        self.wait.max(known)
    }

    /// Takes an answer and returns those that were not seen at their depth before.
    pub(super) fn arrived(&mut self, expanded: &Expanded) -> Vec<VertexId> {
        self.wave = self.wave.max(expanded.wave);
        self.wait = expanded.wait;
        self.waits = self.waits.max(expanded.wait);
        self.profile[expanded.depth].edges += expanded.edges;
        let seen = &mut self.seen[expanded.depth + 1];
        expanded.reached.vertices().filter(|vertex| seen.insert(*vertex)).collect()
    }

    /// The sets by depth. Depths overlap in time: cost and time are put on the last.
    pub(super) fn finish(mut self, context: &QueryContext) -> Reached {
        context.waited(self.waits.saturating_sub(self.wave.0 - self.after.0));
        for (profile, seen) in self.profile.iter_mut().zip(&self.seen[1..]) {
            profile.vertices = seen.len() as u64;
        }
        if let Some(last) = self.profile.last_mut() {
            last.cost = context.cost().since(&self.before);
            last.time_us = self.begun.elapsed().as_micros() as u64;
        }
        let depths = self.seen.into_iter().map(|vertices| vertices.into_iter().collect()).collect();
        Reached { depths, profile: self.profile, wave: self.wave }
    }
}
