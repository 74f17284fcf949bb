//! Clients of a server: they ask again and again, over HTTP, and hold each answer against itself and against the
//! ledger.
//!
//! An answer is of one version, so it has complete batches of a writer, or it is an error that `docs/serving.md`
//! explains by the store or by time. What was acknowledged before the server was asked to refresh is in its answer, and
//! no answer is of an older version than one that was had before it was asked.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use hoplake_testkit::generate::SplitMix64;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    net::TcpStream,
    time::{sleep, timeout},
};

use super::{
    check,
    ledger::{Ledger, Outcome},
    script::Attempt,
    server::{GRAPH, QUERY_TIME},
};

/// Beyond the time of a query, for the way there and back, and for a machine that has other things to do.
const ANSWER_SLACK: Duration = Duration::from_secs(5);

/// A server that has not answered for so long is stuck: no storm lasts as long.
const SILENT_MAX: Duration = Duration::from_secs(60);

/// The statuses of a store that is away, of a query that ran out of time, of a server that has enough to do, and of a
/// version that a vacuum removed while it was read.
const EXPECTED: [u16; 4] = [503, 504, 429, 409];

/// The state of a server, as its clients observed it.
#[derive(Debug)]
struct ObservedServer {
    /// `None` while it is dead.
    http: Option<SocketAddr>,
    /// Of its lives.
    life: u64,
    /// The newest version that it answered from in this life.
    newest: u64,
    answered: Instant,
    /// How often it answered what, by the name of the question and the status.
    answers: BTreeMap<(&'static str, u16), u64>,
    longest: Duration,
    wrong: Option<String>,
}

/// A client of one server, which checks the answers.
#[derive(Debug, Clone)]
pub(super) struct ServerClient {
    number: u32,
    writers: u32,
    known: Arc<Mutex<ObservedServer>>,
    ledger: Arc<Mutex<Ledger>>,
}

/// An answer with status 200.
struct Answer {
    version: u64,
    body: Value,
}

impl ServerClient {
    pub(super) fn new(number: u32, writers: u32, ledger: Arc<Mutex<Ledger>>) -> Self {
        let known = ObservedServer {
            http: None,
            life: 0,
            newest: 0,
            answered: Instant::now(),
            answers: BTreeMap::new(),
            longest: Duration::ZERO,
            wrong: None,
        };
        Self { number, writers, known: Arc::new(Mutex::new(known)), ledger }
    }

    fn known(&self) -> MutexGuard<'_, ObservedServer> {
        self.known.lock().expect("no thread panics with what is known of a server")
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().expect("no thread panics with the ledger")
    }

    /// A life begins.
    pub(super) fn is_up(&self, http: SocketAddr) {
        let mut known = self.known();
        known.http = Some(http);
        // A new process opens the graph anew, from a hint that may be old.
        known.newest = 0;
        known.answered = Instant::now();
    }

    /// It is about to be killed.
    pub(super) fn goes_down(&self) {
        let mut known = self.known();
        known.http = None;
        known.life += 1;
    }

    /// What a client found that must not be, or that it has been silent for too long.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let known = self.known();
        ensure!(known.wrong.is_none(), "server {}: {}", self.number, known.wrong.clone().unwrap_or_default());
        let silent = known.answered.elapsed();
        ensure!(
            known.http.is_none() || silent <= SILENT_MAX,
            "server {} has given no answer for {} s",
            self.number,
            silent.as_secs()
        );
        Ok(())
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let known = self.known();
        let answers = known.answers.iter().map(|((what, status), count)| format!("{what} {status}: {count}"));
        vec![format!(
            "answers of server {}: {}; the longest took {:.1} s",
            self.number,
            answers.collect::<Vec<_>>().join(", "),
            known.longest.as_secs_f64()
        )]
    }

    /// Asks until the run ends.
    pub(super) async fn ask_on(self, mut random: SplitMix64) {
        loop {
            let question = random.below(5);
            let writer = 1 + random.below(u64::from(self.writers)) as u32;
            if let Err(error) = self.ask_one(question, writer).await {
                self.known().wrong.get_or_insert(format!("{error:#}"));
                return;
            }
            sleep(Duration::from_millis(random.below(100))).await;
        }
    }

    /// Asks once each, until all is answered, for so long at most: a server whose store is there again is there again.
    pub(super) async fn recovers(&self, within: Duration, newest: u64) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        for question in 0..5 {
            while !self.ask_one(question, 1).await?.is_some_and(|version| question > 0 || version >= newest) {
                ensure!(begun.elapsed() < within, "server {} does not recover, question {question}", self.number);
                sleep(Duration::from_millis(100)).await;
            }
        }
        Ok(begun.elapsed())
    }

    /// Asks a question, and checks its answer. Returns the version if there was one.
    async fn ask_one(&self, question: u64, writer: u32) -> anyhow::Result<Option<u64>> {
        let named = format!("Writer:{writer}");
        let ask = |call, body| self.ask(call, body);
        let answer = match question {
            0 => {
                let acknowledged = |(_, outcome): (&Attempt, &Outcome)| match outcome {
                    Outcome::Acknowledged(version) => Some(*version),
                    _ => None,
                };
                // Before the refresh is sent: what is acknowledged while it runs may be missing.
                let before = self.ledger().attempts.iter().filter_map(acknowledged).max().unwrap_or(0);
                let answer = ask("refresh", Value::Null).await?;
                let version = answer.as_ref().map_or(before, |answer| answer.version);
                ensure!(version >= before, "a refresh leads to version {version}; {before} was acknowledged before");
                answer
            }
            1 => {
                let body = json!({"starts": [named], "hops": ["out:wrote"], "select": ["batch"]});
                let answer = ask("traverse", body).await?;
                self.check_items(answer.as_ref(), writer, Attempt::items)?;
                answer
            }
            2 => {
                let body = json!({"starts": [named], "hops": ["out:wrote", "out:next"], "select": ["batch"]});
                let answer = ask("traverse", body).await?;
                // The first item of a batch is next to none.
                self.check_items(answer.as_ref(), writer, |attempt| attempt.items() - 1)?;
                answer
            }
            3 => {
                let answer = ask("neighbors", json!({"vertices": [named], "hop": "out:lit", "keys": true})).await?;
                self.check_lamps(answer.as_ref(), writer)?;
                answer
            }
            _ => {
                let answer = ask("properties", json!({"vertices": [named], "select": ["batch"]})).await?;
                self.check_row(answer.as_ref(), writer)?;
                answer
            }
        };
        Ok(answer.map(|answer| answer.version))
    }

    /// Sends a question. `None` if the server is dead, or fails as it may.
    async fn ask(&self, call: &'static str, body: Value) -> anyhow::Result<Option<Answer>> {
        // Before the question: an answer that another client gets meanwhile does not bind this one.
        let (http, life, newest) = {
            let known = self.known();
            (known.http, known.life, known.newest)
        };
        let Some(http) = http else { return Ok(None) };
        let begun = Instant::now();
        let answered = timeout(QUERY_TIME + ANSWER_SLACK, post(http, call, &body)).await;
        let mut known = self.known();
        // It was killed in between: an answer may be cut off, or be that of no server any more.
        if known.life != life {
            return Ok(None);
        }
        let answered = answered.with_context(|| format!("no answer to {call} {body} in {:?}", begun.elapsed()))?;
        let (status, text) = answered.with_context(|| format!("{call} {body} broke off"))?;
        known.longest = known.longest.max(begun.elapsed());
        *known.answers.entry((call, status)).or_default() += 1;
        if EXPECTED.contains(&status) {
            return Ok(None);
        }
        ensure!(status == 200, "status {status} for {call} {body}: {text}");
        let body: Value = serde_json::from_str(&text).with_context(|| format!("{call} is answered by {text}"))?;
        let version = body["version"].as_u64().or(body["statistics"]["version"].as_u64());
        let version = version.with_context(|| format!("{call} is answered without a version: {text}"))?;
        ensure!(version >= newest, "{call} is answered from version {version}, after {newest} was");
        known.newest = known.newest.max(version);
        known.answered = Instant::now();
        Ok(Some(Answer { version, body }))
    }

    /// Each batch of a writer has as many items as are due.
    fn check_items(&self, answer: Option<&Answer>, writer: u32, due: impl Fn(&Attempt) -> u64) -> anyhow::Result<()> {
        let Some(answer) = answer else { return Ok(()) };
        let mut counts = BTreeMap::new();
        for row in answer.body["rows"].as_array().context("no rows")? {
            let (attempt, _) = row["key"].as_str().and_then(Attempt::of_item).with_context(|| format!("{row}"))?;
            let is_right = attempt.writer == writer && row["properties"]["batch"].as_u64() == Some(attempt.batch);
            ensure!(is_right, "{row} among the items of writer {writer}");
            *counts.entry(attempt).or_insert(0) += 1;
        }
        let whole = check::whole(&counts, due).and_then(|batches| {
            let seen = BTreeMap::from([(writer, batches)]);
            check::hold(&seen, answer.version, &self.ledger())
        });
        whole.with_context(|| format!("an answer from version {}", answer.version))
    }

    fn check_lamps(&self, answer: Option<&Answer>, writer: u32) -> anyhow::Result<()> {
        let Some(answer) = answer else { return Ok(()) };
        let edges = answer.body["edges"].as_array().context("no edges")?;
        let lamps: Vec<_> = edges.iter().map(|edge| edge["to_key"].as_str().unwrap_or_default()).collect();
        let [lamp] = lamps[..] else { bail!("version {}: the lamps of writer {writer} are {lamps:?}", answer.version) };
        let batch = lamp.strip_prefix(&format!("{writer}/")).and_then(|batch| batch.parse().ok());
        self.check_last(answer.version, writer, batch.with_context(|| format!("lamp {lamp} of writer {writer}"))?)
    }

    fn check_row(&self, answer: Option<&Answer>, writer: u32) -> anyhow::Result<()> {
        let Some(answer) = answer else { return Ok(()) };
        let batch = answer.body["rows"][0]["properties"]["batch"].as_u64();
        let batch = batch.with_context(|| format!("writer {writer} has no row: {}", answer.body))?;
        self.check_last(answer.version, writer, batch)
    }

    /// No batch after the last one is acknowledged for this version, or an earlier one.
    fn check_last(&self, version: u64, writer: u32, batch: u64) -> anyhow::Result<()> {
        for (attempt, outcome) in self.ledger().of_writer(writer) {
            if let Outcome::Acknowledged(since) = *outcome {
                let is_there = attempt.batch <= batch;
                ensure!(
                    is_there == (since <= version),
                    "{attempt} was acknowledged for version {since}; version {version} ends with batch {batch}"
                );
            }
        }
        Ok(())
    }
}

/// The status of an answer, and its body.
async fn post(http: SocketAddr, call: &str, body: &Value) -> anyhow::Result<(u16, String)> {
    let stream = TcpStream::connect(http).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = hyper::Request::post(format!("/v1/graphs/{GRAPH}/{call}"))
        .header("host", http.to_string())
        .header("content-type", "application/json")
        .header("connection", "close")
        .body(Full::new(bytes::Bytes::from(body)))?;
    let response = sender.send_request(request).await?;
    let status = response.status().as_u16();
    let bytes = response.into_body().collect().await?.to_bytes();
    connection.abort();
    Ok((status, String::from_utf8(bytes.to_vec())?))
}
