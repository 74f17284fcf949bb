//! The workload through none to three access nodes, in real time.
//!
//! Servers on loopback, gRPC between them, as they are deployed: a client, an algorithm node, access nodes, each of
//! these before a simulated store of its own; no access node is one server before the store. All of them and the
//! client share this process and its processors. The simulator's waits are tokio's and the clock runs, so what is
//! measured is what a client sees, the work of every node included.
//!
//! Each node keeps the same few bytes in memory, fewer than the workload touches, so that the rounds tell what the nodes
//! hold together: one from empty caches, one more of the same, one through another algorithm node that has just
//! started.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use hoplake::{Graph, LabelId, ReadSettings, StoreProfile, Strategy, VertexId};
use hoplake_server::{
    Role, Server, ServerBuilder, Settings,
    v1::{
        self, graphs_client::GraphsClient, traverse_request::Output, traverse_response::Kind, vertex_ref::Kind as Name,
    },
};
use hoplake_testkit::{
    Sim,
    clock::{Quantiles, in_virtual_time},
};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    runtime::Runtime,
};
use tonic::transport::{Channel, Endpoint};

use super::{
    queries::{self, Case},
    run::{self, Answers, Manner},
    subject::{Setup, Subject},
};

/// The most access nodes that are tried.
const ACCESS_NODES_MAX: usize = 3;
/// Memory of each node: under half of what the workload touches at the large size.
const CACHE_BYTES_MAX: u64 = 4 << 20;
/// After this time the background reads of a round and its slowest requests have ended.
const SETTLING: Duration = Duration::from_millis(1_500);
/// As the nodes know the graph.
const GRAPH: &str = "g";

/// What the part measures.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Figures {
    /// The memory cache of each node, in bytes.
    pub cache_bytes_max: u64,
    /// All rounds.
    pub rounds: Vec<Round>,
}

/// Which round of the workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Turn {
    /// From empty caches.
    First,
    /// The same once more.
    Again,
    /// Once more, through another algorithm node with an empty cache.
    Another,
}

/// One round of the workload.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Round {
    /// 0: the server reads the store itself.
    pub access_nodes: usize,
    /// Queries at once.
    pub at_once: usize,
    /// Which of the rounds.
    pub turn: Turn,
    /// From the first query to the last answer.
    pub seconds: f64,
    /// The processor's, of client and all nodes.
    pub processor_s: f64,
    /// Milliseconds of a query, as the client sees it.
    pub ms: Quantiles,
    /// GET requests to the store, of each node that reads it.
    pub requests: Vec<u64>,
    /// Bytes that came with them.
    pub bytes: u64,
    /// Dollars for both.
    pub usd: f64,
    /// Requests of the algorithm node to access nodes.
    pub fetches: u64,
    /// Requests that the server asked sent a second time, because the first was slow.
    pub hedges: u64,
}

/// What came of a query.
struct Answer {
    /// Ascending.
    found: Vec<VertexId>,
    ms: f64,
    hedges: u64,
}

/// What is asked, and what the answers must be.
struct Workload<'a> {
    subject: &'a Subject,
    graph: Graph,
    cases: Vec<Case>,
    expected: Answers,
}

/// Runs all rounds; every answer is held against the embedded graph's.
pub fn measure(subject: &Subject) -> Result<Figures> {
    let (graph, cases, expected) = in_virtual_time(async {
        let graph = subject.open_local().await?;
        let cases = queries::workload(subject, &graph, 1).await?;
        let embedded = subject.open(&Setup::standard(256 << 20)).await?;
        let (_, expected) = run::hoplake(&embedded, &cases, Manner::sequential(Strategy::Bfs)).await?;
        Ok::<_, anyhow::Error>((graph, cases, expected))
    })?;
    let workload = Workload { subject, graph, cases, expected };
    let mut rounds = Vec::new();
    for access_nodes in 0..=ACCESS_NODES_MAX {
        for at_once in [1, 10] {
            // One for each, so that its servers end with it.
            let runtime = Runtime::new()?;
            let some = runtime.block_on(workload.through(access_nodes, at_once));
            runtime.shutdown_background();
            rounds.extend(some?);
        }
    }
    Ok(Figures { cache_bytes_max: CACHE_BYTES_MAX, rounds })
}

impl Workload<'_> {
    async fn through(&self, access_nodes: usize, at_once: usize) -> Result<Vec<Round>> {
        let mut nodes = Vec::new();
        for _ in 0..access_nodes {
            nodes.push(Node::start(self.subject, Role::Access, nodes.len()).await?);
        }
        let first = front(self.subject, &mut nodes, access_nodes).await?;
        let mut rounds = vec![
            self.round(&nodes, &first, at_once, Turn::First).await?,
            self.round(&nodes, &first, at_once, Turn::Again).await?,
        ];
        let another = front(self.subject, &mut nodes, access_nodes).await?;
        rounds.push(self.round(&nodes, &another, at_once, Turn::Another).await?);
        rounds.iter_mut().for_each(|round| round.access_nodes = access_nodes);
        for Round { turn, seconds, requests, fetches, .. } in &rounds {
            eprintln!(
                "{access_nodes} access nodes, {at_once} at once, {turn:?}: {seconds:.2} s, {fetches} fetches, {requests:?} requests"
            );
        }
        Ok(rounds)
    }

    async fn round(&self, nodes: &[Node], client: &Client, at_once: usize, turn: Turn) -> Result<Round> {
        tokio::time::sleep(SETTLING).await;
        nodes.iter().for_each(|node| node.sim.reset_counts());
        let fetches = fetches(nodes).await?;
        let processor = processor_s();
        let begun = Instant::now();
        let answers: Vec<Answer> =
            stream::iter(&self.cases).map(|case| ask(client.clone(), case)).buffered(at_once).try_collect().await?;
        let seconds = begun.elapsed().as_secs_f64();
        let processor_s = processor_s() - processor;
        tokio::time::sleep(SETTLING).await;
        let (ms, hedges) =
            (Quantiles::of(answers.iter().map(|answer| answer.ms)), answers.iter().map(|answer| answer.hedges).sum());
        let found: Answers = answers.into_iter().map(|answer| answer.found).collect();
        run::check(&self.graph, &self.cases, &found, &self.expected).await?;
        let counts: Vec<_> = nodes.iter().map(|node| node.sim.counts()).collect();
        Ok(Round {
            access_nodes: 0,
            at_once,
            turn,
            seconds,
            processor_s,
            ms,
            requests: counts.iter().map(|counts| counts.requests.get).collect(),
            bytes: counts.iter().map(|counts| counts.bytes_read).sum(),
            usd: nodes.iter().map(|node| node.sim.usd()).sum(),
            fetches: self::fetches(nodes).await? - fetches,
            hedges,
        })
    }
}

/// A server that reads the store.
struct Node {
    grpc: SocketAddr,
    http: SocketAddr,
    sim: Sim,
}

impl Node {
    async fn start(subject: &Subject, role: Role, seed: usize) -> Result<Self> {
        let (sim, store) = subject.store(StoreProfile::s3_standard(), seed as u64 + 1);
        let settings = Settings { role, graphs: vec![format!("{GRAPH}=s3://evaluation")], ..settings() };
        let server = ServerBuilder::new(settings).open_stores_with(Arc::new(move |_| Ok(store.clone())));
        let (grpc, http) = run_beside(server.bind().await?);
        Ok(Self { grpc, http, sim })
    }
}

/// Free ports of loopback, and little memory.
fn settings() -> Settings {
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let read = ReadSettings { cache_bytes_max: CACHE_BYTES_MAX, ..ReadSettings::default() };
    Settings { grpc: local, http: local, read, ..Settings::default() }
}

fn run_beside(server: Server) -> (SocketAddr, SocketAddr) {
    let addresses = (server.grpc(), server.http());
    tokio::spawn(server.run(std::future::pending()));
    addresses
}

type Client = GraphsClient<Channel>;

/// Starts whom clients ask: an algorithm node, or without access nodes a server that reads the store itself. Its
/// graph is open.
async fn front(subject: &Subject, nodes: &mut Vec<Node>, access_nodes: usize) -> Result<Client> {
    let grpc = if access_nodes == 0 {
        nodes.push(Node::start(subject, Role::All, nodes.len()).await?);
        nodes[nodes.len() - 1].grpc
    } else {
        let access_nodes = nodes.iter().map(|node| format!("http://{}", node.grpc)).collect();
        let settings = Settings { role: Role::Algorithm, access_nodes, ..settings() };
        run_beside(ServerBuilder::new(settings).bind().await?).0
    };
    let mut client = GraphsClient::new(Endpoint::new(format!("http://{grpc}"))?.connect().await?);
    client.get_graph(v1::GetGraphRequest { graph: graph() }).await?;
    Ok(client)
}

fn graph() -> Option<v1::GraphRef> {
    Some(v1::GraphRef { name: GRAPH.into(), version: 0 })
}

async fn ask(mut client: Client, case: &Case) -> Result<Answer> {
    let begun = Instant::now();
    let start = Name::Text(case.start.to_string());
    let hops = case.hops.iter().map(|hop| v1::Hop { text: hop.to_string(), ..v1::Hop::default() });
    let traversal = v1::Traversal {
        starts: vec![v1::VertexRef { kind: Some(start) }],
        hops: hops.collect(),
        parallelism: 1,
        ..v1::Traversal::default()
    };
    let request = v1::TraverseRequest {
        graph: graph(),
        traversal: Some(traversal),
        output: Output::Ids.into(),
        ..<_>::default()
    };
    let mut messages = client.traverse(request).await?.into_inner();
    let mut ids = Vec::new();
    let mut hedges = 0;
    while let Some(message) = messages.message().await? {
        match message.kind {
            Some(Kind::Vertices(vertices)) => ids.extend(vertices.ids),
            Some(Kind::Statistics(statistics)) => hedges = statistics.cost.unwrap_or_default().hedges,
            _ => {}
        }
    }
    let ms = begun.elapsed().as_secs_f64() * 1e3;
    let vertex = |id: u64| VertexId::new(LabelId((id >> 48) as u16), id & VertexId::ORDINAL_MAX);
    let found = ids.into_iter().map(vertex).collect::<Option<_>>().context("ordinals fit")?;
    Ok(Answer { found, ms, hedges })
}

/// Requests for blocks that nodes were sent so far, as they tell.
async fn fetches(nodes: &[Node]) -> Result<u64> {
    let mut sum = 0;
    for node in nodes {
        let mut connection = TcpStream::connect(node.http).await?;
        connection.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").await?;
        let mut text = String::new();
        connection.read_to_string(&mut text).await?;
        let counters =
            text.lines().filter(|line| line.contains("requests_total{") && line.contains("\"Blocks.Fetch\""));
        for counter in counters {
            let (_, number) = counter.rsplit_once(' ').context("a counter has a number")?;
            sum += number.parse::<u64>()?;
        }
    }
    Ok(sum)
}

/// The processor time of this process, in seconds.
fn processor_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32).as_secs_f64()
}
