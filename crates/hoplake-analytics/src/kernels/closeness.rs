//! Closeness centrality, with the distances from 64 vertices at a time (Then et al.: *The more the merrier: efficient multi-source
//! graph traversal*, 2014).
//!
//! Searches from several vertices soon visit the same ones. So each vertex has a word in which each search has a bit: a vertex
//! that 40 searches reach on the same level reads its list once for all of them. Only numbers of vertices and sums of distances
//! come out of it, which are whole, so it does not matter which thread finds a vertex.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use hoplake_engine::{EngineError, Held};
use hoplake_storage::{QueryContext, StorageError};
use rayon::prelude::*;

use super::{CHUNK, held};
use crate::{
    Adjacency, Cursor,
    registry::{AlgorithmSpec, Kernel, KernelInput, KernelResult, Neighbours, SAMPLE, SEED},
};

/// Closeness, as users see it.
pub(crate) const CLOSENESS: AlgorithmSpec = AlgorithmSpec {
    name: "closeness",
    value: Some("closeness"),
    help: "closeness centrality, from 0 to 1, by the distances to the vertex",
    options: &[SAMPLE, SEED],
    neighbours: Neighbours::In,
    kernel: Some(Kernel { decoded: run, packed: run }),
    ..AlgorithmSpec::USUAL
};

fn run<A: Adjacency>(input: &KernelInput<'_, A>) -> Result<KernelResult, EngineError> {
    let starts = input.drawn()?;
    // Along lists against the edges: distances to a vertex, as networkx has them.
    let found = closeness(&input.topology.out, &starts, input.topology.deleted.len(), input.context)?;
    Ok(input.scattered(starts.iter().copied().zip(found.iter().copied()))?.into())
}

/// Searches at a time: the bits of a word.
const SEARCHES: usize = 64;
/// Vertices that a thread takes at a time, and between two looks at the deadline.
const VERTICES: usize = 64;

/// The closeness centrality of each vertex of `starts`, in their order, from 0 to 1: of the r vertices that it reaches, itself
/// included, and the n that the graph has, (r-1)/(n-1) · (r-1)/(sum of their distances); 0 if it reaches none. The first factor is
/// that of Wasserman and Faust (*Social network analysis*, 1994), which compares vertices of different components. n is the number
/// of lists without `deleted`, the number of ids of deleted vertices.
///
/// Distances are those from a start along `lists`. With lists against the edges they are those to it, which is what networkx's
/// `closeness_centrality` has for directed graphs. Self-loops and parallel edges change nothing.
///
/// Takes 36 bytes a vertex and 8 a start, and for every 64 starts at most the time of as many breadth-first searches.
///
/// # Errors
/// [`StorageError::Limit`] if the query's time is over, or its memory does not hold the searches.
///
/// # Panics
/// If a start is not a vertex of `lists`.
pub fn closeness<A: Adjacency>(
    lists: &A,
    starts: &[u32],
    deleted: usize,
    context: &QueryContext,
) -> Result<Held<Vec<f64>>, StorageError> {
    // Three words a vertex, a frontier, and the next one in parts and in one piece.
    let memory = context.hold(lists.len() as u64 * 36 + starts.len() as u64 * 8)?;
    let others = (lists.len() - deleted).saturating_sub(1) as f64;
    let mut search = Search::new(lists, context);
    let mut result = Vec::with_capacity(starts.len());
    for starts in starts.chunks(SEARCHES) {
        let sums = search.run(starts)?;
        result.extend(sums[..starts.len()].iter().map(|sums| sums.closeness(others)));
    }
    drop(search);
    Ok(held(result, 8 * starts.len(), memory))
}

/// What a search has found.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    /// Vertices without the start.
    reached: u64,
    distances: u64,
}

impl Sums {
    fn closeness(&self, others: f64) -> f64 {
        let reached = self.reached as f64;
        if self.reached == 0 { 0.0 } else { reached / others * (reached / self.distances as f64) }
    }
}

/// Up to 64 searches, level by level. Each word has a bit for each search.
struct Search<'a, A> {
    lists: &'a A,
    /// Which searches have reached a vertex.
    seen: Vec<AtomicU64>,
    /// Which of them reached it on this level; nothing outside the frontier.
    level: Vec<AtomicU64>,
    /// Which reach it on the next one.
    next: Vec<AtomicU64>,
    context: &'a QueryContext,
}

impl<'a, A: Adjacency> Search<'a, A> {
    fn new(lists: &'a A, context: &'a QueryContext) -> Self {
        let words = || (0..lists.len()).map(|_| AtomicU64::new(0)).collect();
        Self { lists, seen: words(), level: words(), next: words(), context }
    }

    fn run(&mut self, starts: &[u32]) -> Result<[Sums; SEARCHES], StorageError> {
        self.context.check_time()?;
        self.seen.par_iter_mut().with_min_len(CHUNK).for_each(|word| *word.get_mut() = 0);
        for (search, start) in starts.iter().enumerate() {
            *self.seen[*start as usize].get_mut() |= 1 << search;
            *self.level[*start as usize].get_mut() |= 1 << search;
        }
        let mut frontier = starts.to_vec();
        // Several searches may start at one vertex.
        frontier.sort_unstable();
        frontier.dedup();
        let mut sums = [Sums::default(); SEARCHES];
        for distance in 1.. {
            frontier = self.advance(&frontier)?;
            if frontier.is_empty() {
                break;
            }
            for (sums, reached) in sums.iter_mut().zip(self.count(&frontier)) {
                sums.reached += reached;
                sums.distances += reached * distance;
            }
        }
        Ok(sums)
    }

    /// Goes one edge on from the frontier, and returns the next one.
    fn advance(&mut self, frontier: &[u32]) -> Result<Vec<u32>, StorageError> {
        let found = frontier.par_chunks(VERTICES).map(|chunk| {
            self.context.check_time()?;
            let mut found = Vec::new();
            let mut lists = self.lists.cursor();
            for vertex in chunk {
                let searches = self.level[*vertex as usize].load(Relaxed);
                let targets = lists.neighbours(*vertex).iter();
                found.extend(targets.filter(|target| self.reach(**target, searches)));
            }
            Ok(found)
        });
        let found: Vec<Vec<u32>> = found.collect::<Result<_, StorageError>>()?;
        frontier.par_iter().for_each(|vertex| self.level[*vertex as usize].store(0, Relaxed));
        std::mem::swap(&mut self.level, &mut self.next);
        Ok(found.concat())
    }

    /// Lets searches reach a vertex, unless they did on an earlier level; returns whether they are the first to do so on this one.
    fn reach(&self, vertex: u32, searches: u64) -> bool {
        let new = searches & !self.seen[vertex as usize].load(Relaxed);
        let next = &self.next[vertex as usize];
        // Read first: a write takes the cache line from the other processors.
        new & !next.load(Relaxed) != 0 && next.fetch_or(new, Relaxed) == 0
    }

    /// Marks what is reached on this level, and counts it for each search.
    fn count(&self, frontier: &[u32]) -> [u64; SEARCHES] {
        let counts = frontier.par_chunks(CHUNK).map(|chunk| {
            let mut counts = [0; SEARCHES];
            for vertex in chunk {
                let mut searches = self.level[*vertex as usize].load(Relaxed);
                self.seen[*vertex as usize].fetch_or(searches, Relaxed);
                while searches != 0 {
                    counts[searches.trailing_zeros() as usize] += 1;
                    searches &= searches - 1;
                }
            }
            counts
        });
        counts.reduce(|| [0; SEARCHES], |a, b| std::array::from_fn(|search| a[search] + b[search]))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        super::{
            UNREACHED,
            tests::{graph, graphs, levels, pool},
        },
        *,
    };

    /// From the levels of one search.
    fn expected(lists: &crate::Csr, start: u32, vertices: usize) -> f64 {
        let levels = levels(lists, start);
        let reached = levels.iter().filter(|level| **level != UNREACHED && **level != 0).count() as f64;
        let sum: u32 = levels.iter().filter(|level| **level != UNREACHED).sum();
        if sum == 0 { 0.0 } else { reached / (vertices - 1) as f64 * (reached / f64::from(sum)) }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn closeness_is_that_of_single_searches(
            (vertices, edges) in graphs(),
            deleted in 0usize..3,
            starts in prop::collection::vec(any::<prop::sample::Index>(), 0..200),
        ) {
            // The last ids are those of deleted vertices.
            let [lists, _] = graph(vertices + deleted as u32, &edges);
            let starts: Vec<_> = starts.iter().map(|start| start.index(vertices as usize) as u32).collect();
            let expected: Vec<_> = starts.iter().map(|start| expected(&lists, *start, vertices as usize)).collect();
            for threads in [1, 3] {
                let context = QueryContext::new();
                let found = pool(threads).install(|| closeness(&lists, &starts, deleted, &context)).unwrap();
                prop_assert_eq!(&*found, &expected);
                prop_assert_eq!(context.memory().used(), starts.len() as u64 * 8);
                drop(found);
                prop_assert_eq!(context.memory().used(), 0);
            }
        }
    }

    #[test]
    fn networkx_has_the_same_against_the_edges() {
        let [_, against] = graph(7, &super::super::tests::EXAMPLE);
        let found = closeness(&against, &[0, 1, 2, 3, 4, 5, 6], 0, &QueryContext::new()).unwrap();
        // networkx 3.6.1, `closeness_centrality` of a DiGraph.
        let expected: [f64; 7] = [
            0.3787878787878788,
            0.32051282051282054,
            0.462962962962963,
            0.462962962962963,
            0.5208333333333334,
            0.42857142857142855,
            0.34722222222222227,
        ];
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-15, "{found} in place of {expected}");
        }
    }
}
