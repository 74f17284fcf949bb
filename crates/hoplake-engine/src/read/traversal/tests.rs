//! Traversals and shortest paths over lists that were written to a store in memory.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use hoplake_format::{Direction, VertexId, segment::SectionKind};
use hoplake_storage::QueryContext;
use proptest::prelude::*;

use super::{Hop, HopDirection, Limits, Prefetch, Strategy as Order, Traversal, VisitPolicy};
use crate::{
    Snapshot,
    read::{
        scan::written::{EDGE_TYPE, LABEL, LISTS, RunsFixture},
        traversal::path::{FoundPath, PathQuery},
    },
};

type OfSources = BTreeMap<u64, Vec<u64>>;
type Set = BTreeSet<u64>;

fn vertex(ordinal: u64) -> VertexId {
    VertexId::new(LABEL, ordinal).unwrap()
}

async fn written(lists: &OfSources) -> Arc<Snapshot> {
    let mut against: OfSources = BTreeMap::new();
    let pairs = lists.iter().flat_map(|(source, targets)| targets.iter().map(|target| (*source, *target)));
    pairs.for_each(|(source, target)| against.entry(target).or_default().push(source));
    let [out, against] =
        [lists, &against].map(|lists| lists.iter().map(|(source, targets)| (*source, targets.as_slice())));
    RunsFixture::new()
        .lists(1, LISTS, out)
        .lists(1, SectionKind::Adjacency(EDGE_TYPE, Direction::In), against)
        .open()
        .await
}

fn hop(direction: HopDirection) -> Hop {
    Hop::along(direction, "edge")
}

/// Whom a set reaches.
fn step(lists: &OfSources, set: &Set, direction: HopDirection) -> Set {
    let out = || set.iter().filter_map(|source| lists.get(source)).flatten().copied();
    let against = || {
        let leads_there = |targets: &Vec<u64>| targets.iter().any(|target| set.contains(target));
        lists.iter().filter(move |(_, targets)| leads_there(targets)).map(|(source, _)| *source)
    };
    match direction {
        HopDirection::Out => out().collect(),
        HopDirection::In => against().collect(),
        HopDirection::Both => out().chain(against()).collect(),
    }
}

fn expected(lists: &OfSources, starts: &Set, hops: &[HopDirection], visit: VisitPolicy) -> Vec<Set> {
    let mut depths = vec![starts.clone()];
    for direction in hops {
        let mut next = step(lists, &depths[depths.len() - 1], *direction);
        if visit == VisitPolicy::Global {
            next.retain(|ordinal| depths.iter().all(|depth| !depth.contains(ordinal)));
        }
        depths.push(next);
    }
    depths
}

fn graphs() -> impl Strategy<Value = OfSources> {
    let targets = prop::collection::vec(0u64..60, 1..5);
    prop::collection::btree_map(0u64..60, targets, 1..50).prop_map(|mut lists| {
        lists.values_mut().for_each(|targets| targets.sort_unstable());
        lists
    })
}

fn directions() -> impl Strategy<Value = HopDirection> {
    prop_oneof![Just(HopDirection::Out), Just(HopDirection::In), Just(HopDirection::Both)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn all_strategies_reach_the_same_sets(
        lists in graphs(),
        starts in prop::collection::btree_set(0u64..60, 1..4),
        hops in prop::collection::vec(directions(), 0..4),
        parallelism in 1usize..4,
        ahead in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let snapshot = written(&lists).await;
            let mut runs = vec![(Order::Dfs, VisitPolicy::PerDepth)];
            for visit in [VisitPolicy::PerDepth, VisitPolicy::Global] {
                runs.extend([Order::Bfs, Order::BfsPipelined].map(|strategy| (strategy, visit)));
            }
            for (strategy, visit) in runs {
                let traversal = Traversal {
                    starts: starts.iter().copied().map(vertex).collect(),
                    hops: hops.iter().copied().map(hop).collect(),
                    strategy,
                    visit,
                    parallelism,
                    prefetch: ahead.then(Prefetch::default),
                    ..Traversal::default()
                };
                let reached = snapshot.traverse(&traversal, &mut QueryContext::new().branch()).await.unwrap();
                let sets = reached.depths.iter().map(|set| set.vertices().map(VertexId::ordinal).collect::<Set>());
                assert_eq!(sets.collect::<Vec<_>>(), expected(&lists, &starts, &hops, visit), "{strategy:?} {visit:?}");
            }
        });
    }

    #[test]
    fn a_path_is_as_short_as_any(lists in graphs(), from in 0u64..60, to in 0u64..60, depth_max in 0usize..6, direction in directions()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let depths = expected(&lists, &Set::from([from]), &[direction; 6], VisitPolicy::Global);
        let length = depths.iter().position(|depth| depth.contains(&to)).filter(|length| *length <= depth_max);
        runtime.block_on(async {
            let snapshot = written(&lists).await;
            let query = PathQuery {
                from: vertex(from),
                to: vertex(to),
                hop: hop(direction),
                depth_max,
                edges: true,
                limits: Limits::default(),
            };
            let path = snapshot.shortest_path(&query, &mut QueryContext::new().branch()).await.unwrap();
            // Without a path, the search knows whether a longer one may exist; it may be cautious, but not too sure.
            let reached = depths.iter().any(|depth| depth.contains(&to));
            assert!(!reached || path != FoundPath::None, "{path:?}");
            assert!(depth_max < lists.len() || path != FoundPath::NoneWithin, "a simple path is not as long");
            let path = path.into_path();
            assert_eq!(path.as_ref().map(|path| path.vertices.len() - 1), length);
            let path = path.unwrap_or_default();
            assert_eq!(path.edges.len(), length.unwrap_or(0));
            for (at, ends) in path.vertices.windows(2).enumerate() {
                let reached = step(&lists, &Set::from([ends[0].ordinal()]), direction);
                assert!(reached.contains(&ends[1].ordinal()), "{ends:?} is an edge");
                // Its edge is between the two, and followed as the hop says, from whichever end it was found.
                let edge = path.edges[at];
                let seen = [[edge.from, edge.to], [edge.to, edge.from]];
                assert!(seen.iter().any(|seen| seen[..] == *ends), "{edge:?} is not between {ends:?}");
                let allowed = match direction {
                    HopDirection::Out => &[Direction::Out][..],
                    HopDirection::In => &[Direction::In],
                    HopDirection::Both => &Direction::ALL,
                };
                assert!(allowed.contains(&path.direction(at).unwrap()), "{edge:?} of {ends:?}");
                let [source, target] = if path.direction(at) == Some(Direction::Out) { [0, 1] } else { [1, 0] };
                assert_eq!((edge.id().source, edge.id().target), (ends[source], ends[target]));
            }
        });
    }
}

/// Many vertices of a label are a bitmap from hop to hop: a bit each of the 2^20 ordinals, where a list would take 8 bytes each.
#[tokio::test]
async fn a_large_frontier_takes_a_bit_a_vertex() {
    let lists: OfSources =
        (0..4000).map(|source| (source, (0..10).map(|number| number * 100_000 + source).collect())).collect();
    let snapshot = written(&lists).await;
    let starts: Set = (0..4000).collect();
    for visit in [VisitPolicy::PerDepth, VisitPolicy::Global] {
        let hops = [HopDirection::Out, HopDirection::In, HopDirection::Out];
        let traversal = Traversal {
            starts: starts.iter().copied().map(vertex).collect(),
            hops: hops.map(hop).to_vec(),
            visit,
            parallelism: 2,
            ..Traversal::default()
        };
        let reached = snapshot.traverse(&traversal, &mut QueryContext::new().branch()).await.unwrap();
        let expected = expected(&lists, &starts, &hops, visit);
        for (set, expected) in reached.depths.iter().zip(&expected) {
            assert!(set.vertices().map(VertexId::ordinal).eq(expected.iter().copied()));
        }
        assert!(expected[1].len() > 35_000);
        assert_eq!(reached.depths[1].bytes(), (1 << 20) / 8, "{visit:?}");
    }
}
