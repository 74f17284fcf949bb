//! What idle connections of Gremlin drivers cost a server: its resident memory with none, with all that have asked once and wait, and
//! after they have gone.
//!
//! The server is a process of its own, so that its memory and its file descriptors are its own.

use std::{
    io::{BufRead, BufReader, Write},
    net::SocketAddr,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use futures::{SinkExt, StreamExt, TryStreamExt};
use hoplake::{
    Graph, Store,
    gremlin::{
        graphbinary,
        message::{Query, Request},
        value::Value,
    },
};
use hoplake_server::{ServerBuilder, Settings};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpStream;
use tokio_tungstenite::{WebSocketStream, client_async, tungstenite::Message};

/// How many, and for how long.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// Connections.
    #[arg(long, default_value_t = 10_000)]
    connections: usize,
    /// Seconds for which they wait.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Be the server, and print where it listens.
    #[arg(long, hide = true)]
    as_server: bool,
}

/// Connections that are opened at a time.
const OPENING: usize = 64;
/// Descriptors that are not connections.
const OTHERS: u64 = 64;

type Socket = WebSocketStream<TcpStream>;

/// Prints a table.
pub fn run(arguments: &Arguments) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    let runtime = tokio::runtime::Runtime::new()?;
    match arguments.as_server {
        true => runtime.block_on(serve(arguments)),
        false => runtime.block_on(measure(arguments, limit.maximum)),
    }
}

async fn serve(arguments: &Arguments) -> Result<()> {
    let url = "memory://idle-connections/g";
    Graph::create(&Store::open(url)?).await?;
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let connections_max = arguments.connections + OTHERS as usize;
    let settings = Settings {
        grpc: local,
        http: local,
        graphs: vec![format!("g={url}")],
        connections_max,
        half_open_max: OPENING * 2,
        ..Settings::default()
    };
    let server = ServerBuilder::new(settings).bind().await?;
    println!("{}", server.http());
    std::io::stdout().flush()?;
    Ok(server.run(std::future::pending()).await?)
}

async fn measure(arguments: &Arguments, descriptors: Option<u64>) -> Result<()> {
    let Arguments { connections, seconds, .. } = *arguments;
    if let Some(most) = descriptors.filter(|most| *most < connections as u64 + OTHERS) {
        bail!(
            "a process may have {most} descriptors here: raise the limit (ulimit -Hn), or ask for fewer --connections"
        );
    }
    let mut server = Command::new(std::env::current_exe()?)
        .args(["idle-connections", "--as-server", "--connections", &connections.to_string()])
        .stdout(Stdio::piped())
        .spawn()?;
    let outcome = async {
        let mut line = String::new();
        BufReader::new(server.stdout.take().context("the server has an output")?).read_line(&mut line)?;
        let address: SocketAddr = line.trim().parse().context("the server says where it listens")?;
        // What the first request makes it load is not the connections'.
        ask(&mut connect(address).await?).await?;
        println!("| | resident, MiB | a query more, ms |");
        println!("| --- | --- | --- |");
        row("no connection", server.id(), address).await?;
        let begun = Instant::now();
        let opening = futures::stream::iter(0..connections).map(|_| async {
            let mut socket = connect(address).await?;
            ask(&mut socket).await?;
            Ok::<_, anyhow::Error>(socket)
        });
        let sockets: Vec<Socket> = opening.buffer_unordered(OPENING).try_collect().await?;
        let opened = begun.elapsed();
        row(&format!("{connections} that have just asked"), server.id(), address).await?;
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        row(&format!("{connections}, idle for {seconds} s"), server.id(), address).await?;
        drop(sockets);
        tokio::time::sleep(Duration::from_secs(2)).await;
        row("all gone", server.id(), address).await?;
        println!("opened in {:.1} s", opened.as_secs_f64());
        Ok(())
    }
    .await;
    server.kill()?;
    server.wait()?;
    outcome
}

async fn row(what: &str, server: u32, address: SocketAddr) -> Result<()> {
    let memory = resident(server)?;
    let mut socket = connect(address).await?;
    let begun = Instant::now();
    ask(&mut socket).await?;
    println!("| {what} | {:.0} | {:.1} |", memory, begun.elapsed().as_secs_f64() * 1e3);
    Ok(())
}

/// Resident memory of a process, in MiB.
fn resident(process: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("the system tells resident memory")?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib / 1024.0)
}

async fn connect(address: SocketAddr) -> Result<Socket> {
    let stream = TcpStream::connect(address).await?;
    Ok(client_async(format!("ws://{address}/gremlin"), stream).await?.0)
}

async fn ask(socket: &mut Socket) -> Result<()> {
    let aliases = Value::Map(vec![("g".into(), "g".into())]);
    let request = Request {
        id: Default::default(),
        op: "eval".into(),
        processor: "".into(),
        query: Some(Query::Text("g.V().limit(1).count()".into())),
        arguments: vec![("aliases".into(), aliases)],
    };
    let mut message = vec![graphbinary::MEDIA_TYPE.len() as u8];
    message.extend(graphbinary::MEDIA_TYPE.as_bytes());
    graphbinary::write_request(&request, &mut message)?;
    socket.send(Message::Binary(message.into())).await?;
    let Some(Message::Binary(answer)) = socket.next().await.transpose()? else {
        bail!("the server ended the connection")
    };
    let answer = graphbinary::read_response(&answer)?;
    ensure!(answer.status == 200, "{}: {}", answer.status, answer.message.unwrap_or_default());
    Ok(())
}
