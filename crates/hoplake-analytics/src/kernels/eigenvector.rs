//! Eigenvector centrality by power iteration (Bonacich: *Factoring and weighting approaches to status scores and clique identification*,
//! 1972): a vertex is as central as those that link to it are in sum.
//!
//! The iteration is that of A + 1 and not of A, as in networkx: each vertex keeps its own value, too. Eigenvectors stay the same, and
//! the greatest eigenvalue is then the only one of its size, so that values do not swing between the sides of a bipartite graph.
//! A graph without circles has no eigenvalue above 0: values then gather where paths end, and go on changing, by less each time.

use hoplake_engine::{EngineError, Held};
use hoplake_storage::{QueryContext, StorageError};

use super::{
    held,
    vectors::{even, multiply, normalise, total},
};
use crate::{
    Adjacency,
    adjacency::InOrder,
    registry::{AlgorithmSpec, Figure, Kernel, KernelInput, KernelResult, Neighbours, OptionSpec, Values},
};

/// Eigenvector centrality, as users see it.
pub(crate) const EIGENVECTOR: AlgorithmSpec = AlgorithmSpec {
    name: "eigenvector",
    value: Some("centrality"),
    help: "eigenvector centrality, from the centrality of the in-neighbours; squares add up to 1",
    neighbours: Neighbours::In,
    options: &[OptionSpec::iterations(ITERATIONS), OptionSpec::tolerance(TOLERANCE)],
    kernel: Some(Kernel { decoded: run, packed: run }),
    ..AlgorithmSpec::USUAL
};

const ITERATIONS: usize = 100;
const TOLERANCE: f64 = 1e-6;

fn run<A: Adjacency>(input: &KernelInput<'_, A>) -> Result<KernelResult, EngineError> {
    let lists = &input.topology.out;
    let deleted = &input.topology.deleted;
    let iterations_max = input.options.count("iterations").unwrap_or(ITERATIONS);
    let tolerance = input.options.float("tolerance").unwrap_or(TOLERANCE);
    let found = eigenvector_centrality(lists, deleted, iterations_max, tolerance, input.context)?;
    let Eigenvector { iterations, residual, .. } = *found;
    let values = found.map(|found| Values::Floats(found.values));
    Ok(KernelResult::from(values).after(iterations).with_figure("residual", Figure::Number(residual)))
}

/// The centrality of all vertices.
#[derive(Debug, Clone, PartialEq)]
pub struct Eigenvector {
    /// A value for each vertex, 0 or more, whose squares add up to 1; 0 for those that were deleted.
    pub values: Vec<f64>,
    /// How many iterations it took.
    pub iterations: usize,
    /// By how much the last one changed all values in sum.
    pub residual: f64,
}

/// The eigenvector centrality of all vertices. `against` has the edges against their direction: the vertices that link to each. A
/// parallel edge counts as often as it is there, and so does a self-loop. Iterations begin with the same value for all, and end when
/// values have changed by no more than `tolerance` in sum; 0 runs all of them. networkx's `eigenvector_centrality` has the same, and
/// ends at its tolerance times the number of vertices. Ids in `deleted` are not vertices, and have no edges.
///
/// Takes 16 bytes a vertex, 8 of them for the result.
///
/// # Errors
/// [`StorageError::Limit`] if the query's time is over, or its memory does not hold the values.
pub fn eigenvector_centrality<A: Adjacency>(
    against: &A,
    deleted: &[u32],
    iterations_max: usize,
    tolerance: f64,
    context: &QueryContext,
) -> Result<Held<Eigenvector>, StorageError> {
    let memory = context.hold(against.len() as u64 * 16)?;
    let _order = InOrder::new(against);
    let mut values = even(against.len(), deleted, f64::sqrt);
    let mut next = vec![0.0; against.len()];
    let mut iterations = 0;
    let mut residual = f64::INFINITY;
    while iterations < iterations_max && (residual > tolerance || tolerance == 0.0) {
        multiply(against, &values, &mut next, context)?;
        next.iter_mut().zip(&values).for_each(|(next, value)| *next += value);
        let norm = total(&next, |value| value * value).sqrt();
        residual = normalise(&mut next, norm, &values);
        std::mem::swap(&mut values, &mut next);
        iterations += 1;
    }
    drop(next);
    Ok(held(Eigenvector { values, iterations, residual }, 8 * against.len(), memory))
}
