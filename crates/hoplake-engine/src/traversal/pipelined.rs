//! Breadth-first, pipelined: a block that arrives is expanded at once.
//!
//! Under *per-depth* a vertex belongs to a depth as soon as any walk reaches it there, so that its own
//! lists can be asked for before the rest of its depth is known: the sets come out the same. Under *global*
//! a vertex may turn out to belong to an earlier depth; what was read ahead then only warms the cache,
//! and the exact sets are taken level by level from it.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
    time::Instant,
};

use futures::{StreamExt, stream::FuturesUnordered};
use hoplake_format::VertexId;
use hoplake_storage::{Meter, Wave};

use super::{DepthProfile, Reached, Traversal, VisitPolicy, Watch, breadth_first};
use crate::{
    EngineError, Frontier, Snapshot,
    adjacency::{EdgeSink, Plan},
};

/// A block to read for some vertices of a depth.
struct Step {
    depth: usize,
    frontier: Arc<Frontier>,
    plan: Plan,
}

/// Runs the traversal. Memory: the sets of all depths, and the blocks in flight.
pub(super) async fn run(
    snapshot: &Arc<Snapshot>,
    traversal: &Traversal,
    meter: &Arc<Meter>,
) -> Result<Reached, EngineError> {
    let reached = run_per_depth(snapshot, traversal, meter).await?;
    match traversal.visit {
        VisitPolicy::PerDepth => Ok(reached),
        VisitPolicy::Global => breadth_first::run(snapshot, traversal, meter).await,
    }
}

async fn run_per_depth(
    snapshot: &Arc<Snapshot>,
    traversal: &Traversal,
    meter: &Arc<Meter>,
) -> Result<Reached, EngineError> {
    let (begun, before) = (Instant::now(), meter.cost());
    let mut watch = Watch::new(&traversal.limits, snapshot, meter);
    let hops = traversal.hops.len();
    let mut seen: Vec<HashSet<VertexId>> = vec![HashSet::new(); hops + 1];
    seen[0].extend(&traversal.starts);
    let mut profile = vec![DepthProfile::default(); hops];
    let mut last_wave = traversal.after;
    let (mut waiting, mut running) = (VecDeque::new(), FuturesUnordered::new());
    if hops > 0 {
        let starts = Arc::new(traversal.starts.iter().copied().collect());
        steps(snapshot, traversal, 0, starts, traversal.after, meter, &mut waiting).await?;
    }
    let in_flight = traversal.parallelism.max(1) * 64;
    loop {
        while running.len() < in_flight {
            let Some(step) = waiting.pop_front() else { break };
            running.push(expand(snapshot, traversal, step, meter));
        }
        let Some(arrived) = running.next().await else { break };
        let (depth, reached, edges, wave) = arrived?;
        last_wave = last_wave.max(wave);
        profile[depth].edges += edges;
        let new: Frontier = reached.vertices().filter(|vertex| seen[depth + 1].insert(*vertex)).collect();
        watch.visited(new.len())?;
        if depth + 1 < hops && !new.is_empty() {
            steps(snapshot, traversal, depth + 1, Arc::new(new), wave, meter, &mut waiting).await?;
        }
    }
    for (depth, profile) in profile.iter_mut().enumerate() {
        profile.vertices = seen[depth + 1].len() as u64;
    }
    if let Some(last) = profile.last_mut() {
        last.cost = meter.cost().since(&before);
        last.time_us = begun.elapsed().as_micros() as u64;
    }
    let depths = seen.into_iter().map(|vertices| vertices.into_iter().collect()).collect();
    Ok(Reached { depths, profile, wave: last_wave })
}

/// One step for each block, so that each is expanded when it arrives; a hop with conditions is one step.
async fn steps(
    snapshot: &Snapshot,
    traversal: &Traversal,
    depth: usize,
    frontier: Arc<Frontier>,
    after: Wave,
    meter: &Meter,
    waiting: &mut VecDeque<Step>,
) -> Result<(), EngineError> {
    let hop = &traversal.hops[depth];
    let plan = snapshot.plan_hop(&frontier, hop, after, meter).await?;
    if !hop.predicates.is_empty() {
        waiting.push_back(Step { depth, frontier, plan });
        return Ok(());
    }
    for task in plan.tasks {
        let plan = Plan { tasks: vec![task], ready: plan.ready };
        waiting.push_back(Step { depth, frontier: frontier.clone(), plan });
    }
    Ok(())
}

async fn expand(
    snapshot: &Snapshot,
    traversal: &Traversal,
    step: Step,
    meter: &Meter,
) -> Result<(usize, Frontier, u64, Wave), EngineError> {
    let hop = &traversal.hops[step.depth];
    let (edges, wave) = if hop.predicates.is_empty() {
        let mut sink = EdgeSink { edges: Vec::new() };
        let wave = snapshot.run_part(&step.frontier, &step.plan.tasks, &mut sink, step.plan.ready, meter).await?;
        (sink.edges, wave)
    } else {
        snapshot.neighbours(&step.frontier, hop, step.plan.ready, meter).await?
    };
    Ok((step.depth, edges.iter().map(|edge| edge.to).collect(), edges.len() as u64, wave))
}
