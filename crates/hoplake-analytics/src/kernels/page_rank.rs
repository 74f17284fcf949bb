//! PageRank by power iteration: each vertex pulls the shares of those that link to it (Page, Brin, Motwani, Winograd: *The PageRank
//! citation ranking*, 1999).
//!
//! Pulling writes each rank once and by one thread, so nothing is atomic, and sums are taken in the same order whatever the
//! number of threads. A vertex without out-edges shares its rank with all vertices evenly, itself included, as LDBC Graphalytics has
//! it; suites that drop this mass return ranks that do not add up to 1.
//!
//! A look for the share of a neighbour waits for the processor's caches, which hold twice as many shares of 4 bytes as of 8. So while
//! ranks change by more than [`FINE`] in sum, shares are rounded to 4 bytes: that is an error of 6e-8 of each, less than what the
//! iteration has yet to change. Ranks themselves and their sums have 8 bytes throughout.
//!
//! By weight, a vertex divides its rank among its edges in proportion to their weights instead of evenly.
//!
//! Personalised, all that is not passed on along edges goes to a set of sources instead of all vertices. The iteration is the same.

use hoplake_engine::{EngineError, Held};
use hoplake_storage::{QueryContext, StorageError};
use rayon::prelude::*;

use super::{CHUNK, held, weights};
use crate::{
    Adjacency, Csr, Cursor, Topology,
    adjacency::InOrder,
    programs,
    registry::{
        AlgorithmSpec, FROM_OPTION, Kernel, KernelInput, KernelResult, OptionKind, OptionSpec, Options, Program,
        ProgramInput, ProgramSpec, Runnable, Values, WEIGHT_OPTION,
    },
};

/// PageRank, as users see it.
pub(crate) const PAGE_RANK: AlgorithmSpec = AlgorithmSpec {
    name: "pagerank",
    value: Some("rank"),
    help: "PageRank; ranks add up to 1. With `--from`, which may be repeated, personalised PageRank from these vertices",
    options: &[
        OptionSpec {
            name: "damping",
            kind: OptionKind::Part,
            help: "The fraction of a rank that is passed on along edges",
            default: Some(PageRankSettings::USUAL.damping),
            ..OptionSpec::USUAL
        },
        OptionSpec::iterations(PageRankSettings::USUAL.iterations_max),
        OptionSpec::tolerance(PageRankSettings::USUAL.tolerance),
        OptionSpec {
            name: FROM_OPTION,
            kind: OptionKind::Vertices,
            help: "The source vertices of personalised PageRank; may be repeated",
            ..OptionSpec::USUAL
        },
        OptionSpec::weight(
            "The weight property of edges, in proportion to which a vertex divides its rank: a number, 0 or more",
        ),
    ],
    kernel: Some(Kernel { decoded: run, packed: run }),
    program: Some(ProgramSpec { make: program, streamed_bytes: 30, synchronous: None }),
    ..AlgorithmSpec::USUAL
};

fn run<A: Adjacency>(input: &KernelInput<'_, A>) -> Result<KernelResult, EngineError> {
    let Topology { out, deleted, .. } = input.topology;
    let settings = PageRankSettings::of(input.options);
    let sources = input.options.value(FROM_OPTION).map(|_| input.starts);
    let found = rank(out, input.against(), deleted, sources, &settings, input.context)?;
    let iterations = found.iterations;
    Ok(KernelResult::from(found.map(|found| Values::Floats(found.ranks))).after(iterations))
}

fn program(input: ProgramInput<'_>) -> Result<Box<dyn Program>, EngineError> {
    if input.options.value(WEIGHT_OPTION).is_some() {
        let message = "ranks by weight are computed from lists in memory, without checkpoints; raise the limit of memory, or select less";
        return Err(EngineError::Invalid(message.into()));
    }
    let settings = PageRankSettings::of(input.options);
    let sources = input.options.value(FROM_OPTION).map(|_| input.starts.to_vec());
    let program = programs::PageRank::new(settings, sources);
    let supersteps_max = Some(settings.iterations_max);
    let residual: fn(&programs::RankSums) -> f64 = |sums| sums.residual;
    Ok(Box::new(Runnable { supersteps_max, residual: Some(residual), ..Runnable::new(program, Values::Floats) }))
}

/// How PageRank is computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PageRankSettings {
    /// The fraction of a rank that is passed on along edges; the rest is spread evenly, over the sources if there are any. From 0 to 1.
    pub damping: f64,
    /// The most iterations.
    pub iterations_max: usize,
    /// Iterations end when ranks have changed by no more than this in sum. 0 runs all of them.
    pub tolerance: f64,
}

impl PageRankSettings {
    const USUAL: Self = Self { damping: 0.85, iterations_max: 100, tolerance: 1e-6 };

    fn of(options: &Options) -> Self {
        Self {
            damping: options.float("damping").unwrap_or(Self::USUAL.damping),
            iterations_max: options.count("iterations").unwrap_or(Self::USUAL.iterations_max),
            tolerance: options.float("tolerance").unwrap_or(Self::USUAL.tolerance),
        }
    }
}

impl Default for PageRankSettings {
    /// 0.85, at most 100 iterations, down to 1e-6.
    fn default() -> Self {
        Self::USUAL
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
/// often as it is there, and so does a self-loop. If lists have weights, a vertex divides its rank among its edges by their weights, and
/// one whose weights are all 0 has no edges. Ids in `deleted` are not vertices, and have no edges.
///
/// # Errors
/// [`EngineError::Invalid`] if a weight is negative, infinite or not a number, or if the weights of a vertex add up to a number whose
/// inverse is not finite. [`EngineError::Limit`] if the query's time is over, or its memory does not hold the ranks.
///
/// # Panics
/// If `against` does not have as many vertices as `out`.
pub fn page_rank<A: Adjacency>(
    out: &A,
    against: &A,
    deleted: &[u32],
    settings: &PageRankSettings,
    context: &QueryContext,
) -> Result<Held<PageRank>, EngineError> {
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
/// As [`page_rank`].
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
) -> Result<Held<PageRank>, EngineError> {
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
) -> Result<Held<PageRank>, EngineError> {
    assert_eq!(out.len(), against.len(), "the same vertices from both ends");
    let memory = context.hold(out.len() as u64 * 33)?;
    let inverse_degrees = match out.weighted() {
        Some(out) => inverse_sums(out, context)?,
        None => (0..out.len() as u32).map(|vertex| inverse_degree(out, vertex)).collect(),
    };
    let mut receives = vec![sources.is_none(); out.len()];
    sources.into_iter().flatten().for_each(|source| receives[*source as usize] = true);
    deleted.iter().for_each(|vertex| receives[*vertex as usize] = false);
    let ranking = Ranking::new(inverse_degrees, receives);
    let _order = InOrder::new(against);
    Ok(held(ranking.run(against, settings, context)?, 8 * out.len(), memory))
}

/// One by the number of a vertex's edges; 0 if it has none.
fn inverse_degree(out: &impl Adjacency, vertex: u32) -> f64 {
    match out.degree(vertex) {
        0 => 0.0,
        degree => 1.0 / degree as f64,
    }
}

/// One by the sum of the weights of each vertex's edges; 0 if that is 0.
fn inverse_sums(out: &Csr, context: &QueryContext) -> Result<Vec<f64>, EngineError> {
    weights::check(out, context)?;
    let inverse = |vertex: u32| {
        let sum: f64 = out.weights_of(vertex).iter().sum();
        let inverse = if sum == 0.0 { 0.0 } else { 1.0 / sum };
        if sum.is_finite() && inverse.is_finite() {
            return Ok(inverse);
        }
        let message =
            format!("the weights of the edges of vertex {vertex} (by dense id) add up to {sum:e}; scale them");
        Err(EngineError::Invalid(message))
    };
    (0..out.len() as u32).map(inverse).collect()
}

/// Shares have 8 bytes once ranks change by no more than this in sum.
const FINE: f64 = 1e-6;

/// What each edge of a vertex passes on.
pub(crate) trait Share: Copy + Default + Into<f64> + Send + Sync {
    fn of(share: f64) -> Self;
}

impl Share for f32 {
    fn of(share: f64) -> Self {
        share as Self
    }
}

impl Share for f64 {
    fn of(share: f64) -> Self {
        share
    }
}

/// Ranks between two iterations.
struct Ranking {
    ranks: Vec<f64>,
    /// One by the number of edges that pass a rank on; 0 if there is none.
    inverse_degrees: Vec<f64>,
    /// Whether a vertex receives a part of what is not passed on along edges.
    receives: Vec<bool>,
    /// How many vertices do.
    receivers: usize,
    /// Iterations so far.
    iterations: usize,
    /// By how much the last one changed all ranks in sum.
    residual: f64,
}

impl Ranking {
    /// The same rank for all that receive a part, and 0 for others: so those that no source reaches have 0 from the first iteration.
    fn new(inverse_degrees: Vec<f64>, receives: Vec<bool>) -> Self {
        let receivers = receives.iter().filter(|receives| **receives).count();
        let even = 1.0 / receivers.max(1) as f64;
        let ranks = receives.iter().map(|receives| if *receives { even } else { 0.0 }).collect();
        Self { ranks, inverse_degrees, receives, receivers, iterations: 0, residual: 0.0 }
    }

    /// Iterates over the lists of those that link to each vertex.
    fn run<A: Adjacency>(
        mut self,
        lists: &A,
        settings: &PageRankSettings,
        context: &QueryContext,
    ) -> Result<PageRank, StorageError> {
        // Shares by weight may be beyond what 4 bytes can be.
        let is_weighted = lists.weighted().is_some();
        if !is_weighted {
            self.iterate::<f32, A>(lists, settings, settings.tolerance.max(FINE), context)?;
        }
        let is_done = !is_weighted && self.residual <= settings.tolerance && settings.tolerance > 0.0;
        if !is_done {
            self.iterate::<f64, A>(lists, settings, settings.tolerance, context)?;
        }
        Ok(PageRank { ranks: self.ranks, iterations: self.iterations, residual: self.residual })
    }

    /// Iterates until ranks change by no more than `enough`.
    fn iterate<S: Share, A: Adjacency>(
        &mut self,
        lists: &A,
        settings: &PageRankSettings,
        enough: f64,
        context: &QueryContext,
    ) -> Result<(), StorageError> {
        let mut shares: Vec<S> = vec![S::default(); self.ranks.len()];
        let mut next = shares.clone();
        let mut dangling = self.share(&mut shares);
        while self.iterations < settings.iterations_max && self.receivers > 0 {
            let base = (1.0 - settings.damping + settings.damping * dangling) / self.receivers as f64;
            (self.residual, dangling) = self.step(lists, settings.damping, base, &shares, &mut next, context)?;
            std::mem::swap(&mut shares, &mut next);
            self.iterations += 1;
            if self.residual <= enough && enough > 0.0 {
                break;
            }
        }
        Ok(())
    }

    /// The shares of all ranks; returns the sum of the ranks that none passes on.
    fn share<S: Share>(&self, shares: &mut [S]) -> f64 {
        let mut dangling = 0.0;
        for ((share, rank), inverse) in shares.iter_mut().zip(&self.ranks).zip(&self.inverse_degrees) {
            *share = S::of(rank * inverse);
            dangling += if *inverse == 0.0 { *rank } else { 0.0 };
        }
        dangling
    }

    /// New ranks from the shares, and `next` shares from the ranks. Returns by how much ranks changed in sum, and the sum of those
    /// that none passes on.
    fn step<S: Share, A: Adjacency>(
        &mut self,
        lists: &A,
        damping: f64,
        base: f64,
        shares: &[S],
        next: &mut [S],
        context: &QueryContext,
    ) -> Result<(f64, f64), StorageError> {
        let outputs = self.ranks.par_chunks_mut(CHUNK).zip(next.par_chunks_mut(CHUNK));
        let inputs = self.inverse_degrees.par_chunks(CHUNK).zip(self.receives.par_chunks(CHUNK));
        let sums = outputs.zip(inputs).enumerate().map(|(number, ((ranks, next), (inverse_degrees, receives)))| {
            context.check_time()?;
            let mut changed = 0.0;
            let mut dangling = 0.0;
            let weighted = lists.weighted();
            let mut lists = lists.cursor();
            let vertices = ranks.iter_mut().zip(next).zip(inverse_degrees.iter().zip(receives));
            for (vertex, ((rank, next), (inverse, receives))) in ((number * CHUNK) as u32..).zip(vertices) {
                let before = *rank;
                // A deleted vertex receives nothing and is in no list, so its rank stays 0.
                let base = if *receives { base } else { 0.0 };
                let pulled = match weighted {
                    Some(lists) => pulled_by_weight(lists.neighbours(vertex), lists.weights_of(vertex), shares),
                    None => pulled(lists.unordered(vertex), shares),
                };
                *rank = base + damping * pulled;
                *next = S::of(*rank * inverse);
                changed += (*rank - before).abs();
                // Whether a vertex has edges is random, and a branch on it would be guessed wrong often.
                dangling += if *inverse == 0.0 { *rank } else { 0.0 };
            }
            Ok((changed, dangling))
        });
        // Chunks are added up in their order: a sum in any order would differ from run to run.
        let sums: Vec<(f64, f64)> = sums.collect::<Result<_, StorageError>>()?;
        Ok((sums.iter().map(|(changed, _)| changed).sum(), sums.iter().map(|(_, dangling)| dangling).sum()))
    }
}

/// The sum of the shares of a list. Four sums, which the processor adds to at once.
pub(crate) fn pulled<S: Share>(list: &[u32], shares: &[S]) -> f64 {
    let mut sums = [0.0; 4];
    let (fours, rest) = list.as_chunks::<4>();
    for four in fours {
        for (sum, from) in sums.iter_mut().zip(four) {
            *sum += shares[*from as usize].into();
        }
    }
    let rest: f64 = rest.iter().map(|from| shares[*from as usize].into()).sum();
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest
}

/// The sum of the shares of a list, each by the weight of its edge.
fn pulled_by_weight<S: Share>(list: &[u32], weights: &[f64], shares: &[S]) -> f64 {
    list.iter().zip(weights).map(|(from, weight)| weight * shares[*from as usize].into()).sum()
}
