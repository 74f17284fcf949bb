//! What a traversal that does not go level by level has visited.

use std::{collections::HashSet, time::Instant};

use hoplake_format::VertexId;
use hoplake_storage::{Branch, Cost, MemoryHold, Pace, QueryContext, StorageError, Wave};

use super::{DepthProfile, Reached, Traversal};
use crate::{
    EngineError, Frontier, Held,
    pieces::{STEP, sort_by_key},
};

/// The answer of one expansion: the depth it left, which vertices it reached, over how many edges, on which line of work.
pub(super) struct Expanded {
    pub(super) depth: usize,
    pub(super) reached: Held<Frontier>,
    pub(super) edges: u64,
    pub(super) branch: Branch,
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
    memory: MemoryHold,
    pace: Pace,
    context: QueryContext,
}

/// What a vertex in a set takes: 8 bytes and a byte of control, in a table of which at least 7/16 are used.
const SEEN_BYTES: u64 = 20;

impl Visits {
    pub(super) fn new(traversal: &Traversal, branch: &Branch) -> Result<Self, StorageError> {
        let context = branch.context().clone();
        let hops = traversal.hops.len();
        let mut memory = context.hold(traversal.starts.len() as u64 * SEEN_BYTES)?;
        let mut seen = vec![HashSet::new(); hops + 1];
        seen[0].extend(&traversal.starts);
        context.resize(&mut memory, seen[0].len() as u64 * SEEN_BYTES)?;
        Ok(Self {
            memory,
            seen,
            profile: vec![DepthProfile::default(); hops],
            after: branch.wave(),
            wave: branch.wave(),
            wait: 0,
            waits: 0,
            begun: Instant::now(),
            before: context.cost(),
            pace: context.pace(),
            context,
        })
    }

    /// After which wait an expansion begins whose vertices were known after another: it also waited for the answer that
    /// made room for it.
    pub(super) fn begins_after(&self, known: u32) -> u32 {
        self.wait.max(known)
    }

    /// Takes an answer and returns those that were not seen at their depth before.
    pub(super) async fn arrived(&mut self, expanded: &Expanded) -> Result<Vec<VertexId>, StorageError> {
        self.wave = self.wave.max(expanded.branch.wave());
        self.wait = expanded.wait;
        self.waits = self.waits.max(expanded.wait);
        self.profile[expanded.depth].edges += expanded.edges;
        let seen = &mut self.seen[expanded.depth + 1];
        let mut new = Vec::new();
        for (label, ordinals) in expanded.reached.by_label() {
            let mut ordinals = ordinals.view().cursor(0..u64::MAX);
            let mut step = Vec::new();
            while ordinals.take_into(STEP, &mut step) {
                let before = new.len();
                // Memory for all of the step before the set grows; what was known already is given back.
                let most = self.memory.bytes() + step.len() as u64 * SEEN_BYTES;
                self.context.resize(&mut self.memory, most)?;
                let vertices = step.iter().filter_map(|ordinal| VertexId::new(label, *ordinal));
                new.extend(vertices.filter(|vertex| seen.insert(*vertex)));
                let known = (step.len() - (new.len() - before)) as u64;
                self.context.resize(&mut self.memory, most - known * SEEN_BYTES)?;
                self.pace.rest(step.len() as u64 * 4).await?;
                step.clear();
            }
        }
        self.pace.rest(64).await?;
        Ok(new)
    }

    /// The sets by depth. Depths overlap in time: cost and time are put on the last.
    pub(super) async fn finish(mut self, branch: &mut Branch) -> Result<Held<Reached>, EngineError> {
        branch.reached(self.wave);
        // The meter counts a wait for each wave, so only those beyond the waves are added.
        self.context.waited(self.waits.saturating_sub(self.wave.0 - self.after.0));
        for (profile, seen) in self.profile.iter_mut().zip(&self.seen[1..]) {
            profile.vertices = seen.len() as u64;
        }
        let mut depths = Vec::with_capacity(self.seen.len());
        let mut memory = self.context.hold(0)?;
        for seen in self.seen {
            // As a list, and as a set of ordinals.
            let mut sorting = self.context.hold(seen.len() as u64 * 16)?;
            let mut vertices: Vec<_> = seen.into_iter().collect();
            sort_by_key(&mut vertices, |vertex| *vertex, &self.context).await?;
            let frontier = Frontier::of_sorted(&vertices, &mut self.pace).await?;
            self.context.resize(&mut sorting, frontier.bytes())?;
            memory.join(sorting);
            depths.push(frontier);
        }
        if let Some(last) = self.profile.last_mut() {
            last.cost = self.context.cost().since(&self.before);
            last.time_us = self.begun.elapsed().as_micros() as u64;
        }
        Ok(Held::new(Reached { depths, profile: self.profile }, memory))
    }
}
