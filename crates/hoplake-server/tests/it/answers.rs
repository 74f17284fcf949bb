//! Every call of gRPC answers as the embedded facade does.

use hoplake::{
    Direction, Frontier, Graph, Hop, Key, PathQuery, StartKey, Strategy, Traversal, TraversalRequest, VertexId,
    VisitPolicy, WeightedPathQuery,
};
use hoplake_server::v1::{self, traverse_request::Output, traverse_response::Kind, vertex_ref};
use hoplake_testkit::{oracle, snb};

use crate::{
    running::{Running, all, graph, hop, named, settings, traversal},
    sample::{self, PEOPLE},
};

pub(crate) fn raw(vertex: VertexId) -> u64 {
    u64::from(vertex.label().0) << 48 | vertex.ordinal()
}

fn raws(set: &Frontier) -> Vec<u64> {
    set.vertices().map(raw).collect()
}

async fn both() -> (Running, Graph) {
    let folder = sample::in_memory("social").await;
    let graph = sample::embedded(&folder, "social").await;
    (Running::start(settings(&folder)).await, graph)
}

#[tokio::test]
async fn what_a_graph_is() {
    let (server, graph) = both().await;
    let answer = server.graphs().await.get_graph(v1::GetGraphRequest { graph: self::graph("social") }).await.unwrap();
    assert!(!answer.metadata().get("x-request-id").unwrap().is_empty());
    let answer = answer.into_inner();
    let info = graph.info().await.unwrap();
    assert_eq!((answer.vertices, answer.edges, answer.total_bytes), (info.vertices, info.edges, info.total_bytes));
    assert!(!answer.compaction_due);
    let person = answer.labels.iter().find(|label| label.name == "Person").unwrap();
    assert_eq!((person.vertices, person.key_type.as_str()), (PEOPLE, "int64"));
    let types: Vec<_> = person.properties.iter().map(|property| (&*property.name, &*property.r#type)).collect();
    assert!(types.contains(&("tags", "list<string>")) && types.contains(&("age", "int64")), "{types:?}");
    let knows = answer.edge_types.iter().find(|edge| edge.label == "knows").unwrap();
    assert_eq!((knows.source.as_str(), knows.properties[0].name.as_str()), ("Person", "since"));
}

#[tokio::test]
async fn keys_and_neighbours() {
    let (server, graph) = both().await;
    let mut client = server.graphs().await;
    let key = |label: &str, key| v1::VertexRef {
        kind: Some(vertex_ref::Kind::Key(vertex_ref::LabelledKey {
            label: label.into(),
            key: Some(v1::Key { kind: Some(key) }),
        })),
    };
    let vertices = vec![
        named("Person:5"),
        key("Person", v1::key::Kind::Int64(99_999)),
        key("Town", v1::key::Kind::String("t3".into())),
    ];
    let found =
        client.look_up(v1::LookUpRequest { graph: self::graph("social"), vertices }).await.unwrap().into_inner();
    let mut query = graph.query();
    let expected =
        query.vertices(&[("Person", 5.into()), ("Person", 99_999.into()), ("Town", "t3".into())]).await.unwrap();
    assert_eq!(
        found.found.iter().map(|found| found.id).collect::<Vec<_>>(),
        expected.iter().map(|v| v.map(raw)).collect::<Vec<_>>()
    );
    assert_eq!(found.cost.unwrap().waves, 1);

    let starts: Vec<_> = (1..=40).map(|person| format!("Person:{person}")).collect();
    for (text, wire) in hops() {
        let request = v1::NeighborsRequest {
            graph: self::graph("social"),
            vertices: starts.iter().map(|start| named(start)).collect(),
            hop: Some(wire),
            keys: true,
            ..Default::default()
        };
        let messages = all(client.neighbors(request).await).await;
        let mut query = graph.query();
        let keys: Vec<_> = (1..=40i64).map(|key| ("Person", Key::from(key))).collect();
        let vertices: Vec<_> = query.vertices(&keys).await.unwrap().into_iter().flatten().collect();
        let edges = query.neighbors(&vertices, &text.parse().unwrap()).await.unwrap();
        let ends: Vec<_> = edges.iter().map(|edge| edge.to).collect();
        let keys = query.keys_of(&ends).await.unwrap();
        let mut seen = Vec::new();
        for run in messages.iter().flat_map(|message| &message.edges) {
            let of = run.keys.clone().unwrap();
            for (position, to) in run.to.iter().enumerate() {
                let key = of.int64s.get(position).map(|key| Key::Int64(*key));
                let key = key.or_else(|| of.strings.get(position).map(|key| Key::String(key.clone())));
                seen.push((run.from, run.edge_type, run.direction() == v1::Direction::Out, *to, key.unwrap()));
            }
        }
        let expected = edges.iter().zip(keys).map(|(edge, key)| {
            (raw(edge.from), u32::from(edge.edge_type.0), edge.direction == Direction::Out, raw(edge.to), key)
        });
        assert!(!seen.is_empty());
        assert_eq!(seen, expected.collect::<Vec<_>>(), "{text}");
        let [.., last] = &messages[..] else { panic!("no message") };
        // Blocks may be in memory from the hop before; hits and requests together are the same.
        let wire = last.cost.unwrap();
        let cost = query.cost();
        assert_eq!(wire.requests == 0, wire.waves == 0);
        assert!(wire.cache_hits + wire.requests > 0 && wire.requests <= cost.requests, "{wire:?} {cost:?}");
    }
}

/// Hops as text, and the same in parts.
fn hops() -> Vec<(&'static str, v1::Hop)> {
    let parts = |direction: v1::Direction, label: &str, condition: &str| v1::Hop {
        text: String::new(),
        direction: direction.into(),
        labels: if label.is_empty() { Vec::new() } else { vec![label.into()] },
        condition: condition.into(),
    };
    vec![
        ("out:knows", hop("out:knows")),
        ("both", parts(v1::Direction::Both, "", "")),
        ("in:knows[since>=2010]", parts(v1::Direction::In, "knows", "since >= 2010")),
    ]
}

#[tokio::test]
async fn properties_as_columns() {
    let (server, graph) = both().await;
    let mut client = server.graphs().await;
    let names: Vec<String> = ["name", "age", "height", "tags", "born"].map(String::from).to_vec();
    let mut starts: Vec<_> = (1..=PEOPLE).map(|person| named(&format!("Person:{person}"))).collect();
    starts.push(named("Town:t1"));
    let request = v1::PropertiesRequest {
        graph: self::graph("social"),
        vertices: starts,
        select: names.clone(),
        ..Default::default()
    };
    let messages = all(client.properties(request).await).await;
    assert_eq!(
        messages.iter().filter_map(|message| message.rows.as_ref()).map(|rows| rows.ids.len()).sum::<usize>(),
        257
    );
    let people = messages[0].rows.as_ref().unwrap();
    let keys = &people.keys.as_ref().unwrap().int64s;
    let row = keys.iter().position(|key| *key == 14).unwrap();
    let column = |name: &str| people.columns.iter().find(|column| column.name == name).unwrap();
    use v1::column::Values;
    let Some(Values::Strings(texts)) = &column("name").values else { panic!() };
    let Some(Values::Int64s(ages)) = &column("age").values else { panic!() };
    let Some(Values::Doubles(heights)) = &column("height").values else { panic!() };
    assert_eq!((texts.values[row].as_str(), ages.values[row], heights.values[row]), ("P, 14", 0, 2.5));
    // 14 is a multiple of 7: no age.
    assert!(column("age").nulls.contains(&(row as u32)) && !column("name").nulls.contains(&(row as u32)));
    assert!(matches!(column("tags").values, Some(Values::Lists(_))));

    // The same as Arrow: equal to the facade's batch, bit by bit.
    let mut query = graph.query();
    let found = query.vertices(&[("Person", 14.into()), ("Person", 20.into())]).await.unwrap();
    let expected = query.properties(&found.into_iter().flatten().collect(), &names).await.unwrap();
    let request = v1::PropertiesRequest {
        graph: self::graph("social"),
        vertices: vec![named("Person:14"), named("Person:20")],
        select: names,
        format: v1::RowFormat::Arrow.into(),
        limits: None,
    };
    let messages = all(client.properties(request).await).await;
    let bytes = &messages[0].rows.as_ref().unwrap().arrow[..];
    let batch = arrow_ipc::reader::StreamReader::try_new(bytes, None).unwrap().next().unwrap().unwrap();
    assert_eq!(batch, expected[0].batch);
}

fn request(starts: &[&str], hops: &[&str]) -> v1::TraverseRequest {
    v1::TraverseRequest { graph: graph("social"), traversal: Some(traversal(starts, hops)), ..Default::default() }
}

async fn facade(
    graph: &Graph,
    starts: &[&str],
    hops: &[&str],
    strategy: Strategy,
    visit: VisitPolicy,
) -> (hoplake::TraversalAnswer, hoplake::Cost) {
    let starts = starts.iter().map(|start| start.parse::<StartKey>().unwrap()).collect();
    let hops = hops.iter().map(|hop| hop.parse::<Hop>().unwrap()).collect();
    let traversal = Traversal { hops, strategy, visit, parallelism: 2, ..Traversal::default() };
    let mut query = graph.query();
    let answer = query.run(&TraversalRequest { starts, traversal, select: None, limit: None }).await.unwrap();
    (answer, query.cost())
}

#[tokio::test(flavor = "multi_thread")]
async fn traversals_in_every_way() {
    let (server, graph) = both().await;
    let mut client = server.graphs().await;
    let starts = ["Person:1", "Person:17"];
    let hops = ["out:knows", "both:knows[since>=2005]", "out:livesIn"];
    let ways = [
        (v1::Strategy::Bfs, Strategy::Bfs, v1::VisitPolicy::PerDepth, VisitPolicy::PerDepth),
        (v1::Strategy::Bfs, Strategy::Bfs, v1::VisitPolicy::Global, VisitPolicy::Global),
        (v1::Strategy::BfsPipelined, Strategy::BfsPipelined, v1::VisitPolicy::Global, VisitPolicy::Global),
        (v1::Strategy::Dfs, Strategy::Dfs, v1::VisitPolicy::PerDepth, VisitPolicy::PerDepth),
    ];
    for (wire, strategy, wire_visit, visit) in ways {
        let mut request = request(&starts, &hops);
        request.all_depths = true;
        let spec = request.traversal.as_mut().unwrap();
        spec.strategy = wire.into();
        spec.visit = wire_visit.into();
        let messages = all(client.traverse(request).await).await;
        let (expected, _) = facade(&graph, &starts, &hops, strategy, visit).await;
        let (statistics, vertices) = take_apart(&messages);
        for (depth, set) in expected.reached.depths.iter().enumerate() {
            assert_eq!(vertices[depth], raws(set), "{strategy:?} {visit:?} depth {depth}");
        }
        assert_eq!(statistics.results as usize, expected.reached.last().len());
        let edges: Vec<_> = statistics.depths.iter().map(|depth| depth.edges).collect();
        assert_eq!(edges, expected.reached.profile.iter().map(|depth| depth.edges).collect::<Vec<_>>());
    }
}

/// Statistics, which come last and once, and the ids by depth.
fn take_apart(messages: &[v1::TraverseResponse]) -> (v1::Statistics, Vec<Vec<u64>>) {
    let mut depths: Vec<Vec<u64>> = Vec::new();
    let Some((Some(Kind::Statistics(statistics)), rest)) =
        messages.split_last().map(|(last, rest)| (last.kind.clone(), rest))
    else {
        panic!("the last message has no statistics");
    };
    for message in rest {
        match &message.kind {
            Some(Kind::Vertices(part)) => {
                depths.resize(depths.len().max(part.depth as usize + 1), Vec::new());
                depths[part.depth as usize].extend(&part.ids);
            }
            Some(Kind::Rows(part)) => {
                depths.resize(depths.len().max(part.depth as usize + 1), Vec::new());
                depths[part.depth as usize].extend(&part.ids);
            }
            other => panic!("{other:?} before the end"),
        }
    }
    (statistics, depths)
}

#[tokio::test]
async fn a_cold_traversal_costs_what_it_costs_embedded() {
    let (server, graph) = both().await;
    let starts = ["Person:1"];
    let hops = ["out:knows", "out:knows"];
    let (_, cost) = facade(&graph, &starts, &hops, Strategy::Bfs, VisitPolicy::PerDepth).await;
    let messages = all(server.graphs().await.traverse(request(&starts, &hops)).await).await;
    let (statistics, _) = take_apart(&messages);
    let wire = statistics.cost.unwrap();
    assert_eq!((wire.waves, wire.requests, wire.bytes), (cost.waves, cost.requests, cost.store_bytes));
    assert_eq!(wire.waves, 3);
    let sum: u64 = statistics.depths.iter().map(|depth| depth.step.unwrap().cost.unwrap().requests).sum();
    assert_eq!(sum + statistics.look_up.unwrap().cost.unwrap().requests, wire.requests);
}

#[tokio::test]
async fn rows_limits_and_nothing() {
    let (server, graph) = both().await;
    let mut client = server.graphs().await;
    let starts = ["Person:1"];
    let hops = ["both:knows", "both:knows"];
    let (expected, _) = facade(&graph, &starts, &hops, Strategy::Bfs, VisitPolicy::PerDepth).await;
    let last = raws(expected.reached.last());
    assert!(last.len() > 20);
    let rows = |all_depths| v1::TraverseRequest {
        output: Output::Rows.into(),
        select: vec!["name".into()],
        limit: 20,
        all_depths,
        ..request(&starts, &hops)
    };
    let messages = all(client.traverse(rows(false)).await).await;
    let (statistics, depths) = take_apart(&messages);
    assert_eq!(depths[2], last[..20]);
    assert!(statistics.truncated && statistics.results as usize == last.len());
    let (_, depths) = take_apart(&all(client.traverse(rows(true)).await).await);
    assert_eq!(depths[0], raws(&expected.reached.depths[0]));
    assert_eq!(depths.iter().map(Vec::len).sum::<usize>(), 20);
    let nothing = v1::TraverseRequest { output: Output::Nothing.into(), ..request(&starts, &hops) };
    let messages = all(client.traverse(nothing).await).await;
    assert_eq!(messages.len(), 1);
    assert!(!take_apart(&messages).0.truncated);
}

#[tokio::test]
async fn walks_and_shortest_paths() {
    let (server, graph) = both().await;
    let mut client = server.graphs().await;
    let spec = || Some(traversal(&["Person:1"], &["both:knows", "both:knows"]));
    let mut query = graph.query();
    let starts = query.named(&["Person:1".parse().unwrap()]).await.unwrap();
    let hops: Vec<Hop> = vec!["both:knows".parse().unwrap(); 2];
    let mut paths = query.paths(Traversal { starts, hops, ..Traversal::default() }, None).await.unwrap();
    let paths = query.next_walks(&mut paths, usize::MAX).await.unwrap();
    let expected: Vec<Vec<u64>> = paths.into_iter().map(|path| path.vertices.into_iter().map(raw).collect()).collect();
    // Several messages.
    assert!(expected.len() > 1024, "{}", expected.len());
    let request = |limit| v1::PathsRequest {
        graph: self::graph("social"),
        traversal: spec(),
        limit,
        keys: true,
        ..Default::default()
    };
    let messages = all(client.paths(request(0)).await).await;
    let walks: Vec<_> = messages.iter().flat_map(|message| &message.paths).collect();
    assert_eq!(walks.iter().map(|path| path.ids.clone()).collect::<Vec<_>>(), expected);
    assert!(walks.iter().all(|path| path.keys.len() == 3 && path.keys[0].label == "Person"));
    let statistics = messages.last().unwrap().statistics.as_ref().unwrap();
    assert_eq!((statistics.results as usize, statistics.truncated), (expected.len(), false));
    let messages = all(client.paths(request(1024)).await).await;
    let statistics = messages.last().unwrap().statistics.as_ref().unwrap();
    assert_eq!((statistics.results, statistics.truncated), (1024, true));

    // Edges, as the facade has them, and properties as columns of one row.
    let select = vec!["name".to_owned(), "since".to_owned()];
    let request =
        v1::PathsRequest { graph: self::graph("social"), traversal: spec(), limit: 40, select, ..Default::default() };
    let messages = all(client.paths(request).await).await;
    let walks: Vec<_> = messages.iter().flat_map(|message| &message.paths).collect();
    assert_eq!(walks.iter().map(|path| path.ids.clone()).collect::<Vec<_>>(), expected[..40]);
    assert!(messages.len() > 2, "some walks at a time");
    for path in walks {
        assert_eq!((path.keys.len(), path.properties.len(), path.edges.len()), (3, 3, 2));
        let names = |columns: &[v1::Column]| columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&path.properties[0].columns), ["name"]);
        assert!(path.edges.iter().all(|edge| edge.direction != 0 && edge.properties.is_some()), "{path:?}");
    }

    for to in [1, 2, 60, 200] {
        let to = format!("Person:{to}");
        let request = v1::ShortestPathRequest {
            graph: self::graph("social"),
            from: Some(named("Person:1")),
            to: Some(named(&to)),
            hop: Some(hop("out:knows")),
            ..Default::default()
        };
        let answer = client.shortest_path(request.clone()).await.unwrap().into_inner();
        let mut query = graph.query();
        let ends = query.named(&["Person:1".parse().unwrap(), to.parse().unwrap()]).await.unwrap();
        let path = PathQuery {
            from: ends[0],
            to: ends[1],
            hop: "out:knows".parse().unwrap(),
            depth_max: 16,
            edges: false,
            limits: Default::default(),
        };
        let PathQuery { from, to, hop, limits, .. } = path.clone();
        let expected = query.shortest_path(path).await.unwrap().into_path();
        assert_eq!(answer.path.map(|path| path.ids), expected.map(|path| path.vertices.into_iter().map(raw).collect()));
        assert_eq!(answer.length, None);

        let request = v1::ShortestPathRequest { weight: Some("since".into()), ..request };
        let answer = client.shortest_path(request.clone()).await.unwrap().into_inner();
        let weighted =
            WeightedPathQuery { from, to, hop, weight: "since".into(), edges: true, length_max: None, limits };
        let expected = query.weighted_path(weighted).await.unwrap();
        assert_eq!(answer.length, expected.as_ref().map(|path| path.length));
        let expected = expected.map(|path| path.walk.vertices.into_iter().map(raw).collect());
        assert_eq!(answer.path.map(|path| path.ids), expected);
        let bounded = v1::ShortestPathRequest { depth_max: 3, ..request };
        let rejected = client.shortest_path(bounded).await.unwrap_err();
        assert!(rejected.message().contains("depth_max has no effect with weight"), "{rejected:?}");
    }
}

/// The queries of the social network have the answers that another system computed.
#[tokio::test(flavor = "multi_thread")]
async fn the_social_network() {
    let data = "snb-sample-903p-genuine";
    if !snb::available(data) {
        return;
    }
    hoplake::load("memory://server-snb/social", hoplake::LoadOptions::from_paths([snb::extract(data)])).await.unwrap();
    let server = Running::start(settings("memory://server-snb")).await;
    let mut client = server.graphs().await;
    let mut checked = 0;
    for (name, query) in &snb::truth(data).queries {
        let direction = |direction: &oracle::Direction| match direction {
            oracle::Direction::Out => "out",
            oracle::Direction::In => "in",
            oracle::Direction::Both => "both",
        };
        let hops: Vec<_> =
            query.hops.iter().map(|hop| format!("{}:{}", direction(&hop.direction), hop.edge_label)).collect();
        let hops: Vec<_> = hops.iter().map(String::as_str).collect();
        for case in query.cases.iter().take(10) {
            let start = format!("{}:{}", query.source_label, case.source);
            let request = v1::TraverseRequest { output: Output::Rows.into(), ..request(&[&start], &hops) };
            let messages = all(client.traverse(request).await).await;
            let keys = messages.iter().filter_map(|message| match &message.kind {
                Some(Kind::Rows(rows)) => Some(rows.keys.as_ref().unwrap().int64s.clone()),
                _ => None,
            });
            let mut keys: Vec<_> = keys.flatten().collect();
            keys.sort_unstable();
            assert_eq!(snb::sha256_of_ids(keys), case.set_sha256, "{name} from {start}");
            checked += 1;
        }
    }
    assert!(checked >= 50, "{checked}");
}
