//! One hop by key from warm memory, in real time, on two threads that share a graph.

use std::time::Instant;

use anyhow::Result;
use hoplake::{Graph, Hop, HopDirection, StartKey, Traversal, VertexId};
use hoplake_testkit::{
    clock::{Quantiles, processor_time},
    generate::SplitMix64,
};
use serde::{Deserialize, Serialize};

use super::subject::Subject;

/// What the part measures.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Figures {
    /// Microseconds of a query on one thread.
    pub one: Quantiles,
    /// Microseconds of a query while two threads run.
    pub two: Quantiles,
    /// Queries a second on one thread.
    pub one_per_second: f64,
    /// Queries a second on two threads together.
    pub two_per_second: f64,
    /// The same, in the processor's seconds: what two free cores would do.
    pub two_per_processor_second: f64,
}

/// Runs `queries` on one thread, then on each of two.
pub fn measure(subject: &Subject, queries: usize) -> Result<Figures> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let graph = runtime.block_on(subject.open_local())?;
    let starts = runtime.block_on(starts(&graph, queries))?;
    // Once for the cache.
    run(&graph, &starts)?;
    let begun = Instant::now();
    let (one, _) = run(&graph, &starts)?;
    let one_per_second = queries as f64 / begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    let both: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(|| run(&graph, &starts))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no query panics")).collect::<Result<_>>()
    })?;
    let two_per_second = 2.0 * queries as f64 / begun.elapsed().as_secs_f64();
    let processor_s: f64 = both.iter().map(|(_, seconds)| seconds).sum();
    Ok(Figures {
        one: Quantiles::of(one),
        two: Quantiles::of(both.iter().flat_map(|(micros, _)| micros.iter().copied())),
        one_per_second,
        two_per_second,
        two_per_processor_second: 4.0 * queries as f64 / processor_s,
    })
}

/// Persons drawn evenly, as keys.
async fn starts(graph: &Graph, count: usize) -> Result<Vec<StartKey>> {
    let label = graph.schema().vertex_labels.iter().find(|label| label.name.eq_ignore_ascii_case("person"));
    let label = label.map_or("person", |label| label.name.as_str());
    let id = graph.schema().label_id(label).ok_or_else(|| anyhow::anyhow!("the graph has no persons"))?;
    let vertices = graph.manifest().vertex_counts[usize::from(id.0)].ordinals;
    let mut random = SplitMix64::new(3);
    let drawn: Vec<VertexId> = (0..count).filter_map(|_| VertexId::new(id, random.below(vertices))).collect();
    let keys = graph.query().keys_of(&drawn).await?;
    Ok(keys.iter().map(|key| StartKey::key(label, key.to_string())).collect())
}

/// Microseconds of each query by key along `knows`, and the thread's processor seconds for all.
fn run(graph: &Graph, starts: &[StartKey]) -> Result<(Vec<f64>, f64)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let hops = vec![Hop::along(HopDirection::Out, "knows")];
    let processor = processor_time();
    let micros = runtime.block_on(async {
        let mut micros = Vec::with_capacity(starts.len());
        for start in starts {
            let begun = Instant::now();
            let mut query = graph.query();
            let found = query.named(std::slice::from_ref(start)).await?;
            let traversal = Traversal { starts: found, hops: hops.clone(), ..Traversal::default() };
            std::hint::black_box(query.traverse(traversal).await?);
            micros.push(begun.elapsed().as_secs_f64() * 1e6);
        }
        Ok::<_, anyhow::Error>(micros)
    })?;
    Ok((micros, (processor_time() - processor).as_secs_f64()))
}
