//! Kernels against other methods, on random graphs with loops and parallel edges.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use hoplake_engine::DenseIds;
use hoplake_format::LabelId;
use hoplake_storage::{QueryContext, ReadLimits};
use proptest::prelude::*;

use super::*;
use crate::{
    Csr, Lists, ProgramSettings, Topology,
    batch::Batch,
    csr::CsrBuilder,
    registry::{ALGORITHMS, FROM_OPTION, KernelInput, OptionKind, OptionValue, ProgramInput},
};

/// A graph with this number of vertices, from both ends.
pub(super) fn graph(vertices: u32, edges: &[(u32, u32)]) -> [Csr; 2] {
    let reversed: Vec<_> = edges.iter().map(|(from, to)| (*to, *from)).collect();
    [edges, &reversed].map(|edges| {
        let mut edges = edges.to_vec();
        edges.sort_unstable();
        let mut builder = CsrBuilder::new(vertices.into(), edges.len() as u64, false, &QueryContext::new()).unwrap();
        let lists = edges.chunk_by(|a, b| a.0 == b.0).map(|list| (list[0].0, list.iter().map(|edge| edge.1)));
        for (from, targets) in lists {
            let targets: Vec<_> = targets.collect();
            let offsets = vec![0, targets.len()];
            let vertices = from..from + 1;
            builder.append(&Batch { vertices, with_lists: vec![from], offsets, targets, weights: Vec::new() });
        }
        builder.finish(vertices.into())
    })
}

/// The same with weights.
pub(super) fn weighted(vertices: u32, edges: &[(u32, u32)], weights: &[f64]) -> [Csr; 2] {
    let along: Vec<_> = edges.iter().zip(weights).map(|((from, to), weight)| (*from, *to, *weight)).collect();
    let against: Vec<_> = along.iter().map(|(from, to, weight)| (*to, *from, *weight)).collect();
    [along, against].map(|mut edges| {
        edges.sort_unstable_by_key(|(from, to, _)| (*from, *to));
        let mut builder = CsrBuilder::new(vertices.into(), edges.len() as u64, true, &QueryContext::new()).unwrap();
        for list in edges.chunk_by(|a, b| a.0 == b.0) {
            let from = list[0].0;
            let (targets, weights) = list.iter().map(|edge| (edge.1, edge.2)).unzip();
            let offsets = vec![0, list.len()];
            builder.append(&Batch { vertices: from..from + 1, with_lists: vec![from], offsets, targets, weights });
        }
        builder.finish(vertices.into())
    })
}

/// Each edge from both ends, as lists of edges without direction have it.
pub(super) fn both_ways(edges: &[(u32, u32)]) -> Vec<(u32, u32)> {
    edges.iter().flat_map(|(from, to)| [(*from, *to), (*to, *from)]).collect()
}

/// Zachary's karate club: *An information flow model for conflict and fission in small groups*, 1977.
pub(super) const KARATE: [(u32, u32); 78] = [
    (0, 1),
    (0, 2),
    (0, 3),
    (0, 4),
    (0, 5),
    (0, 6),
    (0, 7),
    (0, 8),
    (0, 10),
    (0, 11),
    (0, 12),
    (0, 13),
    (0, 17),
    (0, 19),
    (0, 21),
    (0, 31),
    (1, 2),
    (1, 3),
    (1, 7),
    (1, 13),
    (1, 17),
    (1, 19),
    (1, 21),
    (1, 30),
    (2, 3),
    (2, 7),
    (2, 8),
    (2, 9),
    (2, 13),
    (2, 27),
    (2, 28),
    (2, 32),
    (3, 7),
    (3, 12),
    (3, 13),
    (4, 6),
    (4, 10),
    (5, 6),
    (5, 10),
    (5, 16),
    (6, 16),
    (8, 30),
    (8, 32),
    (8, 33),
    (9, 33),
    (13, 33),
    (14, 32),
    (14, 33),
    (15, 32),
    (15, 33),
    (18, 32),
    (18, 33),
    (19, 33),
    (20, 32),
    (20, 33),
    (22, 32),
    (22, 33),
    (23, 25),
    (23, 27),
    (23, 29),
    (23, 32),
    (23, 33),
    (24, 25),
    (24, 27),
    (24, 31),
    (25, 31),
    (26, 29),
    (26, 33),
    (27, 33),
    (28, 31),
    (28, 33),
    (29, 32),
    (29, 33),
    (30, 32),
    (30, 33),
    (31, 32),
    (31, 33),
    (32, 33),
];

/// How often its members met, by edge.
pub(super) const KARATE_WEIGHTS: [f64; 78] = [
    4.0, 5.0, 3.0, 3.0, 3.0, 3.0, 2.0, 2.0, 2.0, 3.0, 1.0, 3.0, 2.0, 2.0, 2.0, 2.0, 6.0, 3.0, 4.0, 5.0, 1.0, 2.0, 2.0,
    2.0, 3.0, 4.0, 5.0, 1.0, 3.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0, 2.0, 3.0, 5.0, 3.0, 3.0, 3.0, 3.0, 3.0, 4.0, 2.0, 3.0,
    3.0, 2.0, 3.0, 4.0, 1.0, 2.0, 1.0, 3.0, 1.0, 2.0, 3.0, 5.0, 4.0, 3.0, 5.0, 4.0, 2.0, 3.0, 2.0, 7.0, 4.0, 2.0, 4.0,
    2.0, 2.0, 4.0, 2.0, 3.0, 3.0, 4.0, 4.0, 5.0,
];

/// With two ways from 0 to 3, several circles, a loop and a parallel edge.
pub(super) const EXAMPLE: [(u32, u32); 12] =
    [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (4, 0), (4, 5), (5, 5), (0, 1), (2, 4), (6, 2), (3, 6)];

/// Sparse and dense ones, on both sides of the bounds between top down and bottom up.
pub(super) fn graphs() -> impl Strategy<Value = (u32, Vec<(u32, u32)>)> {
    (1u32..300, 0usize..8).prop_flat_map(|(vertices, degree)| {
        let edges = prop::collection::vec((0..vertices, 0..vertices), 0..=vertices as usize * degree);
        (Just(vertices), edges)
    })
}

/// One vertex after the other from a queue.
pub(super) fn levels(out: &Csr, start: u32) -> Vec<u32> {
    let mut levels = vec![UNREACHED; out.len()];
    levels[start as usize] = 0;
    let mut queue = VecDeque::from([start]);
    while let Some(vertex) = queue.pop_front() {
        for target in out.neighbours(vertex) {
            if levels[*target as usize] == UNREACHED {
                levels[*target as usize] = levels[vertex as usize] + 1;
                queue.push_back(*target);
            }
        }
    }
    levels
}

/// Ids that spread along edges until nothing changes.
fn components(vertices: u32, edges: &[(u32, u32)]) -> Vec<u32> {
    let mut ids: Vec<u32> = (0..vertices).collect();
    loop {
        let before = ids.clone();
        for (from, to) in edges {
            let least = ids[*from as usize].min(ids[*to as usize]);
            ids[*from as usize] = least;
            ids[*to as usize] = least;
        }
        if ids == before {
            return ids;
        }
    }
}

/// By how much ranks are off the equation that defines them, at the vertex where it is the most.
fn error_of(edges: &[(u32, u32)], ranks: &[f64], deleted: &BTreeSet<u32>, damping: f64) -> f64 {
    let count = (ranks.len() - deleted.len()) as f64;
    let degree = |vertex: u32| edges.iter().filter(|(from, _)| *from == vertex).count() as f64;
    let there = |vertex: &u32| !deleted.contains(vertex);
    let vertices = || (0..ranks.len() as u32).filter(there);
    let dangling: f64 = vertices().filter(|vertex| degree(*vertex) == 0.0).map(|vertex| ranks[vertex as usize]).sum();
    let pulled = |vertex: u32| -> f64 {
        let incoming = edges.iter().filter(|(_, to)| *to == vertex);
        incoming.map(|(from, _)| ranks[*from as usize] / degree(*from)).sum()
    };
    let equation = |vertex| (1.0 - damping) / count + damping * (pulled(vertex) + dangling / count);
    vertices().map(|vertex| (equation(vertex) - ranks[vertex as usize]).abs()).fold(0.0, f64::max)
}

pub(super) fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn levels_are_those_of_a_queue((vertices, edges) in graphs(), start in any::<prop::sample::Index>()) {
        let [out, against] = graph(vertices, &edges);
        let start = start.index(vertices as usize) as u32;
        let expected = levels(&out, start);
        let context = QueryContext::new();
        for against in [None, Some(&against)] {
            prop_assert_eq!(&*breadth_first_levels(&out, against, start, &context).unwrap(), &expected);
        }
        // Where edges have no direction, the lists are their own reverse.
        let both: Vec<_> = edges.iter().flat_map(|(from, to)| [(*from, *to), (*to, *from)]).collect();
        let [both, _] = graph(vertices, &both);
        prop_assert_eq!(&*breadth_first_levels(&both, Some(&both), start, &context).unwrap(), &levels(&both, start));
        prop_assert_eq!(context.memory().used(), 0, "results that were dropped hold nothing");
    }

    #[test]
    fn components_are_where_ids_spread((vertices, edges) in graphs()) {
        let [out, against] = graph(vertices, &edges);
        let expected = components(vertices, &edges);
        let context = QueryContext::new();
        for against in [None, Some(&against)] {
            prop_assert_eq!(&*connected_components(&out, against, &context).unwrap(), &expected);
        }
    }

    #[test]
    fn ranks_satisfy_their_equation((vertices, edges) in graphs(), gone in prop::collection::btree_set(0u32..300, 0..4), damping in 0.0..0.95) {
        let deleted: BTreeSet<u32> = gone.into_iter().filter(|vertex| *vertex < vertices).collect();
        let edges: Vec<_> =
            edges.into_iter().filter(|(from, to)| !deleted.contains(from) && !deleted.contains(to)).collect();
        let [out, against] = graph(vertices, &edges);
        let deleted_ids: Vec<u32> = deleted.iter().copied().collect();
        let settings = PageRankSettings { damping, iterations_max: 1000, tolerance: 1e-12 };
        let rank = |threads| {
            pool(threads).install(|| page_rank(&out, &against, &deleted_ids, &settings, &QueryContext::new())).unwrap()
        };
        let found = rank(1);
        let sum: f64 = found.ranks.iter().sum();
        if deleted.len() < vertices as usize {
            prop_assert!((sum - 1.0).abs() < 1e-9, "all ranks are {}", sum);
            prop_assert!(error_of(&edges, &found.ranks, &deleted, damping) < 1e-9);
            prop_assert!(found.residual <= settings.tolerance || found.iterations == 1000);
        } else {
            prop_assert_eq!(sum, 0.0);
        }
        prop_assert!(deleted.iter().all(|vertex| found.ranks[*vertex as usize] == 0.0));
        // Bit for bit, whatever the number of threads.
        prop_assert_eq!(&*rank(3), &*found);
    }
}

/// Whether each algorithm of the registry fails, as its kernel and as its program.
async fn failures(topology: &Arc<Topology>, context: &QueryContext) -> Vec<(&'static str, bool)> {
    let mut failures = Vec::new();
    for spec in ALGORITHMS.iter().copied() {
        let from = spec.option(FROM_OPTION).is_some_and(|option| option.kind == OptionKind::Vertex);
        let given = from.then_some((FROM_OPTION, OptionValue::Vertices(1)));
        let options = spec.options(given).unwrap();
        let starts: &[u32] = if from { &[0] } else { &[] };
        let places = [0, 1, 2];
        if let Some(kernel) = spec.kernel {
            let places = Some(&places[..]);
            let input = KernelInput { topology, is_undirected: false, options: &options, starts, places, context };
            failures.push((spec.name, (kernel.decoded)(&input).is_err()));
        }
        if let Some(program) = spec.program {
            let places = Some(Held::counted(places.to_vec(), 0, context).unwrap());
            let program = (program.make)(ProgramInput { options: &options, starts, places }).unwrap();
            let lists = Lists::in_memory(topology, context).unwrap();
            let mut branch = context.branch();
            let ran = program.run(&lists, &ProgramSettings::default(), &mut |_| (), &mut branch).await;
            failures.push((spec.name, ran.is_err()));
        }
    }
    failures
}

/// Each algorithm of the registry: none can be left out.
#[tokio::test]
async fn an_algorithm_ends_at_the_deadline_and_within_its_memory() {
    let [out, against] = graph(3, &[(0, 1), (1, 2)]);
    let ids = Arc::new(DenseIds::new([(LabelId(0), 3)]));
    let deleted = Held::counted(Vec::new(), 0, &QueryContext::new()).unwrap();
    let topology = Arc::new(Topology { ids, out, against: Some(against), deleted });
    let context = QueryContext::new();
    for (name, fails) in failures(&topology, &context).await {
        assert!(!fails, "{name}");
    }
    context.limit(ReadLimits { memory_bytes_max: Some(7), ..ReadLimits::default() });
    for (name, fails) in failures(&topology, &context).await {
        // Figures for the whole graph may take none.
        assert!(fails || name == "multiplicity", "{name} without memory");
    }
    let context = late();
    for (name, fails) in failures(&topology, &context).await {
        assert!(fails, "{name} without time");
    }
}

/// A query whose time is over.
fn late() -> QueryContext {
    let context = QueryContext::new();
    let timeout = Some(std::time::Duration::from_nanos(1));
    hoplake_engine::traversal::Limits { timeout, ..Default::default() }.apply(&context);
    std::thread::sleep(std::time::Duration::from_millis(3));
    context
}

/// What is not an algorithm of the registry by itself.
#[test]
fn a_kernel_ends_at_the_deadline_and_within_its_memory() {
    let [out, against] = graph(3, &[(0, 1), (1, 2)]);
    let kernels = |context: &QueryContext| {
        [
            personalised_page_rank(&out, &against, &[], &[0], &PageRankSettings::default(), context).is_err(),
            label_propagation(&out, Some(&against), &[0, 1, 2], 2, context).is_err(),
            sample_vertices(30, &[], 30, 0, context).is_err(),
        ]
    };
    let context = QueryContext::new();
    assert!(kernels(&context).iter().all(|fails| !fails));
    context.limit(ReadLimits { memory_bytes_max: Some(20), ..ReadLimits::default() });
    assert!(kernels(&context).iter().all(|fails| *fails), "no memory");
    assert!(kernels(&late()).iter().all(|fails| *fails), "no time");
}
