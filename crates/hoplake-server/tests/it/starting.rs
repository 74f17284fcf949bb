//! What a server refuses before it listens, and what it answers if opening a graph panics.

use std::{
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use hoplake::Store;
use hoplake_server::{Reason, ServerBuilder, ServerError, Settings, StoreOpener};
use serde_json::{Value, json};

use crate::{
    running::{Running, settings},
    sample,
};

async fn rejected(settings: Settings) -> ServerError {
    ServerBuilder::new(settings).bind().await.err().unwrap()
}

#[tokio::test]
async fn what_can_never_be_opened_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing").to_str().unwrap().to_owned();
    for (url, reason, words) in [
        ("s4://x/y", Reason::Invalid, "unknown URL scheme `s4`"),
        ("s3://", Reason::Invalid, "it has no bucket"),
        (&missing, Reason::NotFound, "there is no folder"),
        (&format!("x={missing}"), Reason::NotFound, "there is no folder"),
    ] {
        let error = rejected(settings(url)).await;
        let ServerError::Source(failure) = &error else { panic!("{url}: {error}") };
        assert!(failure.reason == reason && failure.message.contains(words), "{url}: {failure}");
    }
    let twice = Settings { graphs: vec!["x=memory://a".into(), "x=memory://b".into()], ..settings("") };
    assert!(rejected(twice).await.to_string().contains("x is the name of memory://a and of memory://b"));
    // Graphs may come.
    ServerBuilder::new(settings("memory://starting/nothing/yet")).bind().await.unwrap();
    ServerBuilder::new(settings(folder.path().to_str().unwrap())).bind().await.unwrap();
}

#[tokio::test]
async fn a_port_that_is_taken_is_said_in_plain_words() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let http = taken.local_addr().unwrap();
    let error = rejected(Settings { http, ..settings("memory://x") }).await;
    assert_eq!(error.to_string(), format!("cannot listen on {http}: another program listens there"));
}

/// Its text is for the log alone, and the next request tries again.
#[tokio::test]
async fn a_panic_is_not_told_to_clients_and_passes() {
    let folder = sample::in_memory("g").await;
    let openings = Arc::new(AtomicUsize::new(0));
    let counter = openings.clone();
    let opener: StoreOpener = Arc::new(move |url: &str| match counter.fetch_add(1, Ordering::SeqCst) {
        0 | 1 => panic!("a secret of {url}"),
        _ => Ok(Store::open(url)?),
    });
    let server = Running::start_with(settings(&folder), opener).await;
    for _ in 0..2 {
        let (status, problem) = server.try_ask("GET", "/v1/graphs/g", &Value::Null).await;
        assert_eq!((status, &problem["reason"]), (500, &json!("INTERNAL")));
        let detail = problem["detail"].as_str().unwrap();
        assert_eq!(detail, "opening the graph broke off because of a bug in Hoplake; the log of the server has more");
    }
    server.ask("GET", "/v1/graphs/g", &Value::Null).await;
    assert_eq!(openings.load(Ordering::SeqCst), 3);
}
