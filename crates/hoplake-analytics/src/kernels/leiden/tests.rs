//! Communities against what is true of any that Leiden ends at, computed from a matrix, and against networkx.

use std::collections::{BTreeMap, BTreeSet};

use hoplake_storage::QueryContext;
use proptest::prelude::*;

use super::{
    super::tests::{KARATE, KARATE_WEIGHTS, both_ways, graph, pool, weighted},
    *,
};
use crate::Csr;

fn places(vertices: u32) -> Vec<u32> {
    (0..vertices).collect()
}

fn found(lists: &Csr, places: &[u32], settings: &LeidenSettings) -> Communities {
    leiden(lists, places, settings, &QueryContext::new()).unwrap().into_inner()
}

/// The weights between all vertices; those of a vertex with itself count twice.
fn matrix(vertices: u32, edges: &[(u32, u32)], weights: &[f64]) -> Vec<Vec<f64>> {
    let mut matrix = vec![vec![0.0; vertices as usize]; vertices as usize];
    for ((from, to), weight) in edges.iter().zip(weights) {
        matrix[*from as usize][*to as usize] += weight;
        matrix[*to as usize][*from as usize] += weight;
    }
    matrix
}

/// By its definition, over all pairs of vertices.
fn modularity(matrix: &[Vec<f64>], communities: &[u32], resolution: f64) -> f64 {
    let strength = |vertex: usize| matrix[vertex].iter().sum::<f64>();
    let total: f64 = (0..matrix.len()).map(strength).sum();
    let mut sum = 0.0;
    for a in 0..matrix.len() {
        for b in 0..matrix.len() {
            if communities[a] == communities[b] {
                sum += matrix[a][b] - resolution * strength(a) * strength(b) / total;
            }
        }
    }
    if total == 0.0 { 0.0 } else { sum / total }
}

/// Whether edges within a community lead from each of its vertices to each other.
fn is_connected(matrix: &[Vec<f64>], members: &BTreeSet<usize>) -> bool {
    let mut reached = BTreeSet::from([*members.first().unwrap()]);
    loop {
        let more: BTreeSet<usize> = members
            .iter()
            .copied()
            .filter(|to| !reached.contains(to) && reached.iter().any(|from| matrix[*from][*to] > 0.0))
            .collect();
        if more.is_empty() {
            return reached.len() == members.len();
        }
        reached.extend(more);
    }
}

fn members(communities: &[u32]) -> BTreeMap<u32, BTreeSet<usize>> {
    let mut members: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
    for (vertex, community) in communities.iter().enumerate() {
        members.entry(*community).or_default().insert(vertex);
    }
    members
}

fn edges_of(vertices: u32, weights: &[f64], edges: &[(u32, u32)]) -> (Csr, Vec<Vec<f64>>) {
    let twice: Vec<f64> = weights.iter().flat_map(|weight| [*weight; 2]).collect();
    let [lists, _] = weighted(vertices, &both_ways(edges), &twice);
    (lists, matrix(vertices, edges, weights))
}

fn weights() -> impl Strategy<Value = Vec<f64>> {
    prop_oneof![
        Just(vec![1.0; 120]),
        prop::collection::vec(prop_oneof![Just(0.0), 0.01..4.0], 120),
        // Far from 1 in sum.
        prop::collection::vec(1e-9..1e-8, 120),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn communities_are_connected_and_no_move_or_merge_is_better(
        (vertices, edges) in (2u32..40).prop_flat_map(|vertices| {
            (Just(vertices), prop::collection::vec((0..vertices, 0..vertices), 0..120))
        }),
        weights in weights(),
        resolution in prop_oneof![Just(1.0), 0.0..3.0],
        seed in any::<u64>(),
    ) {
        let weights = &weights[..edges.len()];
        let (lists, matrix) = edges_of(vertices, weights, &edges);
        let settings = LeidenSettings { resolution, iterations_max: 1000, seed };
        let context = QueryContext::new();
        let compute = || leiden(&lists, &places(vertices), &settings, &context);
        let found = pool(1).install(compute).unwrap();
        prop_assert_eq!(context.memory().used(), u64::from(vertices) * 4);
        prop_assert_eq!(&*pool(3).install(compute).unwrap(), &*found);
        prop_assert!(found.iterations < 1000, "it ends");
        let Communities { communities, modularity: reported, .. } = &*found;
        let own = modularity(&matrix, communities, resolution);
        prop_assert!((reported - own).abs() < 1e-9, "{} is reported, and it is {}", reported, own);
        let members = members(communities);
        for (community, members) in &members {
            prop_assert_eq!(*members.first().unwrap() as u32, *community, "the first vertex names a community");
            prop_assert!(is_connected(&matrix, members), "{:?}", members);
        }
        // No vertex would be better off in another community or alone, and no two communities as one.
        let unused = communities.iter().max().unwrap() + 1;
        for vertex in 0..vertices as usize {
            for community in members.keys().copied().chain([unused]) {
                let mut other = communities.clone();
                other[vertex] = community;
                let other = modularity(&matrix, &other, resolution);
                prop_assert!(other < own + 1e-9, "{} in {}: {} in place of {}", vertex, community, other, own);
            }
        }
        for (a, b) in members.keys().flat_map(|a| members.keys().map(move |b| (a, b))) {
            let other: Vec<u32> = communities.iter().map(|community| if community == a { *b } else { *community }).collect();
            let other = modularity(&matrix, &other, resolution);
            prop_assert!(other < own + 1e-9, "{} with {}: {} in place of {}", a, b, other, own);
        }
    }

    #[test]
    fn refined_communities_are_connected_parts(
        (vertices, edges) in (2u32..40).prop_flat_map(|vertices| {
            (Just(vertices), prop::collection::vec((0..vertices, 0..vertices), 1..120))
        }),
        communities in prop::collection::vec(0u32..3, 40),
        seed in any::<u64>(),
    ) {
        let weights = vec![1.0; edges.len()];
        let (lists, matrix) = edges_of(vertices, &weights, &edges);
        let context = QueryContext::new();
        let network = Network::of(&lists, &places(vertices), &context).unwrap();
        let settings = LeidenSettings { resolution: 0.5, seed, ..LeidenSettings::default() };
        let mut search = LeidenRun { settings: &settings, random: SplitMix(seed), randomness: 0.01, context: &context };
        let communities: Vec<u32> = communities[..vertices as usize].iter().map(|number| number % vertices).collect();
        let refined = refine(&network, &communities, &mut search).unwrap();
        for members in members(&refined).values() {
            prop_assert!(is_connected(&matrix, members), "{:?}", members);
            let of = members.iter().map(|member| communities[*member]).collect::<BTreeSet<_>>();
            prop_assert_eq!(of.len(), 1, "{:?} of one community", members);
        }
    }

    #[test]
    fn communities_do_not_depend_on_ids(
        (vertices, edges) in (2u32..40).prop_flat_map(|vertices| {
            (Just(vertices), prop::collection::vec((0..vertices, 0..vertices), 0..120))
        }),
        rotated in 0u32..40,
    ) {
        let weights: Vec<f64> = (0..edges.len()).map(|number| 0.1 + (number % 7) as f64).collect();
        let settings = LeidenSettings::default();
        let (lists, _) = edges_of(vertices, &weights, &edges);
        let expected = found(&lists, &places(vertices), &settings);
        // The same graph with other ids, one of them of a deleted vertex, and the same places.
        let id = |vertex: u32| (vertex + rotated) % vertices + 1;
        let renamed: Vec<_> = edges.iter().map(|(from, to)| (id(*from), id(*to))).collect();
        let (lists, _) = edges_of(vertices + 1, &weights, &renamed);
        let mut places = vec![NONE; vertices as usize + 1];
        (0..vertices).for_each(|vertex| places[id(vertex) as usize] = vertex);
        let renamed = found(&lists, &places, &settings);
        prop_assert_eq!(renamed.communities[0], NONE);
        for vertex in 0..vertices {
            prop_assert_eq!(renamed.communities[id(vertex) as usize], expected.communities[vertex as usize]);
        }
        prop_assert_eq!(renamed.modularity, expected.modularity);
    }
}

/// The best of 50 runs of networkx's `louvain_communities`, which is also the greatest that is known.
#[test]
fn modularity_of_the_karate_club_is_the_best_of_networkx() {
    let [lists, _] = graph(34, &both_ways(&KARATE));
    let twice: Vec<f64> = KARATE_WEIGHTS.iter().flat_map(|weight| [*weight; 2]).collect();
    let [heavy, _] = weighted(34, &both_ways(&KARATE), &twice);
    for (lists, resolution, best) in
        [(&lists, 1.0, 0.41978961209730437), (&lists, 2.0, 0.16452991452991453), (&heavy, 1.0, 0.44490358126721763)]
    {
        let of_seed = |seed| {
            let settings = LeidenSettings { seed, resolution, ..LeidenSettings::default() };
            found(lists, &places(34), &settings).modularity
        };
        let modularities: Vec<f64> = (0..20).map(of_seed).collect();
        let greatest = modularities.iter().copied().fold(f64::MIN, f64::max);
        assert!(greatest > best - 1e-12, "{greatest} in place of {best}");
        assert!(modularities.iter().all(|modularity| *modularity > best - 0.02), "{modularities:?}");
    }
}

#[test]
fn cliques_on_a_ring_are_communities() {
    // 30 cliques of 5 with an edge from each to the next: the resolution limit merges pairs, a higher resolution none.
    let clique = |first: u32| (0..5).flat_map(move |a| (a + 1..5).map(move |b| (first + a, first + b)));
    let edges: Vec<(u32, u32)> =
        (0..30).flat_map(|number| clique(number * 5).chain([(number * 5, (number * 5 + 6) % 150)])).collect();
    let [lists, _] = graph(150, &both_ways(&edges));
    for (resolution, size) in [(1.0, 10), (4.0, 5)] {
        let settings = LeidenSettings { resolution, ..LeidenSettings::default() };
        let found = found(&lists, &places(150), &settings);
        let members = members(&found.communities);
        let sizes: Vec<usize> = members.values().map(BTreeSet::len).collect();
        assert!(sizes.iter().all(|found| *found == size || resolution == 1.0 && *found <= 15), "{sizes:?}");
        assert!(
            members
                .values()
                .all(|members| members.iter().filter(|member| *member % 5 == 0).count() * 5 == members.len())
        );
    }
}

#[test]
fn what_has_no_edges_is_alone() {
    let [lists, _] = graph(3, &[]);
    let alone = found(&lists, &places(3), &LeidenSettings::default());
    assert_eq!((alone.communities, alone.modularity), (vec![0, 1, 2], 0.0));
    let [none, _] = graph(0, &[]);
    assert!(found(&none, &[], &LeidenSettings::default()).communities.is_empty());
    for weight in [-1.0, f64::NAN, f64::INFINITY] {
        let [lists, _] = weighted(2, &[(0, 1), (1, 0)], &[weight; 2]);
        let error = leiden(&lists, &places(2), &LeidenSettings::default(), &QueryContext::new()).unwrap_err();
        assert!(error.to_string().contains("weights are numbers, 0 or more"), "{error}");
    }
}
