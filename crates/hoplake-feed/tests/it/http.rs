//! The port of a feed, and clients that send slowly, too much, or nothing.

use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    sync::Arc,
    time::{Duration, Instant},
};

use hoplake_feed::{At, Event, Feed, Listening, Monitor, Position, Progress, RunOptions, Settings, state::FeedState};
use hoplake_testkit::PostgresServer;
use tokio::task::JoinSet;

/// Far beyond what any of this takes; what does not come is a failure.
const PATIENCE: Duration = Duration::from_secs(60);

fn monitor(stuck_ms: u64) -> Arc<Monitor> {
    let text = "graph = 'memory://g'\n[source]\nname = 'hr'\nurl = 'mysql://a/b'\n";
    let mut settings = Settings::parse(text).unwrap();
    settings.http.stuck_ms = stuck_ms;
    Arc::new(Monitor::new(&settings))
}

fn listening(monitor: Arc<Monitor>) -> Listening {
    Listening::open("127.0.0.1:0".parse().unwrap(), monitor).unwrap()
}

fn send(door: &Listening, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(door.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    stream
}

/// All that comes until the connection is closed.
fn until_closed(mut stream: TcpStream) -> String {
    let mut all = Vec::new();
    match stream.read_to_end(&mut all) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("it is not closed: {error}"),
        _ => String::from_utf8_lossy(&all).into_owned(),
    }
}

fn ask(door: &Listening, request: &str, headers: &str) -> String {
    until_closed(send(door, &format!("{request} HTTP/1.1\r\nhost: x\r\n{headers}connection: close\r\n\r\n")))
}

#[tokio::test(flavor = "multi_thread")]
async fn it_answers_what_it_has_and_takes_nothing() {
    let door = listening(monitor(300_000));
    let starts = |request: &str, headers: &str, with: &str| {
        let answer = ask(&door, request, headers);
        assert!(answer.starts_with(&format!("HTTP/1.1 {with}")), "{request}: {answer}");
        answer
    };
    starts("GET /healthz", "", "200");
    assert!(starts("GET /readyz", "", "503").ends_with("the feed is starting\n"));
    assert!(starts("GET /metrics", "", "200").contains("application/openmetrics-text"));
    assert!(starts("GET /status?x=1", "", "200").contains("\"state\":\"starting\""));
    assert!(starts("HEAD /status", "", "200").ends_with("\r\n\r\n"));
    assert!(starts("GET /v1", "", "404").contains("/readyz"));
    assert!(starts("DELETE /status", "", "405").contains("allow: GET, HEAD"));
    starts("GET /status", &format!("x: {}\r\n", "y".repeat(16 << 10)), "431");
    // Nothing of a body is waited for.
    for headers in ["content-length: 4000000000\r\n", "transfer-encoding: chunked\r\n"] {
        starts("POST /status", headers, "413");
        starts("GET /status", headers, "413");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_and_idle_clients_give_way_to_probes() {
    let door = listening(monitor(300_000));
    let mut halves: Vec<_> =
        (0..120).map(|number| send(&door, ["", "GET /heal", "GET /healthz HTTP/1.1\r\nx-"][number % 3])).collect();
    assert!(ask(&door, "GET /healthz", "").ends_with("ok\n"));
    let last = halves.pop().unwrap();
    for half in halves {
        assert_eq!(until_closed(half), "");
    }
    // The time for headers is over.
    assert_eq!(until_closed(last), "");
    let idle: Vec<_> = (0..100)
        .map(|_| {
            let mut stream = send(&door, "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n");
            let mut answer = [0; 12];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"HTTP/1.1 200");
            stream
        })
        .collect();
    // Of more than 64 the oldest were closed; the order of neighbours is that in which their answers have left.
    for stream in idle.into_iter().take(30) {
        assert!(until_closed(stream).ends_with("ok\n"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_of_which_nothing_is_heard_is_not_well() {
    let monitor = monitor(50);
    let door = listening(monitor.clone());
    let position = Position::new("0-1-1");
    let state = FeedState::default();
    monitor.report(&Event::Following(At { position: &position, version: 1, state: &state }));
    std::thread::sleep(Duration::from_millis(60));
    let answer = ask(&door, "GET /healthz", "");
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("the feed is stuck"), "{answer}");
    monitor.report(&Event::Stopping);
    assert!(ask(&door, "GET /healthz", "").starts_with("HTTP/1.1 200"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_of_postgres_has_caught_up_when_all_is_applied() {
    let server = PostgresServer::start(&[]).unwrap();
    let tables = "CREATE TABLE note (id int PRIMARY KEY); CREATE PUBLICATION hoplake_hr FOR TABLE note";
    server.sql("test", tables).unwrap();
    let source = format!("graph = 'memory://seen'\n[source]\nname = 'hr'\nurl = '{}'\n", server.url("test"));
    let settings =
        Settings::parse(&format!("{source}[[table]]\nname = 'note'\nvertex = {{ label = 'Note' }}\n")).unwrap();
    let monitor = Arc::new(Monitor::new(&settings));
    let mut feed = Feed::open(settings, RunOptions::default(), monitor.clone()).await.unwrap();
    // Ends with its value.
    let mut running = JoinSet::new();
    running.spawn(async move { feed.run(std::future::pending()).await });
    for key in 1..=20 {
        server.sql("test", &format!("INSERT INTO note VALUES ({key})")).unwrap();
    }
    let begun = Instant::now();
    let applied = "hoplake_feed_rows_total{source=\"hr\"} 20\n";
    while !monitor.metrics().contains(applied) || monitor.status()["lag_ms"] != 0 {
        assert!(begun.elapsed() < PATIENCE, "it never caught up: {}", monitor.status());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(monitor.readiness(), Ok(()));
}
