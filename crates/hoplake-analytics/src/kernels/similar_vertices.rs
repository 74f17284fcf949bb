//! Similar vertices, by the part of their neighbours that they share (Jaccard: *The distribution of the flora in the alpine zone*,
//! 1912), found by counting (Sarawagi, Kirpal: *Efficient set joins on similarity predicates*, 2004).
//!
//! Two vertices share a neighbour if a path goes from one along an edge to it, and against an edge to the other. So the paths from a
//! vertex find every other that is similar at all, and counting them gives how many neighbours both have: no pair without a common
//! neighbour is looked at, and no two lists are compared.
//!
//! It answers for vertices that the caller names, not for all pairs: a neighbour with d edges is common to d² pairs, so all
//! pairs of a graph with hubs are more than anyone can wait for.

use std::{
    cmp::Ordering,
    sync::{Mutex, PoisonError},
};

use hoplake_engine::{EngineError, Held};
use hoplake_storage::{QueryContext, StorageError};
use rayon::prelude::*;

use super::{CHUNK, count_neighbours, different_neighbours, held};
use crate::{
    Adjacency,
    registry::{AlgorithmSpec, FROM, Kernel, KernelInput, KernelResult},
};

/// Similarity to a vertex, as users see it.
pub(crate) const SIMILARITY: AlgorithmSpec = AlgorithmSpec {
    name: "similarity",
    value: Some("similarity"),
    help: "the Jaccard similarity of the neighbour sets of the vertex and `--from`; null if they share no neighbour",
    options: &[FROM],
    kernel: Some(Kernel { decoded: run, packed: run }),
    ..AlgorithmSpec::USUAL
};

fn run<A: Adjacency>(input: &KernelInput<'_, A>) -> Result<KernelResult, EngineError> {
    let out = &input.topology.out;
    let found = similar_vertices(out, input.against(), &[input.start()?], out.len(), input.context)?;
    Ok(input.scattered(found.iter().flatten().map(|similar| (similar.vertex, similar.similarity)))?.into())
}

/// A vertex, and how similar it is to the one that was asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimilarVertex {
    /// The vertex.
    pub vertex: u32,
    /// The number of neighbours that both have divided by the number that either has. Above 0, and at most 1.
    pub similarity: f64,
}

/// For each vertex of `starts`, in their order, the `count_max` others with the highest Jaccard similarity of their sets of
/// neighbours: the most similar first, and of equally similar ones the lowest id. Those that share no neighbour with it are left out,
/// so there may be fewer, and none for a vertex without edges. The result is exact.
///
/// Neighbours are those along `out`, of which `against` has the same edges from their other ends: `out` itself if edges have no
/// direction. Parallel edges count once, and self-loops do not count: no vertex is its own neighbour.
///
/// Takes 4 bytes a vertex, 8 more on each thread, and for each start 48 bytes and 16 for each of at most `count_max` others. After
/// a pass over all lists, the time of a start is the sum of the in-edges of its neighbours.
///
/// # Errors
/// [`StorageError::Limit`] if the query's time is over, or its memory does not hold the counts and the result.
///
/// # Panics
/// If `against` does not have as many vertices as `out`, or a start is not one of them.
pub fn similar_vertices<A: Adjacency>(
    out: &A,
    against: &A,
    starts: &[u32],
    count_max: usize,
    context: &QueryContext,
) -> Result<Held<Vec<Vec<SimilarVertex>>>, StorageError> {
    assert_eq!(out.len(), against.len(), "the same vertices from both ends");
    let at_once = rayon::current_num_threads().min(starts.len());
    // Results are gathered in pieces, and then in one.
    let each = 2 * size_of::<Vec<SimilarVertex>>() + count_max.min(out.len()) * size_of::<SimilarVertex>();
    let result_bytes = (starts.len() as u64).saturating_mul(each as u64);
    let vertex_bytes = out.len() as u64 * (4 + 8 * at_once as u64);
    let memory = context.hold(vertex_bytes.saturating_add(result_bytes))?;
    let degrees = count_neighbours(out, context)?;
    let searches: Mutex<Vec<_>> = Mutex::new((0..at_once).map(|_| Search::new(&degrees)).collect());
    let taken = || searches.lock().unwrap_or_else(PoisonError::into_inner);
    let found = starts.par_iter().map(|start| {
        // No more starts are searched from at a time than there are threads, and a start never waits for another.
        let mut search = taken().pop().expect("a search for each thread");
        let found = search.run(out, against, *start, count_max, context);
        taken().push(search);
        found
    });
    let found: Vec<Vec<SimilarVertex>> = found.collect::<Result<_, StorageError>>()?;
    let bytes = found.iter().map(|found| size_of_val(found) + size_of_val(&found[..])).sum();
    drop(searches);
    Ok(held(found, bytes, memory))
}

/// Counts the paths from one vertex after the other.
struct Search<'a> {
    /// How many neighbours each vertex has.
    degrees: &'a [u32],
    /// How many of them each shares with the start; 0 for all between two starts.
    common: Vec<u32>,
    /// Those that share one.
    candidates: Vec<u32>,
}

impl<'a> Search<'a> {
    fn new(degrees: &'a [u32]) -> Self {
        let count = degrees.len();
        Self { degrees, common: vec![0; count], candidates: Vec::with_capacity(count) }
    }

    fn run<A: Adjacency>(
        &mut self,
        out: &A,
        against: &A,
        start: u32,
        count_max: usize,
        context: &QueryContext,
    ) -> Result<Vec<SimilarVertex>, StorageError> {
        self.count_common(out, against, start, context)?;
        let found = self.most_similar(start, count_max);
        self.candidates.drain(..).for_each(|vertex| self.common[vertex as usize] = 0);
        Ok(found)
    }

    fn count_common<A: Adjacency>(
        &mut self,
        out: &A,
        against: &A,
        start: u32,
        context: &QueryContext,
    ) -> Result<(), StorageError> {
        context.check_time()?;
        let mut targets = out.cursor();
        let mut sources = against.cursor();
        let mut edges = 0;
        for shared in different_neighbours(&mut targets, start) {
            edges += against.degree(shared);
            if edges > CHUNK {
                context.check_time()?;
                edges = 0;
            }
            for other in different_neighbours(&mut sources, shared).filter(|other| *other != start) {
                let common = &mut self.common[other as usize];
                if *common == 0 {
                    self.candidates.push(other);
                }
                *common += 1;
            }
        }
        Ok(())
    }

    fn most_similar(&mut self, start: u32, count_max: usize) -> Vec<SimilarVertex> {
        let Self { degrees, common, candidates } = self;
        let similarity = |vertex: u32| {
            let both = u64::from(common[vertex as usize]);
            let either = u64::from(degrees[start as usize]) + u64::from(degrees[vertex as usize]) - both;
            both as f64 / either as f64
        };
        let order = |a: &u32, b: &u32| -> Ordering { similarity(*b).total_cmp(&similarity(*a)).then(a.cmp(b)) };
        let count = count_max.min(candidates.len());
        // Candidates may be a large part of all vertices: only those that are returned are sorted.
        if count < candidates.len() {
            candidates.select_nth_unstable_by(count, order);
        }
        candidates[..count].sort_unstable_by(order);
        candidates[..count]
            .iter()
            .map(|vertex| SimilarVertex { vertex: *vertex, similarity: similarity(*vertex) })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::{
        super::tests::{EXAMPLE, graph, graphs, pool},
        *,
    };

    /// By comparing its set of neighbours with every other.
    fn expected(vertices: u32, edges: &[(u32, u32)], start: u32, count_max: usize) -> Vec<SimilarVertex> {
        let mut sets = vec![BTreeSet::new(); vertices as usize];
        for (from, to) in edges.iter().filter(|(from, to)| from != to) {
            sets[*from as usize].insert(*to);
        }
        let own = &sets[start as usize];
        let others = (0..vertices).filter(|other| *other != start).map(|vertex| {
            let other = &sets[vertex as usize];
            let either = own.union(other).count();
            let similarity = own.intersection(other).count() as f64 / either.max(1) as f64;
            SimilarVertex { vertex, similarity }
        });
        let mut found: Vec<_> = others.filter(|found| found.similarity > 0.0).collect();
        // Stable: equally similar ones stay in the order of their ids.
        found.sort_by(|a, b| b.similarity.partial_cmp(&a.similarity).unwrap());
        found.truncate(count_max);
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn similarities_are_those_of_all_pairs_of_sets(
            (vertices, edges) in graphs(),
            starts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
            count_max in prop_oneof![0usize..20, Just(usize::MAX)],
        ) {
            let [out, against] = graph(vertices, &edges);
            let both: Vec<_> = edges.iter().flat_map(|(from, to)| [(*from, *to), (*to, *from)]).collect();
            let [undirected, _] = graph(vertices, &both);
            let starts: Vec<u32> = starts.iter().map(|start| start.index(vertices as usize) as u32).collect();
            for (edges, out, against) in [(&edges, &out, &against), (&both, &undirected, &undirected)] {
                let of_start = |start: &u32| expected(vertices, edges, *start, count_max);
                let expected: Vec<_> = starts.iter().map(of_start).collect();
                for threads in [1, 3] {
                    let context = QueryContext::new();
                    let find = || similar_vertices(out, against, &starts, count_max, &context);
                    let found = pool(threads).install(find).unwrap();
                    prop_assert_eq!(&*found, &expected);
                    let others: usize = expected.iter().map(Vec::len).sum();
                    prop_assert_eq!(context.memory().used(), 24 * starts.len() as u64 + 16 * others as u64);
                    drop(found);
                    prop_assert_eq!(context.memory().used(), 0);
                }
            }
        }
    }

    #[test]
    fn the_most_similar_come_first() {
        let [out, against] = graph(7, &EXAMPLE);
        let found = similar_vertices(&out, &against, &[1, 5], 2, &QueryContext::new()).unwrap();
        // 1 leads to 3, as 2 does, which also leads to 4. 5 leads to itself alone.
        assert_eq!(*found, [vec![SimilarVertex { vertex: 2, similarity: 0.5 }], Vec::new()]);
    }
}
