//! Communities by label propagation (Raghavan, Albert, Kumara: *Near linear time algorithm to detect community structures in
//! large-scale networks*, 2007), in the synchronous form without chance that LDBC Graphalytics defines.
//!
//! In each iteration every vertex takes the label that most of its neighbours had in the iteration before, and the smallest of these
//! if there are several. So the result depends on nothing but the labels at the start.

use std::cmp::Reverse;

use hoplake_engine::{EngineError, Held, traversal::HopDirection};
use hoplake_storage::{QueryContext, StorageError};
use rayon::prelude::*;

use super::{held, widest};
use crate::{
    Adjacency, Cursor,
    adjacency::InOrder,
    programs,
    registry::{AlgorithmSpec, KeyOrder, OptionSpec, Program, ProgramInput, ProgramSpec, Runnable, ValueType, Values},
};

/// Communities by label propagation, as users see them.
pub(crate) const COMMUNITIES: AlgorithmSpec = AlgorithmSpec {
    name: "communities",
    value: Some("community"),
    help: "a number that is the same for all vertices of a community, found by label propagation",
    value_type: ValueType::Integer,
    direction: HopDirection::Both,
    options: &[OptionSpec::iterations(10)],
    key_order: KeyOrder::Read,
    program: Some(ProgramSpec {
        make: program,
        streamed_bytes: 14,
        synchronous: Some("label propagation has all vertices take their labels at once, superstep by superstep"),
    }),
    ..AlgorithmSpec::USUAL
};

fn program(input: ProgramInput<'_>) -> Result<Box<dyn Program>, EngineError> {
    let none = || EngineError::Internal("labels have no places".into());
    let program = programs::Labels::from(input.places.ok_or_else(none)?);
    let supersteps_max = input.options.count("iterations");
    Ok(Box::new(Runnable { supersteps_max, ..Runnable::new(program, Values::Integers) }))
}

/// Vertices that a thread takes at a time, and between two looks at the deadline. Few: a hub costs as much as thousands of others.
const VERTICES: usize = 256;

/// The label of each vertex after `iterations`, or after the first that changes none. `initial` has a label for each
/// vertex; as ties go to the smallest, labels should be in the order of the vertices' keys. A vertex without edges
/// keeps its own.
///
/// With `against`, which has the same edges as `out` from their other ends, neighbours in both directions count, and one that is a
/// neighbour in both counts twice. Without it only those along edges do: where edges have no direction, pass lists with each edge at
/// both ends. Parallel edges count as often as they are in a list, and so do self-loops, with the vertex's own label.
///
/// Takes 8 bytes a vertex, and on each thread 4 bytes an edge of the vertex with the most.
///
/// # Errors
/// [`StorageError::Limit`] if the query's time is over, or its memory does not hold the labels.
///
/// # Panics
/// If `against` or `initial` does not have as many vertices as `out`.
pub fn label_propagation<A: Adjacency>(
    out: &A,
    against: Option<&A>,
    initial: &[u32],
    iterations: usize,
    context: &QueryContext,
) -> Result<Held<Vec<u32>>, StorageError> {
    assert_eq!(out.len(), initial.len(), "a label for each vertex");
    let labels_max = (widest(out, against) * rayon::current_num_threads()) as u64;
    let memory = context.hold(out.len() as u64 * 8 + labels_max * 4)?;
    let _in_order = (InOrder::new(out), against.map(InOrder::new));
    let mut labels = initial.to_vec();
    let mut next = vec![0; out.len()];
    for _ in 0..iterations {
        if !propagate(out, against, &labels, &mut next, context)? {
            break;
        }
        std::mem::swap(&mut labels, &mut next);
    }
    drop(next);
    Ok(held(labels, 4 * out.len(), memory))
}

/// One iteration; returns whether it changed a label.
fn propagate<A: Adjacency>(
    out: &A,
    against: Option<&A>,
    labels: &[u32],
    next: &mut [u32],
    context: &QueryContext,
) -> Result<bool, StorageError> {
    let start = || (out.cursor(), against.map(Adjacency::cursor), Vec::new());
    let chunks = next.par_chunks_mut(VERTICES).zip(labels.par_chunks(VERTICES)).enumerate();
    let changes = chunks.map_init(start, |(out, against, found), (number, (next, before))| {
        context.check_time()?;
        for (vertex, (next, before)) in (number * VERTICES..).zip(next.iter_mut().zip(before)) {
            let targets = out.neighbours(vertex as u32);
            let sources = against.as_mut().map_or(&[][..], |lists| lists.neighbours(vertex as u32));
            found.clear();
            // Exactly what was counted for: room that grows by itself may be twice that.
            found.reserve_exact(targets.len() + sources.len());
            found.extend(targets.iter().chain(sources).map(|neighbour| labels[*neighbour as usize]));
            *next = most_frequent(found).unwrap_or(*before);
        }
        Ok(next != before)
    });
    changes.try_reduce(|| false, |a, b| Ok(a | b))
}

/// The label that is there most often, and the smallest of these.
fn most_frequent(labels: &mut [u32]) -> Option<u32> {
    labels.sort_unstable();
    let best = labels.chunk_by(|a, b| a == b).max_by_key(|same| (same.len(), Reverse(same[0])));
    best.map(|same| same[0])
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::{
        super::tests::{graph, graphs, pool},
        *,
    };

    /// By sending labels along edges, and counting them in maps.
    fn expected(edges: &[(u32, u32)], directions: &[bool], initial: &[u32], iterations: usize) -> Vec<u32> {
        let mut labels = initial.to_vec();
        for _ in 0..iterations {
            let mut counts = vec![HashMap::<u32, i64>::new(); labels.len()];
            for (from, to) in edges {
                for along in directions {
                    let (taker, giver) = if *along { (from, to) } else { (to, from) };
                    *counts[*taker as usize].entry(labels[*giver as usize]).or_default() += 1;
                }
            }
            for (label, counts) in labels.iter_mut().zip(counts) {
                *label = counts.into_iter().min_by_key(|(label, count)| (-count, *label)).map_or(*label, |it| it.0);
            }
        }
        labels
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn labels_are_those_that_most_neighbours_had(
            (vertices, edges) in graphs(),
            iterations in 0usize..12,
            seed in prop::collection::vec(any::<prop::sample::Index>(), 300),
        ) {
            let [out, against] = graph(vertices, &edges);
            // In any order, and some of them twice.
            let initial: Vec<u32> =
                seed[..vertices as usize].iter().map(|it| it.index(vertices as usize * 2) as u32).collect();
            for (against, directions) in [(None, &[true][..]), (Some(&against), &[true, false])] {
                let expected = expected(&edges, directions, &initial, iterations);
                for threads in [1, 3] {
                    let context = QueryContext::new();
                    let found = pool(threads).install(|| label_propagation(&out, against, &initial, iterations, &context));
                    prop_assert_eq!(&*found.unwrap(), &expected);
                    prop_assert_eq!(context.memory().used(), 0);
                }
            }
        }
    }

    #[test]
    fn iterations_end_where_no_label_changes() {
        let [out, _] = graph(3, &[(0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 0)]);
        let found = label_propagation(&out, None, &[0, 1, 2], usize::MAX, &QueryContext::new()).unwrap();
        assert_eq!(*found, [0, 0, 0]);
    }
}
