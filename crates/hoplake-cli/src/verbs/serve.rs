//! `hoplake serve`: graphs as a service, until SIGTERM or SIGINT.

use std::{fs, io::ErrorKind, net::SocketAddr, path::PathBuf, time::Duration};

use anyhow::Context;
use bytesize::ByteSize;
use clap::ValueEnum;
use hoplake_server::{ServerBuilder, ServerError, Settings, telemetry};
use tokio::signal::unix::{SignalKind, signal};
use toml::{Table, Value};

use crate::{failure::Failure, output::print_line};

/// Serve graphs over gRPC and HTTP
#[derive(Debug, clap::Args)]
#[command(after_help = "\
NAME=URL is one graph. URL is a graph, under the last part of its URL, or a folder of graphs: s3://bucket/graphs serves
s3://bucket/graphs/social as social when somebody asks for it. Nothing is opened before.

A file of settings, and --set, have what is in docs/serving.md. Flags come before --set, and --set before the file.

Example: all graphs below a prefix, 500 ms for a query, and a token
  HOPLAKE_TOKEN=… hoplake serve s3://bucket/graphs --http 0.0.0.0:7481 --grpc 0.0.0.0:7480 --set limits.time_ms=500

Example: a node with caches, and one for queries that has its blocks from there
  hoplake serve s3://bucket/graphs --role access --grpc 0.0.0.0:7480
  hoplake serve --role algorithm --access-nodes http://access.internal:7480")]
pub struct Args {
    /// What to serve: URL or NAME=URL
    #[arg(value_name = "URL")]
    pub urls: Vec<String>,
    /// Settings, in TOML
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// What it is among other servers [default: all]
    #[arg(long, value_enum)]
    role: Option<Role>,
    /// Where an algorithm node has its blocks from, in place of URLs; all addresses of a host are nodes
    #[arg(long, value_name = "http://HOST:PORT", value_delimiter = ',')]
    access_nodes: Vec<String>,
    /// Where gRPC listens; port 0 takes a free one [default: 127.0.0.1:7480]
    #[arg(long, value_name = "ADDRESS")]
    grpc: Option<SocketAddr>,
    /// Where HTTP listens; port 0 takes a free one [default: 127.0.0.1:7481]
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
    /// The token that every query must bring; without, none is needed
    #[arg(long, env = "HOPLAKE_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// While it is asked, look for newer versions of a graph this long after the last look, as in 5s; 0s never [default: 1m]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    refresh: Option<Duration>,
    /// Compact the graphs it serves, one at a time, when a request has found a newer version
    #[arg(long)]
    compact: bool,
    /// Memory for that, at least 64MiB [default: 256MiB]
    #[arg(long, value_name = "SIZE")]
    compact_memory: Option<ByteSize>,
    /// One setting, as in limits.time_ms=500; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// What is logged: a level, or levels by module, as in warn,hoplake=debug
    #[arg(long, value_name = "LEVELS", default_value = "info")]
    log: String,
    /// How it is logged, on standard error
    #[arg(long, value_enum, default_value = "text")]
    log_format: LogFormat,
}

/// What a server is among others.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Role {
    /// Answers queries from stores, and has blocks for algorithm nodes too
    All,
    /// Has blocks of stores for algorithm nodes
    Access,
    /// Answers queries with blocks from access nodes
    Algorithm,
}

impl From<Role> for hoplake_server::Role {
    fn from(role: Role) -> Self {
        match role {
            Role::All => Self::All,
            Role::Access => Self::Access,
            Role::Algorithm => Self::Algorithm,
        }
    }
}

/// How a line of log is written.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

impl Args {
    fn settings(&self) -> anyhow::Result<Settings> {
        let hint = "docs/serving.md has the settings, with an example";
        // Its message alone: the whole error is many lines.
        let wrong = |error: toml::de::Error| Failure::usage(format!("settings: {}", error.message()), hint);
        let mut table = Table::new();
        if let Some(file) = &self.config {
            let text = fs::read_to_string(file).with_context(|| format!("could not read {}", file.display()))?;
            table = text.parse().map_err(wrong)?;
        }
        for setting in &self.set {
            merge(&mut table, read(setting).map_err(wrong)?);
        }
        let mut settings: Settings = table.try_into().map_err(wrong)?;
        if !self.urls.is_empty() {
            settings.graphs.clone_from(&self.urls);
        }
        if !self.access_nodes.is_empty() {
            settings.access_nodes.clone_from(&self.access_nodes);
        }
        settings.role = self.role.map_or(settings.role, Into::into);
        settings.grpc = self.grpc.unwrap_or(settings.grpc);
        settings.http = self.http.unwrap_or(settings.http);
        settings.refresh_ms = self.refresh.map_or(settings.refresh_ms, |refresh| refresh.as_millis() as u64);
        settings.compact |= self.compact;
        settings.compact_memory_bytes =
            self.compact_memory.map_or(settings.compact_memory_bytes, |memory| memory.as_u64());
        settings.token = self.token.clone().or(settings.token);
        settings.validate().map_err(|error| Failure::usage(error.to_string(), hint))?;
        Ok(settings)
    }
}

/// Reads `limits.time_ms=500`; what is no value of TOML is text.
fn read(setting: &str) -> Result<Table, toml::de::Error> {
    setting.parse::<Table>().or_else(|error| {
        let (key, value) = setting.split_once('=').ok_or(error)?;
        format!("{key} = {}", Value::from(value)).parse()
    })
}

/// Puts settings over those that are there.
fn merge(table: &mut Table, over: Table) {
    for (key, value) in over {
        match (table.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(over)) => merge(below, over),
            (_, value) => drop(table.insert(key, value)),
        }
    }
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    let settings = args.settings()?;
    let format = match args.log_format {
        LogFormat::Text => telemetry::LogFormat::Text,
        LogFormat::Json => telemetry::LogFormat::Json,
    };
    let usage =
        |error: &dyn std::fmt::Display| Failure::usage(error.to_string(), "hoplake serve --help has an example");
    let telemetry = telemetry::start(format, &args.log).map_err(|error| usage(&error))?;
    let server = ServerBuilder::new(settings).bind().await.map_err(|error| refusal(&error))?;
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    // For programs that asked for a free port.
    print_line(format!("listening grpc={} http={}", server.grpc(), server.http()))?;
    let stop = async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
    };
    let ended = server.run(stop).await;
    // It waits for the collector of traces.
    tokio::task::spawn_blocking(|| telemetry.finish()).await?;
    Ok(ended?)
}

/// Why it does not begin, with what to change.
fn refusal(error: &ServerError) -> Failure {
    match error {
        ServerError::Listen { source, .. } if source.kind() == ErrorKind::AddrInUse => {
            Failure::usage(error.to_string(), "choose others with --grpc and --http; port 0 takes a free one")
        }
        _ => Failure::usage(error.to_string(), "hoplake serve --help has an example"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_put_over_those_of_a_file() {
        let mut table: Table = "queue_max = 3\n[limits]\ntime_ms = 1\nusd_max = 2.0".parse().unwrap();
        for setting in ["limits.time_ms=500", "http=127.0.0.1:0", "queue_max = 4"] {
            merge(&mut table, read(setting).unwrap());
        }
        let settings: Settings = table.try_into().unwrap();
        assert_eq!((settings.limits.time_ms, settings.limits.usd_max, settings.queue_max), (500, 2.0, 4));
        assert_eq!(settings.http.port(), 0);
        assert!(read("limits").is_err());
    }
}
