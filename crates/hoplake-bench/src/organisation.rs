//! An organisation of 40,000 people behind a server on loopback, asked as an HR platform asks: nine in ten requests are prepared
//! queries with few people much in demand, one in ten is a text of its own.
//!
//! First the rates of A. Leung's study (Waterloo, 2020), 100 to 3,000 requests a minute, one request at a time and several; then rates
//! that rise until the p99 reaches 100 ms, with results kept and without. Client and server share this process and its processors.
//! Latency counts from the moment at which a request was due, so that a stall counts for every request it delays.

mod people;
mod requests;

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use clap::Args;
use futures::future::join_all;
use hoplake::{
    Graph, LoadOptions, Store,
    gremlin::{self, script::Statement},
    load_with,
};
use hoplake_server::{ResultSettings, ServerBuilder, Settings};
use hoplake_testkit::generate::SplitMix64;
use tokio::time::sleep_until;

use self::requests::{Mix, Request};
use crate::{client::Client, serve_load::processor_time};

/// What to ask, and how long.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// People.
    #[arg(long, default_value_t = 40_000)]
    people: u64,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Connections of the client, where requests are parallel.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Of a hundred requests, those that call a prepared query.
    #[arg(long, default_value_t = 90)]
    prepared: u64,
    /// How uneven the choice of people is: the exponent of Zipf's law.
    #[arg(long, default_value_t = 1.0)]
    skew: f64,
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// Where the graph is written; a temporary folder by default.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Leave the rates of the study out.
    #[arg(long)]
    only_rising: bool,
}

/// Requests a minute of the study.
const RATES_PER_MINUTE: [u64; 5] = [100, 300, 500, 1_000, 3_000];
/// Rates that rise, in requests a second.
const RATES: [u64; 13] = [500, 1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 8_000, 10_000, 12_000, 15_000, 20_000, 30_000];
/// The goal: the p99 stays below.
const P99_MAX: Duration = Duration::from_millis(100);
/// How long what is late may take after the end, before a rate counts as broken.
const LATE: Duration = Duration::from_secs(2);

/// Prints the tables.
pub fn run(arguments: &Arguments) -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(measure(arguments))
}

async fn measure(arguments: &Arguments) -> Result<()> {
    let temporary = tempfile::tempdir()?;
    let folder = arguments.folder.clone().unwrap_or_else(|| temporary.path().join("organisation"));
    let url = folder.to_str().context("the folder is not UTF-8")?;
    let store = Store::open(url)?;
    let files = temporary.path().join("csv");
    people::write(&files, arguments.people, arguments.seed)?;
    let options = LoadOptions { replace: true, ..LoadOptions::from_paths([files]) };
    let report = load_with(store.clone(), options, Arc::new(())).await?;
    println!("{} people and {} edges, loaded in {:.1} s\n", arguments.people, report.edges, report.time.as_secs_f64());
    for (name, query) in requests::prepared()? {
        Graph::save_query(&store, name, &query).await?;
    }
    print_planning(url).await?;
    let mix = Arc::new(Mix::new(arguments.people, arguments.prepared, arguments.skew, arguments.seed));
    if !arguments.only_rising {
        println!("| requests a minute | at a time | p50, ms | p95, ms | p99, ms | processor, % of one |");
        println!("| ---: | ---: | ---: | ---: | ---: | ---: |");
        for kept in [true, false] {
            let server = serve(url, kept).await?;
            warm_up(arguments, server, &mix).await?;
            println!("| {} | | | | | |", if kept { "**results kept**" } else { "**none kept**" });
            for rate in RATES_PER_MINUTE {
                for connections in [1, arguments.connections.min(16)] {
                    // Enough requests for a p95 at the lowest rates.
                    let time = Duration::from_secs(arguments.seconds).max(Duration::from_secs(2_400 / rate));
                    let seen = paced(server, &mix, rate as f64 / 60.0, connections, time).await?;
                    println!("| {rate} | {connections} | {} |", seen.cells());
                }
            }
        }
        println!();
    }
    println!("| results | requests/s | p50, ms | p95, ms | p99, ms | processor, % of one | |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: | --- |");
    for kept in [true, false] {
        let server = serve(url, kept).await?;
        warm_up(arguments, server, &mix).await?;
        let mut best = 0;
        for rate in RATES {
            let time = Duration::from_secs(arguments.seconds);
            let seen = paced(server, &mix, rate as f64, arguments.connections, time).await?;
            let holds = seen.is_complete && seen.at(0.99) < P99_MAX;
            let row = if holds { "" } else { "broken" };
            println!("| {} | {rate} | {} | {row} |", if kept { "kept" } else { "not kept" }, seen.cells());
            if !holds {
                break;
            }
            best = rate;
        }
        println!("\nThe p99 is below {} ms up to {best} requests/s.\n", P99_MAX.as_millis());
        print_counters(server).await?;
    }
    Ok(())
}

/// What a call costs before anything runs: finding the query, binding its parameters, parsing and planning its text.
async fn print_planning(url: &str) -> Result<()> {
    const TIMES: u32 = 20_000;
    let graph = Graph::open(url).await?;
    let transaction = graph.gremlin_read_only();
    for name in ["team", "titles"] {
        let script = gremlin::call(name, vec![("who".into(), "person:57".into())]);
        let Some(Statement::Traversal(traversal, _)) = script.statements.first() else { continue };
        let begun = Instant::now();
        for _ in 0..TIMES {
            transaction.plan(traversal, gremlin::Names::default())?;
        }
        println!("a plan of a call of {name}: {:.1} us", begun.elapsed().as_secs_f64() * 1e6 / f64::from(TIMES));
    }
    println!();
    Ok(())
}

/// A server of the graph, with kept results or without.
async fn serve(url: &str, kept: bool) -> Result<SocketAddr> {
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let results = if kept { ResultSettings::default() } else { ResultSettings { bytes_max: 0, ..Default::default() } };
    let graphs = vec![format!("{}={url}", requests::GRAPH)];
    let settings = Settings { grpc: local, http: local, graphs, results, ..Settings::default() };
    let server = ServerBuilder::new(settings).bind().await?;
    let http = server.http();
    tokio::spawn(server.run(std::future::pending()));
    Ok(http)
}

/// Asks as fast as it can, until what is read is in memory; and once, whether the answers are right.
async fn warm_up(arguments: &Arguments, server: SocketAddr, mix: &Arc<Mix>) -> Result<()> {
    let mut client = Client::connect(server).await?;
    for person in [1, 2, 57, arguments.people - 1] {
        let Request { path, body } = requests::call("managers", person);
        let chain = client.results(&path, &body).await?;
        let expected = people::managers(person);
        ensure!(chain.len() == expected, "person {person} has {expected} managers and not {chain:?}");
    }
    let until = Instant::now() + Duration::from_secs(3);
    let running = (0..8).map(|number| {
        let mix = mix.clone();
        tokio::spawn(async move {
            let mut client = Client::connect(server).await?;
            let mut random = SplitMix64::new(1_000 + number);
            while Instant::now() < until {
                let Request { path, body } = mix.draw(&mut random);
                client.ask(&path, &body).await?;
            }
            anyhow::Ok(())
        })
    });
    for done in join_all(running.collect::<Vec<_>>()).await {
        done??;
    }
    Ok(())
}

/// The measurements at one request rate.
struct RateMeasurement {
    /// Ascending.
    latencies: Vec<Duration>,
    /// Whether every request was sent and answered, soon after the end at the latest.
    is_complete: bool,
    /// Processors that were busy, on average.
    processor: f64,
}

impl RateMeasurement {
    fn at(&self, share: f64) -> Duration {
        let place = (self.latencies.len().saturating_sub(1) as f64 * share).round() as usize;
        self.latencies.get(place).copied().unwrap_or(Duration::MAX)
    }

    fn cells(&self) -> String {
        let ms = |share| format!("{:.1}", self.at(share).as_secs_f64() * 1e3);
        format!("{} | {} | {} | {:.0}", ms(0.5), ms(0.95), ms(0.99), self.processor * 100.0)
    }
}

/// Requests at a rate, on connections that each have one under way.
async fn paced(
    server: SocketAddr,
    mix: &Arc<Mix>,
    rate: f64,
    connections: usize,
    time: Duration,
) -> Result<RateMeasurement> {
    let clients = join_all((0..connections).map(|_| Client::connect(server))).await;
    let clients = clients.into_iter().collect::<Result<Vec<_>>>()?;
    let processor = processor_time()?;
    let begun = Instant::now();
    let all = (rate * time.as_secs_f64()).ceil() as u64;
    let running = clients.into_iter().enumerate().map(|(number, mut client)| {
        let mix = mix.clone();
        // Each has every n-th request of the whole.
        tokio::spawn(async move {
            let mut random = SplitMix64::new((rate * 1e3) as u64 ^ (number as u64) << 40);
            let mut latencies = Vec::new();
            for request in (number as u64..all).step_by(connections) {
                let due = begun + Duration::from_secs_f64(request as f64 / rate);
                sleep_until(due.into()).await;
                if begun.elapsed() > time + LATE {
                    return Ok((latencies, false));
                }
                let Request { path, body } = mix.draw(&mut random);
                client.ask(&path, &body).await?;
                latencies.push(due.elapsed());
            }
            anyhow::Ok((latencies, true))
        })
    });
    let mut latencies = Vec::new();
    let mut is_complete = true;
    for done in join_all(running.collect::<Vec<_>>()).await {
        let (of_one, was_complete) = done??;
        latencies.extend(of_one);
        is_complete &= was_complete;
    }
    latencies.sort_unstable();
    let processor = (processor_time()? - processor).as_secs_f64() / begun.elapsed().as_secs_f64();
    Ok(RateMeasurement { latencies, is_complete, processor })
}

async fn print_counters(server: SocketAddr) -> Result<()> {
    let text = Client::connect(server).await?.metrics().await?;
    for line in text.lines().filter(|line| line.starts_with("hoplake_result_cache")) {
        println!("    {line}");
    }
    println!();
    Ok(())
}
