//! Products of an adjacency matrix with a vector, for kernels that iterate them. Sums are taken in the order of chunks of vertices, so that
//! results do not depend on the number of threads.

use hoplake_storage::{QueryContext, StorageError};
use rayon::prelude::*;

use super::{CHUNK, page_rank::pulled};
use crate::{Adjacency, Cursor};

/// For each vertex the sum of `values` over its list, once for each edge, into `sums`.
pub(super) fn multiply<A: Adjacency>(
    lists: &A,
    values: &[f64],
    sums: &mut [f64],
    context: &QueryContext,
) -> Result<(), StorageError> {
    sums.par_chunks_mut(CHUNK).enumerate().try_for_each(|(number, sums)| {
        context.check_time()?;
        let mut cursor = lists.cursor();
        for (vertex, sum) in ((number * CHUNK) as u32..).zip(sums) {
            *sum = pulled(cursor.unordered(vertex), values);
        }
        Ok(())
    })
}

/// The sum of what each value contributes.
pub(super) fn total(values: &[f64], part: impl Fn(f64) -> f64 + Sync) -> f64 {
    let sums: Vec<f64> =
        values.par_chunks(CHUNK).map(|values| values.iter().map(|value| part(*value)).sum::<f64>()).collect();
    sums.iter().sum()
}

/// Divides values by a norm, and returns by how much that makes them differ from others in sum. All are 0 if the norm is.
pub(super) fn normalise(values: &mut [f64], norm: f64, before: &[f64]) -> f64 {
    let times = if norm > 0.0 { 1.0 / norm } else { 0.0 };
    let chunks = values.par_chunks_mut(CHUNK).zip(before.par_chunks(CHUNK)).map(|(values, before)| {
        let mut changed = 0.0;
        for (value, before) in values.iter_mut().zip(before) {
            *value *= times;
            changed += (*value - before).abs();
        }
        changed
    });
    let sums: Vec<f64> = chunks.collect();
    sums.iter().sum()
}

/// The same value for all vertices but deleted ones, which have 0.
pub(super) fn even(vertices: usize, deleted: &[u32], norm: impl Fn(f64) -> f64) -> Vec<f64> {
    let count = vertices - deleted.len();
    let mut values = vec![1.0 / norm(count.max(1) as f64); vertices];
    deleted.iter().for_each(|vertex| values[*vertex as usize] = 0.0);
    values
}
