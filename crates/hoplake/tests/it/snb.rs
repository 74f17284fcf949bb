//! The seven traversals of the social networks: every result equals what another system computed.

use hoplake::{Graph, Hop, HopDirection, Key, LoadOptions, Strategy, Traversal, VisitPolicy, load};
use hoplake_testkit::{
    oracle::Direction,
    snb::{self, Truth},
};

fn hops(query: &hoplake_testkit::snb::Query) -> Vec<Hop> {
    let direction = |direction: &Direction| match direction {
        Direction::Out => HopDirection::Out,
        Direction::In => HopDirection::In,
        Direction::Both => HopDirection::Both,
    };
    query.hops.iter().map(|hop| Hop::along(direction(&hop.direction), &hop.edge_label)).collect()
}

/// Level by level.
pub(crate) const BREADTH_FIRST: [(Strategy, VisitPolicy); 2] =
    [(Strategy::Bfs, VisitPolicy::Global), (Strategy::Bfs, VisitPolicy::PerDepth)];

const ALL: [(Strategy, VisitPolicy); 5] = [
    BREADTH_FIRST[0],
    BREADTH_FIRST[1],
    (Strategy::BfsPipelined, VisitPolicy::Global),
    (Strategy::BfsPipelined, VisitPolicy::PerDepth),
    (Strategy::Dfs, VisitPolicy::PerDepth),
];

/// Runs every query from every source in each of these ways; returns how many.
pub(crate) async fn check_all(graph: &Graph, truth: &Truth, ways: &[(Strategy, VisitPolicy)]) -> usize {
    let mut checked = 0;
    for (name, query) in &truth.queries {
        for case in &query.cases {
            for &(strategy, visit) in ways {
                let mut run = graph.query();
                let start = run.vertex(&query.source_label, case.source).await.unwrap().unwrap();
                let traversal = Traversal {
                    starts: vec![start],
                    hops: hops(query),
                    strategy,
                    visit,
                    parallelism: 2,
                    ..Default::default()
                };
                let reached = run.traverse(traversal).await.unwrap();
                let mut keys = run.keys(reached.last()).await.unwrap();
                keys.sort();
                let keys = keys.into_iter().map(|key| match key {
                    Key::Int64(key) => key,
                    Key::String(key) => panic!("{key} is not an LDBC id"),
                });
                let expected = if visit == VisitPolicy::Global { &case.sha256 } else { &case.set_sha256 };
                assert_eq!(
                    &snb::sha256_of_ids(keys),
                    expected,
                    "{name} from {} by {strategy:?}, {visit:?}",
                    case.source
                );
                checked += 1;
            }
        }
    }
    checked
}

async fn load_and_check(folder: &str, url: &str) {
    if !snb::available(folder) {
        return;
    }
    load(url, LoadOptions::from_paths([snb::extract(folder)])).await.unwrap();
    let graph = Graph::open(url).await.unwrap();
    assert_eq!(graph.open_cost().waves, 2);
    let truth = snb::truth(folder);
    assert!(check_all(&graph, &truth, &ALL).await >= 500);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_seven_traversals_of_sf01_from_files() {
    let folder = tempfile::tempdir().unwrap();
    load_and_check("snb-sf0.1-datagen", folder.path().to_str().unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_seven_traversals_of_the_genuine_sample() {
    load_and_check("snb-sample-903p-genuine", "memory://snb/genuine").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_traversals_of_the_official_part() {
    load_and_check("snb-sf0.1-official-partial", "memory://snb/official").await;
}
