//! Samples next to the edges that queries read, from memory and from the bucket.

#![expect(clippy::unwrap_used, reason = "helpers outside of #[test] functions are test code, too")]

mod ahead;
mod distribution;
mod features;
mod links;
mod samples;
mod times;

use std::{fs, sync::Arc};

use hoplake::{
    Batch, Graph, LoadOptions, MemoryBudget, Operation, SegmentSettings, VertexId, VertexRef,
    compute::Workers,
    sampling::{FanOut, Sample, Sampler, SamplerSettings},
};

/// People who know each other and rate films: parallel edges, loops, a hub, edges of two labels to the same vertices, and edges that a
/// commit added and removed. Weights of `rates` and `knows` are numbers, some of them 0.
pub async fn changed(name: &str) -> Graph {
    let url = format!("memory://sampling/{name}");
    let folder = tempfile::tempdir().unwrap();
    let mut people = String::from("~id,~label\n");
    let mut edges = String::from("~id,~from,~to,~label,weight:Int\n");
    let mut number = 0;
    let mut edge = |from: String, to: String, label: &str, weight: i64| {
        number += 1;
        edges += &format!("e{number},{from},{to},{label},{weight}\n");
    };
    for at in 0..200 {
        people += &format!("p{at},person\n");
        for step in 1..=at % 7 {
            edge(format!("p{at}"), format!("p{}", (at * 31 + step * 17) % 200), "knows", step % 4);
            edge(format!("p{at}"), format!("f{}", (at + step * step) % 50), "rates", 1 + step);
        }
        edge(format!("p{at}"), "p0".into(), "knows", 1);
        edge("p0".into(), format!("p{at}"), "knows", at % 5);
    }
    (0..50).for_each(|at| people += &format!("f{at},film\n"));
    (0..3).for_each(|weight| edge("p3".into(), "p4".into(), "knows", weight));
    fs::write(folder.path().join("vertices.csv"), people).unwrap();
    fs::write(folder.path().join("edges.csv"), edges).unwrap();
    let files = [folder.path().join("vertices.csv"), folder.path().join("edges.csv")];
    // Small blocks, so that lists are in many of them.
    let options = LoadOptions { segments: SegmentSettings::with_list_blocks(512), ..LoadOptions::from_paths(files) };
    hoplake::load(&url, options).await.unwrap();
    let mut graph = Graph::open(&url).await.unwrap();
    let person = |at: i64| VertexRef::new("person", format!("p{at}"));
    let knows = |from, to, weight: i64| Operation::UpsertEdge {
        label: "knows".into(),
        source: person(from),
        target: person(to),
        key: None,
        properties: [("weight", weight)].into(),
        replace: true,
    };
    let mut operations: Vec<_> = (20..40).map(|at| knows(at, 199 - at, 2)).collect();
    operations.push(Operation::DeleteEdge { label: "knows".into(), source: person(5), target: person(0), key: None });
    operations.push(Operation::DeleteVertex { vertex: person(77) });
    graph.apply(Batch { operations, ..Batch::default() }).await.unwrap();
    graph.refresh().await.unwrap();
    graph
}

/// The fan-outs of a hop.
pub fn fan_outs(graph: &Graph, hop: &str, counts: &[Option<u32>]) -> Vec<FanOut> {
    graph.query().fan_outs(&hop.parse().unwrap(), counts).unwrap()
}

/// The vertices of some labels and keys.
pub async fn vertices(graph: &Graph, keys: impl IntoIterator<Item = (&str, String)>) -> Vec<VertexId> {
    let mut query = graph.query();
    let mut found = Vec::new();
    for (label, key) in keys {
        found.push(query.vertex(label, key).await.unwrap().unwrap());
    }
    found
}

/// A pool of its own.
pub fn workers(threads: usize) -> Workers {
    Workers::new(Arc::new(rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()))
}

/// A sampler from memory.
pub async fn in_memory(graph: &Graph, settings: &SamplerSettings, threads: usize) -> Sampler {
    graph.query().sampler_in_memory(settings.clone(), workers(threads)).await.unwrap()
}

/// A batch.
pub async fn sample(graph: &Graph, sampler: &Sampler, seeds: &[VertexId], batch: u64) -> Sample {
    graph.query().sample(sampler, seeds, batch).await.unwrap().into_inner()
}

/// A budget that everything has been given back to.
pub fn assert_empty(budget: &MemoryBudget) {
    assert_eq!(budget.used(), 0);
}
