//! Betweenness centrality (Brandes: *A faster algorithm for betweenness centrality*, 2001).
//!
//! A search from a source counts the shortest paths to each vertex. Then, from the farthest back, each vertex gets from those after
//! it the part of their paths that leads through it. Each thread has a source of its own. What the sources give is added up in their
//! order, because sums of floating-point numbers in another order differ.

use hoplake_engine::{EngineError, Held};
use hoplake_storage::{QueryContext, StorageError};
use rayon::prelude::*;

use super::{CHUNK, UNREACHED, different_neighbours, held};
use crate::{
    Adjacency,
    registry::{
        AlgorithmSpec, FROM_OPTION, Kernel, KernelInput, KernelResult, Neighbours, OptionKind, OptionSpec, SAMPLE,
        SAMPLE_OPTION, SEED, Values,
    },
};

/// Betweenness, as users see it.
pub(crate) const BETWEENNESS: AlgorithmSpec = AlgorithmSpec {
    name: "betweenness",
    value: Some("betweenness"),
    help: "betweenness centrality: the number of vertex pairs whose shortest path contains the vertex; a pair with several shortest paths counts the fraction of them that do",
    options: &[
        OptionSpec {
            name: FROM_OPTION,
            kind: OptionKind::Vertices,
            help: "Search from these vertices instead of from all; may be repeated",
            excludes: Some(SAMPLE_OPTION),
            ..OptionSpec::USUAL
        },
        SAMPLE,
        SEED,
    ],
    neighbours: Neighbours::Out,
    kernel: Some(Kernel { decoded: run, packed: run }),
    ..AlgorithmSpec::USUAL
};

fn run<A: Adjacency>(input: &KernelInput<'_, A>) -> Result<KernelResult, EngineError> {
    let starts = input.drawn()?.map(|mut starts| {
        starts.sort_unstable();
        starts.dedup();
        starts
    });
    let topology = input.topology;
    let part = (topology.out.len() - topology.deleted.len()) as f64 / starts.len().max(1) as f64;
    // Followed both ways, a pair of ends is found from either.
    let times = if input.is_undirected { part / 2.0 } else { part };
    let found = betweenness(&topology.out, &starts, input.context)?;
    let scaled = found.map(|mut found| {
        found.iter_mut().for_each(|value| *value *= times);
        Values::Floats(found)
    });
    Ok(scaled.into())
}

/// For each vertex the sum, over all sources in `starts` and all targets, of the part of the shortest paths from source to target
/// that lead through it. The ends of a path are not on it. With every vertex in `starts` that is its betweenness centrality, else
/// that of a sample. It is not normalised, and where edges have no direction, and lists have each at both ends, it counts each pair
/// of ends twice: networkx's `betweenness_centrality` with `normalized=False` has the same for directed graphs, and half of it for
/// others. Parallel edges are one path, as in networkx; self-loops are on none.
///
/// Takes 8 bytes a vertex and 32 on each thread, and for each start the time of two breadth-first searches by one thread.
///
/// # Errors
/// [`StorageError::Limit`] if the query's time is over, or its memory does not hold the searches.
///
/// # Panics
/// If a start is not a vertex of `out`.
pub fn betweenness<A: Adjacency>(
    out: &A,
    starts: &[u32],
    context: &QueryContext,
) -> Result<Held<Vec<f64>>, StorageError> {
    let at_once = rayon::current_num_threads().min(starts.len());
    let memory = context.hold(out.len() as u64 * (8 + 32 * at_once as u64))?;
    let mut result = vec![0.0; out.len()];
    let mut searches: Vec<_> = (0..at_once).map(|_| Search::new(out.len())).collect();
    for starts in starts.chunks(at_once.max(1)) {
        let searches = &mut searches[..starts.len()];
        searches.par_iter_mut().zip(starts).try_for_each(|(search, start)| search.run(out, *start, context))?;
        searches.iter_mut().for_each(|search| search.add_to(&mut result));
    }
    drop(searches);
    Ok(held(result, 8 * out.len(), memory))
}

/// A search from one source.
struct Search {
    levels: Vec<u32>,
    /// Shortest paths from the source to each vertex that is reached.
    paths: Vec<Paths>,
    /// What each of these is part of: 1 for every target behind it, times the part of the paths there that lead through it.
    parts: Vec<f64>,
    /// All vertices that are reached, by level.
    reached: Vec<u32>,
}

impl Search {
    fn new(vertices: usize) -> Self {
        Self {
            levels: vec![UNREACHED; vertices],
            paths: vec![Paths::default(); vertices],
            parts: vec![0.0; vertices],
            reached: Vec::with_capacity(vertices),
        }
    }

    fn run<A: Adjacency>(&mut self, out: &A, source: u32, context: &QueryContext) -> Result<(), StorageError> {
        self.count_paths(out, source, context)?;
        self.divide(out, context)
    }

    fn count_paths<A: Adjacency>(&mut self, out: &A, source: u32, context: &QueryContext) -> Result<(), StorageError> {
        let mut lists = out.cursor();
        self.levels[source as usize] = 0;
        self.paths[source as usize] = Paths::ONE;
        self.reached.push(source);
        let mut visited = 0;
        while let Some(vertex) = self.reached.get(visited).copied() {
            if visited % CHUNK == 0 {
                context.check_time()?;
            }
            visited += 1;
            let next = self.levels[vertex as usize] + 1;
            for target in different_neighbours(&mut lists, vertex) {
                let level = &mut self.levels[target as usize];
                if *level == UNREACHED {
                    *level = next;
                    self.paths[target as usize] = Paths::default();
                    self.reached.push(target);
                }
                if *level == next {
                    let paths = self.paths[vertex as usize];
                    self.paths[target as usize].add(paths);
                }
            }
        }
        Ok(())
    }

    /// Each vertex looks at those after it, so that no list of those before it is needed.
    fn divide<A: Adjacency>(&mut self, out: &A, context: &QueryContext) -> Result<(), StorageError> {
        let mut lists = out.cursor();
        for (number, vertex) in self.reached.iter().rev().enumerate() {
            if number % CHUNK == 0 {
                context.check_time()?;
            }
            let next = self.levels[*vertex as usize] + 1;
            let paths = self.paths[*vertex as usize];
            let after = different_neighbours(&mut lists, *vertex).map(|target| target as usize);
            let after = after.filter(|target| self.levels[*target] == next);
            let parts = after.map(|target| paths.part_of(self.paths[target]) * (1.0 + self.parts[target]));
            self.parts[*vertex as usize] = parts.sum();
        }
        Ok(())
    }

    /// Adds up what was found, and starts anew.
    fn add_to(&mut self, result: &mut [f64]) {
        // The source is an end of all these paths.
        self.reached.iter().skip(1).for_each(|vertex| result[*vertex as usize] += self.parts[*vertex as usize]);
        self.reached.drain(..).for_each(|vertex| self.levels[vertex as usize] = UNREACHED);
    }
}

/// 2^512. Numbers up to it can be added and divided without overflow.
const UNIT: f64 = f64::from_bits((1023 + 512) << 52);

/// A number of paths: `count` · 2^(512 · `scale`), where `count` is from 1 to 2^512, or both are 0.
///
/// Between two corners of a grid of 520 by 520 there are more paths than the largest floating-point number, and what is divided
/// by infinity is lost.
#[derive(Debug, Clone, Copy, Default)]
struct Paths {
    count: f64,
    scale: u32,
}

impl Paths {
    const ONE: Self = Self { count: 1.0, scale: 0 };

    fn add(&mut self, other: Self) {
        let scale = self.scale.max(other.scale);
        let count = self.at(scale) + other.at(scale);
        *self = if count < UNIT { Self { count, scale } } else { Self { count: count / UNIT, scale: scale + 1 } };
    }

    /// The part that these are of others, which are not fewer.
    fn part_of(self, all: Self) -> f64 {
        self.at(all.scale) / all.count
    }

    /// The count at a scale that is not lower. At two more it is far below the precision of what it is added to.
    fn at(self, scale: u32) -> f64 {
        match scale - self.scale {
            0 => self.count,
            1 => self.count / UNIT,
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::{
        super::tests::{EXAMPLE, graph, graphs, levels, pool},
        *,
    };

    fn assert_near(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (vertex, (found, expected)) in found.iter().zip(expected).enumerate() {
            assert!((found - expected).abs() <= 1e-9 * expected.max(1.0), "{vertex}: {found} in place of {expected}");
        }
    }

    /// The number of shortest paths to each vertex, by the number of those to the vertices before it.
    fn paths(edges: &BTreeSet<(u32, u32)>, levels: &[u32], start: u32) -> Vec<f64> {
        let mut paths = vec![0.0; levels.len()];
        paths[start as usize] = 1.0;
        for level in 1..levels.len() as u32 {
            for (from, to) in edges {
                if levels[*to as usize] == level && levels[*from as usize] == level - 1 {
                    paths[*to as usize] += paths[*from as usize];
                }
            }
        }
        paths
    }

    /// From the distances and numbers of paths of all pairs: a vertex is on a shortest path if those to it and from it add up.
    fn expected(vertices: u32, edges: &[(u32, u32)], starts: &[u32]) -> Vec<f64> {
        let [out, _] = graph(vertices, edges);
        let edges: BTreeSet<_> = edges.iter().copied().collect();
        let levels: Vec<_> = (0..vertices).map(|start| levels(&out, start)).collect();
        let paths: Vec<_> = (0..vertices).map(|start| paths(&edges, &levels[start as usize], start)).collect();
        let ids = 0..vertices as usize;
        let mut result = vec![0.0; vertices as usize];
        for source in starts.iter().map(|start| *start as usize) {
            for (vertex, target) in ids.clone().flat_map(|vertex| ids.clone().map(move |target| (vertex, target))) {
                let known = levels[source][vertex] != UNREACHED && levels[vertex][target] != UNREACHED;
                let inner = vertex != source && vertex != target && source != target;
                if known && inner && levels[source][vertex] + levels[vertex][target] == levels[source][target] {
                    result[vertex] += paths[source][vertex] * paths[vertex][target] / paths[source][target];
                }
            }
        }
        result
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn betweenness_is_the_part_of_all_paths(
            (vertices, edges) in graphs(),
            starts in prop::collection::vec(any::<prop::sample::Index>(), 0..50),
            all in any::<bool>(),
        ) {
            let vertices = vertices.min(40);
            let edges: Vec<_> = edges.iter().take(200).map(|(from, to)| (from % vertices, to % vertices)).collect();
            let sample = starts.iter().map(|start| start.index(vertices as usize) as u32);
            let starts: Vec<_> = if all { (0..vertices).collect() } else { sample.collect() };
            let [out, _] = graph(vertices, &edges);
            let found = |threads| {
                let context = QueryContext::new();
                let found = pool(threads).install(|| betweenness(&out, &starts, &context)).unwrap();
                assert_eq!(context.memory().used(), u64::from(vertices) * 8);
                found
            };
            assert_near(&found(1), &expected(vertices, &edges, &starts));
            // Bit for bit, whatever the number of threads.
            prop_assert_eq!(&*found(3), &*found(1));
        }
    }

    #[test]
    fn networkx_has_the_same() {
        let [out, _] = graph(7, &EXAMPLE);
        let found = betweenness(&out, &[0, 1, 2, 3, 4, 5, 6], &QueryContext::new()).unwrap();
        // networkx 3.6.1, `betweenness_centrality` of a DiGraph with `normalized=False`.
        assert_near(&found, &[7.0, 2.0, 9.0, 8.0, 12.0, 0.0, 2.0]);
    }

    #[test]
    fn more_paths_than_a_number_holds_are_divided() {
        // Diamonds in a row double the paths 2,000 times: from 3i over 3i + 1 or 3i + 2 to 3i + 3. A chain leads to the same end, on
        // as many levels, with one path.
        let diamonds = 2000u32;
        let end = 3 * diamonds;
        let mut edges = Vec::new();
        for first in (0..end).step_by(3) {
            edges.extend([(first, first + 1), (first, first + 2), (first + 1, first + 3), (first + 2, first + 3)]);
        }
        let chain: Vec<u32> = std::iter::once(0).chain(end + 1..end + 2 * diamonds).chain([end]).collect();
        edges.extend(chain.windows(2).map(|pair| (pair[0], pair[1])));
        let [out, _] = graph(end + 2 * diamonds, &edges);
        let found = betweenness(&out, &[0], &QueryContext::new()).unwrap();
        let behind = |vertex: u32| match vertex {
            0 => 0.0,
            vertex if vertex > end => f64::from(end + 2 * diamonds - 1 - vertex),
            vertex if vertex % 3 == 0 => f64::from(end - vertex),
            vertex => f64::from(end - vertex.next_multiple_of(3) + 1) / 2.0,
        };
        let expected: Vec<_> = (0..end + 2 * diamonds).map(behind).collect();
        assert_near(&found, &expected);
    }
}
