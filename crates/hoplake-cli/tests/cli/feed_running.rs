//! A feed that runs, as operators see it: over HTTP, in its log and in traces.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use hoplake_testkit::{MariaDbServer, S3Server, TcpFault, TcpProxy};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest, common::v1::any_value, trace::v1::Span,
};
use prost::Message;
use serde_json::Value;

use crate::{
    collector::Collector,
    hoplake::{Run, Shell},
};

/// Far beyond what any of this takes; what does not come is a failure.
const PATIENCE: Duration = Duration::from_secs(90);

/// A feed that is ended with the test.
struct Following {
    child: Child,
    http: String,
    log: mpsc::Receiver<String>,
}

impl Following {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap());
        let (send, log) = mpsc::channel();
        thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let _ = send.send(line);
            }
        });
        let first = log.recv_timeout(PATIENCE).unwrap();
        let http =
            first.strip_prefix("listening http=").unwrap_or_else(|| panic!("{first:?} has no address")).to_owned();
        Self { child, http, log }
    }

    fn get(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.http).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn status(&self) -> Value {
        serde_json::from_str(&self.get("/status").1).unwrap()
    }

    /// A counter without labels but that of the source, or with one more.
    fn metric(&self, name: &str, label: &str) -> f64 {
        let text = self.get("/metrics").1;
        let start = format!("hoplake_feed_{name}{{source=\"hr\"{label}}} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&*start));
        line.unwrap_or_else(|| panic!("there is no {start}in {text}")).parse().unwrap()
    }

    fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !is_so(self) {
            assert!(begun.elapsed() < PATIENCE, "never {what}: {}", self.status());
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Sends SIGTERM, as an orchestrator does; returns status and log.
    fn terminate(mut self) -> (Option<i32>, String) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        let status = self.child.wait().unwrap().code();
        (status, self.log.iter().collect::<Vec<_>>().join("\n"))
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client that keeps a table to itself until it is dropped.
struct Locked(Child, Option<ChildStdin>);

impl Locked {
    fn table(server: &MariaDbServer, table: &str) -> Self {
        let mut client = Command::new("mariadb");
        client.args([
            "--no-defaults",
            "--host=127.0.0.1",
            "--user=test",
            "--batch",
            "--skip-column-names",
            "--unbuffered",
        ]);
        client.arg(format!("--port={}", server.port())).arg("test").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = client.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        writeln!(input, "LOCK TABLES {table} WRITE; SELECT 'locked';").unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "locked\n");
        Self(child, Some(input))
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        drop(self.1.take());
        let _ = self.0.wait();
    }
}

const TABLES: &str = "
CREATE TABLE team (id INT PRIMARY KEY, name VARCHAR(20));
CREATE TABLE note (id INT PRIMARY KEY, body TEXT, team INT);
INSERT INTO team VALUES (1, 'ops'), (2, 'rd');
INSERT INTO note VALUES (1, '5', 1);
";

const ENTRIES: &str = "
[[table]]
name = 'team'
vertex = { label = 'Team' }
[[table]]
name = 'note'
types = { body = 'int64' }
on_error = 'dead-letter'
vertex = { label = 'Note' }
edges = [{ label = 'of', columns = 'team', to = 'Team' }]
";

fn shell_with(server: &MariaDbServer, more: &str) -> Shell {
    server.sql("test", TABLES).unwrap();
    let shell = Shell::empty();
    let settings = format!("graph = 'graph'\n[source]\nname = 'hr'\nurl = '{}'\n{more}{ENTRIES}", server.url("test"));
    shell.write("feed.toml", &settings);
    shell
}

#[test]
fn a_feed_is_seen_from_its_first_copy_to_a_database_that_is_away() {
    let mut server = MariaDbServer::start(&[]).unwrap();
    let shell = shell_with(&server, "[stream]\nlinger_ms = 20\n");
    let locked = Locked::table(&server, "note");
    let feed = Following::start(&mut shell.command(&["feed", "run", "feed.toml", "--http", "127.0.0.1:0"]));
    feed.until("copying", |feed| feed.status()["state"] == "copying");
    assert_eq!(feed.get("/healthz"), (200, "ok\n".into()));
    let (status, why) = feed.get("/readyz");
    assert!(status == 503 && why.starts_with("the first copy is not complete: "), "{status} {why}");
    assert_eq!(feed.metric("state", ",state=\"copying\""), 1.0);
    assert!(feed.metric("lag_seconds", "").is_nan());
    drop(locked);
    feed.until("ready", |feed| feed.get("/readyz") == (200, "ready\n".into()));
    assert_eq!((feed.metric("copy_rows", ""), feed.metric("rows_total", "")), (3.0, 0.0));
    assert!(feed.metric("copy_seconds", "") > 0.0 && feed.metric("resident_bytes", "") > 1e6);
    let version = feed.metric("graph_version", "");

    // A transaction that is applied, one with an edge that waits and a row that is set aside, and one of no mapped table.
    server.sql("test", "BEGIN; INSERT INTO note VALUES (2, '7', 2); UPDATE team SET name = 'x'; COMMIT").unwrap();
    feed.until("applied", |feed| feed.metric("rows_total", "") == 3.0);
    server.sql("test", "INSERT INTO note VALUES (3, '8', 9), (4, 'abc', 1)").unwrap();
    server.sql("test", "CREATE TABLE other (id INT PRIMARY KEY); INSERT INTO other VALUES (1)").unwrap();
    feed.until("applied", |feed| feed.metric("rows_total", "") == 5.0);
    feed.until("caught up", |feed| feed.metric("source_has_more", "") == 0.0);
    assert_eq!(
        ["transactions_total", "commits_total", "set_aside_total", "dead_letters", "held_keys", "edges_waiting"]
            .map(|name| feed.metric(name, "")),
        [2.0, 2.0, 1.0, 1.0, 1.0, 1.0]
    );
    assert_eq!(
        ["pending_rows", "pending_transactions", "lag_seconds", "commit_seconds_count", "look_up_waves_count"]
            .map(|name| feed.metric(name, "")),
        [0.0, 0.0, 0.0, 2.0, 2.0]
    );
    assert_eq!(feed.metric("graph_version", ""), version + 2.0);
    assert!(feed.metric("state_bytes", "") > 0.0 && feed.metric("read_bytes_total", "") > 0.0);
    let status = feed.status();
    assert_eq!(
        (&status["state"], &status["lag_ms"], &status["dead_letters"]),
        (&"following".into(), &0.into(), &1.into())
    );
    assert!(status["last_minute"]["rows_per_second"].as_f64().unwrap() > 0.0, "{status}");
    assert_eq!(
        (&status["source"], &status["graph"], &status["last_error"]),
        (&"hr".into(), &"graph".into(), &Value::Null)
    );

    server.kill();
    feed.until("away", |feed| feed.status()["state"] == "waiting_for_source");
    let (code, why) = feed.get("/readyz");
    assert!(code == 503 && why.starts_with("the source is away: could not "), "{code} {why}");
    let status = feed.status();
    assert!(status["last_error"]["hint"].as_str().unwrap().contains("password"), "{status}");
    feed.until("retried", |feed| feed.metric("retries_total", ",cause=\"source\"") >= 2.0);
    assert!(feed.metric("lag_seconds", "") > 0.0);
    assert_eq!(feed.get("/healthz").0, 200);
    server.restart().unwrap();
    server.sql("test", "INSERT INTO note VALUES (5, '1', 1)").unwrap();
    feed.until("applied", |feed| feed.metric("rows_total", "") == 6.0);
    feed.until("ready", |feed| feed.get("/readyz").0 == 200);
    assert_eq!(feed.metric("reconnects_total", ""), 1.0);
    let (status, log) = feed.terminate();
    assert_eq!(status, Some(0), "{log}");
    // The commits themselves are not logged by default.
    assert!(log.contains("the source is away") && !log.contains("committed"), "{log}");
}

#[test]
fn a_store_that_is_away_is_waited_for_and_seen() {
    let server = MariaDbServer::start(&[]).unwrap();
    let shell = shell_with(&server, "");
    let store = S3Server::start().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let proxy = runtime.block_on(TcpProxy::start(&store.endpoint(), 1)).unwrap();
    let settings = shell.read("feed.toml").replace("graph = 'graph'", &format!("graph = '{}'", store.url("seen")));
    shell.write("feed.toml", &settings);
    let mut command = shell.command(&["feed", "run", "feed.toml", "--http", "127.0.0.1:0"]);
    let feed = Following::start(command.envs(store.env_at(&proxy.endpoint())));
    feed.until("ready", |feed| feed.get("/readyz").0 == 200);
    proxy.set_faults([(TcpFault::Refuse, 1.0), (TcpFault::Reset, 1.0)]);
    server.sql("test", "INSERT INTO team VALUES (3, 'x')").unwrap();
    feed.until("away", |feed| feed.status()["state"] == "waiting_for_store");
    let (code, why) = feed.get("/readyz");
    assert!(code == 503 && why.starts_with("the store is away: "), "{code} {why}");
    assert_eq!(feed.get("/healthz").0, 200);
    assert!(feed.metric("retries_total", ",cause=\"store\"") >= 1.0 && feed.metric("lag_seconds", "") > 0.0);
    assert_eq!(["pending_rows", "pending_transactions"].map(|name| feed.metric(name, "")), [1.0, 1.0]);
    proxy.set_faults([]);
    feed.until("applied", |feed| feed.metric("rows_total", "") == 1.0);
    feed.until("ready", |feed| feed.get("/readyz").0 == 200);
    let (status, log) = feed.terminate();
    assert_eq!(status, Some(0), "{log}");
}

#[test]
fn a_store_that_is_away_at_the_start_is_waited_for_and_seen() {
    let server = MariaDbServer::start(&[]).unwrap();
    let shell = shell_with(&server, "");
    let store = S3Server::start().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let proxy = runtime.block_on(TcpProxy::start(&store.endpoint(), 1)).unwrap();
    let settings = shell.read("feed.toml").replace("graph = 'graph'", &format!("graph = '{}'", store.url("seen")));
    shell.write("feed.toml", &settings);
    // Before the first copy, which is two versions, and once there is a graph.
    for version in [2.0, 3.0] {
        proxy.set_faults([(TcpFault::Refuse, 1.0), (TcpFault::Reset, 1.0)]);
        let mut command = shell.command(&["feed", "run", "feed.toml", "--http", "127.0.0.1:0"]);
        let feed = Following::start(command.envs(store.env_at(&proxy.endpoint())));
        feed.until("away", |feed| feed.status()["state"] == "waiting_for_store");
        let (code, why) = feed.get("/readyz");
        assert!(code == 503 && why.starts_with("the store is away: "), "{code} {why}");
        assert_eq!(feed.get("/healthz").0, 200);
        assert!(feed.metric("retries_total", ",cause=\"store\"") >= 1.0);
        assert_eq!(feed.metric("retries_total", ",cause=\"source\""), 0.0);
        // A script may not wait.
        let mut command = shell.command(&["feed", "run", "feed.toml", "--once", "--no-wait"]);
        let run = Run::of(&command.envs(store.env_at(&proxy.endpoint())).output().unwrap());
        assert_eq!(run.status, 5, "{}", run.err);
        server.sql("test", "UPDATE team SET name = CONCAT(name, '!') WHERE id = 1").unwrap();
        proxy.set_faults([]);
        feed.until("ready", |feed| feed.get("/readyz").0 == 200);
        feed.until("caught up", |feed| feed.metric("graph_version", "") == version);
        let (status, log) = feed.terminate();
        assert_eq!(status, Some(0), "{log}");
        assert!(log.contains("the feed cannot begin for now"), "{log}");
    }
}

#[test]
fn where_it_listens_comes_from_the_settings_or_the_command() {
    let server = MariaDbServer::start(&[]).unwrap();
    let shell = shell_with(&server, "[reconcile]\nevery = '1s'\n[http]\nlisten = '127.0.0.1:0'\n");
    let feed = Following::start(&mut shell.command(&["feed", "run", "feed.toml"]));
    feed.until("following", |feed| feed.status()["state"] == "following");
    // It compares the tables with the graph, and says when.
    feed.until("compared", |feed| feed.metric("reconciliation_timestamp_seconds", "") > 1.7e9);
    assert_eq!(feed.status()["last_reconciliation"]["differences"], 0);
    let taken = feed.http.clone();
    let run = shell.run(&["feed", "run", "feed.toml", "--http", &taken]);
    run.fails(4, &format!("cannot listen on {taken}: another program listens there"), "--http");
    shell.run(&["feed", "run", "feed.toml", "--log", "loud"]).fails(2, "\"loud\" is not a level of logs", "--help");
    shell_with_listen(&shell, "9464").fails(2, "http.listen: \"9464\" is not an address", "feed.toml");
    let short = shell_with_listen(&shell, "127.0.0.1:0'\nstuck_ms = '1");
    assert_eq!(short.status, 2, "{}", short.err);
    assert_eq!(feed.terminate().0, Some(0));
}

/// Runs a feed with another address in its settings.
fn shell_with_listen(shell: &Shell, address: &str) -> Run {
    let settings = shell.read("feed.toml").replace("127.0.0.1:0", address);
    shell.write("other.toml", &settings);
    shell.run(&["feed", "run", "other.toml", "--once"])
}

#[test]
fn a_transaction_is_logged_and_traced_to_its_version() {
    let server = MariaDbServer::start(&[]).unwrap();
    let shell = shell_with(&server, "");
    shell.run(&["feed", "run", "feed.toml", "--once"]).ok();
    // A vertex that moves is looked up with its edges.
    server.sql("test", "UPDATE note SET id = 7 WHERE id = 1; UPDATE team SET name = 'x' WHERE id = 2").unwrap();
    let collector = Collector::start();
    let levels = ["--log", "warn,hoplake_feed=info", "--log-format", "json"];
    let mut command = shell.command(&[&["feed", "run", "feed.toml", "--once", "--json"], &levels[..]].concat());
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url);
    let run = Run::of(&command.output().unwrap()).ok();
    let logged: Vec<Value> = run.err.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let committed: Vec<_> = logged.iter().filter(|line| line["message"] == "committed").collect();
    assert_eq!(committed.len(), 1, "{}", run.err);
    let line = committed[0];
    let version = run.json()[0]["version"].clone();
    assert_eq!(
        (&line["source"], &line["graph"], &line["version"]),
        (&"hr".into(), &"graph".into(), &version),
        "{line}"
    );
    assert_eq!(
        (&line["rows"], &line["transactions"], &line["level"]),
        (&2.into(), &2.into(), &"INFO".into()),
        "{line}"
    );
    assert!(line["lag_ms"].is_u64(), "{line}");

    let trace = collector.trace.recv_timeout(PATIENCE).unwrap();
    let resource = &ExportTraceServiceRequest::decode(&trace[..]).unwrap().resource_spans[0];
    let of_resource = &resource.resource.as_ref().unwrap().attributes;
    let service = of_resource.iter().find(|pair| pair.key == "service.name").unwrap();
    assert_eq!(service.value.clone().unwrap().value, Some(any_value::Value::StringValue("hoplake-feed".into())));
    let spans = &resource.scope_spans[0].spans;
    let named = |name: &str| spans.iter().filter(|span| span.name == name).collect::<Vec<_>>();
    let root = named("transactions")[0];
    let value = |span: &Span, key: &str| {
        let pair = span.attributes.iter().find(|pair| pair.key == key);
        pair.unwrap_or_else(|| panic!("no {key} in {span:?}")).value.clone().unwrap().value.unwrap()
    };
    let number = |key: &str, number| assert_eq!(value(root, key), any_value::Value::IntValue(number), "{key}");
    number("version", version.as_i64().unwrap());
    number("transactions", 2);
    number("rows", 2);
    let position = any_value::Value::StringValue(line["position"].as_str().unwrap().into());
    assert_eq!(value(root, "position"), position);
    let any_value::Value::IntValue(committed) = value(root, "committed_unix_ms") else { panic!("{root:?}") };
    assert!(committed > 1_700_000_000_000);
    for (name, count) in [("read", 1), ("fold", 2), ("look-ups", 1), ("commit", 1)] {
        let children = named(name);
        assert_eq!(children.len(), count, "{name}: {spans:?}");
        for child in children {
            assert_eq!((&child.parent_span_id, &child.trace_id), (&root.span_id, &root.trace_id), "{name}");
        }
    }
}
