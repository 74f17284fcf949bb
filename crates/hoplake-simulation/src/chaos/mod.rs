//! The real thing: processes that are killed at random, a real S3 server, and a network before it that breaks.
//!
//! ```text
//!            clients ──▶ servers ──┐
//! writers, appliers, compactor, vacuum ──▶ proxy that breaks ──▶ S3 server ◀── checker
//!      ▲ SIGKILL, and another in its place                                      ▲
//!      └───────────────────────────── this process ─────────────────────────────┘
//! ```
//! The deterministic simulation decides what happens in which order, and so finds what a seed finds again. This here
//! cannot: it is for what a model of a store, of a client or of a process may have left out. Processes are this program
//! in another role (`roles`), or the `hoplake` command: as a writer (`command_line`) and as a server (`server`), which
//! clients ask all the time (`clients`). The writers' batches show if they are incomplete or doubled (`script`); their
//! answers are noted, and their durations (`ledger`), and held against what can be read past the proxy (`check`).
//!
//! The first writer and the first server are not killed, so that their memory shows whether they could run for ever
//! (`memory`).

mod check;
mod clients;
mod command_line;
mod crew;
mod ledger;
mod memory;
mod report;
mod roles;
mod run;
mod script;
mod server;

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use hoplake::{ReadPool, ReadSettings, Store};
use hoplake_testkit::{S3Server, TcpProxy, generate::SplitMix64};

use crew::Orders;
use ledger::Ledger;
use run::Run;

pub use roles::{Play, Role};

/// Where the graph is in the bucket.
const PREFIX: &str = "chaos/graph";

/// How a graph is tested.
#[derive(Debug, Clone, PartialEq)]
pub struct ChaosTest {
    /// For so long.
    pub time: Duration,
    /// Decides which processes are killed, and which faults there are. When each meets the other is chance.
    pub seed: u64,
    /// Processes that commit through the library.
    pub writers: u32,
    /// The `hoplake` command. Without it, nothing of the following.
    pub hoplake: Option<PathBuf>,
    /// Processes that commit with `hoplake apply`.
    pub appliers: u32,
    /// Processes that serve the graph.
    pub servers: u32,
}

/// What happened.
#[derive(Debug, Clone, Default)]
pub struct ChaosReport {
    /// One line for each count.
    pub lines: Vec<String>,
}

impl ChaosTest {
    /// Torments a graph, and checks it after each death and at the end.
    ///
    /// # Errors
    /// What does not hold, with what was expected and what was found; or that something could not be started.
    pub fn run(&self) -> anyhow::Result<ChaosReport> {
        let server = S3Server::start()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        runtime.block_on(self.run_before(&server))
    }

    async fn run_before(&self, server: &S3Server) -> anyhow::Result<ChaosReport> {
        let proxy = TcpProxy::start(&server.endpoint(), self.seed).await?;
        let orders = Orders {
            url: server.url(PREFIX),
            environment: server.env_at(&proxy.endpoint()),
            hoplake: self.hoplake.clone(),
            ledger: Arc::new(Mutex::new(Ledger::default())),
        };
        let store = Store::new(Arc::new(server.store()), PREFIX.into(), &server.url(PREFIX));
        let pool = ReadPool::new(ReadSettings::default())?;
        let mut run = Run::new(self.clone(), store, pool, orders, SplitMix64::new(self.seed));
        run.begin().await?;
        run.chaos(&proxy).await?;
        run.end(&proxy).await
    }

    /// All that commit.
    fn committers(&self) -> u32 {
        self.writers + self.appliers
    }
}
