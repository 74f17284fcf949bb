//! Plans of texts: what rules make of them, and what they take on a graph without elements.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod limits;
mod merge;
mod rules;

use std::sync::Arc;

use hoplake_engine::{OpenSettings, Snapshot, change::Committer, create};
use hoplake_gremlin::{
    lower::{Names, lower},
    script::Statement,
    text,
};
use hoplake_query::{plan::Plan, run::Graph};
use hoplake_storage::{QueryContext, ReadPool, ReadSettings, Reader, Store};

fn plan(query: &str) -> Plan {
    let script = text::parse(query).unwrap();
    let Statement::Traversal(traversal, _) = &script.statements[0] else { panic!("{query}") };
    lower(traversal, Names::default()).unwrap()
}

/// A graph with nothing in it.
async fn graph(name: &str) -> Graph {
    let store = Store::open(&format!("memory://plans-{name}")).unwrap();
    let reader = Reader::new(store, ReadPool::new(ReadSettings::default()).unwrap());
    create::create(&reader, &mut QueryContext::new().branch()).await.unwrap();
    let snapshot = Arc::new(Snapshot::open(reader, &OpenSettings::default()).await.unwrap());
    let committer = Some(Arc::new(Committer::new(snapshot.clone())));
    Graph { snapshot, committer }
}
