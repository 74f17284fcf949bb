//! Reading ahead for one traversal.
//!
//! Every vertex that a hop reaches enters a queue with the depth at which it will be expanded; workers read
//! the blocks of its lists into a small cache of the query's own, while the traversal is still busy with
//! others. What is cached or on its way already is not read again. The queue is bounded. Breadth-first, the
//! vertices found first are expanded first, so a full queue drops the newest; depth-first, the newest are
//! expanded first, so the queue is a stack and drops its bottom. (Chandla, *Graph traversals over object
//! storage*, 2024.)
//!
//! It pays where a traversal would wait for one vertex after the other. Breadth-first asks for a whole
//! frontier at once anyway, and only gains what can be read while a hop's slowest answers are on their way;
//! for that it pays with requests that would have been joined.

use std::sync::Arc;

use hoplake_format::VertexId;
use hoplake_storage::QueryContext;
use tokio::task::JoinSet;

use super::query::{Prefetch, Strategy, Traversal};
use crate::{EngineError, Frontier, Snapshot, read::adjacency::Queue};

/// The workers of one traversal; they end when it is dropped.
pub(super) struct Prefetcher {
    queue: Arc<Queue>,
    _workers: JoinSet<()>,
}

impl Prefetcher {
    /// Workers for a traversal, if it wants any.
    pub(super) fn start(snapshot: &Arc<Snapshot>, traversal: &Traversal, context: &QueryContext) -> Option<Self> {
        let Prefetch { workers, queue_max, cache_bytes_max } = traversal.prefetch?;
        context.keep_ahead(cache_bytes_max);
        let queue = Arc::new(Queue::new(queue_max, traversal.strategy == Strategy::Dfs));
        let traversal = Arc::new(traversal.clone());
        let mut running = JoinSet::new();
        for _ in 0..workers {
            running.spawn(work(queue.clone(), snapshot.clone(), traversal.clone(), context.clone()));
        }
        Some(Self { queue, _workers: running })
    }

    /// Where vertices are offered.
    pub(super) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }
}

async fn work(queue: Arc<Queue>, snapshot: Arc<Snapshot>, traversal: Arc<Traversal>, context: QueryContext) {
    loop {
        while let Some((hop, vertices)) = queue.take() {
            // Others may go on with what is left.
            queue.wake_another();
            // A failed guess is harmless: a query that needs the block requests it, and gets the error.
            let _ = read_ahead(&snapshot, &traversal, hop, vertices, &context).await;
        }
        queue.filled().await;
    }
}

async fn read_ahead(
    snapshot: &Arc<Snapshot>,
    traversal: &Traversal,
    hop: usize,
    vertices: Vec<VertexId>,
    context: &QueryContext,
) -> Result<(), EngineError> {
    let frontier: Frontier = vertices.into_iter().collect();
    // Nobody waits for it: it is not part of the query's waves.
    let mut branch = context.branch();
    let plan = snapshot.adjacency().plan_hop(&frontier, &traversal.hops[hop], &mut branch).await?;
    let requests = snapshot.adjacency().requests(plan.all_tasks())?;
    Ok(snapshot.reader().read_ahead(&requests, &branch).await?)
}
