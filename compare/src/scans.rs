//! Scans with a condition, next to DuckDB's `SELECT … WHERE` over the same Parquet files.
//!
//! One label of some million vertices is loaded into a folder. Hoplake scans its tables, and DuckDB reads the same files; both with as
//! many threads, in turns, after a round that warms both. Whatever reads a column adds it up, so that the answers can be compared
//! and neither leaves out what it was asked for. DuckDB's times include the pipe to its process, some tenths of a millisecond.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::Path,
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use arrow_array::{cast::AsArray, types::Int64Type};
use clap::Args;
use hoplake::{Condition, Graph, LoadOptions, ScanRequest, TableOwner};
use hoplake_testkit::{DuckDb, clock::median, generate::SplitMix64};
use tokio::runtime::Runtime;

/// What to measure.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// Vertices. Fewer than some 100,000 have no file of their own.
    #[arg(long, default_value_t = 10_000_000)]
    vertices: u64,
    /// Rounds, of which the median counts.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Threads of each.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Random numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// A scan that counts what it finds, or adds up the keys and a property.
struct Question {
    about: &'static str,
    condition: &'static str,
    sql: &'static str,
    sums: Option<&'static str>,
}

const QUESTIONS: [Question; 6] = [
    Question { about: "1 % of random integers, counted", condition: "n < 10000", sql: "n < 10000", sums: None },
    Question { about: "50 % of random integers, counted", condition: "n < 500000", sql: "n < 500000", sums: None },
    Question { about: "1 %, keys and integers", condition: "n < 10000", sql: "n < 10000", sums: Some("n") },
    Question { about: "50 %, keys and integers", condition: "n < 500000", sql: "n < 500000", sums: Some("n") },
    Question { about: "one of 1,000 texts, counted", condition: "t = text-500", sql: "t = 'text-500'", sums: None },
    Question {
        about: "a stretch of a sorted column, counted",
        condition: "day between 400 and 409",
        sql: "day BETWEEN 400 AND 409",
        sums: None,
    },
];

/// How many rows were found, and the sum of their keys and values.
type Answer = (u64, i128);

/// Runs the comparison and prints a table.
///
/// # Errors
/// If the graph cannot be loaded or read, DuckDB does not run, or the answers differ.
pub fn run(arguments: &Arguments) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(arguments.threads).enable_all().build()?;
    let folder = tempfile::tempdir()?;
    let (graph, files) = runtime.block_on(load(arguments, folder.path()))?;
    let mut database = DuckDb::start()?;
    for setting in [format!("threads = {}", arguments.threads), "parquet_metadata_cache = true".to_owned()] {
        database.rows(&format!("SET {setting}"))?;
    }
    println!("{} vertices, {} threads, median of {} rounds\n", arguments.vertices, arguments.threads, arguments.rounds);
    println!("| scan | found | Hoplake ms | DuckDB ms | Hoplake's speed |\n| --- | ---: | ---: | ---: | ---: |");
    for question in &QUESTIONS {
        let mut own = Vec::new();
        let mut other = Vec::new();
        let mut found = 0;
        // The first round warms both.
        for round in 0..=arguments.rounds {
            let (answer, ours) = timed(|| scan(&runtime, &graph, question))?;
            let (expected, theirs) = timed(|| select(&mut database, &files, question))?;
            ensure!(answer == expected, "{}: {answer:?} was found, not {expected:?}", question.about);
            found = answer.0;
            if round > 0 {
                own.push(ours);
                other.push(theirs);
            }
        }
        let own = median(own).context("--rounds is at least 1")?;
        let other = median(other).context("--rounds is at least 1")?;
        let share = 100.0 * other / own;
        println!("| {} | {found} | {own:.1} | {other:.1} | {share:.0} % |", question.about);
    }
    Ok(())
}

/// Loads the vertices; returns the graph and the paths of its tables, as SQL has them.
async fn load(arguments: &Arguments, folder: &Path) -> Result<(Graph, String)> {
    let input = folder.join("vertices.csv");
    let mut file = BufWriter::new(File::create(&input)?);
    let mut random = SplitMix64::new(arguments.seed);
    writeln!(file, "key,n,day,t")?;
    for key in 0..arguments.vertices {
        let n = random.below(1_000_000);
        let text = random.below(1_000);
        writeln!(file, "{key},{n},{},text-{text}", key * 1_000 / arguments.vertices)?;
    }
    file.flush()?;
    drop(file);
    let mapping = folder.join("mapping.toml");
    let types = "[vertices.properties]\nn = \"int64\"\nday = \"int64\"\n";
    let vertices = "[[vertices]]\nfile = \"vertices.csv\"\nlabel = \"v\"\nkey = \"key\"\nkey_type = \"int64\"\n";
    std::fs::write(&mapping, format!("{vertices}{types}"))?;
    let url = folder.join("graph").to_string_lossy().into_owned();
    hoplake::load(&url, LoadOptions { mapping: Some(mapping), ..LoadOptions::from_paths([input]) }).await?;
    let graph = Graph::open(&url).await?;
    let tables = graph.manifest().tables.iter().filter(|table| matches!(table.owner, TableOwner::Vertices(_)));
    let mut files = Vec::new();
    for table in tables {
        let path = Path::new(&url).join(&table.name);
        let whole = table.position == 0 && path.metadata()?.len() == table.length;
        ensure!(whole, "a table has no file of its own; load more vertices");
        files.push(format!("'{}'", path.display()));
    }
    Ok((graph, files.join(", ")))
}

fn scan(runtime: &Runtime, graph: &Graph, question: &Question) -> Result<Answer> {
    let condition: Condition = question.condition.parse()?;
    let select = question.sums.into_iter().map(str::to_owned).collect();
    let request = ScanRequest { condition: Some(condition), select, ..ScanRequest::default() };
    let mut query = graph.query();
    // On the worker threads: the one that waits here would be one more.
    let answer = runtime.spawn(async move {
        if request.select.is_empty() {
            return Ok((query.count_found(&request).await?, 0));
        }
        let mut scan = query.scan(&request)?;
        let mut answer: Answer = (0, 0);
        while let Some(rows) = query.next_rows(&mut scan).await? {
            answer.0 += rows.batch.num_rows() as u64;
            for column in rows.batch.columns() {
                let numbers = column.as_primitive::<Int64Type>();
                answer.1 += numbers.values().iter().map(|number| i128::from(*number)).sum::<i128>();
            }
        }
        Ok::<_, anyhow::Error>(answer)
    });
    runtime.block_on(answer)?
}

fn select(database: &mut DuckDb, files: &str, question: &Question) -> Result<Answer> {
    let sum = question.sums.map_or("0".to_owned(), |name| format!("sum(\"~key\")::BIGINT + sum({name})::BIGINT"));
    let sql = format!("SELECT count(*), {sum} FROM read_parquet([{files}]) WHERE {}", question.sql);
    let rows = database.rows(&sql)?;
    let number = |at: usize| rows.first()?.get(at)?.as_i64();
    let answer = number(0).zip(number(1)).with_context(|| format!("DuckDB returned {rows:?}"))?;
    Ok((answer.0.try_into()?, i128::from(answer.1)))
}

/// What work returned, and its milliseconds.
fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let start = Instant::now();
    let done = work()?;
    Ok((done, start.elapsed().as_secs_f64() * 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_find_the_same() {
        run(&Arguments { vertices: 200_000, rounds: 1, threads: 2, seed: 3 }).expect("both answer alike");
    }
}
