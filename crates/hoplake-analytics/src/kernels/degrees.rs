//! Degrees: how many edges each vertex has.

use hoplake_engine::{EngineError, Held};
use hoplake_storage::{QueryContext, StorageError};
use rayon::prelude::*;

use super::{CHUNK, held};
use crate::{
    Adjacency,
    registry::{AlgorithmSpec, Kernel, KernelInput, KernelResult, Neighbours, ValueType, Values},
};

/// Degrees, as users see them.
pub(crate) const DEGREES: AlgorithmSpec = AlgorithmSpec {
    name: "degrees",
    value: Some("degree"),
    help: "the number of edges in the direction of `--edges`",
    value_type: ValueType::Integer,
    neighbours: Neighbours::Out,
    kernel: Some(Kernel { decoded: run, packed: run }),
    ..AlgorithmSpec::USUAL
};

fn run<A: Adjacency>(input: &KernelInput<'_, A>) -> Result<KernelResult, EngineError> {
    let found = degrees(&input.topology.out, None, input.context)?;
    Ok(found.map(Values::Counts).into())
}

/// How many edges each vertex has in `lists`: its out-degree in those along edges, its in-degree in those against them. With
/// `against`, the same edges from their other ends, it is the sum of both. Where edges have no direction, and lists have each at
/// both ends, pass no `against`, or each counts twice.
///
/// A parallel edge counts as often as it is in a list, and so does a self-loop: once each way, so twice in the sum. A vertex that was
/// deleted has 0. Numbers of edges have 64 bits, because parallel edges can be more than there are vertices.
///
/// Takes 8 bytes a vertex, all of them for the result; no list is read, only where each begins.
///
/// # Errors
/// [`StorageError::Limit`] if the query's time is over, or its memory does not hold the degrees.
///
/// # Panics
/// If `against` does not have as many vertices as `lists`.
pub fn degrees<A: Adjacency>(
    lists: &A,
    against: Option<&A>,
    context: &QueryContext,
) -> Result<Held<Vec<u64>>, StorageError> {
    if let Some(against) = against {
        assert_eq!(lists.len(), against.len(), "the same vertices from both ends");
    }
    let memory = context.hold(lists.len() as u64 * 8)?;
    let mut degrees = vec![0; lists.len()];
    degrees.par_chunks_mut(CHUNK).enumerate().try_for_each(|(number, degrees)| {
        context.check_time()?;
        for (vertex, degree) in ((number * CHUNK) as u32..).zip(degrees) {
            *degree = (lists.degree(vertex) + against.map_or(0, |lists| lists.degree(vertex))) as u64;
        }
        Ok(())
    })?;
    Ok(held(degrees, 8 * lists.len(), memory))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        super::tests::{EXAMPLE, graph, graphs, pool},
        *,
    };

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn degrees_are_numbers_of_ends((vertices, edges) in graphs(), deleted in 0u32..3) {
            // The last ids are those of deleted vertices.
            let [out, against] = graph(vertices + deleted, &edges);
            let mut expected = [vec![0; out.len()], vec![0; out.len()], vec![0; out.len()]];
            for (from, to) in &edges {
                expected[0][*from as usize] += 1;
                expected[1][*to as usize] += 1;
                expected[2][*from as usize] += 1;
                expected[2][*to as usize] += 1;
            }
            for threads in [1, 3] {
                let context = QueryContext::new();
                let find = |lists, against| pool(threads).install(|| degrees(lists, against, &context)).unwrap();
                let found = [find(&out, None), find(&against, None), find(&out, Some(&against))];
                for (found, expected) in found.iter().zip(&expected) {
                    prop_assert_eq!(&**found, expected);
                }
                prop_assert_eq!(context.memory().used(), 3 * 8 * out.len() as u64);
                drop(found);
                prop_assert_eq!(context.memory().used(), 0);
            }
        }
    }

    #[test]
    fn a_loop_has_two_ends_and_parallel_edges_two_each() {
        let [out, against] = graph(7, &EXAMPLE);
        let context = QueryContext::new();
        assert_eq!(*degrees(&out, None, &context).unwrap(), [3, 1, 2, 2, 2, 1, 1]);
        assert_eq!(*degrees(&against, None, &context).unwrap(), [1, 2, 2, 2, 2, 2, 1]);
        assert_eq!(*degrees(&out, Some(&against), &context).unwrap(), [4, 3, 4, 4, 4, 3, 2]);
    }
}
