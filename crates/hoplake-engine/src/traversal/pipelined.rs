//! Breadth-first, pipelined: a block that arrives is expanded at once.
//!
//! Under *per-depth* a vertex belongs to a depth as soon as any walk reaches it there, so that its own
//! lists can be asked for before the rest of its depth is known: the sets come out the same. Under *global*
//! a vertex may turn out to belong to an earlier depth; what was read ahead then only warms the cache,
//! and the exact sets are taken level by level from it.

use std::{collections::VecDeque, sync::Arc};

use futures::{StreamExt, stream::FuturesUnordered};
use hoplake_storage::{QueryContext, Wave};

use super::{
    Reached, Traversal, VisitPolicy, Watch, breadth_first,
    visits::{Expanded, Visits},
};
use crate::{
    EngineError, Frontier, Held, Snapshot,
    adjacency::{EdgeSink, ListTask, Plan},
    memory::bytes_of,
};

/// A block to read for some vertices of a depth.
struct Step {
    depth: usize,
    frontier: Arc<Frontier>,
    plan: Plan,
    /// The wave and the wait after which its vertices were known.
    after: Wave,
    known: u32,
}

/// Runs the traversal. Memory: the sets of all depths, and the blocks in flight.
pub(super) async fn run(
    snapshot: &Arc<Snapshot>,
    traversal: &Traversal,
    context: &QueryContext,
) -> Result<Held<Reached>, EngineError> {
    let reached = run_per_depth(snapshot, traversal, context).await?;
    match traversal.visit {
        VisitPolicy::PerDepth => Ok(reached),
        VisitPolicy::Global => breadth_first::run(snapshot, traversal, context).await,
    }
}

async fn run_per_depth(
    snapshot: &Arc<Snapshot>,
    traversal: &Traversal,
    context: &QueryContext,
) -> Result<Held<Reached>, EngineError> {
    let mut watch = Watch::new(&traversal.limits, snapshot, context);
    let mut visits = Visits::new(traversal, context)?;
    let hops = traversal.hops.len();
    let (mut waiting, mut running) = (VecDeque::new(), FuturesUnordered::new());
    let mut waiting_memory = context.hold(0)?;
    if hops > 0 {
        let starts = Arc::new(traversal.starts.iter().copied().collect());
        steps(snapshot, traversal, 0, starts, (traversal.after, 0), context, &mut waiting).await?;
    }
    let in_flight = traversal.parallelism.max(1) * 64;
    loop {
        while running.len() < in_flight {
            let Some(step) = waiting.pop_front() else { break };
            let waited = visits.begins_after(step.known);
            running.push(expand(snapshot, traversal, step, waited, context));
        }
        let Some(expanded) = running.next().await else { break };
        let expanded = expanded?;
        let new: Frontier = visits.arrived(&expanded).await?.into_iter().collect();
        watch.visited(new.len())?;
        let depth = expanded.depth + 1;
        if depth < hops && !new.is_empty() {
            steps(snapshot, traversal, depth, Arc::new(new), (expanded.wave, expanded.wait), context, &mut waiting)
                .await?;
            context.resize(&mut waiting_memory, bytes_of::<(Step, ListTask)>(waiting.capacity()))?;
        }
    }
    visits.finish().await
}

/// One step for each block, so that each is expanded when it arrives; a hop with conditions is one step.
async fn steps(
    snapshot: &Snapshot,
    traversal: &Traversal,
    depth: usize,
    frontier: Arc<Frontier>,
    (after, known): (Wave, u32),
    context: &QueryContext,
    waiting: &mut VecDeque<Step>,
) -> Result<(), EngineError> {
    let hop = &traversal.hops[depth];
    let plan = snapshot.plan_hop(&frontier, hop, after, context).await?;
    if !hop.predicates.is_empty() {
        waiting.push_back(Step { depth, frontier, plan, after, known });
        return Ok(());
    }
    waiting.extend(plan.pieces().map(|plan| Step { depth, frontier: frontier.clone(), plan, after, known }));
    Ok(())
}

async fn expand(
    snapshot: &Snapshot,
    traversal: &Traversal,
    step: Step,
    waited: u32,
    context: &QueryContext,
) -> Result<Expanded, EngineError> {
    let hop = &traversal.hops[step.depth];
    let (edges, wave) = if hop.predicates.is_empty() {
        let mut sink = EdgeSink::new(context)?;
        let wave = snapshot.run_part(&step.frontier, &step.plan, &mut sink, context).await?;
        (sink.edges.finish(), wave)
    } else {
        snapshot.neighbours(&step.frontier, hop, step.plan.ready, context).await?
    };
    let reached = snapshot.targets(&edges, context).await?;
    let wait = waited + (wave.0 - step.after.0);
    Ok(Expanded { depth: step.depth, reached, edges: edges.len() as u64, wave, wait })
}
