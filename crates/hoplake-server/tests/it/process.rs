//! A server in a process of its own, whose memory the system measures.

use std::{fs::File, net::SocketAddr, path::Path, process::Stdio, time::Duration};

use hoplake_server::{ServerBuilder, Settings};
use hoplake_telemetry::LogFormat;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    time::timeout,
};

use crate::sample;

/// Where the settings of the other process are.
const SETTINGS: &str = "HOPLAKE_TEST_SERVER";
/// From which level on it logs, if it does.
const LOG: &str = "HOPLAKE_TEST_SERVER_LOG";
/// What it says before its addresses.
const LISTENING: &str = "listening: ";

/// A server that ends with the test. It has the graph `g`, if its settings name no other.
pub(crate) struct ServerProcess {
    child: Child,
    pub(crate) http: SocketAddr,
    pub(crate) grpc: SocketAddr,
}

impl ServerProcess {
    pub(crate) async fn start(settings: &Settings) -> Self {
        Self::run(&mut Self::command(settings)).await
    }

    /// A server whose warnings are written to a file, as those of the program would be.
    pub(crate) async fn start_with_log(settings: &Settings, log: &Path) -> Self {
        let mut command = Self::command(settings);
        Self::run(command.env(LOG, "warn").stderr(File::create(log).unwrap())).await
    }

    fn command(settings: &Settings) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "process::serves", "--ignored", "--nocapture"])
            .env(SETTINGS, serde_json::to_string(settings).unwrap())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    async fn run(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let listening = async {
            loop {
                let line = lines.next_line().await.unwrap().expect("the server listens");
                if let Some((_, addresses)) = line.split_once(LISTENING) {
                    let (http, grpc) = addresses.split_once(' ').unwrap();
                    break (http.parse().unwrap(), grpc.parse().unwrap());
                }
            }
        };
        let (http, grpc) = timeout(Duration::from_secs(60), listening).await.expect("the server listens");
        Self { child, http, grpc }
    }

    /// The resident memory of the process, now and at its highest, in bytes.
    pub(crate) fn memory(&self) -> (u64, u64) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id().unwrap())).unwrap();
        let field = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
        };
        (field("VmRSS:"), field("VmHWM:"))
    }
}

/// The other process.
#[test]
#[ignore = "a part of the tests that have a server in another process"]
fn serves() {
    let Ok(settings) = std::env::var(SETTINGS) else { return };
    let mut settings: Settings = serde_json::from_str(&settings).unwrap();
    let _log = std::env::var(LOG).ok().map(|from| hoplake_telemetry::start("hoplake", LogFormat::Text, &from).unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        if settings.graphs.is_empty() {
            settings.graphs.push(sample::in_memory("g").await);
        }
        let server = ServerBuilder::new(settings).bind().await.unwrap();
        println!("\n{LISTENING}{} {}", server.http(), server.grpc());
        server.run(std::future::pending()).await.unwrap();
    });
}
