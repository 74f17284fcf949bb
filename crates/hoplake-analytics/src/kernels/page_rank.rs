//! PageRank by power iteration: each vertex pulls the shares of those that link to it (Page, Brin, Motwani, Winograd: *The PageRank
//! citation ranking*, 1999).
//!
//! Pulling writes each rank once and by one thread, so nothing is atomic, and sums are taken in the order of the list whatever the
//! number of threads. A vertex without out-edges shares its rank with all vertices evenly, itself included, as LDBC Graphalytics has
//! it; suites that drop this mass return ranks that do not add up to 1.

use hoplake_engine::Held;
use hoplake_storage::{QueryContext, StorageError};
use rayon::prelude::*;

use super::{CHUNK, held};
use crate::{Adjacency, Cursor};

/// How PageRank is computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PageRankSettings {
    /// The part of a rank that is passed on along edges; the rest is spread evenly. From 0 to 1.
    pub damping: f64,
    /// The most iterations.
    pub iterations_max: usize,
    /// Iterations end when ranks have changed by no more than this in sum. 0 runs all of them.
    pub tolerance: f64,
}

impl Default for PageRankSettings {
    /// 0.85, at most 100 iterations, down to 1e-6.
    fn default() -> Self {
        Self { damping: 0.85, iterations_max: 100, tolerance: 1e-6 }
    }
}

/// The ranks of all vertices.
#[derive(Debug, Clone, PartialEq)]
pub struct PageRank {
    /// A rank for each vertex, which add up to 1; 0 for those that were deleted.
    pub ranks: Vec<f64>,
    /// How many iterations it took.
    pub iterations: usize,
    /// By how much the last one changed all ranks in sum.
    pub residual: f64,
}

/// The PageRank of all vertices along `out`, of which `against` has the same edges from their other ends. A parallel edge counts as
/// often as it is there, and so does a self-loop. Ids in `deleted` are no vertices.
///
/// # Errors
/// [`StorageError::Limit`] if the query's time is over, or its memory does not hold the ranks.
///
/// # Panics
/// If `against` does not have as many vertices as `out`.
pub fn page_rank<A: Adjacency>(
    out: &A,
    against: &A,
    deleted: &[u32],
    settings: &PageRankSettings,
    context: &QueryContext,
) -> Result<Held<PageRank>, StorageError> {
    assert_eq!(out.len(), against.len(), "the same vertices from both ends");
    let count = out.len() - deleted.len();
    let memory = context.hold(out.len() as u64 * 24)?;
    let mut result = PageRank { ranks: vec![1.0 / count.max(1) as f64; out.len()], iterations: 0, residual: 0.0 };
    deleted.iter().for_each(|vertex| result.ranks[*vertex as usize] = 0.0);
    let mut shares = vec![0.0; out.len()];
    let mut next = vec![0.0; out.len()];
    while result.iterations < settings.iterations_max && count > 0 {
        let dangling = share_out(out, &result.ranks, &mut shares, context)?;
        let base = (1.0 - settings.damping + settings.damping * dangling) / count as f64;
        let chunks = next.par_chunks_mut(CHUNK).zip(result.ranks.par_chunks(CHUNK)).enumerate();
        let changes = chunks.map(|(number, (next, before))| {
            context.check_time()?;
            let (mut changed, mut lists) = (0.0, against.cursor());
            for (vertex, (rank, before)) in (number * CHUNK..).zip(next.iter_mut().zip(before)) {
                let pulled: f64 = lists.neighbours(vertex as u32).iter().map(|from| shares[*from as usize]).sum();
                *rank = base + settings.damping * pulled;
                changed += (*rank - before).abs();
            }
            Ok(changed)
        });
        let changes: Vec<f64> = changes.collect::<Result<_, StorageError>>()?;
        // Those that are no vertices have no edges, but got the base.
        let of_deleted = deleted.len() as f64 * base;
        deleted.iter().for_each(|vertex| next[*vertex as usize] = 0.0);
        std::mem::swap(&mut result.ranks, &mut next);
        result.iterations += 1;
        result.residual = changes.iter().sum::<f64>() - of_deleted;
        if result.residual <= settings.tolerance && settings.tolerance > 0.0 {
            break;
        }
    }
    drop((shares, next));
    Ok(held(result, 8 * out.len(), memory))
}

/// Divides each rank by the number of edges that pass it on, and returns the sum of those that none passes on.
fn share_out(
    out: &impl Adjacency,
    ranks: &[f64],
    shares: &mut [f64],
    context: &QueryContext,
) -> Result<f64, StorageError> {
    let chunks = shares.par_chunks_mut(CHUNK).zip(ranks.par_chunks(CHUNK)).enumerate();
    let dangling = chunks.map(|(number, (shares, ranks))| {
        context.check_time()?;
        let mut dangling = 0.0;
        for (vertex, (share, rank)) in (number * CHUNK..).zip(shares.iter_mut().zip(ranks)) {
            match out.degree(vertex as u32) {
                0 => dangling += rank,
                degree => *share = rank / degree as f64,
            }
        }
        Ok(dangling)
    });
    // Chunks are added up in their order: a sum in any order would differ from run to run.
    Ok(dangling.collect::<Result<Vec<f64>, StorageError>>()?.iter().sum())
}
