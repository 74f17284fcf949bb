//! Gremlin over WebSocket, as the drivers of TinkerPop 3.8 ask it: each is a program of its language.

use std::{path::Path, process::Stdio, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::Command,
    task::spawn_blocking,
    time::timeout,
};

use crate::{gremlin::writable, running::Running};

/// Far beyond what any of this takes; what does not come is a failure.
const PATIENCE: Duration = Duration::from_secs(60);
const TOKEN: &str = "s3cret";
/// Commits of a program: three encodings, with all that it writes and does not roll back.
const COMMITS: f64 = 3.0 * 5.0;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_python_driver_is_answered() {
    let python = spawn_blocking(hoplake_testkit::gremlin_python).await.unwrap().unwrap();
    let server = server().await;
    let mut command = Command::new(python);
    command.args(["-c", include_str!("gremlin_driver.py"), &address(&server), TOKEN]);
    is_answered(&server, &mut command).await;
    assert_eq!(server.metric("hoplake_commits_total").await, 6.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_javascript_driver_is_answered() {
    let folder = spawn_blocking(hoplake_testkit::gremlin_javascript).await.unwrap().unwrap();
    let server = server().await;
    let mut command = Command::new("node");
    command.args(["-e", include_str!("gremlin_driver.js"), "--", &address(&server), TOKEN]);
    is_answered(&server, command.current_dir(folder)).await;
    assert_eq!(server.metric("hoplake_commits_total").await, COMMITS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_java_driver_is_answered() {
    let jars = spawn_blocking(hoplake_testkit::gremlin_java).await.unwrap().unwrap();
    let server = server().await;
    let mut command = Command::new("java");
    command.arg("-cp").arg(jars.join("*"));
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/GremlinDriver.java"));
    command.args([&server.http.ip().to_string(), &server.http.port().to_string(), TOKEN]);
    is_answered(&server, &mut command).await;
    assert_eq!(server.metric("hoplake_commits_total").await, COMMITS);
}

async fn server() -> Running {
    writable(|settings| settings.token = Some(TOKEN.into())).await
}

fn address(server: &Running) -> String {
    format!("ws://{}/gremlin", server.http)
}

/// Runs a program that checks what it is answered, then asks something without an end and leaves, each when it may.
async fn is_answered(server: &Running, command: &mut Command) {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut driver = command.spawn().unwrap();
    let mut input = driver.stdin.take().unwrap();
    let mut said = [0; 6];
    let read = driver.stdout.as_mut().unwrap().read_exact(&mut said);
    if timeout(PATIENCE, read).await.expect("the driver ends").is_err() {
        let output = driver.wait_with_output().await.unwrap();
        panic!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(&said, b"ready\n");
    // A query may run on for a moment after its answer: it is not to be taken for the one without an end.
    server.until_metric("hoplake_queries_running", 0.0).await;
    input.write_all(b"\n").await.unwrap();
    server.until_metric("hoplake_queries_running", 1.0).await;
    let cancelled = "hoplake_requests_total{protocol=\"gremlin\",call=\"Eval\",status=\"CANCELLED\"}";
    assert_eq!(server.metric(cancelled).await, 0.0);
    input.write_all(b"\n").await.unwrap();
    // The program is still there: what ends the query is the end of its connection.
    server.until_metric(cancelled, 1.0).await;
    server.until_metric("hoplake_queries_running", 0.0).await;
    server.until_metric("hoplake_gremlin_connections_open", 0.0).await;
    server.until_metric("hoplake_gremlin_sessions_open", 0.0).await;
    server.until_metric("hoplake_memory_bytes", 0.0).await;
    drop(input);
    let output = timeout(PATIENCE, driver.wait_with_output()).await.expect("the driver ends").unwrap();
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
}
