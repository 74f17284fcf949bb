//! `hoplake serve`: graphs as a service, until SIGTERM or SIGINT.

use std::{fs, io, net::SocketAddr, path::PathBuf, time::Duration};

use bytesize::ByteSize;
use clap::ValueEnum;
use hoplake::ErrorKind;
use hoplake_doors::parse_address;
use hoplake_server::{Reason, ServerBuilder, ServerError, Settings, UnreadableSettings};
use tokio::signal::unix::{SignalKind, signal};
use toml::{Table, Value};

use crate::{
    arguments,
    failure::Failure,
    output::print_line,
    telemetry::{self, LogFormat},
};

/// Serve graphs over gRPC and HTTP
#[derive(Debug, clap::Args)]
#[command(after_help = "\
NAME=URL is one graph. URL is a graph, under the last part of its URL, or a folder of graphs: s3://bucket/graphs serves
s3://bucket/graphs/social as social when a request asks for it, and not before.

docs/serving.md describes the settings of the file and of --set. Flags override --set, and --set overrides the file.

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
    /// The role of this server [default: all]
    #[arg(long, value_enum)]
    role: Option<Role>,
    /// The access nodes from which an algorithm node reads blocks, instead of URLs; all addresses of a host are nodes
    #[arg(long, value_name = "http://HOST:PORT", value_delimiter = ',')]
    access_nodes: Vec<String>,
    /// Where gRPC listens; port 0 takes a free one [default: 127.0.0.1:7480]
    #[arg(long, value_name = "IP:PORT", value_parser = parse_address, env = "HOPLAKE_GRPC")]
    grpc: Option<SocketAddr>,
    /// Where HTTP listens; port 0 takes a free one [default: 127.0.0.1:7481]
    #[arg(long, value_name = "IP:PORT", value_parser = parse_address, env = "HOPLAKE_HTTP")]
    http: Option<SocketAddr>,
    /// The token that every query must bring; without, none is needed
    #[arg(long, env = "HOPLAKE_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// While it is asked, look for newer versions of a graph this long after the last look, as in 5s; 0s never
    /// [default: 1m]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    refresh: Option<Duration>,
    /// Take changes, and make graphs; otherwise the server only reads
    #[arg(long)]
    writable: bool,
    /// Compact the graphs it serves, one at a time, when a request has found a newer version
    #[arg(long)]
    compact: bool,
    /// Memory for that, at least 64MiB [default: 256MiB]
    #[arg(long, value_name = "SIZE", value_parser = arguments::size)]
    compact_memory: Option<ByteSize>,
    /// One setting, as in limits.time_ms=500; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The log filter: a level, or levels by module, as in warn,hoplake=debug
    #[arg(long, value_name = "LEVELS", default_value = "info")]
    log: String,
    /// How it is logged, on standard error
    #[arg(long, value_enum, default_value = "text")]
    log_format: LogFormat,
}

/// The role of a server.
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

impl Args {
    fn settings(&self) -> anyhow::Result<Settings> {
        let mut table = self.file()?;
        for setting in &self.set {
            let text = toml_of(setting);
            // Each by itself: an error of the merged settings could not name its source.
            Settings::from_toml(&text).map_err(|error| wrong(&format!("--set {setting}"), &error))?;
            merge(&mut table, parsed(&text));
        }
        let mut settings = Settings::from_toml(&table.to_string()).map_err(|error| wrong("settings", &error))?;
        // A list is replaced and not extended: otherwise a flag could not take a graph of the file away.
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
        settings.writable |= self.writable;
        settings.compact |= self.compact;
        settings.compact_memory_bytes =
            self.compact_memory.map_or(settings.compact_memory_bytes, |memory| memory.as_u64());
        // By flag or by environment, where other users of the machine do not see it.
        settings.token = self.token.clone().or(settings.token);
        // Last, since settings can be right by themselves and wrong together.
        settings.validate().map_err(|error| Failure::usage(error.to_string(), HINT))?;
        Ok(settings)
    }

    /// The settings of the file, if any.
    fn file(&self) -> Result<Table, Failure> {
        let Some(file) = &self.config else { return Ok(Table::new()) };
        let name = file.display();
        let unreadable = |error: io::Error| {
            let message = format!("could not read {name}: {}", hoplake::system_text(&error));
            Failure::usage(message, "check that it exists and that you may read it")
        };
        let text = fs::read_to_string(file).map_err(unreadable)?;
        let wrong_at = |error: UnreadableSettings| {
            let line = error.line.map(|line| format!(", line {line}"));
            wrong(&format!("{name}{}", line.unwrap_or_default()), &error)
        };
        // Here, where the line is known; merged with --set it would be another.
        Settings::from_toml(&text).map_err(wrong_at)?;
        Ok(parsed(&text))
    }
}

const HINT: &str = "docs/serving.md has the settings, with an example";

/// The failure of unreadable settings.
fn wrong(location: &str, error: &UnreadableSettings) -> Failure {
    Failure::usage(format!("{location}: {error}"), HINT)
}

/// `limits.time_ms=500` as TOML; anything that is not a TOML value is text.
fn toml_of(setting: &str) -> String {
    match setting.split_once('=') {
        Some((key, value)) if setting.parse::<Table>().is_err() => format!("{key} = {}", Value::from(value)),
        _ => setting.to_owned(),
    }
}

/// Settings that could be read.
fn parsed(text: &str) -> Table {
    text.parse().expect("settings were read from the same text")
}

/// Overrides settings.
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
    // Before the doors open, so that what fails there is logged.
    let telemetry = telemetry::start("hoplake", args.log_format, &args.log, "hoplake serve --help has an example")?;
    let builder = ServerBuilder::new(settings).reclaim_memory_with(hoplake_allocator::give_back_freed);
    let server = builder.bind().await.map_err(|error| rejection(&error))?;
    // Before the address is printed: a program that has read it may send a signal at once.
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    // For programs that chose port 0.
    print_line(format!("listening grpc={} http={}", server.grpc(), server.http()))?;
    let stop = async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
    };
    let ended = server.run(stop).await;
    telemetry::finish(telemetry).await?;
    Ok(ended?)
}

/// Why it does not begin, with what to change.
fn rejection(error: &ServerError) -> Failure {
    match error {
        ServerError::Listen(error) if error.is_taken() => {
            let hint = "choose others with --grpc and --http; port 0 takes a free one";
            Failure::new(ErrorKind::Conflict, error.to_string(), hint)
        }
        ServerError::Source(failure) if failure.reason == Reason::NotFound => {
            Failure::new(ErrorKind::NotFound, error.to_string(), "hoplake serve --help has an example")
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
            merge(&mut table, parsed(&toml_of(setting)));
        }
        let settings = Settings::from_toml(&table.to_string()).unwrap();
        assert_eq!((settings.limits.time_ms, settings.limits.usd_max, settings.queue_max), (500, 2.0, 4));
        assert_eq!(settings.http.port(), 0);
    }

    #[derive(clap::Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    fn settings_of(args: &[&str]) -> Result<Settings, String> {
        let command = <Command as clap::Parser>::try_parse_from([&["serve", "memory://x"], args].concat());
        command.map_err(|error| error.to_string())?.args.settings().map_err(|error| error.to_string())
    }

    #[test]
    fn an_error_of_settings_has_its_location() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("serve.toml");
        let file = file.to_str().unwrap();
        let missing = "/nowhere/serve.toml";
        fs::write(file, "queries_max = 3\n[limits]\ntime_ms = 'abc'\n").unwrap();
        let cases = [
            (
                &["--set", "limits.time_ms=abc"][..],
                "--set limits.time_ms=abc: limits.time_ms: write a whole number, 0 or more",
            ),
            (&["--set", "limits"], "--set limits: it is not TOML: key with no value, expected `=`; write KEY = VALUE"),
            (&["--set", "graphs=a"], "--set graphs=a: graphs: write a list, in [ ], not \"a\""),
            (&["--config", file], "serve.toml, line 3: limits.time_ms: write a whole number, 0 or more, not \"abc\""),
            (&["--config", missing], "could not read /nowhere/serve.toml: no such file or directory"),
            (&["--http", "7481"], "write IP:PORT, as in 127.0.0.1:7481"),
        ];
        for (args, words) in cases {
            let message = settings_of(args).unwrap_err();
            assert!(message.contains(words), "{args:?}: {message}");
        }
        assert_eq!(settings_of(&["--http", "localhost:7"]).unwrap().http, SocketAddr::from(([127, 0, 0, 1], 7)));
    }
}
