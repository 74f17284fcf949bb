//! Long and deep queries, on a thread with as little stack as a server's threads have.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::{sync::Arc, thread};

use hoplake_engine::{OpenSettings, Snapshot, create};
use hoplake_gremlin::{
    lower::{Names, lower},
    script::Statement,
    text,
};
use hoplake_query::{
    run::{Graph, Results, Transaction, Wanted},
    value::Value,
};
use hoplake_storage::{QueryContext, ReadPool, ReadSettings, Reader, Store};

const STACK: usize = 2 << 20;

async fn run(query: &str) -> Vec<Value> {
    let reader = Reader::new(Store::open("memory://depth").unwrap(), ReadPool::new(ReadSettings::default()).unwrap());
    create::create(&reader, &mut QueryContext::new().branch()).await.unwrap();
    let snapshot = Arc::new(Snapshot::open(reader, &OpenSettings::default()).await.unwrap());
    let script = text::parse(query).unwrap();
    let Statement::Traversal(traversal, _) = &script.statements[0] else { panic!("{query}") };
    let plan = lower(traversal, Names::default()).unwrap();
    let transaction = Transaction::new(&Graph { snapshot, committer: None });
    let mut results = Results::begin(&plan, transaction, Wanted::default(), QueryContext::new().branch()).unwrap();
    results.next(10).await.unwrap().into_iter().map(|(value, _)| value).collect()
}

/// A query on a thread of its own.
fn on_small_stack(query: String) -> Vec<Value> {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    thread::Builder::new().stack_size(STACK).spawn(move || runtime().block_on(run(&query))).unwrap().join().unwrap()
}

#[test]
fn a_query_may_be_long() {
    let query = format!("g.inject(7){}", ".identity()".repeat(20_000));
    assert_eq!(on_small_stack(query), [Value::from(7)]);
}

#[test]
fn a_query_may_be_deep() {
    for (open, close) in [
        (".where(__", ")"),
        (".map(__", ")"),
        (".union(__", ", __.constant(1).discard())"),
        (".repeat(__", ").times(1)"),
        (".choose(__.is(8), __.discard(), __", ")"),
        (".fold().order(local).by(__.constant(1)).unfold().local(__", ")"),
    ] {
        let query = format!("g.inject(7){}.identity(){}", open.repeat(120), close.repeat(120));
        assert_eq!(on_small_stack(query), [Value::from(7)], "{open}");
    }
}
