//! Breadth-first, level by level: one wave a hop.

use std::{sync::Arc, time::Instant};

use hoplake_format::VertexId;
use hoplake_storage::{Cost, QueryContext, Wave};

use super::{DepthProfile, Reached, Traversal, VisitPolicy, Watch, prefetch::Prefetcher};
use crate::{EngineError, Frontier, Snapshot};

/// Runs the traversal. Memory: the sets of all depths, and the blocks in flight.
pub(super) async fn run(
    snapshot: &Arc<Snapshot>,
    traversal: &Traversal,
    context: &QueryContext,
) -> Result<Reached, EngineError> {
    let mut watch = Watch::new(&traversal.limits, snapshot, context);
    let mut frontier: Arc<Frontier> = Arc::new(traversal.starts.iter().copied().collect());
    let mut seen =
        if traversal.visit == VisitPolicy::Global { Frontier::clone(&frontier) } else { Frontier::default() };
    let mut reached = Reached { wave: traversal.after, ..Reached::default() };
    let mut before: Cost = context.cost();
    watch.visited(frontier.len())?;
    let prefetcher = Prefetcher::start(snapshot, traversal, context);
    for (number, hop) in traversal.hops.iter().enumerate() {
        let next = prefetcher.as_ref().filter(|_| number + 1 < traversal.hops.len());
        let next = next.map(|prefetcher| (prefetcher.queue().clone(), number + 1));
        let begun = Instant::now();
        let (mut next, edges, wave) = if hop.predicates.is_empty() {
            snapshot.neighbour_set(&frontier, hop, traversal.parallelism, next, reached.wave, context).await?
        } else {
            let (edges, wave) = snapshot.neighbours(&frontier, hop, reached.wave, context).await?;
            (edges.iter().map(|edge| edge.to).collect(), edges.len() as u64, wave)
        };
        if traversal.visit == VisitPolicy::Global {
            next.subtract(&seen);
            seen.unite(&next);
        }
        watch.visited(next.len())?;
        let cost = context.cost();
        reached.profile.push(DepthProfile {
            edges,
            vertices: next.len() as u64,
            cost: cost.since(&before),
            time_us: begun.elapsed().as_micros() as u64,
        });
        (before, reached.wave) = (cost, wave);
        reached.depths.push(Arc::unwrap_or_clone(std::mem::replace(&mut frontier, Arc::new(next))));
    }
    reached.depths.push(Arc::unwrap_or_clone(frontier));
    Ok(reached)
}

impl Snapshot {
    /// How many vertices are within `depth` hops of some vertices, themselves included.
    ///
    /// # Errors
    /// As [`Self::traverse`].
    pub async fn neighbourhood(
        self: &Arc<Self>,
        starts: &[VertexId],
        hop: &super::Hop,
        depth: usize,
        parallelism: usize,
        after: Wave,
        context: &QueryContext,
    ) -> Result<Reached, EngineError> {
        let traversal = Traversal {
            starts: starts.to_vec(),
            hops: vec![hop.clone(); depth],
            visit: VisitPolicy::Global,
            parallelism,
            after,
            ..Traversal::default()
        };
        self.traverse(&traversal, context).await
    }
}
