//! Breadth-first, pipelined: a block that arrives is expanded at once.
//!
//! Under *per-depth* a vertex belongs to a depth as soon as any walk reaches it there, so that its own
//! lists can be asked for before the rest of its depth is known: the sets come out the same. Under *global*
//! a vertex may turn out to belong to an earlier depth; what was read ahead then only warms the cache,
//! and the exact sets are taken level by level from it.

use std::{collections::VecDeque, sync::Arc};

use futures::{StreamExt, stream::FuturesUnordered};
use hoplake_storage::Branch;

use super::{
    Reached, Traversal, VisitPolicy, Watch, breadth_first,
    visits::{Expanded, Visits},
};
use crate::{
    EngineError, Frontier, Held, Snapshot,
    memory::bytes_of,
    read::adjacency::{ListTask, Plan},
};

/// A planned read of a block, for some vertices of a depth.
struct PlannedRead {
    depth: usize,
    frontier: Arc<Frontier>,
    plan: Plan,
    /// The line of work on which its vertices were known, and after which wait.
    branch: Branch,
    known: u32,
}

/// Runs the traversal. Memory: the sets of all depths, and the blocks in flight.
pub(super) async fn run(
    snapshot: &Arc<Snapshot>,
    traversal: &Traversal,
    branch: &mut Branch,
) -> Result<Held<Reached>, EngineError> {
    let reached = run_per_depth(snapshot, traversal, branch).await?;
    match traversal.visit {
        VisitPolicy::PerDepth => Ok(reached),
        VisitPolicy::Global => breadth_first::run(snapshot, traversal, branch).await,
    }
}

async fn run_per_depth(
    snapshot: &Arc<Snapshot>,
    traversal: &Traversal,
    branch: &mut Branch,
) -> Result<Held<Reached>, EngineError> {
    let context = &branch.context().clone();
    let mut watch = Watch::new(&traversal.limits, snapshot, context);
    let mut visits = Visits::new(traversal, branch)?;
    let hops = traversal.hops.len();
    let mut waiting = VecDeque::new();
    let mut running = FuturesUnordered::new();
    let mut waiting_memory = context.hold(0)?;
    let starts = Frontier::held(&traversal.starts, context).await?.map(Arc::new);
    if hops > 0 {
        steps(snapshot, traversal, 0, starts.clone().into_inner(), (branch.clone(), 0), &mut waiting).await?;
    }
    let in_flight = traversal.parallelism.max(1) * 64;
    loop {
        while running.len() < in_flight {
            let Some(step) = waiting.pop_front() else { break };
            let waited = visits.begins_after(step.known);
            running.push(expand(snapshot, traversal, step, waited));
        }
        let Some(expanded) = running.next().await else { break };
        let expanded = expanded?;
        let new: Frontier = visits.arrived(&expanded).await?.into_iter().collect();
        watch.visited(new.len())?;
        let depth = expanded.depth + 1;
        if depth < hops && !new.is_empty() {
            let known = (expanded.branch, expanded.wait);
            steps(snapshot, traversal, depth, Arc::new(new), known, &mut waiting).await?;
            context.resize(&mut waiting_memory, bytes_of::<(PlannedRead, ListTask)>(waiting.capacity()))?;
        }
    }
    visits.finish(branch).await
}

/// One step for each block, so that each is expanded when it arrives; a hop with conditions is one step.
async fn steps(
    snapshot: &Arc<Snapshot>,
    traversal: &Traversal,
    depth: usize,
    frontier: Arc<Frontier>,
    (mut branch, known): (Branch, u32),
    waiting: &mut VecDeque<PlannedRead>,
) -> Result<(), EngineError> {
    let hop = &traversal.hops[depth];
    let plan = snapshot.adjacency().plan_hop(&frontier, hop, &mut branch).await?;
    // Otherwise each block would read pages of properties by itself, where one wave has those of all edges.
    if hop.condition.is_some() {
        waiting.push_back(PlannedRead { depth, frontier, plan, branch, known });
        return Ok(());
    }
    let step = |plan| PlannedRead { depth, frontier: frontier.clone(), plan, branch: branch.clone(), known };
    waiting.extend(plan.pieces().map(step));
    Ok(())
}

async fn expand(
    snapshot: &Arc<Snapshot>,
    traversal: &Traversal,
    step: PlannedRead,
    waited: u32,
) -> Result<Expanded, EngineError> {
    let PlannedRead { depth, frontier, plan, mut branch, .. } = step;
    let hop = &traversal.hops[depth];
    let before = branch.wave();
    let (reached, edges) = snapshot.adjacency().reach(&frontier, hop, plan, 1, None, &mut branch).await?;
    let wait = waited + (branch.wave().0 - before.0);
    Ok(Expanded { depth, reached, edges, branch, wait })
}
