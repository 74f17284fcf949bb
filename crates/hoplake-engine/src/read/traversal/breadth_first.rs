//! Breadth-first, level by level: one wave a hop.

use std::{sync::Arc, time::Instant};

use hoplake_storage::{Branch, Cost};

use super::{DepthProfile, Reached, Traversal, VisitPolicy, Watch, prefetch::Prefetcher};
use crate::{EngineError, Frontier, Held, Snapshot};

/// Runs the traversal. Memory: the sets of all depths, and the blocks in flight.
pub(super) async fn run(
    snapshot: &Arc<Snapshot>,
    traversal: &Traversal,
    branch: &mut Branch,
) -> Result<Held<Reached>, EngineError> {
    let context = &branch.context().clone();
    let mut watch = Watch::new(&traversal.limits, snapshot, context);
    let mut reached = Held::new(Reached::default(), context.hold(0)?);
    let mut frontier = Arc::new(reached.absorb(Frontier::held(&traversal.starts, context).await?));
    let is_global = traversal.visit == VisitPolicy::Global;
    let mut seen_memory = context.hold(if is_global { frontier.bytes() } else { 0 })?;
    let mut seen = if is_global { Frontier::clone(&frontier) } else { Frontier::default() };
    let mut pace = context.pace();
    let mut before: Cost = context.cost();
    watch.visited(frontier.len())?;
    let prefetcher = Prefetcher::start(snapshot, traversal, context);
    for (number, hop) in traversal.hops.iter().enumerate() {
        let next = prefetcher.as_ref().filter(|_| number + 1 < traversal.hops.len());
        let next = next.map(|prefetcher| (prefetcher.queue().clone(), number + 1));
        let begun = Instant::now();
        let plan = snapshot.adjacency().plan_hop(&frontier, hop, branch).await?;
        let (mut set, edges) =
            snapshot.adjacency().reach(&frontier, hop, plan, traversal.parallelism, next, branch).await?;
        if traversal.visit == VisitPolicy::Global {
            set.subtract(&seen, &mut pace).await?;
            // While both are united, they are there twice.
            context.resize(&mut seen_memory, (seen.bytes() + set.bytes()) * 2)?;
            seen.unite(&set, &mut pace).await?;
            context.resize(&mut seen_memory, seen.bytes())?;
        }
        let next = reached.absorb(set);
        watch.visited(next.len())?;
        let cost = context.cost();
        reached.profile.push(DepthProfile {
            edges,
            vertices: next.len() as u64,
            cost: cost.since(&before),
            time_us: begun.elapsed().as_micros() as u64,
        });
        before = cost;
        // The tasks of the hop have ended, so nothing else holds the frontier: it is moved, not copied.
        reached.depths.push(Arc::unwrap_or_clone(std::mem::replace(&mut frontier, Arc::new(next))));
    }
    reached.depths.push(Arc::unwrap_or_clone(frontier));
    Ok(reached)
}
