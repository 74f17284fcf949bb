//! Triangles against three loops, on random graphs with loops and parallel edges.

use std::collections::HashSet;

use hoplake_storage::QueryContext;
use proptest::prelude::*;

use super::{
    count_triangles,
    tests::{graph, pool},
};

/// All sets of three.
fn triangles(vertices: u32, edges: &[(u32, u32)]) -> u64 {
    let edges: HashSet<_> = edges.iter().flat_map(|(from, to)| [(*from, *to), (*to, *from)]).collect();
    let mut found = 0;
    for a in 0..vertices {
        for b in a + 1..vertices {
            for c in b + 1..vertices {
                found += u64::from([(a, b), (b, c), (a, c)].iter().all(|edge| edges.contains(edge)));
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
        let both: Vec<_> = edges.iter().flat_map(|(from, to)| [(*from, *to), (*to, *from)]).collect();
        let [lists, _] = graph(vertices, &both);
        let expected = triangles(vertices, &edges);
        let context = QueryContext::new();
        for threads in [1, 3] {
            let found = pool(threads).install(|| count_triangles(&lists, &context)).unwrap();
            prop_assert_eq!(found, expected, "{} threads", threads);
        }
        prop_assert_eq!(context.memory().used(), 0);
    }
}
