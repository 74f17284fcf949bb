//! Traversals that the client steers.

use hoplake_server::{Settings, v1};
use tonic::Code;
use tonic_types::StatusExt;

use crate::{
    answers::raw,
    running::{Running, all, graph, hop, settings},
    sample,
};

fn by_id(id: u64) -> v1::VertexRef {
    v1::VertexRef { kind: Some(v1::vertex_ref::Kind::Id(id)) }
}

fn next(traversal: &str, vertices: &[u64]) -> v1::NextNeighborsRequest {
    let vertices = vertices.iter().map(|id| by_id(*id)).collect();
    v1::NextNeighborsRequest { traversal: traversal.into(), vertices, hop: Some(hop("out:knows")), keys: false }
}

#[tokio::test]
async fn steps_reach_what_a_traversal_reaches_on_one_meter() {
    let folder = sample::in_memory("social").await;
    let embedded = sample::embedded(&folder, "social").await;
    let server = Running::start(settings(&folder)).await;
    let mut client = server.graphs().await;
    let open = v1::OpenTraversalRequest { graph: graph("social"), limits: None };
    let opened = client.open_traversal(open).await.unwrap().into_inner();
    assert_eq!((opened.version, opened.idle_ms), (1, 60_000));
    let mut query = embedded.query();
    let start = query.vertex("Person", 1).await.unwrap().unwrap();
    let hops = vec!["out:knows".parse().unwrap(); 3];
    let traversal = hoplake::Traversal { starts: vec![start], hops, ..Default::default() };
    let reached = query.traverse(traversal).await.unwrap();
    let mut frontier = vec![raw(start)];
    let mut requests = 0;
    for depth in &reached.depths[1..] {
        let messages = all(client.next_neighbors(next(&opened.traversal, &frontier)).await).await;
        frontier = messages.iter().flat_map(|message| &message.edges).flat_map(|run| run.to.clone()).collect();
        frontier.sort_unstable();
        frontier.dedup();
        assert_eq!(frontier, depth.vertices().map(raw).collect::<Vec<_>>());
        requests += messages.last().unwrap().cost.unwrap().requests;
    }
    let close = v1::CloseTraversalRequest { traversal: opened.traversal.clone() };
    let closed = client.close_traversal(close.clone()).await.unwrap().into_inner();
    // One meter: its requests are those of the steps. The first step that needs a small segment reads it in full.
    let cost = closed.cost.unwrap();
    assert!(requests > 0 && (1..=3).contains(&cost.waves), "{cost:?}");
    assert_eq!(cost.requests, requests);
    let expected: usize = reached.depths[..3].iter().map(hoplake::Frontier::len).sum();
    assert_eq!(closed.vertices as usize, expected);
    for _ in 0..2 {
        assert_eq!(client.close_traversal(close.clone()).await.unwrap_err().code(), Code::NotFound);
    }
    let gone = client.next_neighbors(next(&opened.traversal, &[raw(start)])).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
}

#[tokio::test]
async fn limits_are_over_all_steps() {
    let folder = sample::in_memory("social").await;
    let server = Running::start(settings(&folder)).await;
    let mut client = server.graphs().await;
    let limits = Some(v1::Limits { vertices_max: 2, ..Default::default() });
    let open = v1::OpenTraversalRequest { graph: graph("social"), limits };
    let opened = client.open_traversal(open).await.unwrap().into_inner().traversal;
    all(client.next_neighbors(next(&opened, &[0, 1])).await).await;
    let status = client.next_neighbors(next(&opened, &[2])).await.unwrap_err();
    assert_eq!(
        (status.code(), status.get_details_error_info().unwrap().reason.as_str()),
        (Code::ResourceExhausted, "LIMIT")
    );
}

#[tokio::test]
async fn abandoned_ones_expire_and_there_are_only_so_many() {
    let folder = sample::in_memory("social").await;
    let server = Running::start(Settings { traversals_max: 1, traversal_idle_ms: 60, ..settings(&folder) }).await;
    let mut client = server.graphs().await;
    let open = || v1::OpenTraversalRequest { graph: graph("social"), limits: None };
    let opened = client.open_traversal(open()).await.unwrap().into_inner();
    let busy = client.open_traversal(open()).await.unwrap_err();
    assert_eq!(busy.get_details_error_info().unwrap().reason, "BUSY");
    server.until_metric("hoplake_traversals_open", 0.0).await;
    let gone = client.next_neighbors(next(&opened.traversal, &[0])).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
    client.open_traversal(open()).await.unwrap();
}
