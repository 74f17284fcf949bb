//! A server under clients that mean it ill: whether its memory, its probes and its end stay within their bounds.
//!
//! A real `hoplake serve` process on loopback, on a generated graph; clients of every kind in [`clients`] for a while,
//! each beginning anew when it was answered or cut off. Meanwhile the process's resident memory is read from `/proc`,
//! and `/healthz` is asked on a connection of its own twenty times a second. At the end, with all clients still at it,
//! the server gets SIGTERM.

mod clients;
mod grpc;
mod http;
mod http2;
mod target;
mod websocket;

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use clap::Args;
use hoplake::LoadOptions;
use hoplake_server::Settings;
use hoplake_testkit::{HoplakeServer, generate::kronecker};
use tokio::time::sleep;

use clients::Kind;
use target::{TOKEN, Target};

/// Memory in addition to caches, bytes in flight and the budget: code, connections, indexes, and what the allocator
/// keeps.
const REST_BYTES: u64 = 256 << 20;

/// What to attack, and for how long.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// The `hoplake` command; by default the one next to this one.
    #[arg(long)]
    hoplake: Option<PathBuf>,
    /// The number of vertices is two to the power of this.
    #[arg(long, default_value_t = 20)]
    scale: u32,
    /// Edges of each vertex.
    #[arg(long, default_value_t = 24)]
    edges: u64,
    /// Clients, of each kind in turn.
    #[arg(long, default_value_t = 100)]
    clients: usize,
    /// Only clients of this kind.
    #[arg(long)]
    only: Option<String>,
    /// How long they are at it.
    #[arg(long, default_value_t = 300)]
    seconds: u64,
    /// Settings of the server, as in `memory_bytes_max=536870912`.
    #[arg(long)]
    set: Vec<String>,
    /// Where graphs go.
    #[arg(long, default_value = "bench-data")]
    folder: PathBuf,
}

/// How often each kind of client saw what.
type Outcomes = Arc<Mutex<BTreeMap<(&'static str, String), u64>>>;

/// Prints what the server held.
pub fn run(arguments: &Arguments) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(attack(arguments))
}

async fn attack(arguments: &Arguments) -> Result<()> {
    load(arguments).await?;
    let mut server = Server::start(arguments)?;
    let outcomes = Outcomes::default();
    let target = Target { http: server.process.http(), grpc: server.process.grpc(), vertices: 1 << arguments.scale };
    let kinds: Vec<_> = Kind::ALL
        .into_iter()
        .filter(|kind| arguments.only.as_ref().is_none_or(|only| kind.name().contains(only.as_str())))
        .collect();
    ensure!(!kinds.is_empty(), "no kind of client has that in its name");
    let clients: Vec<_> = (0..arguments.clients)
        .map(|number| tokio::spawn(at_it(kinds[number % kinds.len()], target, number as u64, outcomes.clone())))
        .collect();
    let http = server.process.http();
    let time = Duration::from_secs(arguments.seconds);
    let probing = tokio::task::spawn_blocking(move || probe(http, time));
    let begun = Instant::now();
    let mut samples = Vec::new();
    while begun.elapsed() < time && server.process.status()?.is_none() {
        samples.push(server.memory("VmRSS:").unwrap_or(0));
        sleep(Duration::from_millis(200)).await;
    }
    let peak = server.memory("VmHWM:").unwrap_or_else(|_| samples.iter().copied().max().unwrap_or(0));
    let probes = probing.await?;
    // It blocks this thread; clients run on others.
    let asked = Instant::now();
    let status = server.process.terminate(Duration::from_secs(120))?;
    let ended = (status.is_some_and(|status| status.success()), asked.elapsed());
    clients.iter().for_each(tokio::task::JoinHandle::abort);
    report(&server.settings, peak, &samples, probes, ended, &outcomes);
    Ok(())
}

/// One client, again and again.
async fn at_it(kind: Kind, target: Target, number: u64, outcomes: Outcomes) {
    for round in 0.. {
        let outcome = clients::once(kind, target, number << 32 | round).await;
        let outcome = outcome.unwrap_or_else(|error| error.root_cause().to_string());
        *outcomes.lock().expect("no client panics").entry((kind.name(), outcome)).or_default() += 1;
        // A server that refuses at once must not make this a busy loop.
        sleep(Duration::from_millis(20)).await;
    }
}

/// Times of `/healthz`; `None` means no answer within 5 seconds. On a thread of its own, so that it does not wait for
/// the clients.
fn probe(http: SocketAddr, time: Duration) -> Vec<Option<Duration>> {
    let begun = Instant::now();
    let mut times = Vec::new();
    while begun.elapsed() < time {
        let asked = Instant::now();
        times.push(is_healthy(http).is_ok_and(|healthy| healthy).then(|| asked.elapsed()));
        thread::sleep(Duration::from_millis(50));
    }
    times
}

fn is_healthy(http: SocketAddr) -> io::Result<bool> {
    let time = Duration::from_secs(5);
    let mut stream = TcpStream::connect_timeout(&http, time)?;
    stream.set_read_timeout(Some(time))?;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.starts_with("HTTP/1.1 200"))
}

/// A graph of persons who know each other, written and loaded once.
async fn load(arguments: &Arguments) -> Result<()> {
    let folder = arguments.folder.join(graph_name(arguments));
    if folder.exists() {
        return Ok(());
    }
    let input = arguments.folder.join("hostile-input");
    fs::create_dir_all(&input)?;
    write_input(arguments, &input)?;
    let url = folder.to_str().context("the folder is not UTF-8")?;
    hoplake::load(url, LoadOptions::from_paths([&input])).await?;
    Ok(fs::remove_dir_all(&input)?)
}

fn graph_name(arguments: &Arguments) -> String {
    format!("hostile-{}-{}", arguments.scale, arguments.edges)
}

fn write_input(arguments: &Arguments, input: &Path) -> Result<()> {
    let create = |name: &str| Ok::<_, io::Error>(io::BufWriter::new(fs::File::create(input.join(name))?));
    let mut people = create("Person.csv")?;
    writeln!(people, ":ID(Person),name,city")?;
    for person in 0..1u64 << arguments.scale {
        writeln!(people, "{person},A person of number {person},City {}", person % 1_000)?;
    }
    people.flush()?;
    let mut knows = create("knows.csv")?;
    writeln!(knows, ":START_ID(Person),:END_ID(Person),:TYPE")?;
    for (from, to) in kronecker(arguments.scale, arguments.edges, 7) {
        writeln!(knows, "{from},{to},knows")?;
    }
    Ok(knows.flush()?)
}

/// A `hoplake serve` that was started for this.
struct Server {
    process: HoplakeServer,
    settings: Settings,
}

impl Server {
    fn start(arguments: &Arguments) -> Result<Self> {
        let beside = || Ok::<_, anyhow::Error>(std::env::current_exe()?.with_file_name("hoplake"));
        let hoplake = arguments.hoplake.clone().map_or_else(beside, Ok)?;
        ensure!(
            hoplake.exists(),
            "there is no {}; build it with cargo build --release -p hoplake-cli",
            hoplake.display()
        );
        // Short, since every run waits for them.
        let own = ["notice_ms=200", "grace_ms=2000"].map(str::to_owned);
        let sets: Vec<_> = own.iter().chain(&arguments.set).cloned().collect();
        let settings: Settings = toml::from_str(&nested(&sets))?;
        let graph = arguments.folder.join(graph_name(arguments));
        let mut command = Command::new(hoplake);
        command.arg("serve").arg(format!("g={}", graph.display())).args(["--log", "error"]);
        for set in &sets {
            command.args(["--set", set]);
        }
        let process = HoplakeServer::start(command.env("HOPLAKE_TOKEN", TOKEN))?;
        Ok(Self { process, settings })
    }

    /// A line of its status, in bytes.
    fn memory(&self, name: &str) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.process_id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name)).context("no such line")?;
        Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? << 10)
    }
}

/// `limits.time_ms=5` as TOML; dotted keys are tables there, too.
fn nested(sets: &[String]) -> String {
    sets.join("\n")
}

fn mib(bytes: u64) -> u64 {
    bytes >> 20
}

fn report(
    settings: &Settings,
    peak: u64,
    samples: &[u64],
    mut probes: Vec<Option<Duration>>,
    (ended, time): (bool, Duration),
    outcomes: &Outcomes,
) {
    let cache = settings.read.cache_bytes_max;
    let in_flight = settings.read.in_flight_bytes_max;
    let sum = cache + settings.memory_bytes_max + REST_BYTES;
    let mut text = String::from("| what | seen | bound |\n| --- | --- | --- |\n");
    let last = samples.last().copied().unwrap_or(0);
    let _ = writeln!(
        text,
        "| resident memory, peak (at the end), MiB | {} ({}) | {}: cache {}, budget {}, rest {}; and {} in flight |",
        mib(peak),
        mib(last),
        mib(sum),
        mib(cache),
        mib(settings.memory_bytes_max),
        mib(REST_BYTES),
        mib(in_flight)
    );
    probes.sort_unstable_by_key(|time| time.unwrap_or(Duration::MAX));
    let at = |part: f64| probes.get(((probes.len() as f64 * part) as usize).min(probes.len().saturating_sub(1)));
    let ms = |time: Option<&Option<Duration>>| match time {
        Some(Some(time)) => format!("{:.1}", time.as_secs_f64() * 1e3),
        _ => "none".to_owned(),
    };
    let _ = writeln!(
        text,
        "| `/healthz`, ms: p50, p99, longest of {} | {}, {}, {} | 100 |",
        probes.len(),
        ms(at(0.5)),
        ms(at(0.99)),
        ms(at(1.0))
    );
    let bound = settings.notice_ms + settings.grace_ms + 1_000;
    let how = if ended { "status 0" } else { "not well" };
    let _ = writeln!(text, "| from SIGTERM to the end, ms | {} ({how}) | {bound} |", time.as_millis());
    text.push_str("\n| client | outcomes |\n| --- | --- |\n");
    let mut by_kind: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for ((kind, outcome), count) in &*outcomes.lock().expect("no client panics") {
        by_kind.entry(kind).or_default().push(format!("{count} × {outcome}"));
    }
    for (kind, seen) in &by_kind {
        let _ = writeln!(text, "| {kind} | {} |", seen.join(", "));
    }
    print!("{text}");
}
