//! Conditions right after a hop: tested by the engine on columns, and by a step that looks at each element.

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use hoplake::{
    Graph, LoadOptions, QueryContext,
    gremlin::{Names, Wanted, parse, script::Statement},
};
use hoplake_testkit::clock::median;

/// What to measure.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// Edges of the vertex that the queries begin at.
    #[arg(long, default_value_t = 1_000_000)]
    edges: u64,
    /// How many times each query runs.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Where the files and the graph go.
    #[arg(long, default_value = "bench-data")]
    folder: PathBuf,
}

/// A hop, and a condition after it.
const QUERIES: [(&str, &str); 9] = [
    ("out('ROAD')", "has('age', gt(50))"),
    ("out('ROAD')", "has('name', 'n77')"),
    ("out('ROAD')", "has('age', gt(10)).has('name', neq('n77'))"),
    ("outE('ROAD')", "has('km', lt(500))"),
    ("out('ROAD')", "has('age', within(1, 2, 3))"),
    ("out('ROAD')", "hasNot('age')"),
    ("out('ROAD')", "not(has('age', gt(10)))"),
    ("out('ROAD')", "or(has('age', lt(5)), has('name', 'n77'))"),
    ("out('ROAD')", "hasLabel('Person').has('age', gt(50))"),
];

/// Prints a row for each query.
pub fn run(arguments: &Arguments) -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(measure(arguments))
}

async fn measure(arguments: &Arguments) -> Result<()> {
    let folder = arguments.folder.join(format!("conditions-{}", arguments.edges));
    fs::create_dir_all(&folder)?;
    let files = write_star(arguments.edges, &folder)?;
    let url = folder.join("graph.hoplake");
    let url = url.to_str().context("the folder is not UTF-8")?;
    hoplake::load(url, LoadOptions { replace: true, ..LoadOptions::from_paths(files) }).await?;
    let graph = Graph::open(url).await?;
    println!("| query | found | ms as steps | ms on columns | × | waves |\n| --- | --- | --- | --- | --- | --- |");
    for (hop, condition) in QUERIES {
        // A step between the two keeps them apart.
        let as_steps = format!("g.V('Hub:0').{hop}.identity().{condition}.count()");
        let on_columns = format!("g.V('Hub:0').{hop}.{condition}.count()");
        let mut times = [Vec::new(), Vec::new()];
        let mut found = Vec::new();
        // In turns, and once before: both find the same blocks in memory.
        for round in 0..=arguments.runs {
            for (query, times) in [&as_steps, &on_columns].into_iter().zip(&mut times) {
                let begun = Instant::now();
                let (count, _) = counted(&graph, query).await?;
                if round > 0 {
                    times.push(begun.elapsed().as_secs_f64() * 1e3);
                }
                found.push(count);
            }
        }
        ensure!(found[0] != "0", "{on_columns} finds nothing");
        ensure!(found.iter().all(|count| *count == found[0]), "{on_columns} has other results than {as_steps}");
        let [steps, columns] = times.map(|times| median(times).unwrap_or(f64::NAN));
        let waves = [&as_steps, &on_columns]
            .map(async |query| -> Result<u64> { Ok(counted(&Graph::open(url).await?, query).await?.1) });
        let [waves_of_steps, waves_of_columns] = waves;
        println!(
            "| `{hop}.{condition}` | {} | {steps:.0} | {columns:.0} | {:.1} | {} → {} |",
            found[0],
            steps / columns,
            waves_of_steps.await?,
            waves_of_columns.await?
        );
    }
    Ok(())
}

/// The only result of a query, and the waves that it took.
async fn counted(graph: &Graph, query: &str) -> Result<(String, u64)> {
    let script = parse(query)?;
    let Some(Statement::Traversal(traversal, _)) = script.statements.first() else {
        bail!("{query} is not a traversal")
    };
    let context = QueryContext::new();
    let transaction = graph.gremlin_read_only();
    let plan = transaction.plan_within(traversal, Names::default(), &context)?;
    let mut results = transaction.run(&plan, Wanted::default(), &context)?;
    let mut found = String::new();
    loop {
        let next = results.next(1).await?;
        let Some((value, _)) = next.first() else { break };
        found = value.to_string();
    }
    Ok((found, context.cost().waves))
}

/// A vertex from which an edge leads to each of many others. A file's name is its label.
fn write_star(edges: u64, folder: &Path) -> Result<[PathBuf; 3]> {
    let hub = folder.join("Hub.csv");
    let people = folder.join("Person.csv");
    let roads = folder.join("roads.csv");
    fs::write(&hub, ":ID(Hub)\n0\n")?;
    let mut out = BufWriter::new(File::create(&people)?);
    writeln!(out, ":ID(Person),name,age:long")?;
    for key in 0..edges {
        // One in thirteen has no age.
        let age = if key % 13 == 0 { String::new() } else { (key % 97).to_string() };
        writeln!(out, "{key},n{},{age}", key * 7_919 % 1_009)?;
    }
    out.flush()?;
    let mut out = BufWriter::new(File::create(&roads)?);
    writeln!(out, ":START_ID(Hub),:END_ID(Person),:TYPE,km:long")?;
    for key in 0..edges {
        writeln!(out, "0,{key},ROAD,{}", key * 31 % 1_000)?;
    }
    out.flush()?;
    Ok([hub, people, roads])
}
