//! Delta stepping against Dijkstra's algorithm, on random graphs with loops and parallel edges.

use std::{cmp::Reverse, collections::BinaryHeap};

use hoplake_engine::EngineError;
use hoplake_storage::{QueryContext, ReadLimits};
use proptest::prelude::*;

use super::{
    ShortestPathSettings, shortest_path_lengths,
    tests::{graph, graphs, pool},
};
use crate::Csr;

/// The nearest vertex first, from a heap.
fn dijkstra(out: &Csr, weights: &[f64], start: u32) -> Vec<f64> {
    let mut distances = vec![f64::INFINITY; crate::Adjacency::len(out)];
    distances[start as usize] = 0.0;
    // The bits of floats that are not negative have their order.
    let mut heap = BinaryHeap::from([Reverse((0, start))]);
    while let Some(Reverse((bits, vertex))) = heap.pop() {
        let distance = f64::from_bits(bits);
        if distance > distances[vertex as usize] {
            continue;
        }
        for (target, weight) in out.neighbours(vertex).iter().zip(&weights[out.range(vertex)]) {
            let through = distance + weight;
            if through < distances[*target as usize] {
                distances[*target as usize] = through;
                heap.push(Reverse((through.to_bits(), *target)));
            }
        }
    }
    distances
}

/// Small integers, many of them 0; fractions; and all magnitudes, which need more bins than there are at a time.
fn weight() -> impl Strategy<Value = f64> {
    prop_oneof![
        (0u8..6).prop_map(f64::from),
        0.0..1.0,
        (-300i32..300).prop_map(|power| 10f64.powi(power)),
        prop_oneof![Just(-0.0), Just(f64::INFINITY), Just(f64::MAX), Just(f64::from_bits(1))],
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn lengths_are_those_of_dijkstra(
        ((vertices, edges), kinds) in (graphs(), 1usize..5),
        seeds in prop::collection::vec(weight(), 64),
        start in any::<prop::sample::Index>(),
        delta in prop::option::of(prop_oneof![0.01..10.0, Just(1e-300), Just(1e300), Just(f64::INFINITY)]),
    ) {
        let [out, _] = graph(vertices, &edges);
        let start = start.index(vertices as usize) as u32;
        // Of few different weights, or of many.
        let weights: Vec<f64> = (0..edges.len()).map(|edge| seeds[edge * 7 % (kinds * 16)]).collect();
        let expected = dijkstra(&out, &weights, start);
        let context = QueryContext::new();
        for threads in [1, 3] {
            let run = || shortest_path_lengths(&out, &weights, start, &ShortestPathSettings { delta }, &context);
            prop_assert_eq!(&*pool(threads).install(run).unwrap(), &expected, "{} threads", threads);
        }
        prop_assert_eq!(context.memory().used(), 0, "results that were dropped hold nothing");
    }

    #[test]
    fn integers_are_weights((vertices, edges) in graphs()) {
        let [out, _] = graph(vertices, &edges);
        let weights: Vec<u8> = (0..edges.len()).map(|edge| (edge * 31 % 256) as u8).collect();
        let as_floats: Vec<f64> = weights.iter().map(|weight| f64::from(*weight)).collect();
        let found =
            shortest_path_lengths(&out, &weights, 0, &ShortestPathSettings::default(), &QueryContext::new()).unwrap();
        prop_assert_eq!(&*found, &dijkstra(&out, &as_floats, 0));
    }
}

/// Bins that are drained by all threads, and those of one thread alone, are as long as this graph makes them.
#[test]
fn long_bins_and_long_paths_have_the_same_lengths() {
    // A ladder of 200 rungs, each of which fans out to 40 vertices.
    let mut edges = Vec::new();
    for rung in 0..200u32 {
        let vertices = (0..40).map(|side| 200 + rung * 40 + side);
        edges.extend(vertices.clone().map(|vertex| (rung, vertex)));
        edges.extend(vertices.map(|vertex| (vertex, (rung + 1) % 200)));
    }
    let [out, _] = graph(200 * 41, &edges);
    let weights: Vec<f32> = (0..edges.len()).map(|edge| (edge * 97 % 1013) as f32 / 7.0).collect();
    let as_doubles: Vec<f64> = weights.iter().map(|weight| f64::from(*weight)).collect();
    let expected = dijkstra(&out, &as_doubles, 3);
    for delta in [None, Some(0.001), Some(3.0), Some(1e9)] {
        let settings = ShortestPathSettings { delta };
        let run = || shortest_path_lengths(&out, &weights, 3, &settings, &QueryContext::new()).unwrap();
        assert_eq!(*pool(3).install(run), expected, "{delta:?}");
    }
}

#[test]
fn what_is_no_length_is_rejected_with_a_reason() {
    let [out, _] = graph(4, &[(0, 1), (2, 0), (2, 3)]);
    let rejected = |weights: [f64; 3], delta| {
        let settings = ShortestPathSettings { delta };
        match shortest_path_lengths(&out, &weights, 0, &settings, &QueryContext::new()) {
            Err(EngineError::Invalid(why)) => why,
            other => panic!("{other:?}"),
        }
    };
    let expected = "an edge of vertex 2 (by dense id) has the weight -1; shortest paths need weights of 0 and more";
    assert_eq!(rejected([1.0, -1.0, f64::NAN], None), expected);
    assert!(rejected([f64::NAN, 0.0, 1.0], None).contains("vertex 0 (by dense id) has the weight NaN"));
    assert!(rejected([1.0; 3], Some(0.0)).contains("the width of a bin is 0, and must be above 0"));
    assert!(rejected([1.0; 3], Some(f64::NAN)).contains("NaN"));
}

#[test]
fn it_ends_at_the_deadline_and_within_its_memory() {
    let [out, _] = graph(3, &[(0, 1), (1, 2)]);
    let run =
        |context: &QueryContext| shortest_path_lengths(&out, &[1.0, 2.0], 0, &ShortestPathSettings::default(), context);
    let context = QueryContext::new();
    run(&context).unwrap();
    let peak = context.memory().peak();
    for bytes in [20, 24 + 100, peak - 1] {
        context.limit(ReadLimits { memory_bytes_max: Some(bytes), ..ReadLimits::default() });
        assert!(matches!(run(&context), Err(EngineError::Limit { .. })), "{bytes} bytes");
        assert_eq!(context.memory().used(), 0);
    }
    let context = QueryContext::new();
    context.give_time(Some(0));
    assert!(matches!(run(&context), Err(EngineError::Limit { .. })), "no time");
}
