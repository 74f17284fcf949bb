//! Triangles against three loops, on random graphs with loops and parallel edges.

use std::collections::HashSet;

use hoplake_storage::QueryContext;
use proptest::prelude::*;

use super::{
    count_triangles,
    tests::{KARATE, both_ways, graph, pool},
    triangles_per_vertex,
};

/// Those of each vertex, by all sets of three.
fn triangles(vertices: u32, edges: &[(u32, u32)]) -> Vec<u64> {
    let edges: HashSet<_> = edges.iter().flat_map(|(from, to)| [(*from, *to), (*to, *from)]).collect();
    let mut found = vec![0; vertices as usize];
    for a in 0..vertices {
        for b in a + 1..vertices {
            for c in b + 1..vertices {
                if [(a, b), (b, c), (a, c)].iter().all(|edge| edges.contains(edge)) {
                    [a, b, c].iter().for_each(|vertex| found[*vertex as usize] += 1);
                }
            }
        }
    }
    found
}

/// Up to several parts of ordered lists, and sparse to dense.
fn graphs() -> impl Strategy<Value = (u32, Vec<(u32, u32)>)> {
    let sizes = prop_oneof![(1u32..40, 0usize..8), (250u32..300, 0usize..8)];
    sizes.prop_flat_map(|(vertices, degree)| {
        // Some are hubs: ids drawn twice, of which the lower counts.
        let end = || (0..vertices, 0..vertices).prop_map(|(a, b)| a.min(b));
        let edges = prop::collection::vec((end(), end()), 0..=vertices as usize * degree);
        (Just(vertices), edges)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn triangles_are_those_of_three_loops((vertices, edges) in graphs()) {
        let [lists, _] = graph(vertices, &both_ways(&edges));
        let expected = triangles(vertices, &edges);
        let context = QueryContext::new();
        for threads in [1, 3] {
            let found = pool(threads).install(|| count_triangles(&lists, &context)).unwrap();
            prop_assert_eq!(found * 3, expected.iter().sum::<u64>(), "{} threads", threads);
            let found = pool(threads).install(|| triangles_per_vertex(&lists, &context)).unwrap();
            prop_assert_eq!(&*found, &expected, "{} threads", threads);
            prop_assert_eq!(context.memory().used(), u64::from(vertices) * 8);
        }
        prop_assert_eq!(context.memory().used(), 0);
    }
}

#[test]
fn triangles_of_the_karate_club_are_those_of_networkx() {
    let expected =
        [18, 12, 11, 10, 2, 3, 3, 6, 5, 0, 2, 0, 1, 6, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4, 1, 1, 1, 1, 1, 4, 3, 3, 13, 15];
    let [lists, _] = graph(34, &both_ways(&KARATE));
    assert_eq!(*triangles_per_vertex(&lists, &QueryContext::new()).unwrap(), expected);
}
