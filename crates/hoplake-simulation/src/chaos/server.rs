//! How servers are started.

use std::{process::Command, time::Duration};

use anyhow::Context;
use hoplake_testkit::HoplakeServer;

use super::crew::Orders;

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

/// Starts the command, and returns when it listens.
pub(super) fn start(orders: &Orders) -> anyhow::Result<HoplakeServer> {
    let hoplake = orders.hoplake.as_ref().context("a server needs the hoplake command")?;
    let mut command = Command::new(hoplake);
    command.arg("serve").arg(format!("{GRAPH}={}", orders.url)).args(["--log", "off"]);
    for set in settings() {
        command.args(["--set", &set]);
    }
    Ok(HoplakeServer::start(command.envs(orders.environment.iter().cloned()))?)
}
