//! Parallel edges that a property distinguishes.

use std::collections::BTreeMap;

use hoplake::{Batch, EdgeKey, Graph, LoadOptions, Operation, Value, VertexRef};

fn ends() -> (VertexRef, VertexRef) {
    (VertexRef::new("vertex", 1), VertexRef::new("vertex", 2))
}

fn upsert(id: i64, amount: Option<i64>, replace: bool) -> Operation {
    let (source, target) = ends();
    let properties = amount.map(|amount| ("amount".to_owned(), Value::Int64(amount))).into_iter().collect();
    let key = Some(EdgeKey { property: "id".into(), value: Value::Int64(id) });
    Operation::UpsertEdge { label: "pays".into(), source, target, key, properties, replace }
}

fn delete(key: Option<i64>) -> Operation {
    let (source, target) = ends();
    let key = key.map(|id| EdgeKey { property: "id".into(), value: Value::Int64(id) });
    Operation::DeleteEdge { label: "pays".into(), source, target, key }
}

/// The payments from 1 to 2, by id, as both directions have them.
async fn payments(graph: &Graph) -> BTreeMap<i64, Option<i64>> {
    let mut query = graph.query();
    let mut found = Vec::new();
    for (key, hop) in [(1, "out:pays"), (2, "in:pays")] {
        let vertex = query.vertex("vertex", key).await.unwrap().unwrap();
        let edges = query.neighbors(&[vertex], &hop.parse().unwrap()).await.unwrap();
        let mut payments = BTreeMap::new();
        for rows in query.edge_properties(&edges, &["id", "amount"].map(str::to_owned)).await.unwrap() {
            for row in 0..rows.positions.len() {
                let cell = |column: usize| match Value::at(rows.batch.column(column), row) {
                    Value::Int64(number) => Some(number),
                    _ => None,
                };
                payments.insert(cell(0).unwrap(), cell(1));
            }
        }
        assert_eq!(payments.len(), edges.len());
        found.push(payments);
    }
    assert_eq!(found[0], found[1]);
    found.swap_remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn edges_with_keys_stand_beside_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("edges.csv");
    std::fs::write(&file, "1,2\n").unwrap();
    let name = "memory://edge-keys/graph";
    hoplake::load(name, LoadOptions::from_paths([file])).await.unwrap();
    let mut graph = Graph::open(name).await.unwrap();
    let batches = [
        (vec![upsert(1, Some(10), false), upsert(2, Some(20), false)], vec![(1, Some(10)), (2, Some(20))]),
        (vec![upsert(3, Some(30), false), upsert(1, None, false)], vec![(1, Some(10)), (2, Some(20)), (3, Some(30))]),
        (vec![delete(Some(2)), upsert(1, None, true)], vec![(1, None), (3, Some(30))]),
        (vec![delete(Some(9))], vec![(1, None), (3, Some(30))]),
        (vec![delete(None)], vec![]),
        // The last change of an edge in a batch wins, and one without a key is a change of all.
        (vec![upsert(1, None, true), upsert(1, Some(1), false)], vec![(1, Some(1))]),
        (vec![delete(None), upsert(2, None, true)], vec![(2, None)]),
    ];
    for (operations, expected) in batches {
        graph.apply(Batch { operations, ..Batch::default() }).await.unwrap();
        graph.refresh().await.unwrap();
        assert_eq!(payments(&graph).await, expected.into_iter().collect());
    }
}
