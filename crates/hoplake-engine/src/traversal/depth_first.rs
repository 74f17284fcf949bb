//! Depth-first, under the visit policy per-depth.
//!
//! A stack holds (vertex, depth); a set holds those that were ever on it. With a parallelism of n, up to
//! n vertices are taken from the stack and expanded at a time: whenever one is done, its neighbours go
//! onto the stack and idle workers take them at once.

use std::{collections::HashSet, sync::Arc, time::Instant};

use futures::{StreamExt, stream::FuturesUnordered};
use hoplake_format::VertexId;
use hoplake_storage::{Meter, Wave};

use super::{DepthProfile, Reached, Traversal, Watch};
use crate::{EngineError, Frontier, Snapshot};

/// Runs the traversal. Memory: the sets of all depths; the stack holds at most as many.
pub(super) async fn run(
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
    let starts: Frontier = traversal.starts.iter().copied().collect();
    let mut stack: Vec<_> = starts.vertices().map(|vertex| (vertex, 0, traversal.after)).collect();
    stack.reverse();
    let mut running = FuturesUnordered::new();
    loop {
        while running.len() < traversal.parallelism.max(1) {
            let Some((vertex, depth, wave)) = stack.pop() else { break };
            if depth < hops {
                running.push(expand(snapshot, traversal, vertex, depth, wave, meter));
            }
        }
        let Some(expanded) = running.next().await else { break };
        let (depth, neighbours, edges, wave) = expanded?;
        last_wave = last_wave.max(wave);
        profile[depth].edges += edges;
        let known = stack.len();
        let new = neighbours.vertices().filter(|vertex| seen[depth + 1].insert(*vertex));
        stack.extend(new.map(|vertex| (vertex, depth + 1, wave)));
        watch.visited(stack.len() - known)?;
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

async fn expand(
    snapshot: &Snapshot,
    traversal: &Traversal,
    vertex: VertexId,
    depth: usize,
    after: Wave,
    meter: &Meter,
) -> Result<(usize, Frontier, u64, Wave), EngineError> {
    let frontier = std::iter::once(vertex).collect();
    let (edges, wave) = snapshot.neighbours(&frontier, &traversal.hops[depth], after, meter).await?;
    Ok((depth, edges.iter().map(|edge| edge.to).collect(), edges.len() as u64, wave))
}
