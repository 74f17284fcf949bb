//! Personalised PageRank against the solution of its equations.

use std::collections::BTreeSet;

use hoplake_storage::QueryContext;
use proptest::prelude::*;

use super::{
    tests::{EXAMPLE, graph, graphs, pool},
    *,
};

/// By elimination, of the linear equations that ranks fulfil. Deleted vertices are not among them.
fn expected(vertices: u32, edges: &[(u32, u32)], sources: &BTreeSet<u32>, damping: f64) -> Vec<f64> {
    let count = vertices as usize;
    let degree = |vertex: u32| edges.iter().filter(|(from, _)| *from == vertex).count() as f64;
    let part = |vertex: u32| if sources.contains(&vertex) { 1.0 / sources.len() as f64 } else { 0.0 };
    // Row by row: what a vertex has, less what it gets from each other, is what it gets from nowhere.
    let mut rows = vec![vec![0.0; count + 1]; count];
    for (vertex, row) in (0..vertices).zip(&mut rows) {
        row[vertex as usize] = 1.0;
        row[count] = (1.0 - damping) * part(vertex);
        for dangling in (0..vertices).filter(|from| degree(*from) == 0.0) {
            row[dangling as usize] -= damping * part(vertex);
        }
    }
    for (from, to) in edges {
        rows[*to as usize][*from as usize] -= damping / degree(*from);
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
        let expected = expected(vertices, &edges, &sources.iter().copied().collect(), damping);
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
