//! Many small queries on one stream.

use std::{collections::BTreeMap, sync::Arc};

use futures::stream;
use hoplake::{LoadOptions, Store, load_with};
use hoplake_server::{LimitSettings, Settings, v1};
use tonic::Code;
use tonic_types::StatusExt;

use crate::{
    answers::raw,
    running::{Running, graph, hop, named, settings},
    sample,
};

fn query(number: u64, start: &str) -> v1::QueryNeighborsRequest {
    v1::QueryNeighborsRequest { query: number, vertices: vec![named(start)], ..Default::default() }
}

#[tokio::test]
async fn each_query_has_its_answer_or_its_failure() {
    let folder = sample::in_memory("social").await;
    let embedded = sample::embedded(&folder, "social").await;
    let server = Running::start(settings(&folder)).await;
    let mut queries: Vec<_> = (1..=256).map(|person| query(person, &format!("Person:{person}"))).collect();
    // Those after it are about the same graph and hop.
    (queries[0].graph, queries[0].hop) = (graph("social"), Some(hop("out:knows")));
    queries.push(query(1000, "Person:0"));
    queries.push(v1::QueryNeighborsRequest { hop: Some(hop("out:livesIn")), ..query(1001, "Person:1") });
    queries.push(v1::QueryNeighborsRequest { hop: Some(hop("nowhere")), ..query(1002, "Person:1") });
    queries.push(query(1003, "Person:2"));
    let mut answers = server.query().await.neighbors(stream::iter(queries)).await.unwrap().into_inner();
    let mut by_number = BTreeMap::new();
    while let Some(answer) = answers.message().await.unwrap() {
        by_number.insert(answer.query, answer);
    }
    assert_eq!(by_number.len(), 260);
    for person in 1..=256 {
        let mut run = embedded.query();
        let start = run.vertex("Person", person as i64).await.unwrap().unwrap();
        let edges = run.neighbors(&[start], &"out:knows".parse().unwrap()).await.unwrap();
        let answer = &by_number[&person];
        let ends: Vec<_> = answer.edges.iter().flat_map(|run| run.to.clone()).collect();
        assert_eq!(ends, edges.iter().map(|edge| raw(edge.to)).collect::<Vec<_>>(), "{person}");
        assert!(answer.failure.is_none() && answer.cost.is_some());
    }
    let failure = |number: u64| by_number[&number].failure.clone().unwrap();
    assert_eq!((failure(1000).code, failure(1000).reason.as_str()), (Code::NotFound as i32, "NOT_FOUND"));
    assert_eq!(failure(1002).reason, "INVALID");
    // The hop that could not be read is not remembered: 1003 goes along the one before it.
    for number in [1001, 1003] {
        assert_eq!(by_number[&number].edges.iter().map(|run| run.to.len()).sum::<usize>(), 1, "{number}");
    }
    assert_eq!(server.metric("hoplake_stream_queries_total").await, 259.0);
    let name = "hoplake_requests_total{protocol=\"grpc\",call=\"Query.Neighbors\",status=\"OK\"}";
    server.until_metric(name, 1.0).await;
}

/// After a message that cannot be read it is not known where the next begins: the stream ends, and its status says why.
#[tokio::test]
async fn a_stream_ends_with_the_status_of_a_query_that_cannot_be_read() {
    let folder = sample::in_memory("social").await;
    let server = Running::start(Settings { message_bytes_max: 4 << 10, ..settings(&folder) }).await;
    let first =
        v1::QueryNeighborsRequest { graph: graph("social"), hop: Some(hop("out:knows")), ..query(1, "Person:1") };
    let large = query(2, &format!("Person:{}", "9".repeat(8 << 10)));
    let requests = stream::iter([first, large, query(3, "Person:3")]);
    let mut answers = server.query().await.neighbors(requests).await.unwrap().into_inner();
    let answer = answers.message().await.unwrap().unwrap();
    assert!(answer.query == 1 && answer.failure.is_none(), "what was read before it is answered");
    let status = answers.message().await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange, "{status:?}");
    assert_eq!(status.get_details_error_info().unwrap().reason, "TOO_LARGE");
    let name = "hoplake_requests_total{protocol=\"grpc\",call=\"Query.Neighbors\",status=\"TOO_LARGE\"}";
    server.until_metric(name, 1.0).await;
}

#[tokio::test]
async fn a_stream_has_a_deadline_and_begins_with_a_graph() {
    let folder = sample::in_memory("social").await;
    let server = Running::start(settings(&folder)).await;
    let mut client = server.query().await;
    let forever = futures::StreamExt::chain(stream::iter([query(1, "Person:1")]), stream::pending());
    let mut request = tonic::Request::new(forever);
    request.metadata_mut().insert("grpc-timeout", "200m".parse().unwrap());
    let mut answers = client.neighbors(request).await.unwrap().into_inner();
    let first = answers.message().await.unwrap().unwrap();
    assert_eq!(first.failure.unwrap().message, "field graph is missing");
    assert_eq!(answers.message().await.unwrap_err().code(), Code::DeadlineExceeded);
}

/// A stream without memory for an answer reports that: it never ends with OK if answers are missing.
#[tokio::test]
async fn no_answer_is_left_out_for_want_of_memory() {
    const QUERIES: u64 = 4;
    const SIDE: u64 = 150;
    let folder = tempfile::tempdir().unwrap();
    let store = "memory://server-test-wide";
    let file = folder.path().join("edges.csv");
    let edges = (0..SIDE * SIDE).map(|edge| format!("{},{}\n", edge / SIDE, SIDE + edge % SIDE));
    std::fs::write(&file, edges.collect::<String>()).unwrap();
    let opened = Store::open(&format!("{store}/wide")).unwrap();
    load_with(opened, LoadOptions::from_paths([file]), Arc::new(())).await.unwrap();
    let mut whole = 0;
    let mut ended = 0;
    for step in 0..24 {
        let memory_bytes_max = (1 << 20) + step * (256 << 10);
        let limits = LimitSettings { memory_bytes_max, ..LimitSettings::default() };
        let server = Running::start(Settings { memory_bytes_max, limits, ..settings(store) }).await;
        let vertices: Vec<_> = (0..SIDE).map(|vertex| named(&format!("vertex:{vertex}"))).collect();
        let query = |query| v1::QueryNeighborsRequest { query, vertices: vertices.clone(), ..Default::default() };
        let mut queries: Vec<_> = (0..QUERIES).map(query).collect();
        (queries[0].graph, queries[0].hop) = (graph("wide"), Some(hop("out:edge")));
        let mut answers = server.query().await.neighbors(stream::iter(queries)).await.unwrap().into_inner();
        let mut answered = 0;
        let end = loop {
            match answers.message().await {
                Ok(Some(_)) => answered += 1,
                Ok(None) => break None,
                Err(status) => break Some(status),
            }
        };
        match end {
            None => {
                assert_eq!(answered, QUERIES, "with {memory_bytes_max} bytes");
                whole += 1;
            }
            Some(status) => {
                assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
                ended += 1;
            }
        }
    }
    assert!(whole > 0 && ended > 0, "{whole} were whole, and {ended} ended");
}
