//! One-hop queries through a server on loopback, warm: queries a second, and latency at half of the peak.
//!
//! Server and client share this process and its processors, as they would share a machine of two cores. The peak is
//! a closed loop: each of many queries under way is followed by the next. Latency is then taken from an open loop at
//! half that rate and at half of the goal, from the moment at which a query was due, so that a stall counts for every
//! query it delays. A call costs more processor there than at the peak, where many share a read of the socket.

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use futures::{StreamExt, future::join_all};
use hoplake::{Graph, Key};
use hoplake_server::{
    ServerBuilder, Settings,
    v1::{self, graphs_client::GraphsClient, key::Kind, query_client::QueryClient, vertex_ref},
};
use hoplake_testkit::generate::SplitMix64;
use tokio::{sync::mpsc, time::sleep_until};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};

/// What to ask of what.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// A graph that `load` made.
    #[arg(long, default_value = "bench-data/kronecker-17.hoplake")]
    graph: PathBuf,
    /// The vertex label to start from.
    #[arg(long, default_value = "vertex")]
    label: String,
    /// The hop.
    #[arg(long, default_value = "out:edge")]
    hop: String,
    /// Keys are drawn below two to the power of this.
    #[arg(long, default_value_t = 17)]
    scale: u32,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Connections of the client.
    #[arg(long, default_value_t = 2)]
    connections: usize,
    /// Queries under way on each connection.
    #[arg(long, default_value_t = 64)]
    under_way: usize,
    /// Logs as `hoplake serve` does by default, a line a request, on standard error.
    #[arg(long)]
    log: bool,
}

/// Queries a second: half of what a server on two cores is to reach.
const HALF_OF_GOAL: f64 = 10_000.0;

/// The queries of a run: whom to start from, in turn.
struct Load {
    graph: v1::GraphRef,
    hop: v1::Hop,
    starts: Vec<v1::VertexRef>,
    next: AtomicU64,
    edges: AtomicU64,
}

impl Load {
    fn start(&self) -> v1::VertexRef {
        let turn = self.next.fetch_add(1, Ordering::Relaxed) as usize;
        self.starts[turn % self.starts.len()].clone()
    }

    fn unary(&self) -> v1::NeighborsRequest {
        let graph = Some(self.graph.clone());
        let hop = Some(self.hop.clone());
        v1::NeighborsRequest { graph, vertices: vec![self.start()], hop, ..Default::default() }
    }

    fn streamed(&self, query: u64, first: bool) -> v1::QueryNeighborsRequest {
        let graph = first.then(|| self.graph.clone());
        let hop = first.then(|| self.hop.clone());
        v1::QueryNeighborsRequest { query, graph, vertices: vec![self.start()], hop }
    }

    fn count(&self, edges: &[v1::Edges]) {
        self.edges.fetch_add(edges.iter().map(|run| run.to.len() as u64).sum(), Ordering::Relaxed);
    }
}

/// Prints a row for calls and one for streams.
pub fn run(arguments: &Arguments) -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(measure(arguments))
}

async fn measure(arguments: &Arguments) -> Result<()> {
    let telemetry = arguments
        .log
        .then(|| hoplake_telemetry::start("hoplake", hoplake_telemetry::LogFormat::Text, "info"))
        .transpose()?;
    let url = arguments.graph.to_str().context("the graph's path is not UTF-8")?;
    let load = Arc::new(load_of(arguments, url).await?);
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let settings = Settings { grpc: local, http: local, graphs: vec![format!("g={url}")], ..Settings::default() };
    let settings = Settings { queries_max: 1_024, ..settings };
    let server = ServerBuilder::new(settings).bind().await?;
    let address = format!("http://{}", server.grpc());
    tokio::spawn(server.run(std::future::pending()));
    let connect = (0..arguments.connections).map(|_| async { Endpoint::new(address.clone())?.connect().await });
    let channels = join_all(connect).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    println!("| by | queries/s | processor of a query, us | edges of a query | p50, us | p99, us |");
    println!("| --- | --- | --- | --- | --- | --- |");
    let time = Duration::from_secs(arguments.seconds);
    for way in [Way::Calls, Way::Streams] {
        // Once for the cache, and once for the clock.
        way.peak(arguments, &channels, &load, Duration::from_secs(2)).await?;
        let usage = Usage::begin(&load)?;
        let queries = way.peak(arguments, &channels, &load, time).await?;
        let rate = queries as f64 / time.as_secs_f64();
        println!("| {way:?}, as many as there can be | {rate:.0} | {} | | |", usage.of(queries)?);
        for rate in [rate / 2.0, HALF_OF_GOAL] {
            let usage = Usage::begin(&load)?;
            let mut micros = way.paced(&channels, &load, rate, time).await?;
            micros.sort_unstable();
            let at = |share: f64| micros[((micros.len() - 1) as f64 * share) as usize];
            let told = usage.of(micros.len() as u64)?;
            println!("| {way:?}, paced | {rate:.0} | {told} | {} | {} |", at(0.5), at(0.99));
        }
    }
    telemetry.into_iter().for_each(hoplake_telemetry::Telemetry::finish);
    Ok(())
}

/// The resources of queries from here on.
struct Usage<'a> {
    load: &'a Load,
    processor: Duration,
}

impl<'a> Usage<'a> {
    fn begin(load: &'a Load) -> Result<Self> {
        load.edges.store(0, Ordering::Relaxed);
        Ok(Self { load, processor: processor_time()? })
    }

    /// Microseconds of processor and edges of a query, as cells: of client and server together, whatever others do.
    fn of(&self, queries: u64) -> Result<String> {
        let each = |all: f64| all / queries as f64;
        let edges = each(self.load.edges.load(Ordering::Relaxed) as f64);
        ensure!(edges > 0.0, "no query found an edge");
        Ok(format!("{:.0} | {edges:.1}", each((processor_time()? - self.processor).as_secs_f64() * 1e6)))
    }
}

/// The processor time of this process so far, which Linux counts in hundredths of a second.
pub(super) fn processor_time() -> Result<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").context("the processor time is only known on Linux")?;
    // The name before the last parenthesis may have spaces; user and system time are the 12th and 13th after it.
    let fields = stat.rsplit_once(')').context("no name in /proc/self/stat")?.1.split_whitespace().skip(11).take(2);
    let ticks: u64 = fields.map(str::parse::<u64>).sum::<Result<_, _>>()?;
    Ok(Duration::from_millis(ticks * 10))
}

/// Starts that exist and have edges, in a seeded order.
async fn load_of(arguments: &Arguments, url: &str) -> Result<Load> {
    let graph = Graph::open(url).await?;
    let mut random = SplitMix64::new(7);
    let keys: Vec<_> = (0..40_000).map(|_| random.below(1 << arguments.scale) as i64).collect();
    let named: Vec<_> = keys.iter().map(|key| (arguments.label.as_str(), Key::from(*key))).collect();
    let found = graph.query().vertices(&named).await?;
    let vertex = |key: &i64| v1::VertexRef {
        kind: Some(vertex_ref::Kind::Key(vertex_ref::LabelledKey {
            label: arguments.label.clone(),
            key: Some(v1::Key { kind: Some(Kind::Int64(*key)) }),
        })),
    };
    let starts: Vec<_> =
        keys.iter().zip(found).filter(|(_, vertex)| vertex.is_some()).map(|(key, _)| vertex(key)).collect();
    ensure!(!starts.is_empty(), "no key below 2^{} is in the graph", arguments.scale);
    let hop = v1::Hop { text: arguments.hop.clone(), ..Default::default() };
    let graph = v1::GraphRef { name: "g".into(), version: 0 };
    Ok(Load { graph, hop, starts, next: AtomicU64::new(0), edges: AtomicU64::new(0) })
}

/// How queries travel.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// A call of `Graphs.Neighbors` each.
    Calls,
    /// Many on a stream of `Query.Neighbors`.
    Streams,
}

impl Way {
    /// Queries that were answered in a closed loop of this time.
    async fn peak(self, arguments: &Arguments, channels: &[Channel], load: &Arc<Load>, time: Duration) -> Result<u64> {
        let until = Instant::now() + time;
        let mut running = Vec::new();
        for channel in channels {
            match self {
                Self::Calls => running.extend((0..arguments.under_way).map(|_| {
                    let client = GraphsClient::new(channel.clone());
                    let load = load.clone();
                    tokio::spawn(call_until(client, load, until))
                })),
                Self::Streams => {
                    let client = QueryClient::new(channel.clone());
                    let load = load.clone();
                    running.push(tokio::spawn(stream_until(client, load, arguments.under_way, until)));
                }
            }
        }
        let mut queries = 0;
        for done in join_all(running).await {
            queries += done??;
        }
        Ok(queries)
    }

    /// The latency of each query at this rate, in microseconds, from when it was due.
    async fn paced(self, channels: &[Channel], load: &Arc<Load>, rate: f64, time: Duration) -> Result<Vec<u64>> {
        let each = rate / channels.len() as f64;
        let running = channels.iter().map(|channel| match self {
            Self::Calls => tokio::spawn(paced_calls(GraphsClient::new(channel.clone()), load.clone(), each, time)),
            Self::Streams => tokio::spawn(paced_stream(QueryClient::new(channel.clone()), load.clone(), each, time)),
        });
        let mut micros = Vec::new();
        for done in join_all(running.collect::<Vec<_>>()).await {
            micros.extend(done??);
        }
        Ok(micros)
    }
}

async fn one_call(client: &mut GraphsClient<Channel>, load: &Load) -> Result<()> {
    let mut answer = client.neighbors(load.unary()).await?.into_inner();
    while let Some(message) = answer.message().await? {
        load.count(&message.edges);
    }
    Ok(())
}

async fn call_until(mut client: GraphsClient<Channel>, load: Arc<Load>, until: Instant) -> Result<u64> {
    let mut queries = 0;
    while Instant::now() < until {
        one_call(&mut client, &load).await?;
        queries += 1;
    }
    Ok(queries)
}

async fn stream_until(
    mut client: QueryClient<Channel>,
    load: Arc<Load>,
    under_way: usize,
    until: Instant,
) -> Result<u64> {
    let (send, queries) = mpsc::channel(under_way);
    for query in 0..under_way as u64 {
        send.send(load.streamed(query, query == 0)).await?;
    }
    let mut answers = client.neighbors(ReceiverStream::new(queries)).await?.into_inner();
    let mut sent = under_way as u64;
    let mut answered = 0;
    let mut send = Some(send);
    while let Some(answer) = answers.next().await {
        let answer = answer?;
        if let Some(failure) = answer.failure {
            bail!("{}", failure.message);
        }
        load.count(&answer.edges);
        answered += 1;
        if Instant::now() >= until {
            send = None;
        }
        if let Some(send) = &send {
            send.send(load.streamed(sent, false)).await?;
            sent += 1;
        }
    }
    Ok(answered)
}

/// When the queries of an open loop are due: the timer ticks in milliseconds, so those of one come together.
struct Schedule {
    begun: Instant,
    rate: f64,
    sent: u64,
    all: u64,
}

impl Schedule {
    fn new(rate: f64, time: Duration) -> Self {
        Self { begun: Instant::now(), rate, sent: 0, all: (rate * time.as_secs_f64()) as u64 }
    }

    /// Waits for the next tick and returns the times at which its queries were due.
    async fn next(&mut self) -> Vec<Instant> {
        let due = |query: u64, rate: f64| self.begun + Duration::from_secs_f64(query as f64 / rate);
        let mut times = Vec::new();
        while times.is_empty() && self.sent < self.all {
            sleep_until((Instant::now() + Duration::from_millis(1)).into()).await;
            let now = Instant::now();
            while self.sent < self.all && due(self.sent, self.rate) <= now {
                times.push(due(self.sent, self.rate));
                self.sent += 1;
            }
        }
        times
    }
}

async fn paced_calls(client: GraphsClient<Channel>, load: Arc<Load>, rate: f64, time: Duration) -> Result<Vec<u64>> {
    let mut schedule = Schedule::new(rate, time);
    let mut running = Vec::new();
    loop {
        let times = schedule.next().await;
        if times.is_empty() {
            break;
        }
        running.extend(times.into_iter().map(|due| {
            let mut client = client.clone();
            let load = load.clone();
            tokio::spawn(async move { one_call(&mut client, &load).await.map(|()| due.elapsed().as_micros() as u64) })
        }));
    }
    join_all(running).await.into_iter().map(|done| done?).collect()
}

async fn paced_stream(
    mut client: QueryClient<Channel>,
    load: Arc<Load>,
    rate: f64,
    time: Duration,
) -> Result<Vec<u64>> {
    let (send, queries) = mpsc::channel(1 << 16);
    let mut schedule = Schedule::new(rate, time);
    let begun = schedule.begun;
    let sender = load.clone();
    let sending = tokio::spawn(async move {
        let mut first = true;
        loop {
            let times = schedule.next().await;
            if times.is_empty() {
                return Ok::<_, anyhow::Error>(());
            }
            for due in times {
                // The number of a query determines when it was due.
                let query = due.duration_since(begun).as_micros() as u64;
                send.send(sender.streamed(query, std::mem::take(&mut first))).await?;
            }
        }
    });
    let mut answers = client.neighbors(ReceiverStream::new(queries)).await?.into_inner();
    let mut micros = Vec::new();
    while let Some(answer) = answers.next().await {
        let answer = answer?;
        load.count(&answer.edges);
        micros.push((begun.elapsed().as_micros() as u64).saturating_sub(answer.query));
    }
    sending.await??;
    Ok(micros)
}
