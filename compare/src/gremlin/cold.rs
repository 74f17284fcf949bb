//! The twenty queries of [`latency`](super::latency), cold: each on a graph that has just been opened, over a simulated bucket in virtual
//! time. Times are what is waited for; the processor's are next to them.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Args;
use hoplake::{
    Graph, IndexSettings, LoadOptions, OpenSettings, QueryContext, ReadPool, ReadSettings, Reader, Store, StoreProfile,
    gremlin::{Names, Wanted, parse, plan, script::Statement},
    load_with,
};
use hoplake_testkit::{
    SimStore,
    clock::{Quantiles, Stopwatch, in_virtual_time},
};
use object_store::{memory::InMemory, path::Path};

use super::latency::{QUERIES, sample};

/// Where the simulated store says that it is.
const URL: &str = "s3://cold";

/// How often.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// Times that each query is asked, each of another graph that was just opened.
    #[arg(long, default_value_t = 200)]
    rounds: u64,
    /// The seed of the first.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The cost of a query on a cold reader, and the time to open the graph.
struct ColdQueryCost {
    waves: u64,
    requests: u64,
    bytes: u64,
    store_ms: f64,
    processor_ms: f64,
    opening_ms: f64,
}

/// Prints a row for each query.
pub fn run(arguments: &Arguments) -> Result<()> {
    let objects = Arc::new(InMemory::new());
    tokio::runtime::Runtime::new()?.block_on(load(&objects))?;
    println!("| query | waves | requests | KiB | waiting p50, ms | p99 | with opening p50, ms | p99 | processor, ms |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for (name, text) in QUERIES {
        let rounds = (0..arguments.rounds).map(|round| in_virtual_time(ask(&objects, text, arguments.seed + round)));
        let asked = rounds.collect::<Result<Vec<_>>>().with_context(|| text.to_owned())?;
        let of = |value: fn(&ColdQueryCost) -> f64| Quantiles::of(asked.iter().map(value));
        let waiting = of(|it| it.store_ms);
        let whole = of(|it| it.store_ms + it.opening_ms);
        println!(
            "| {name} | {} | {} | {} | {:.0} | {:.0} | {:.0} | {:.0} | {:.1} |",
            range(asked.iter().map(|it| it.waves)),
            range(asked.iter().map(|it| it.requests)),
            range(asked.iter().map(|it| it.bytes.div_ceil(1024))),
            waiting.p50,
            waiting.p99,
            whole.p50,
            whole.p99,
            of(|it| it.processor_ms).p50,
        );
    }
    Ok(())
}

async fn load(objects: &Arc<InMemory>) -> Result<()> {
    let store = Store::new(objects.clone(), Path::default(), URL);
    load_with(store.clone(), LoadOptions::from_paths(sample()), Arc::new(())).await?;
    Graph::create_index(&store, "airport.code", &IndexSettings::default()).await?;
    Ok(())
}

async fn ask(objects: &Arc<InMemory>, text: &str, seed: u64) -> Result<ColdQueryCost> {
    let (_, store) = SimStore::before(objects.clone(), StoreProfile::s3_standard(), seed, URL);
    let mut read = ReadSettings::default();
    read.retry.seed = Some(seed);
    let opening = Stopwatch::start();
    let graph = Graph::open_through(Reader::new(store, ReadPool::new(read)?), &OpenSettings::default()).await?;
    let opening_ms = opening.took().store_ms;
    let asking = Stopwatch::start();
    let Statement::Traversal(traversal, _) = &parse(text)?.statements[0] else { bail!("it is not a traversal") };
    let plan = plan(traversal, Names::default())?;
    let context = QueryContext::new();
    let mut results = graph.gremlin_read_only().run(&plan, Wanted { properties: true }, &context)?;
    while !results.next(1_000).await?.is_empty() {}
    let took = asking.took();
    let cost = context.cost();
    Ok(ColdQueryCost {
        waves: cost.waves,
        requests: cost.requests,
        bytes: cost.store_bytes,
        store_ms: took.store_ms,
        processor_ms: took.processor_ms,
        opening_ms,
    })
}

/// The least and the greatest: hedges add requests.
fn range(numbers: impl Iterator<Item = u64> + Clone) -> String {
    match (numbers.clone().min().unwrap_or(0), numbers.max().unwrap_or(0)) {
        (least, greatest) if least == greatest => least.to_string(),
        (least, greatest) => format!("{least} to {greatest}"),
    }
}
