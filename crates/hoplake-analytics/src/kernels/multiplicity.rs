//! Self-loops and parallel edges: what a simple graph does not have.

use hoplake_engine::EngineError;
use hoplake_storage::{QueryContext, StorageError};
use rayon::prelude::*;

use super::CHUNK;
use crate::{
    Adjacency, Cursor,
    registry::{AlgorithmSpec, Figure, Kernel, KernelInput, KernelResult, Neighbours, ValueType},
};

/// Self-loops and parallel edges, as users see them.
pub(crate) const MULTIPLICITY: AlgorithmSpec = AlgorithmSpec {
    name: "multiplicity",
    value: None,
    help: "one row: `self_loops`, and `parallel_edges`: how many edges have the ends of another edge, which does not count; \
           with `--edges both` whatever their direction",
    value_type: ValueType::Integer,
    neighbours: Neighbours::Out,
    kernel: Some(Kernel { decoded: run, packed: run }),
    ..AlgorithmSpec::USUAL
};

fn run<A: Adjacency>(input: &KernelInput<'_, A>) -> Result<KernelResult, EngineError> {
    let found = multiplicity(&input.topology.out, input.is_undirected, input.context)?;
    let result = KernelResult::from(("self_loops", Figure::Count(found.self_loops)));
    Ok(result.with_figure("parallel_edges", Figure::Count(found.parallel_edges)))
}

/// How many edges a simple graph would not have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Multiplicity {
    /// Edges from a vertex to itself.
    pub self_loops: u64,
    /// Edges with the ends of another edge: of *k* with the same ends, *k* − 1.
    pub parallel_edges: u64,
}

/// Counts self-loops and parallel edges in lists that are in order. If `is_undirected`, each edge is in the lists of both its ends, and a self-loop
/// twice in that of its vertex. O(n + m), one pass over the lists; takes no memory of its own.
///
/// # Errors
/// [`StorageError::Limit`] if the query's time is over.
pub fn multiplicity<A: Adjacency>(
    lists: &A,
    is_undirected: bool,
    context: &QueryContext,
) -> Result<Multiplicity, StorageError> {
    let vertices = lists.len();
    let found = (0..vertices.div_ceil(CHUNK)).into_par_iter().map(|chunk| {
        context.check_time()?;
        let mut cursor = lists.cursor();
        let mut found = Multiplicity::default();
        for vertex in chunk * CHUNK..vertices.min((chunk + 1) * CHUNK) {
            let vertex = vertex as u32;
            for same in cursor.neighbours(vertex).chunk_by(|a, b| a == b) {
                let mut edges = same.len() as u64;
                if same[0] == vertex {
                    edges /= if is_undirected { 2 } else { 1 };
                    found.self_loops += edges;
                } else if is_undirected && same[0] < vertex {
                    // Counted at the other end.
                    continue;
                }
                found.parallel_edges += edges - 1;
            }
        }
        Ok(found)
    });
    let add = |a: Multiplicity, b: Multiplicity| Multiplicity {
        self_loops: a.self_loops + b.self_loops,
        parallel_edges: a.parallel_edges + b.parallel_edges,
    };
    found.try_reduce(Multiplicity::default, |a, b| Ok(add(a, b)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::{
        super::tests::{graph, graphs, pool},
        *,
    };

    /// Counted one edge after the other.
    fn expected(edges: impl Iterator<Item = (u32, u32)>) -> Multiplicity {
        let mut found = BTreeMap::new();
        edges.for_each(|ends| *found.entry(ends).or_insert(0) += 1);
        Multiplicity {
            self_loops: found.iter().filter(|((from, to), _)| from == to).map(|(_, count)| count).sum(),
            parallel_edges: found.values().map(|count| count - 1).sum(),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn each_edge_counts_once((vertices, edges) in graphs(), threads in 1usize..4) {
            let count = |edges: &[(u32, u32)], is_undirected| {
                let [lists, _] = graph(vertices, edges);
                pool(threads).install(|| multiplicity(&lists, is_undirected, &QueryContext::new())).unwrap()
            };
            prop_assert_eq!(count(&edges, false), expected(edges.iter().copied()));
            let both: Vec<_> = edges.iter().flat_map(|(from, to)| [(*from, *to), (*to, *from)]).collect();
            prop_assert_eq!(count(&both, true), expected(edges.iter().map(|(from, to)| (*from.min(to), *from.max(to)))));
        }
    }
}
