//! PageRank by power iteration: each vertex pulls the shares of those that link to it (Page, Brin, Motwani, Winograd: *The PageRank
//! citation ranking*, 1999).
//!
//! Pulling writes each rank once and by one thread, so nothing is atomic, and sums are taken in the same order whatever the
//! number of threads. A vertex without out-edges shares its rank with all vertices evenly, itself included, as LDBC Graphalytics has
//! it; suites that drop this mass return ranks that do not add up to 1.
//!
//! Personalised, all that is not passed on along edges goes to a set of sources instead of all vertices. The iteration is the same.

use hoplake_engine::Held;
use hoplake_storage::{QueryContext, StorageError};
use rayon::prelude::*;

use super::{CHUNK, held};
use crate::{Adjacency, Cursor};

/// How PageRank is computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PageRankSettings {
    /// The part of a rank that is passed on along edges; the rest is spread evenly, over the sources if there are any. From 0 to 1.
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
/// often as it is there, and so does a self-loop. Ids in `deleted` are not vertices.
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
    rank(out, against, deleted, None, settings, context)
}

/// The PageRank of all vertices as seen from some of them. As [`page_rank`], but what is not passed on along edges goes to `sources`
/// in even parts: the rest that damping leaves, and the ranks of vertices without out-edges. networkx's `pagerank` has the same with
/// 1 for each source as `personalization`. A vertex that no source reaches has rank 0. A source that is there twice counts once, and
/// one that is in `deleted` does not count; where none is left, all ranks are 0.
///
/// Takes 33 bytes a vertex, 8 of them for the result.
///
/// # Errors
/// [`StorageError::Limit`] if the query's time is over, or its memory does not hold the ranks.
///
/// # Panics
/// If `against` does not have as many vertices as `out`, or a source is not one of them.
pub fn personalised_page_rank<A: Adjacency>(
    out: &A,
    against: &A,
    deleted: &[u32],
    sources: &[u32],
    settings: &PageRankSettings,
    context: &QueryContext,
) -> Result<Held<PageRank>, StorageError> {
    rank(out, against, deleted, Some(sources), settings, context)
}

/// Without sources, what is not passed on along edges goes to all vertices.
fn rank<A: Adjacency>(
    out: &A,
    against: &A,
    deleted: &[u32],
    sources: Option<&[u32]>,
    settings: &PageRankSettings,
    context: &QueryContext,
) -> Result<Held<PageRank>, StorageError> {
    assert_eq!(out.len(), against.len(), "the same vertices from both ends");
    let memory = context.hold(out.len() as u64 * 33)?;
    let inverse_degrees = inverse_degrees(out, deleted);
    let mut receives = vec![sources.is_none(); out.len()];
    sources.into_iter().flatten().for_each(|source| receives[*source as usize] = true);
    deleted.iter().for_each(|vertex| receives[*vertex as usize] = false);
    let ranking = Ranking::new(inverse_degrees, receives);
    Ok(held(ranking.run(against, settings, context)?, 8 * out.len(), memory))
}

/// For each vertex one by the number of its edges; 0 if it has none.
fn inverse_degrees(out: &impl Adjacency, deleted: &[u32]) -> Vec<f64> {
    let inverse = |vertex: u32| match out.degree(vertex) {
        0 => 0.0,
        degree => 1.0 / degree as f64,
    };
    let mut inverse_degrees: Vec<f64> = (0..out.len() as u32).map(inverse).collect();
    deleted.iter().for_each(|vertex| inverse_degrees[*vertex as usize] = NO_VERTEX);
    inverse_degrees
}

/// The inverse degree of an id that is not a vertex.
const NO_VERTEX: f64 = -1.0;

/// Ranks between two iterations.
struct Ranking {
    ranks: Vec<f64>,
    /// One by the number of edges that pass a rank on; 0 if there is none.
    inverse_degrees: Vec<f64>,
    /// What each edge of a vertex passes on.
    shares: Vec<f64>,
    /// The sum of the ranks that none passes on.
    dangling: f64,
    /// Whether a vertex receives a part of what is not passed on along edges.
    receives: Vec<bool>,
    /// How many vertices do.
    receivers: usize,
}

impl Ranking {
    /// The same rank for all that receive a part, and 0 for others: so those that no source reaches have 0 from the first iteration.
    fn new(inverse_degrees: Vec<f64>, receives: Vec<bool>) -> Self {
        let receivers = receives.iter().filter(|receives| **receives).count();
        let even = 1.0 / receivers.max(1) as f64;
        let ranks: Vec<f64> = receives.iter().map(|receives| if *receives { even } else { 0.0 }).collect();
        let shares = ranks.iter().zip(&inverse_degrees).map(|(rank, inverse)| inverse.max(0.0) * rank).collect();
        let is_dangling = |(receives, inverse): &(&bool, &f64)| **receives && **inverse == 0.0;
        let dangling = receives.iter().zip(&inverse_degrees).filter(is_dangling).count() as f64 * even;
        Self { ranks, inverse_degrees, shares, dangling, receives, receivers }
    }

    /// Iterates over the lists of those that link to each vertex.
    fn run<A: Adjacency>(
        mut self,
        lists: &A,
        settings: &PageRankSettings,
        context: &QueryContext,
    ) -> Result<PageRank, StorageError> {
        let (mut iterations, mut residual) = (0, 0.0);
        let mut next = vec![0.0; self.shares.len()];
        while iterations < settings.iterations_max && self.receivers > 0 {
            residual = self.step(lists, settings.damping, &mut next, context)?;
            std::mem::swap(&mut self.shares, &mut next);
            iterations += 1;
            if residual <= settings.tolerance && settings.tolerance > 0.0 {
                break;
            }
        }
        Ok(PageRank { ranks: self.ranks, iterations, residual })
    }

    /// New ranks from the shares, and `next` shares from the ranks; by how much ranks changed in sum.
    fn step<A: Adjacency>(
        &mut self,
        lists: &A,
        damping: f64,
        next: &mut [f64],
        context: &QueryContext,
    ) -> Result<f64, StorageError> {
        let Self { ranks, inverse_degrees, shares, dangling, receives, receivers } = self;
        let part = (1.0 - damping + damping * *dangling) / *receivers as f64;
        let outputs = ranks.par_chunks_mut(CHUNK).zip(next.par_chunks_mut(CHUNK));
        let inputs = inverse_degrees.par_chunks(CHUNK).zip(receives.par_chunks(CHUNK));
        let sums = outputs.zip(inputs).enumerate().map(|(number, ((ranks, next), (inverse_degrees, receives)))| {
            context.check_time()?;
            let (mut changed, mut dangling, mut lists) = (0.0, 0.0, lists.cursor());
            let vertices = ranks.iter_mut().zip(next).zip(inverse_degrees.iter().zip(receives));
            for (vertex, ((rank, next), (inverse, receives))) in ((number * CHUNK) as u32..).zip(vertices) {
                if *inverse == NO_VERTEX {
                    continue;
                }
                let before = *rank;
                let base = if *receives { part } else { 0.0 };
                *rank = base + damping * pulled(lists.neighbours(vertex), shares);
                *next = *rank * inverse;
                changed += (*rank - before).abs();
                if *inverse == 0.0 {
                    dangling += *rank;
                }
            }
            Ok((changed, dangling))
        });
        // Chunks are added up in their order: a sum in any order would differ from run to run.
        let sums: Vec<(f64, f64)> = sums.collect::<Result<_, StorageError>>()?;
        *dangling = sums.iter().map(|(_, dangling)| dangling).sum();
        Ok(sums.iter().map(|(changed, _)| changed).sum())
    }
}

/// The sum of the shares of a list. Four sums, which the processor adds to at once.
fn pulled(list: &[u32], shares: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    let (fours, rest) = list.as_chunks::<4>();
    for four in fours {
        for (sum, from) in sums.iter_mut().zip(four) {
            *sum += shares[*from as usize];
        }
    }
    let rest: f64 = rest.iter().map(|from| shares[*from as usize]).sum();
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest
}
