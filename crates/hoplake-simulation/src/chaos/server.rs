//! A real `hoplake serve`, and the clients that ask it.

use std::{io::BufRead, net::SocketAddr, process::Command, time::Duration};

use anyhow::Context;

use super::crew::{Orders, Process};

/// The name of the graph at the server.
pub(super) const GRAPH: &str = "tormented";

/// The longest that a query may take there.
pub(super) const QUERY_TIME: Duration = Duration::from_secs(8);

/// Settings of a server whose caches are full soon, which follows the graph closely, and which gives up on the store before
/// a query is over.
fn settings() -> Vec<String> {
    let own = [
        ("refresh_ms", 200),
        ("memory_bytes_max", 64 << 20),
        ("notice_ms", 0),
        ("grace_ms", 2_000),
        ("read.cache_bytes_max", 8 << 20),
        ("read.in_flight_bytes_max", 32 << 20),
        ("limits.time_ms", QUERY_TIME.as_millis() as u64),
    ];
    own.iter().map(|(name, value)| format!("{name}={value}")).collect()
}

/// A server that runs.
pub(super) struct Server {
    pub(super) number: u32,
    process: Process,
    pub(super) http: SocketAddr,
}

impl Server {
    /// Starts the command, and returns when it listens.
    pub(super) fn start(number: u32, orders: &Orders) -> anyhow::Result<Self> {
        let hoplake = orders.hoplake.as_ref().context("a server needs the hoplake command")?;
        let mut command = Command::new(hoplake);
        command.arg("serve").arg(format!("{GRAPH}={}", orders.url));
        command.args(["--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--log", "off"]);
        for set in settings() {
            command.args(["--set", &set]);
        }
        command.envs(orders.environment.iter().cloned());
        let mut process = Process::start(command)?;
        let mut line = String::new();
        process.output()?.read_line(&mut line)?;
        let http = line.split("http=").nth(1).with_context(|| format!("a server began with {line:?}"))?;
        Ok(Self { number, http: http.trim().parse()?, process })
    }

    pub(super) fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Kills it; an error if it had ended by itself.
    pub(super) fn kill(&mut self) -> anyhow::Result<()> {
        self.process.kill().with_context(|| format!("server {}", self.number))
    }
}
