//! Access nodes and algorithm nodes: the same answers whatever stands between a query and its store, and whatever
//! becomes of it.

use std::{
    collections::HashSet,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::{FutureExt, StreamExt, stream::BoxStream};
use hoplake::ReadSettings;
use hoplake_server::{
    Role, ServerBuilder, Settings,
    v1::{
        self,
        blocks_client::BlocksClient,
        blocks_server::{Blocks, BlocksServer},
        traverse_request::Output,
        traverse_response::Kind,
    },
};
use hoplake_testkit::{oracle::Direction, snb};
use prost::Message;
use serde_json::Value;
use tonic::{
    Code, Request, Response, Status,
    transport::{Channel, Endpoint},
};

use crate::{
    held_store::{HeldStore, until},
    nodes::{AccessNode, addresses, algorithm, before, forgetful},
    running::{Running, all, graph, settings, traversal},
    sample,
};

type Answer = Result<(Vec<u8>, v1::Cost), Status>;

/// Asks for a traversal; returns the answer as received, and its cost.
async fn ask(server: &Running, name: &str, start: &str, hops: &[&str]) -> Answer {
    let traversal = Some(traversal(&[start], hops));
    let output = Output::Rows.into();
    let request = v1::TraverseRequest { graph: graph(name), traversal, output, ..Default::default() };
    let messages = server.graphs().await.traverse(request).await?;
    let mut found = Vec::new();
    let mut cost = None;
    for mut message in all(Ok(messages)).await {
        if let Some(Kind::Statistics(statistics)) = &mut message.kind {
            // Durations differ from run to run, and the tests vary the source.
            cost = statistics.cost.take();
            statistics.depths.clear();
            *statistics =
                v1::Statistics { results: statistics.results, version: statistics.version, ..Default::default() };
        }
        message.encode_length_delimited(&mut found).unwrap();
    }
    Ok((found, cost.unwrap()))
}

const QUERIES: [&[&str]; 3] =
    [&["out:knows", "out:knows"], &["both:knows", "out:livesIn"], &["out:livesIn", "in:livesIn"]];

/// Asks for some traversals of people, one after the other.
async fn ask_many(server: &Running, people: std::ops::Range<u64>) -> Vec<(Vec<u8>, v1::Cost)> {
    let mut answers = Vec::new();
    for person in people {
        answers.push(ask(server, "g", &format!("Person:{person}"), QUERIES[person as usize % 3]).await.unwrap());
    }
    answers
}

async fn found(server: &Running, people: std::ops::Range<u64>) -> Vec<Vec<u8>> {
    ask_many(server, people).await.into_iter().map(|(found, _)| found).collect()
}

/// The answer of a server that reads the store itself.
async fn expected(store: &HeldStore, people: std::ops::Range<u64>) -> Vec<Vec<u8>> {
    let embedded = Running::start_with(settings("memory://held"), sample::leading_to(&store.beside())).await;
    found(&embedded, people).await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_node_and_three_answer_as_none() {
    let (store, _) = sample::held().await;
    let expected = expected(&store, 1..60).await;
    assert!(expected.iter().collect::<HashSet<_>>().len() > 30);
    let one = [AccessNode::start(&store).await];
    assert_eq!(found(&before(&one).await, 1..60).await, expected);
    let three = AccessNode::several::<3>(&store).await;
    assert_eq!(found(&before(&three).await, 1..60).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_social_network_through_nodes() {
    let data = "snb-sample-903p-genuine";
    if !snb::available(data) {
        return;
    }
    hoplake::load("memory://roles-snb/social", hoplake::LoadOptions::from_paths([snb::extract(data)])).await.unwrap();
    let access = async || Running::start(Settings { role: Role::Access, ..settings("memory://roles-snb") }).await;
    let embedded = Running::start(settings("memory://roles-snb")).await;
    let nodes = [access().await, access().await, access().await];
    let one = Running::start(algorithm(&[nodes[0].grpc])).await;
    let three = Running::start(algorithm(&nodes.each_ref().map(|node| node.grpc))).await;
    let mut asked = HashSet::new();
    for (name, query) in &snb::truth(data).queries {
        let direction = |direction: &Direction| match direction {
            Direction::Out => "out",
            Direction::In => "in",
            Direction::Both => "both",
        };
        let hops = query.hops.iter().map(|hop| format!("{}:{}", direction(&hop.direction), hop.edge_label));
        let hops: Vec<_> = hops.collect();
        let hops: Vec<_> = hops.iter().map(String::as_str).collect();
        for case in query.cases.iter().take(5) {
            let start = format!("{}:{}", query.source_label, case.source);
            let (expected, _) = ask(&embedded, "social", &start, &hops).await.unwrap();
            for server in [&one, &three] {
                assert_eq!(ask(server, "social", &start, &hops).await.unwrap().0, expected, "{name} from {start}");
            }
            asked.insert(name.clone());
        }
    }
    assert_eq!(asked.len(), 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_block_is_with_one_node_and_costs_its_store_one_request() {
    let (store, _) = sample::held().await;
    let nodes = AccessNode::several::<3>(&store).await;
    let reads = || nodes.iter().map(|node| node.store.count()).sum::<usize>();
    // Reads next to a query are not on its meter.
    let read = ReadSettings { full_read_bytes_max: 0, ..ReadSettings::default() };
    let settings = Settings { read, ..algorithm(&addresses(&nodes)) };
    let first = Running::start(settings.clone()).await;
    let open = async |server: &Running| server.ask("GET", "/v1/graphs/g", &Value::Null).await;
    open(&first).await;
    let opened = reads();
    let answers = ask_many(&first, 1..200).await;
    // The requests that queries report are those that the store got.
    let told: u64 = answers.iter().map(|(_, cost)| cost.requests).sum();
    assert_eq!(told as usize, reads() - opened);
    assert!(told > 10, "{told}");

    let objects = |node: &AccessNode| -> HashSet<String> {
        let log = node.store.log.lock().unwrap();
        log.iter().filter(|name| name.starts_with("g/data/")).cloned().collect()
    };
    let of_each = nodes.each_ref().map(objects);
    assert!(of_each.iter().filter(|objects| !objects.is_empty()).count() > 1, "{of_each:?}");
    // No object is as long as a stretch, so each is with one node.
    assert_eq!(of_each.iter().map(HashSet::len).sum::<usize>(), of_each.iter().flatten().collect::<HashSet<_>>().len());

    // Another algorithm node has nothing in memory, and the access nodes have all of it.
    let second = Running::start(settings).await;
    open(&second).await;
    let opened = reads();
    let again = ask_many(&second, 1..200).await;
    assert_eq!((reads() - opened, again.iter().map(|(_, cost)| cost.requests).sum::<u64>()), (0, 0));
    assert!(again.iter().zip(&answers).all(|(again, first)| again.0 == first.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_dies_costs_no_answer_and_has_its_share_when_it_is_back() {
    let (store, _) = sample::held().await;
    let expected = expected(&store, 1..120).await;
    let mut nodes = AccessNode::several::<3>(&store).await;
    let server = Running::start(forgetful(&addresses(&nodes))).await;
    assert_eq!(found(&server, 1..30).await, expected[..29]);
    // One with a share; which objects it has is chance, since its port is.
    let busiest = (0..3).max_by_key(|node| nodes[*node].store.count()).unwrap();
    let others = |nodes: &[AccessNode; 3]| {
        nodes.iter().map(|node| node.store.count()).sum::<usize>() - nodes[busiest].store.count()
    };
    let before = others(&nodes);
    // In the middle of a query, as likely as not.
    let (sequence, ()) = tokio::join!(found(&server, 1..120), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        nodes[busiest].kill();
    });
    assert_eq!(sequence, expected);
    assert_eq!(found(&server, 1..120).await, expected);
    assert!(others(&nodes) > before, "its share has moved");

    nodes[busiest].start_again().await;
    assert_eq!(nodes[busiest].store.count(), 0);
    while nodes[busiest].store.count() == 0 {
        assert_eq!(found(&server, 1..30).await, expected[..29]);
    }
    assert_eq!(found(&server, 1..120).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_arrives_has_its_share() {
    let (store, _) = sample::held().await;
    let expected = expected(&store, 1..120).await;
    let nodes = AccessNode::several::<3>(&store).await;
    let known = Arc::new(Mutex::new(addresses(&nodes)));
    let settings = Settings { access_nodes: vec!["http://access.test:1".into()], ..forgetful(&[]) };
    let resolve = {
        let known = known.clone();
        move |host: &str, port| {
            assert_eq!((host, port), ("access.test", 1));
            std::future::ready(Ok(known.lock().unwrap().clone())).boxed()
        }
    };
    let server = ServerBuilder::new(settings).resolve_with(Arc::new(resolve)).bind().await.unwrap();
    let server = Running::run(server);
    assert_eq!(found(&server, 1..120).await, expected);
    // Eight, since a graph of few objects leaves some nodes without any.
    let more = AccessNode::several::<8>(&store).await;
    known.lock().unwrap().extend(addresses(&more));
    while more.iter().all(|node| node.store.count() == 0) {
        assert_eq!(found(&server, 1..30).await, expected[..29]);
    }
    assert_eq!(found(&server, 1..120).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_nodes_the_failure_names_them_and_one_is_enough_to_recover() {
    let (store, _) = sample::held().await;
    let mut nodes = AccessNode::several::<2>(&store).await;
    let server = Running::start(forgetful(&addresses(&nodes))).await;
    let (expected, _) = ask(&server, "g", "Person:1", QUERIES[0]).await.unwrap();
    nodes.iter_mut().for_each(AccessNode::kill);
    let failure = ask(&server, "g", "Person:1", QUERIES[0]).await.unwrap_err();
    assert_eq!(failure.code(), Code::Unavailable, "{failure}");
    for node in &nodes {
        assert!(failure.message().contains(&node.address.to_string()), "{failure}");
    }
    assert!(failure.message().contains("no access node answers"), "{failure}");
    // A graph that is not open cannot be opened either, which does not mean that it is absent.
    let failure = ask(&server, "other", "Person:1", QUERIES[0]).await.unwrap_err();
    assert_eq!(failure.code(), Code::Unavailable, "{failure}");
    nodes[1].start_again().await;
    loop {
        match ask(&server, "g", "Person:1", QUERIES[0]).await {
            Ok((found, _)) => break assert_eq!(found, expected),
            Err(failure) => assert_eq!(failure.code(), Code::Unavailable, "{failure}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_of_a_client_ends_the_read_at_the_access_node() {
    let (store, _) = sample::held().await;
    let nodes = AccessNode::several::<1>(&store).await;
    let server = before(&nodes).await;
    server.ask("GET", "/v1/graphs/g", &Value::Null).await;
    nodes[0].store.hold();
    let traversal = Some(traversal(&["Person:1"], QUERIES[0]));
    let mut request = Request::new(v1::TraverseRequest { graph: graph("g"), traversal, ..Default::default() });
    request.set_timeout(Duration::from_millis(300));
    let failure = server.graphs().await.traverse(request).await.unwrap_err();
    assert_eq!(failure.code(), Code::DeadlineExceeded, "{failure}");
    let held = nodes[0].store.clone();
    until(|| held.given_up.load(Ordering::SeqCst) > 0 && held.waiting.load(Ordering::SeqCst) == 0).await;
}

/// Forwards a node's answers, with a bit of each block flipped.
struct Liar {
    node: BlocksClient<Channel>,
    lies: Arc<AtomicUsize>,
}

#[tonic::async_trait]
impl Blocks for Liar {
    async fn describe(&self, request: Request<v1::DescribeRequest>) -> Result<Response<v1::DescribeResponse>, Status> {
        self.node.clone().describe(request.into_inner()).await
    }

    async fn get(&self, request: Request<v1::GetRequest>) -> Result<Response<v1::GetResponse>, Status> {
        self.node.clone().get(request.into_inner()).await
    }

    type FetchStream = BoxStream<'static, Result<v1::FetchResponse, Status>>;

    async fn fetch(&self, request: Request<v1::FetchRequest>) -> Result<Response<Self::FetchStream>, Status> {
        let lies = self.lies.clone();
        let request = request.into_inner();
        let checked = request.blocks.iter().all(|block| !matches!(block.check, Some(v1::block_range::Check::Later(_))));
        let messages = self.node.clone().fetch(request).await?.into_inner();
        let lie = move |message: Result<v1::FetchResponse, Status>| {
            let mut message = message?;
            for part in message.parts.iter_mut().filter(|_| checked) {
                let mut bytes = part.to_vec();
                bytes[0] ^= 1;
                *part = Bytes::from(bytes);
                lies.fetch_add(1, Ordering::SeqCst);
            }
            Ok(message)
        };
        Ok(Response::new(messages.map(lie).boxed()))
    }

    async fn list(&self, request: Request<v1::ListRequest>) -> Result<Response<v1::ListResponse>, Status> {
        self.node.clone().list(request.into_inner()).await
    }
}

async fn client(address: SocketAddr) -> BlocksClient<Channel> {
    BlocksClient::new(Endpoint::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_that_arrive_damaged_are_had_elsewhere() {
    let (store, _) = sample::held().await;
    let expected = expected(&store, 1..60).await;
    let nodes = AccessNode::several::<1>(&store).await;
    let lies = Arc::new(AtomicUsize::new(0));
    let mut all = addresses(&nodes);
    // Several, so that some object is with one of them, whatever the ports are.
    for _ in 0..4 {
        let liar = Liar { node: client(nodes[0].address).await, lies: lies.clone() };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        all.push(listener.local_addr().unwrap());
        let routes = tonic::service::Routes::new(BlocksServer::new(liar)).prepare().into_axum_router();
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    }
    let mut settings = forgetful(&all);
    // As often as it takes to reach the honest one.
    settings.read.retry.query_retries_max = 100_000;
    let server = Running::start(settings).await;
    assert_eq!(found(&server, 1..60).await, expected);
    assert!(lies.load(Ordering::SeqCst) > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_access_node_gives_objects_of_graphs_and_nothing_else() {
    let folder = sample::in_memory("social").await;
    let token = Some("secret".to_owned());
    let access = Settings { role: Role::Access, token: token.clone(), ..settings(&folder) };
    let access = Running::start(access).await;
    let mut blocks = client(access.grpc).await;
    let get = |graph: &str, name: &str, token: &str| {
        let mut request = Request::new(v1::GetRequest { graph: graph.into(), name: name.into() });
        request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        request
    };
    assert_eq!(blocks.get(get("social", "hint", "wrong")).await.unwrap_err().code(), Code::Unauthenticated);
    let hint = blocks.get(get("social", "hint", "secret")).await.unwrap().into_inner();
    assert!(hint.object.is_some_and(|hint| hint.len() > 100) && hint.cost.unwrap().requests == 1);
    assert_eq!(blocks.get(get("social", "data/none", "secret")).await.unwrap().into_inner().object, None);
    for (graph, name) in [("social", "../social/hint"), ("social", "data/../hint"), ("..", "hint"), ("a/b", "hint")] {
        let rejected = blocks.get(get(graph, name, "secret")).await.unwrap_err();
        assert_eq!(rejected.code(), Code::InvalidArgument, "{graph} {name}");
    }
    // It answers no queries, and an algorithm node has no blocks.
    assert_eq!(ask(&access, "social", "Person:1", QUERIES[0]).await.unwrap_err().code(), Code::Unimplemented);
    assert_eq!(access.text("/v1/graphs/social").await.0, 404);
    assert_eq!(access.text("/readyz").await.0, 200);
    let server = Running::start(Settings { token, ..algorithm(&[access.grpc]) }).await;
    let request = |name: &str| server.request("GET", &format!("/v1/graphs/{name}")).bearer_auth("secret").send();
    assert_eq!(request("social").await.unwrap().status(), 200);
    // What access nodes do not know is not there.
    assert_eq!(request("none").await.unwrap().status(), 404);
    let rejected = client(server.grpc).await.get(get("social", "hint", "secret")).await.unwrap_err();
    assert_eq!(rejected.code(), Code::Unimplemented);
    // Without its token the algorithm node is rejected, and reports the cause.
    let stranger = Running::start(algorithm(&[access.grpc])).await;
    let (status, answer) = stranger.text("/v1/graphs/social").await;
    assert!(status == 503 && answer.contains("token"), "{status} {answer}");
}
