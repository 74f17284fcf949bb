//! A generated social network, loaded: the seven traversals answer what the naive oracle does.

use std::{
    collections::{BTreeSet, HashMap},
    fmt::Write,
    fs,
    path::Path,
};

use arrow_array::{TimestampMicrosecondArray, cast::AsArray, types::TimestampMicrosecondType};
use hoplake::{Graph, Hop, HopDirection, Key, LoadOptions, Traversal, VertexOrder, VisitPolicy, load};
use hoplake_testkit::{
    generate::{SocialLabel, SocialNetwork, SocialRelation},
    oracle::{self, Oracle, Vertex},
};

/// Source label, direction and edge label of each hop.
type SocialQuery = (SocialLabel, &'static [(HopDirection, &'static str)]);

const QUERIES: [SocialQuery; 7] = {
    use HopDirection::{Both, In, Out};
    [
        (SocialLabel::Forum, &[(Out, "hasMember")]),
        (SocialLabel::Post, &[(In, "containerOf")]),
        (SocialLabel::Person, &[(Both, "knows"), (Both, "knows")]),
        (SocialLabel::Person, &[(Out, "workAt"), (Out, "isLocatedIn")]),
        (SocialLabel::Person, &[(Both, "knows"), (Out, "hasInterest"), (Out, "hasType")]),
        (SocialLabel::Post, &[(In, "containerOf"), (Out, "hasTag"), (Out, "hasType")]),
        (SocialLabel::Comment, &[(Out, "hasCreator"), (Out, "hasInterest"), (Out, "hasType"), (Out, "isSubclassOf")]),
    ]
};

fn write_csv(network: &SocialNetwork, folder: &Path) {
    for label in SocialLabel::ALL {
        let mut text = String::from("id,creationDate\n");
        for vertex in network.vertices(label) {
            let date = vertex.created_unix_ms.map_or_else(String::new, |date| date.to_string());
            writeln!(text, "{},{date}", vertex.key).unwrap();
        }
        fs::write(folder.join(label.file("csv")), text).unwrap();
    }
    for &relation in SocialRelation::ALL {
        let mut text = String::from("source,target\n");
        network.edges(relation).for_each(|(source, target)| writeln!(text, "{source},{target}").unwrap());
        fs::write(folder.join(relation.file("csv")), text).unwrap();
    }
    fs::write(folder.join("mapping.toml"), SocialNetwork::mapping("csv")).unwrap();
}

/// The same for the oracle, with a vertex's index by label and key.
fn oracle_of(network: &SocialNetwork) -> (Oracle, HashMap<(SocialLabel, i64), Vertex>) {
    let mut graph = Oracle::new();
    let mut places = HashMap::new();
    for label in SocialLabel::ALL {
        for vertex in network.vertices(label) {
            places.insert((label, vertex.key), graph.add_vertex(label.name(), oracle::Key::Int(vertex.key)));
        }
    }
    for &relation in SocialRelation::ALL {
        for (source, target) in network.edges(relation) {
            let ends = (places[&(relation.source(), source)], places[&(relation.target(), target)]);
            graph.add_edge(ends.0, relation.label(), ends.1);
        }
    }
    (graph, places)
}

async fn loaded(network: &SocialNetwork, url: &str, order: VertexOrder) -> Graph {
    let folder = tempfile::tempdir().unwrap();
    write_csv(network, folder.path());
    let mut options = LoadOptions::from_paths([folder.path()]);
    options.mapping = Some(folder.path().join("mapping.toml"));
    options.order = order;
    load(url, options).await.unwrap();
    Graph::open(url).await.unwrap()
}

fn oracle_hop(&(direction, label): &(HopDirection, &str)) -> oracle::Hop {
    let direction = match direction {
        HopDirection::Out => oracle::Direction::Out,
        HopDirection::In => oracle::Direction::In,
        HopDirection::Both => oracle::Direction::Both,
    };
    oracle::Hop::new(direction, [label])
}

async fn reached(graph: &Graph, label: SocialLabel, start: i64, hops: Vec<Hop>, visit: VisitPolicy) -> BTreeSet<i64> {
    let mut run = graph.query();
    let starts = vec![run.vertex(label.name(), start).await.unwrap().unwrap()];
    let reached = run.traverse(Traversal { starts, hops, visit, ..Default::default() }).await.unwrap();
    let keys = run.keys(reached.last()).await.unwrap().into_iter();
    let int = |key| match key {
        Key::Int64(key) => key,
        Key::String(key) => panic!("{key} is not an integer"),
    };
    keys.map(int).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_seven_traversals_of_a_generated_network() {
    let network = SocialNetwork::new(0.001, 1);
    let (oracle, places) = oracle_of(&network);
    let mut answers = 0;
    for (order, url) in [(VertexOrder::Keys, "memory://social/keys"), (VertexOrder::Locality, "memory://social/near")] {
        let graph = loaded(&network, url, order).await;
        let counts = graph.manifest().edge_counts.iter().sum::<u64>();
        assert_eq!((graph.manifest().vertex_counts.len(), counts), (8, oracle.edges.len() as u64));
        for (label, query) in QUERIES {
            let hops: Vec<Hop> = query.iter().map(|&(direction, label)| Hop::along(direction, label)).collect();
            let oracle_hops: Vec<oracle::Hop> = query.iter().map(oracle_hop).collect();
            let all: Vec<i64> = network.vertices(label).map(|vertex| vertex.key).collect();
            for start in [0, all.len() / 3, all.len() - 1].map(|place| all[place]) {
                let policies = [
                    (VisitPolicy::Global, oracle::VisitPolicy::Global),
                    (VisitPolicy::PerDepth, oracle::VisitPolicy::PerDepth),
                ];
                for (visit, same) in policies {
                    let depths = oracle.traverse(&[places[&(label, start)]], &oracle_hops, same);
                    let key = |&vertex: &Vertex| match oracle.vertices[vertex].key {
                        oracle::Key::Int(key) => key,
                        oracle::Key::Text(_) => unreachable!("keys are integers"),
                    };
                    let expected: BTreeSet<i64> = depths[hops.len()].iter().map(key).collect();
                    answers += expected.len();
                    let found = reached(&graph, label, start, hops.clone(), visit).await;
                    assert_eq!(found, expected, "{query:?} from {start}, {visit:?}");
                }
            }
        }
    }
    assert!(answers > 1_000, "answers have {answers} vertices in all");
}

#[tokio::test]
async fn creation_dates_are_loaded() {
    let network = SocialNetwork::with_friends(20, 4.0, 5);
    let graph = loaded(&network, "memory://social/dates", VertexOrder::Keys).await;
    for vertex in network.vertices(SocialLabel::Person).take(5) {
        let mut run = graph.query();
        let person = run.vertex("Person", vertex.key).await.unwrap().unwrap();
        let rows = run.properties(&[person].into_iter().collect(), &["creationDate".to_owned()]).await.unwrap();
        let dates: &TimestampMicrosecondArray =
            rows[0].batch["creationDate"].as_primitive::<TimestampMicrosecondType>();
        assert_eq!(Some(dates.value(0) / 1_000), vertex.created_unix_ms);
    }
}
