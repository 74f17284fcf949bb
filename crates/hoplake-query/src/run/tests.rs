//! Steps that look through what they are given.

use std::sync::Arc;

use hoplake_engine::{OpenSettings, Snapshot, create};
use hoplake_storage::{QueryContext, ReadPool, ReadSettings, Reader, Store};

use super::*;
use crate::{
    plan::{By, Name, Settings},
    tokens::Pop,
    value::Value,
};

/// A name is sought among all entries of a map.
#[tokio::test]
async fn looking_through_maps_ends_at_the_deadline() {
    let reader =
        Reader::new(Store::open("memory://query-names").unwrap(), ReadPool::new(ReadSettings::default()).unwrap());
    create::create(&reader, &mut QueryContext::new().branch()).await.unwrap();
    let snapshot = Arc::new(Snapshot::open(reader, &OpenSettings::default()).await.unwrap());
    let context = QueryContext::new();
    let transaction = Transaction::new(&Graph { snapshot, committer: None });
    let mut run = Run::new(&Settings::default(), transaction, Wanted::default(), context.branch()).unwrap();
    let entries = (0..40_000).map(|number| (number.into(), number.into())).collect();
    let mut batch = Batch::start(None);
    batch.items = Items::Values(vec![Value::Map(entries)]);
    context.give_time(Some(0));
    let name = Name::from("x");
    let met = run.met(&name, Pop::Last, &batch).await;
    assert!(met.unwrap_err().to_string().contains("0 ms"));
    let of_entry = run.by(&By::Property(name), &batch).await;
    assert!(of_entry.unwrap_err().to_string().contains("0 ms"));
}
