//! Changes to a graph: single ones, edges with keys of their own, and many as columns of Arrow.
//!
//! Run it with `cargo run -p hoplake --example write`.

use std::{error::Error, sync::Arc};

use hoplake::{
    Graph, LoadOptions,
    arrow::array::{ArrayRef, Int64Array, RecordBatch},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("knows.csv");
    std::fs::write(&file, "~from,~to,~label\nAnn,Bob,knows\n")?;
    hoplake::load("memory://examples/write", LoadOptions::from_paths([file])).await?;
    let mut graph = Graph::open("memory://examples/write").await?;

    // A batch is one version, and applied as a whole or not at all.
    let mut commit = graph.begin();
    commit.upsert_vertex("vertex", "Cid", [("age", 42)]);
    commit.upsert_edge("knows", ("vertex", "Bob"), ("vertex", "Cid"), [("since", 2026)]);
    // Two payments between the same two people: the property `id` tells them apart.
    for (id, amount) in [(1, 10), (2, 25)] {
        commit.upsert_edge_by(("id", id), "pays", ("vertex", "Ann"), ("vertex", "Bob"), [("amount", amount)]);
    }
    let committed = commit.message("Cid joins").commit().await?;
    println!("version {}: {} edges written", committed.version, committed.counts.edges_written);

    let ages: ArrayRef = Arc::new(Int64Array::from(vec![30, 31]));
    let keys: ArrayRef = Arc::new(hoplake::arrow::array::StringArray::from(vec!["Ann", "Bob"]));
    graph.refresh().await?;
    let mut commit = graph.begin();
    commit.upsert_vertices("vertex", &RecordBatch::try_from_iter([("key", keys), ("age", ages)])?)?;
    commit.commit().await?;

    graph.refresh().await?;
    let mut query = graph.query();
    let walks = query.from("vertex:Ann")?.out("pays").such_that("amount > 20")?.walks(10).await?;
    println!("payments above 20: {}", walks.len());
    let known = query.from("vertex[age >= 31]")?.out("knows").count().await?;
    println!("whom those from 31 on know: {known}");
    Ok(())
}
