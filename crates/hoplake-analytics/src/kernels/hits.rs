//! Hubs and authorities (Kleinberg: *Authoritative sources in a hyperlinked environment*, 1999): a good hub links to good authorities, and
//! a good authority is linked to by good hubs.
//!
//! By power iteration from the same value for all vertices, which ends at the singular vectors of the adjacency matrix. Where its
//! greatest singular value has several, that is the one nearest to even values; networkx returns whichever its solver finds.

use hoplake_engine::{EngineError, Held};
use hoplake_storage::{QueryContext, StorageError};

use super::{
    held,
    vectors::{even, multiply, normalise, total},
};
use crate::{
    Adjacency, Topology,
    registry::{AlgorithmSpec, Figure, Kernel, KernelInput, KernelResult, OptionSpec, Values},
};

/// Hubs, as users see them.
pub(crate) const HUBS: AlgorithmSpec = AlgorithmSpec {
    name: "hubs",
    value: Some("hub"),
    help: "the hub score of HITS, from the authority scores of the out-neighbours; scores add up to 1",
    options: &OPTIONS,
    kernel: Some(Kernel { decoded: hubs, packed: hubs }),
    ..AlgorithmSpec::USUAL
};

/// Authorities, as users see them.
pub(crate) const AUTHORITIES: AlgorithmSpec = AlgorithmSpec {
    name: "authorities",
    value: Some("authority"),
    help: "the authority score of HITS, from the hub scores of the in-neighbours; scores add up to 1",
    options: &OPTIONS,
    kernel: Some(Kernel { decoded: authorities, packed: authorities }),
    ..AlgorithmSpec::USUAL
};

const OPTIONS: [OptionSpec; 2] = [OptionSpec::iterations(ITERATIONS), OptionSpec::tolerance(TOLERANCE)];
const ITERATIONS: usize = 100;
const TOLERANCE: f64 = 1e-6;

fn hubs<A: Adjacency>(input: &KernelInput<'_, A>) -> Result<KernelResult, EngineError> {
    run(input, |found| found.hubs)
}

fn authorities<A: Adjacency>(input: &KernelInput<'_, A>) -> Result<KernelResult, EngineError> {
    run(input, |found| found.authorities)
}

fn run<A: Adjacency>(
    input: &KernelInput<'_, A>,
    side: impl Fn(HubsAndAuthorities) -> Vec<f64>,
) -> Result<KernelResult, EngineError> {
    let Topology { out, deleted, .. } = input.topology;
    let iterations_max = input.options.count("iterations").unwrap_or(ITERATIONS);
    let tolerance = input.options.float("tolerance").unwrap_or(TOLERANCE);
    let found = hubs_and_authorities(out, input.against(), deleted, iterations_max, tolerance, input.context)?;
    let HubsAndAuthorities { iterations, residual, .. } = *found;
    let values = found.map(|found| Values::Floats(side(found)));
    Ok(KernelResult::from(values).after(iterations).with_figure("residual", Figure::Number(residual)))
}

/// The scores of all vertices, each of which add up to 1; 0 for vertices that were deleted.
#[derive(Debug, Clone, PartialEq)]
pub struct HubsAndAuthorities {
    /// How good a hub each vertex is.
    pub hubs: Vec<f64>,
    /// How good an authority each vertex is.
    pub authorities: Vec<f64>,
    /// How many iterations it took.
    pub iterations: usize,
    /// By how much the last one changed all hub scores in sum.
    pub residual: f64,
}

/// The hub and authority scores of all vertices along `out`, of which `against` has the same edges from their other ends. A parallel edge
/// counts as often as it is there, and so does a self-loop. Iterations end when hub scores have changed by no more than `tolerance` in
/// sum; 0 runs all of them. Without edges all scores are 0. Ids in `deleted` are not vertices, and have no edges.
///
/// Takes 24 bytes a vertex, 16 of them for the result.
///
/// # Errors
/// [`StorageError::Limit`] if the query's time is over, or its memory does not hold the scores.
///
/// # Panics
/// If `against` does not have as many vertices as `out`.
pub fn hubs_and_authorities<A: Adjacency>(
    out: &A,
    against: &A,
    deleted: &[u32],
    iterations_max: usize,
    tolerance: f64,
    context: &QueryContext,
) -> Result<Held<HubsAndAuthorities>, StorageError> {
    assert_eq!(out.len(), against.len(), "the same vertices from both ends");
    let memory = context.hold(out.len() as u64 * 24)?;
    let mut hubs = even(out.len(), deleted, |count| count);
    let mut next = vec![0.0; out.len()];
    let mut authorities = vec![0.0; out.len()];
    let mut iterations = 0;
    let mut residual = f64::INFINITY;
    while iterations < iterations_max && (residual > tolerance || tolerance == 0.0) {
        multiply(against, &hubs, &mut authorities, context)?;
        multiply(out, &authorities, &mut next, context)?;
        let norm = total(&next, |value| value);
        residual = normalise(&mut next, norm, &hubs);
        std::mem::swap(&mut hubs, &mut next);
        iterations += 1;
    }
    // Those of the last hubs.
    multiply(against, &hubs, &mut authorities, context)?;
    let norm = total(&authorities, |value| value);
    next.fill(0.0);
    normalise(&mut authorities, norm, &next);
    drop(next);
    Ok(held(HubsAndAuthorities { hubs, authorities, iterations, residual }, 16 * out.len(), memory))
}
