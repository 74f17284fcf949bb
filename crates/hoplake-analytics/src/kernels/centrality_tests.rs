//! Eigenvector centrality, hubs and authorities against eigenvectors by Jacobi's method, and against networkx.

use hoplake_storage::QueryContext;
use proptest::prelude::*;

use super::{
    tests::{EXAMPLE, KARATE, both_ways, graph, pool},
    *,
};

/// The product of a matrix with a vector.
fn times(matrix: &[Vec<f64>], vector: &[f64]) -> Vec<f64> {
    matrix.iter().map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum()).collect()
}

/// The greatest eigenvalue of a symmetric matrix, by rotations that make all but its diagonal 0 (Jacobi 1846).
fn greatest_eigenvalue(matrix: &[Vec<f64>]) -> f64 {
    let mut matrix = matrix.to_vec();
    let count = matrix.len();
    for _ in 0..60 {
        for p in 0..count {
            for q in p + 1..count {
                let off = matrix[p][q];
                if off.abs() < 1e-300 {
                    continue;
                }
                let angle = 0.5 * (2.0 * off).atan2(matrix[p][p] - matrix[q][q]);
                let (sine, cosine) = angle.sin_cos();
                for row in &mut matrix {
                    let a = row[p];
                    let b = row[q];
                    row[p] = cosine * a + sine * b;
                    row[q] = cosine * b - sine * a;
                }
                let [upper, lower] = [p, q].map(|row| matrix[row].clone());
                let turned = |a: &[f64], b: &[f64], sign: f64| {
                    a.iter().zip(b).map(|(a, b)| cosine * a + sign * sine * b).collect::<Vec<f64>>()
                };
                matrix[p] = turned(&upper, &lower, 1.0);
                matrix[q] = turned(&lower, &upper, -1.0);
            }
        }
    }
    (0..count).map(|at| matrix[at][at]).fold(f64::NEG_INFINITY, f64::max)
}

/// Whether a vector of values, 0 or more, is an eigenvector of a symmetric matrix with its greatest eigenvalue.
fn assert_principal(matrix: &[Vec<f64>], found: &[f64]) -> Result<(), TestCaseError> {
    let expected = greatest_eigenvalue(matrix);
    let product = times(matrix, found);
    let square: f64 = found.iter().map(|value| value * value).sum();
    let quotient = product.iter().zip(found).map(|(a, b)| a * b).sum::<f64>() / square;
    prop_assert!((quotient - expected).abs() < 1e-6 * expected.max(1.0), "{} in place of {}", quotient, expected);
    for (product, value) in product.iter().zip(found) {
        prop_assert!(*value >= 0.0 && (product - expected * value).abs() < 1e-3 * expected, "{:?}", found);
    }
    Ok(())
}

/// How many edges lead from one vertex to another.
fn matrix(vertices: u32, edges: &[(u32, u32)]) -> Vec<Vec<f64>> {
    let mut matrix = vec![vec![0.0; vertices as usize]; vertices as usize];
    edges.iter().for_each(|(from, to)| matrix[*from as usize][*to as usize] += 1.0);
    matrix
}

fn few() -> impl Strategy<Value = (u32, Vec<(u32, u32)>)> {
    (2u32..14).prop_flat_map(|vertices| {
        let edges = prop::collection::vec((0..vertices, 0..vertices), 1..30);
        (Just(vertices), edges)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn centrality_is_the_principal_eigenvector((vertices, edges) in few(), deleted in 0u32..3) {
        let both = both_ways(&edges);
        let [lists, _] = graph(vertices + deleted, &both);
        let gone: Vec<u32> = (vertices..vertices + deleted).collect();
        let compute = |threads| {
            let context = QueryContext::new();
            let work = || eigenvector_centrality(&lists, &gone, 20_000, 0.0, &context);
            let found = pool(threads).install(work).unwrap();
            assert_eq!(context.memory().used(), lists.len() as u64 * 8);
            found
        };
        let found = compute(1);
        assert_principal(&matrix(vertices, &both), &found.values[..vertices as usize])?;
        prop_assert!((found.values.iter().map(|value| value * value).sum::<f64>() - 1.0).abs() < 1e-9);
        prop_assert!(gone.iter().all(|vertex| found.values[*vertex as usize] == 0.0));
        prop_assert_eq!(&*compute(3), &*found);
    }

    #[test]
    fn hubs_and_authorities_are_principal_singular_vectors((vertices, edges) in few(), deleted in 0u32..3) {
        let [out, against] = graph(vertices + deleted, &edges);
        let gone: Vec<u32> = (vertices..vertices + deleted).collect();
        let compute = |threads| {
            let context = QueryContext::new();
            let work = || hubs_and_authorities(&out, &against, &gone, 20_000, 0.0, &context);
            let found = pool(threads).install(work).unwrap();
            assert_eq!(context.memory().used(), out.len() as u64 * 16);
            found
        };
        let found = compute(1);
        let edges = matrix(vertices, &edges);
        let product = |a: usize, b: usize, by_row: bool| -> f64 {
            (0..vertices as usize).map(|at| if by_row { edges[a][at] * edges[b][at] } else { edges[at][a] * edges[at][b] }).sum()
        };
        let squares = |by_row: bool| -> Vec<Vec<f64>> {
            let row = |a| (0..vertices as usize).map(|b| product(a, b, by_row)).collect();
            (0..vertices as usize).map(row).collect()
        };
        for (scores, by_row) in [(&found.hubs, true), (&found.authorities, false)] {
            assert_principal(&squares(by_row), &scores[..vertices as usize])?;
            prop_assert!((scores.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            prop_assert!(gone.iter().all(|vertex| scores[*vertex as usize] == 0.0));
        }
        prop_assert_eq!(&*compute(3), &*found);
    }
}

fn assert_near(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    assert!(found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-9), "{found:?}");
}

#[test]
fn centrality_is_that_of_networkx() {
    let context = QueryContext::new();
    let [_, against] = graph(7, &EXAMPLE);
    // networkx 3.6, with parallel edges as weights.
    let expected = [
        0.24796667930630534,
        0.3047885917581635,
        0.2906002890914287,
        0.3659115391033141,
        0.40347621734466826,
        0.6433602662323088,
        0.22488034082514205,
    ];
    let found = eigenvector_centrality(&against, &[], 10_000, 1e-14, &context).unwrap();
    assert_near(&found.values, &expected);
    assert!(found.residual <= 1e-14 && found.iterations < 10_000);
    let [lists, _] = graph(34, &both_ways(&KARATE));
    let found = eigenvector_centrality(&lists, &[], 10_000, 1e-14, &context).unwrap();
    assert_near(&found.values[..4], &[0.355491444524, 0.265959919552, 0.317192504486, 0.211179720378]);
    assert_near(&found.values[30..], &[0.174758302314, 0.191033841407, 0.308644219791, 0.373363470292]);
}

#[test]
fn hubs_and_authorities_are_those_of_networkx() {
    let context = QueryContext::new();
    let [out, against] = graph(7, &EXAMPLE);
    let found = hubs_and_authorities(&out, &against, &[], 10_000, 1e-15, &context).unwrap();
    assert_near(&found.hubs, &[0.8090169943749473, 0.0, 0.0, 0.0, 0.0, 0.0, 0.19098300562505258]);
    assert_near(&found.authorities, &[0.0, 0.6180339887498948, 0.3819660112501052, 0.0, 0.0, 0.0, 0.0]);
    let [lists, _] = graph(34, &both_ways(&KARATE));
    let found = hubs_and_authorities(&lists, &lists, &[], 10_000, 1e-15, &context).unwrap();
    assert_near(&found.hubs[..4], &[0.071412728808, 0.053427231236, 0.063719064556, 0.042422737125]);
    assert_near(&found.authorities[30..], &[0.035106237977, 0.038375741863, 0.062001846474, 0.075002942157]);
}

#[test]
fn without_edges_nothing_is_central() {
    let context = QueryContext::new();
    let [out, against] = graph(3, &[]);
    let found = hubs_and_authorities(&out, &against, &[], 100, 1e-9, &context).unwrap();
    assert_eq!((&found.hubs, &found.authorities), (&vec![0.0; 3], &vec![0.0; 3]));
    let [none, _] = graph(0, &[]);
    assert!(eigenvector_centrality(&none, &[], 100, 1e-9, &context).unwrap().values.is_empty());
}
