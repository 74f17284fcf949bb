//! What a vertex has along the edges that it signals along, from lists that have the other ends of these edges.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use hoplake_engine::{EngineError, Held};
use hoplake_storage::{Branch, QueryContext};

use super::{Column, each, held};
use crate::{
    Lists, Workers,
    lists::{AdjacencySlice, Origin},
};

/// How many edges each vertex signals along. 12 bytes a vertex, 8 of them for the result.
///
/// # Errors
/// [`EngineError::Limit`] at a limit of time or memory; the store's.
pub async fn edge_counts(lists: &Lists, workers: &Workers, branch: &mut Branch) -> Result<Held<Column>, EngineError> {
    let vertices = lists.vertices();
    let context = branch.context().clone();
    let memory = context.hold(u64::from(vertices) * 12)?;
    let counts: Arc<Vec<AtomicU32>> = Arc::new((0..vertices).map(|_| AtomicU32::new(0)).collect());
    let counted = counts.clone();
    let of = move |_, list: &[u32], _: &[f64], (): &mut ()| {
        for from in list {
            counted[*from as usize].fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    each(lists, workers, branch, of, |_| 0).await?;
    let counts = counts.iter().map(|count| i64::from(count.load(Ordering::Relaxed))).collect();
    drop(memory);
    held(Column::Integers(counts), &context)
}

/// The weights of the edges that each vertex signals along, added up in the order of their other ends. On one thread, so that sums do not depend on
/// chance. 8 bytes a vertex.
///
/// # Errors
/// As [`edge_counts`].
pub async fn weight_sums(lists: &Lists, workers: &Workers, branch: &mut Branch) -> Result<Held<Column>, EngineError> {
    let vertices = lists.vertices();
    let context = branch.context().clone();
    let memory = context.hold(u64::from(vertices) * 8)?;
    let mut sums = vec![0.0; vertices as usize];
    let mut pass = lists.pass(&(0..vertices), workers, &context)?;
    while let Some(portion) = pass.next(branch).await? {
        let work = move |context: &QueryContext| {
            portion.in_order(|piece| add_weights(piece, &mut sums, context))?;
            Ok::<_, EngineError>(sums)
        };
        sums = workers.run(&context, work).await??;
    }
    drop(memory);
    held(Column::Floats(sums), &context)
}

fn add_weights(piece: &AdjacencySlice, sums: &mut [f64], context: &QueryContext) -> Result<(), EngineError> {
    context.check_time()?;
    let mut add = |list: &[u32], weights: &[f64]| {
        list.iter().zip(weights).for_each(|(from, weight)| sums[*from as usize] += weight);
    };
    match &piece.origin {
        Origin::Topology(topology) => {
            let lists = topology.against.as_ref().unwrap_or(&topology.out);
            piece.vertices.clone().for_each(|vertex| add(lists.neighbours(vertex), lists.weights_of(vertex)));
        }
        Origin::Batch(batch) => batch.lists_of(&piece.vertices).for_each(|(_, list, weights)| add(list, weights)),
    }
    Ok(())
}
