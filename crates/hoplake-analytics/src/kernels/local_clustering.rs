//! Local clustering coefficients: how many of the edges that could be among the neighbours of a vertex are there (Watts, Strogatz:
//! *Collective dynamics of small-world networks*, 1998), as LDBC Graphalytics defines them for directed graphs, too.
//!
//! Each vertex gathers its neighbours in order, and intersects their lists with them. A list that is much longer than the other is
//! searched, not read: otherwise the list of a hub is read once for each of its neighbours.

use hoplake_engine::{EngineError, Held};
use hoplake_storage::{QueryContext, StorageError};
use rayon::prelude::*;

use super::{held, widest};
use crate::{
    Adjacency, Cursor,
    registry::{AlgorithmSpec, Kernel, KernelInput, KernelResult, Values},
};

/// Local clustering coefficients, as users see them.
pub(crate) const CLUSTERING: AlgorithmSpec = AlgorithmSpec {
    name: "clustering",
    value: Some("clustering"),
    help: "the local clustering coefficient: the fraction of neighbour pairs that are adjacent, from 0 to 1",
    kernel: Some(Kernel { decoded: run, packed: run }),
    ..AlgorithmSpec::USUAL
};

fn run<A: Adjacency>(input: &KernelInput<'_, A>) -> Result<KernelResult, EngineError> {
    let found = local_clustering(&input.topology.out, input.topology.against.as_ref(), input.context)?;
    Ok(found.map(Values::Floats).into())
}

/// Vertices that a thread takes at a time. Few: a hub costs as much as thousands of others.
const VERTICES: usize = 64;
/// Neighbours between two looks at the deadline.
const NEIGHBOURS: usize = 1024;
/// A list is searched if it is more than this many times as long as the other: a search in a million entries takes 20
/// steps.
const SEARCH_RATIO: usize = 16;

/// The local clustering coefficient of each vertex, from 0 to 1: with d neighbours, along edges or against them and without the vertex
/// itself, the number of directed edges among them divided by d(d-1); 0 if d is below 2. Where edges have no direction, pass lists
/// with each edge at both ends, and no `against`; it counts in both directions then, so that a triangle has 1. Self-loops do not
/// count, and parallel edges count once.
///
/// Takes 8 bytes a vertex, and on each thread 4 bytes a neighbour of the vertex with the most.
///
/// # Errors
/// [`StorageError::Limit`] if the query's time is over, or its memory does not hold the coefficients.
///
/// # Panics
/// If `against` does not have as many vertices as `out`.
pub fn local_clustering<A: Adjacency>(
    out: &A,
    against: Option<&A>,
    context: &QueryContext,
) -> Result<Held<Vec<f64>>, StorageError> {
    let neighbours_max = (widest(out, against) * rayon::current_num_threads()) as u64;
    let memory = context.hold(out.len() as u64 * 8 + neighbours_max * 4)?;
    let mut coefficients = vec![0.0; out.len()];
    let start = || Neighbourhood { out: out.cursor(), against: against.map(Adjacency::cursor), vertices: Vec::new() };
    coefficients.par_chunks_mut(VERTICES).enumerate().try_for_each_init(start, |neighbourhood, (number, chunk)| {
        for (vertex, coefficient) in (number * VERTICES..).zip(chunk) {
            neighbourhood.gather(vertex as u32);
            *coefficient = neighbourhood.coefficient(context)?;
        }
        Ok(())
    })?;
    Ok(held(coefficients, 8 * out.len(), memory))
}

/// The neighbours of a vertex, and lists to read them from.
struct Neighbourhood<C> {
    out: C,
    against: Option<C>,
    /// Ascending, each once.
    vertices: Vec<u32>,
}

impl<C: Cursor> Neighbourhood<C> {
    fn gather(&mut self, vertex: u32) {
        let targets = self.out.neighbours(vertex);
        let sources = self.against.as_mut().map_or(&[][..], |lists| lists.neighbours(vertex));
        self.vertices.clear();
        // Exactly what was counted for: room that grows by itself may be twice that.
        self.vertices.reserve_exact(targets.len() + sources.len());
        self.vertices.extend(targets.iter().chain(sources).filter(|neighbour| **neighbour != vertex));
        self.vertices.sort_unstable();
        self.vertices.dedup();
    }

    fn coefficient(&mut self, context: &QueryContext) -> Result<f64, StorageError> {
        let mut links = 0;
        for neighbours in self.vertices.chunks(NEIGHBOURS) {
            context.check_time()?;
            for neighbour in neighbours {
                links += common(self.out.neighbours(*neighbour), &self.vertices, *neighbour);
            }
        }
        let count = self.vertices.len() as f64;
        // Without links also where there are fewer than two neighbours.
        Ok(if links == 0 { 0.0 } else { links as f64 / (count * (count - 1.0)) })
    }
}

/// How many different ids, other than one, are in both lists, which ascend.
fn common(a: &[u32], b: &[u32], except: u32) -> u64 {
    let (short, mut long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    let searched = long.len() / SEARCH_RATIO > short.len();
    let mut count = 0;
    let mut before = None;
    for id in short {
        if before == Some(id) {
            continue;
        }
        before = Some(id);
        let skipped = if searched {
            long.partition_point(|other| other < id)
        } else {
            long.iter().position(|other| other >= id).unwrap_or(long.len())
        };
        long = &long[skipped..];
        count += u64::from(long.first() == Some(id) && *id != except);
    }
    count
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::{
        super::tests::{graph, graphs, pool},
        *,
    };

    /// By looking for every pair of neighbours among the edges.
    fn expected(vertices: u32, edges: &[(u32, u32)]) -> Vec<f64> {
        let edges: BTreeSet<_> = edges.iter().copied().filter(|(from, to)| from != to).collect();
        let of_vertex = |vertex| {
            let neighbours: BTreeSet<u32> = edges
                .iter()
                .filter(|(from, to)| *from == vertex || *to == vertex)
                .map(|(from, to)| if *from == vertex { *to } else { *from })
                .collect();
            let pairs = neighbours.iter().flat_map(|from| neighbours.iter().map(move |to| (*from, *to)));
            let links = pairs.filter(|pair| edges.contains(pair)).count();
            let count = neighbours.len();
            if count < 2 { 0.0 } else { links as f64 / (count * (count - 1)) as f64 }
        };
        (0..vertices).map(of_vertex).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn coefficients_are_the_shares_of_pairs_with_an_edge((vertices, edges) in graphs(), hub in any::<bool>()) {
            // With a hub, whose list is searched.
            let of_hub = (0..vertices).filter(|_| hub).map(|vertex| (vertex, 0));
            let edges: Vec<_> = edges.into_iter().chain(of_hub).collect();
            let both: Vec<_> = edges.iter().flat_map(|(from, to)| [(*from, *to), (*to, *from)]).collect();
            let [out, against] = graph(vertices, &edges);
            let [undirected, _] = graph(vertices, &both);
            let directed_expected = expected(vertices, &edges);
            let expected = expected(vertices, &both);
            for threads in [1, 3] {
                let context = QueryContext::new();
                let found = pool(threads).install(|| local_clustering(&out, Some(&against), &context));
                prop_assert_eq!(&*found.unwrap(), &directed_expected);
                let found = pool(threads).install(|| local_clustering(&undirected, None, &context));
                prop_assert_eq!(&*found.unwrap(), &expected);
                prop_assert_eq!(context.memory().used(), 0);
            }
        }

        #[test]
        fn common_ids_are_those_of_both_sets(
            a in prop::collection::vec(0u32..60, 0..200),
            b in prop::collection::vec(0u32..60, 0..8),
            except in 0u32..60,
        ) {
            let sets = [&a, &b].map(|ids| ids.iter().copied().collect::<BTreeSet<_>>());
            let expected = sets[0].intersection(&sets[1]).filter(|id| **id != except).count();
            let mut a = a;
            let mut b = b;
            a.sort_unstable();
            b.sort_unstable();
            prop_assert_eq!(common(&a, &b, except), expected as u64);
            prop_assert_eq!(common(&b, &a, except), expected as u64);
        }
    }
}
