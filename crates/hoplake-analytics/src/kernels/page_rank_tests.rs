//! PageRank, personalised and by weight, against the solution of its equations and against networkx.

use std::collections::BTreeSet;

use hoplake_storage::QueryContext;
use proptest::prelude::*;

use super::{
    tests::{EXAMPLE, graph, graphs, pool, weighted},
    *,
};

/// By elimination, of the linear equations that ranks satisfy. Deleted vertices are not among them.
fn expected(vertices: u32, edges: &[(u32, u32)], weights: &[f64], sources: &BTreeSet<u32>, damping: f64) -> Vec<f64> {
    let count = vertices as usize;
    let weighted = || edges.iter().zip(weights);
    let strength =
        |vertex: u32| -> f64 { weighted().filter(|((from, _), _)| *from == vertex).map(|(_, weight)| weight).sum() };
    let part = |vertex: u32| if sources.contains(&vertex) { 1.0 / sources.len() as f64 } else { 0.0 };
    // Row by row: what a vertex has, less what it gets from each other, is what it gets from nowhere.
    let mut rows = vec![vec![0.0; count + 1]; count];
    for (vertex, row) in (0..vertices).zip(&mut rows) {
        row[vertex as usize] = 1.0;
        row[count] = (1.0 - damping) * part(vertex);
        for dangling in (0..vertices).filter(|from| strength(*from) == 0.0) {
            row[dangling as usize] -= damping * part(vertex);
        }
    }
    for ((from, to), weight) in weighted().filter(|(_, weight)| **weight > 0.0) {
        rows[*to as usize][*from as usize] -= damping * weight / strength(*from);
    }
    // Each column's diagonal is larger than the rest of it in sum, so no rows have to change places.
    for pivot in 0..count {
        let pivot_row = rows[pivot].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(number, _)| *number != pivot) {
            let times = row[pivot] / pivot_row[pivot];
            row.iter_mut().zip(&pivot_row).for_each(|(value, pivot)| *value -= times * pivot);
        }
    }
    rows.iter().enumerate().map(|(vertex, row)| row[count] / row[vertex]).collect()
}

fn settings(damping: f64) -> PageRankSettings {
    PageRankSettings { damping, iterations_max: 1000, tolerance: 1e-13 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn ranks_from_sources_solve_their_equations(
        (vertices, edges) in graphs(),
        chosen in prop::collection::vec(any::<prop::sample::Index>(), 1..6),
        deleted in 0u32..3,
        damping in 0.0..0.95,
    ) {
        let vertices = vertices.min(40);
        let edges: Vec<_> = edges.iter().take(120).map(|(from, to)| (from % vertices, to % vertices)).collect();
        // The last ids are those of deleted vertices, and one of them is among the sources.
        let [out, against] = graph(vertices + deleted, &edges);
        let deleted: Vec<u32> = (vertices..vertices + deleted).collect();
        let sources: Vec<u32> = chosen.iter().map(|it| it.index(vertices as usize) as u32).collect();
        let expected = expected(vertices, &edges, &vec![1.0; edges.len()], &sources.iter().copied().collect(), damping);
        let named: Vec<u32> = sources.iter().copied().chain(deleted.first().copied()).collect();
        let rank = |threads| {
            let context = QueryContext::new();
            let rank = || personalised_page_rank(&out, &against, &deleted, &named, &settings(damping), &context);
            let found = pool(threads).install(rank).unwrap();
            assert_eq!(context.memory().used(), out.len() as u64 * 8);
            found
        };
        let found = rank(1);
        for (vertex, expected) in expected.iter().enumerate() {
            let rank = found.ranks[vertex];
            prop_assert!((rank - expected).abs() < 1e-9, "{}: {} in place of {}", vertex, rank, expected);
        }
        prop_assert!(deleted.iter().all(|vertex| found.ranks[*vertex as usize] == 0.0));
        // Bit for bit, whatever the number of threads.
        prop_assert_eq!(&*rank(3), &*found);
    }

    #[test]
    fn ranks_by_weight_solve_their_equations(
        (vertices, edges) in graphs(),
        weights in prop::collection::vec(prop_oneof![Just(0.0), 0.0..9.0, Just(1e-60), Just(1e60)], 120),
        is_personalised in any::<bool>(),
        damping in 0.0..0.95,
    ) {
        let vertices = vertices.min(40);
        let edges: Vec<_> = edges.iter().take(120).map(|(from, to)| (from % vertices, to % vertices)).collect();
        let [out, against] = weighted(vertices, &edges, &weights);
        let sources: Vec<u32> = if is_personalised { vec![0, vertices / 2] } else { (0..vertices).collect() };
        let expected = expected(vertices, &edges, &weights, &sources.iter().copied().collect(), damping);
        let rank = |threads| {
            let context = QueryContext::new();
            let rank = || match is_personalised {
                true => personalised_page_rank(&out, &against, &[], &sources, &settings(damping), &context),
                false => page_rank(&out, &against, &[], &settings(damping), &context),
            };
            pool(threads).install(rank).unwrap()
        };
        let found = rank(1);
        for (vertex, expected) in expected.iter().enumerate() {
            let rank = found.ranks[vertex];
            prop_assert!((rank - expected).abs() < 1e-9, "{}: {} in place of {}", vertex, rank, expected);
        }
        prop_assert_eq!(&*rank(3), &*found);
    }

    #[test]
    fn with_all_vertices_as_sources_it_is_page_rank((vertices, edges) in graphs()) {
        let [out, against] = graph(vertices, &edges);
        let all: Vec<u32> = (0..vertices).collect();
        let context = QueryContext::new();
        let personalised = personalised_page_rank(&out, &against, &[], &all, &settings(0.85), &context).unwrap();
        let ranks = page_rank(&out, &against, &[], &settings(0.85), &context).unwrap();
        prop_assert_eq!(&*personalised, &*ranks);
    }
}

#[test]
fn what_no_source_reaches_has_rank_0() {
    let [out, against] = graph(7, &EXAMPLE);
    let context = QueryContext::new();
    let from = |sources: &[u32]| {
        personalised_page_rank(&out, &against, &[], sources, &PageRankSettings::default(), &context).unwrap()
    };
    // From 5 nothing leads to another vertex.
    assert!(from(&[5]).ranks.iter().enumerate().all(|(vertex, rank)| *rank == f64::from(u8::from(vertex == 5))));
    assert_eq!(from(&[0]).ranks.iter().filter(|rank| **rank == 0.0).count(), 0, "3 leads to 6");
    assert!(from(&[]).ranks.iter().all(|rank| *rank == 0.0));
    assert_eq!(from(&[]).iterations, 0);
}

/// Weights of the edges of the example; its parallel edges have two.
const WEIGHTS: [f64; 12] = [0.5, 2.0, 1.0, 3.0, 0.25, 1.5, 4.0, 1.0, 0.75, 2.5, 1.0, 0.125];

#[test]
fn ranks_by_weight_are_those_of_networkx() {
    let [out, against] = weighted(7, &EXAMPLE, &WEIGHTS);
    let context = QueryContext::new();
    let near = |found: &[f64], expected: [f64; 7]| {
        assert!(found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-10), "{found:?}");
    };
    let expected = [
        0.046245566212714154,
        0.036547314228881925,
        0.08608755817733771,
        0.09240711095079619,
        0.10705370299041878,
        0.5840481612418876,
        0.04761058619796385,
    ];
    near(&page_rank(&out, &against, &[], &settings(0.85), &context).unwrap().ranks, expected);
    let expected = [
        0.10698324953038142,
        0.03497529311570171,
        0.07105403151058061,
        0.06267223193961599,
        0.13796695875850726,
        0.5685911027623216,
        0.01775713238289136,
    ];
    near(&personalised_page_rank(&out, &against, &[], &[0, 4], &settings(0.85), &context).unwrap().ranks, expected);
    // Where all edges weigh the same, they may as well weigh nothing in particular.
    let [out, against] = weighted(7, &EXAMPLE, &[2.5; 12]);
    let [plain_out, plain_against] = graph(7, &EXAMPLE);
    let plain = page_rank(&plain_out, &plain_against, &[], &settings(0.85), &context).unwrap();
    near(
        &page_rank(&out, &against, &[], &settings(0.85), &context).unwrap().ranks,
        plain.ranks[..].try_into().unwrap(),
    );
}

#[test]
fn weights_that_are_none_are_rejected() {
    let context = QueryContext::new();
    for (weight, why) in [
        (-1.0, "an edge of vertex 1 (by dense id) has the weight -1;"),
        (f64::NAN, "an edge of vertex 1 (by dense id) has the weight NaN;"),
        (f64::INFINITY, "an edge of vertex 1 (by dense id) has the weight inf;"),
        (1e308, "the weights of the edges of vertex 1 (by dense id) add up to inf;"),
        (1e-310, "the weights of the edges of vertex 1 (by dense id) add up to"),
    ] {
        let weights = [1.0, weight, if weight == 1e308 { weight } else { 0.0 }];
        let [out, against] = weighted(3, &[(0, 1), (1, 2), (1, 0)], &weights);
        let error = page_rank(&out, &against, &[], &settings(0.85), &context).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}
