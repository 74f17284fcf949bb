//! Depth-first, under the visit policy per-depth.
//!
//! A stack holds (vertex, depth); a set holds those that were ever on it. With a parallelism of n, up to
//! n vertices are taken from the stack and expanded at a time: whenever one is done, its neighbours go
//! onto the stack and idle workers take them at once.

use std::sync::Arc;

use futures::{StreamExt, stream::FuturesUnordered};
use hoplake_format::VertexId;
use hoplake_storage::{Branch, Wave};

use super::{
    Reached, Traversal, Watch,
    prefetch::Prefetcher,
    visits::{Expanded, Visits},
};
use crate::{EngineError, Frontier, Held, Snapshot, memory::bytes_of, read::frontier::sorted};

/// A vertex, its depth, and in which wave and after which wait it was reached.
type OnStack = (VertexId, usize, Wave, u32);

/// Runs the traversal. Memory: the sets of all depths; the stack holds at most as many.
pub(super) async fn run(
    snapshot: &Arc<Snapshot>,
    traversal: &Traversal,
    branch: &mut Branch,
) -> Result<Held<Reached>, EngineError> {
    let context = &branch.context().clone();
    let mut watch = Watch::new(&traversal.limits, snapshot, context);
    let mut visits = Visits::new(traversal, branch)?;
    let starts = sorted(&traversal.starts, context).await?;
    let mut stack_memory = context.hold(bytes_of::<OnStack>(starts.len()))?;
    // The first start is expanded first: it has to be on top.
    let mut stack: Vec<OnStack> = starts.iter().rev().map(|vertex| (*vertex, 0, branch.wave(), 0)).collect();
    drop(starts);
    let prefetcher = Prefetcher::start(snapshot, traversal, context);
    let mut running = FuturesUnordered::new();
    loop {
        while running.len() < traversal.parallelism.max(1) {
            let Some((vertex, depth, wave, known)) = stack.pop() else { break };
            if depth < traversal.hops.len() {
                let waited = visits.begins_after(known);
                // On the line of the answer that reached the vertex: it depends on no later one.
                running.push(expand(snapshot, traversal, vertex, depth, branch.at(wave), waited));
            }
        }
        let Some(expanded) = running.next().await else { break };
        let expanded = expanded?;
        let new = visits.arrived(&expanded).await?;
        watch.visited(new.len())?;
        if let Some(prefetcher) = prefetcher.as_ref().filter(|_| expanded.depth + 1 < traversal.hops.len()) {
            prefetcher.queue().offer(expanded.depth + 1, new.iter().copied());
        }
        let depth = expanded.depth + 1;
        let wave = expanded.branch.wave();
        let wait = expanded.wait;
        stack.extend(new.into_iter().map(|vertex| (vertex, depth, wave, wait)));
        context.resize(&mut stack_memory, bytes_of::<OnStack>(stack.capacity()))?;
    }
    visits.finish(branch).await
}

async fn expand(
    snapshot: &Arc<Snapshot>,
    traversal: &Traversal,
    vertex: VertexId,
    depth: usize,
    mut branch: Branch,
    waited: u32,
) -> Result<Expanded, EngineError> {
    let frontier: Arc<Frontier> = Arc::new(std::iter::once(vertex).collect());
    let hop = &traversal.hops[depth];
    let before = branch.wave();
    let plan = snapshot.adjacency().plan_hop(&frontier, hop, &mut branch).await?;
    let (reached, edges) = snapshot.adjacency().reach(&frontier, hop, plan, 1, None, &mut branch).await?;
    let wait = waited + (branch.wave().0 - before.0);
    Ok(Expanded { depth, reached, edges, branch, wait })
}
