//! A graph that follows a database of MariaDB: the first copy, row changes while nothing else waits, tiny transactions, how long a commit
//! in SQL takes to be visible through a server, and a comparison of all rows.
//!
//! The command itself is measured, as a process of its own, so that its memory is its own; database, store and server share the machine.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use hoplake_storage::StoreProfile;
use hoplake_testkit::{HoplakeServer, MariaDbServer, S3Server, SimProxy};
use mysql_async::{Conn, Opts, prelude::Queryable};
use serde_json::Value;
use tokio::time::{sleep, sleep_until};

use crate::client::Client;

/// How much, and which of it.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// The command.
    #[arg(long, default_value = "target/release/hoplake")]
    hoplake: PathBuf,
    /// Rows of the first copy: one in two a vertex with an edge to its manager, one in two an edge.
    #[arg(long, default_value_t = 10_000_000)]
    rows: u64,
    /// Row changes that are followed.
    #[arg(long, default_value_t = 1_000_000)]
    changes: u64,
    /// Transactions of one row.
    #[arg(long, default_value_t = 50_000)]
    tiny: u64,
    /// Transactions a second, of three rows each, while it is measured how late the graph is.
    #[arg(long, default_value_t = 500)]
    rate: u64,
    /// For so many seconds.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Rows that are changed in the graph alone, for the comparison to find.
    #[arg(long, default_value_t = 1_000)]
    differences: u64,
    /// Only these: copy, organisation, follow, tiny, lag, reconcile.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    #[arg(long, default_value_t = 7)]
    seed: u64,
}

/// Not for durability, which is not what is measured: a commit does not wait for the disk.
const DATABASE: [&str; 4] = [
    "--innodb-buffer-pool-size=1G",
    "--innodb-flush-log-at-trx-commit=2",
    "--innodb-log-file-size=1G",
    "--max-binlog-size=1G",
];

const TABLES: &str = "
CREATE TABLE person (
  id INT PRIMARY KEY, name VARCHAR(40) NOT NULL, born DATE, salary DECIMAL(10,2), seen DATETIME(3), rank INT, manager_id INT
) ENGINE=InnoDB;
CREATE TABLE knows (one INT, other INT, since DATE, PRIMARY KEY (one, other)) ENGINE=InnoDB;
CREATE TABLE mark (id INT PRIMARY KEY, number BIGINT NOT NULL) ENGINE=InnoDB;
INSERT INTO mark VALUES (1, 0);";

const MAPPING: &str = r#"
[[table]]
name = "person"
vertex = { label = "Person" }
edges = [{ label = "manages", columns = "manager_id", from = "Person" }]
[[table]]
name = "knows"
edge = { label = "knows", source = { label = "Person", columns = "one" }, target = { label = "Person", columns = "other" } }
[[table]]
name = "mark"
vertex = { label = "Mark" }
"#;

/// Prints the tables.
pub fn run(arguments: &Arguments) -> Result<()> {
    ensure!(arguments.hoplake.exists(), "build the command first: cargo build --release -p hoplake-cli");
    tokio::runtime::Runtime::new()?.block_on(measure(arguments))
}

async fn measure(arguments: &Arguments) -> Result<()> {
    let is_wanted = |what: &str| arguments.only.is_empty() || arguments.only.iter().any(|only| only == what);
    println!("| | store | rows or transactions | s | per s | peak memory, MiB |");
    println!("| --- | --- | ---: | ---: | ---: | ---: |");
    if is_wanted("copy") {
        let bench = Bench::new(arguments, false).await?;
        bench.fill(arguments.rows / 2, 1).await?;
        bench.row("first copy", arguments.rows, &bench.feed(&["--once"])?)?;
        if is_wanted("reconcile") {
            bench.reconciled(arguments).await?;
        }
    }
    if is_wanted("organisation") {
        let bench = Bench::new(arguments, false).await?;
        bench.fill(40_000, 12).await?;
        bench.row("organisation of 40,000 people and 480,000 rows of history", 520_000, &bench.feed(&["--once"])?)?;
    }
    for is_remote in [false, true] {
        if is_wanted("follow") {
            let bench = Bench::new(arguments, is_remote).await?;
            bench.fill(100_000, 1).await?;
            bench.feed(&["--once"])?;
            bench.change(arguments.changes, 1_000).await?;
            bench.row("changes, 1,000 a transaction", arguments.changes, &bench.feed(&["--once"])?)?;
        }
        if is_wanted("tiny") {
            let bench = Bench::new(arguments, is_remote).await?;
            bench.fill(100_000, 1).await?;
            bench.feed(&["--once"])?;
            bench.change(arguments.tiny, 1).await?;
            bench.row("transactions of one row", arguments.tiny, &bench.feed(&["--once"])?)?;
        }
    }
    if is_wanted("lag") {
        println!(
            "\n| store | transactions/s | from SQL to the server: p50, ms | p99, ms | most, ms | peak memory, MiB |"
        );
        println!("| --- | ---: | ---: | ---: | ---: | ---: |");
        for is_remote in [false, true] {
            Bench::new(arguments, is_remote).await?.lag(arguments).await?;
        }
    }
    Ok(())
}

/// A database, a place for a graph, and the command between them.
struct Bench {
    hoplake: PathBuf,
    folder: tempfile::TempDir,
    database: MariaDbServer,
    /// A server that holds answers back as a bucket does.
    remote: Option<(S3Server, SimProxy)>,
    graph: String,
}

impl Bench {
    async fn new(arguments: &Arguments, is_remote: bool) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let database = MariaDbServer::start(&DATABASE)?;
        database.sql("test", TABLES)?;
        let remote = if is_remote {
            let server = S3Server::start()?;
            let proxy = SimProxy::start(&server.endpoint(), StoreProfile::s3_standard(), arguments.seed).await?;
            Some((server, proxy))
        } else {
            None
        };
        let graph = match &remote {
            Some((server, _)) => server.url("feed"),
            None => folder.path().join("graph").display().to_string(),
        };
        let text = format!("graph = '{graph}'\n[source]\nname = 'hr'\nurl = '{}'\n{MAPPING}", database.url("test"));
        fs::write(folder.path().join("feed.toml"), text)?;
        Ok(Self { hoplake: fs::canonicalize(&arguments.hoplake)?, folder, database, remote, graph })
    }

    fn store(&self) -> &'static str {
        if self.remote.is_some() { "simulated bucket" } else { "local" }
    }

    async fn connect(&self) -> Result<Conn> {
        Ok(Conn::new(Opts::from_url(&self.database.url("test"))?).await?)
    }

    /// Fills the tables: `people`, each of whom knows `known` others.
    async fn fill(&self, people: u64, known: u64) -> Result<()> {
        let mut conn = self.connect().await?;
        // The copy does not read the log.
        conn.query_drop("SET sql_log_bin = 0").await?;
        conn.query_drop(format!(
            "INSERT INTO person SELECT seq, CONCAT('person number ', seq), '1970-01-01' + INTERVAL seq % 12000 DAY, 1000 + seq % 9000 / 7,
             '2020-01-01' + INTERVAL seq SECOND, seq % 100, IF(seq % 10 = 0, NULL, 1 + seq DIV 10) FROM seq_1_to_{people}"
        ))
        .await?;
        let knows = format!(
            "INSERT INTO knows SELECT 1 + seq % {people}, 1 + (seq * 7919 + seq DIV {people} * 31) % {people},
             '2000-01-01' + INTERVAL seq % 9000 DAY FROM seq_1_to_{}",
            people * known
        );
        conn.query_drop(knows).await?;
        conn.disconnect().await?;
        Ok(())
    }

    /// Row changes in transactions of some: two in three change a person, one in six adds one who knows nobody or removes it again.
    async fn change(&self, rows: u64, in_one: u64) -> Result<()> {
        let mut conn = self.connect().await?;
        let people: u64 = conn.query_first("SELECT COUNT(*) FROM person").await?.unwrap_or(1);
        let mut row = 0;
        while row < rows {
            let until = rows.min(row + in_one);
            if in_one == 1 {
                let id = 1 + row * 7919 % people;
                conn.query_drop(format!("UPDATE person SET rank = {row}, seen = NOW(3) WHERE id = {id}")).await?;
            } else {
                let half = (until - row) / 2;
                let first = 1 + row % (people - half);
                conn.query_drop("BEGIN").await?;
                let update = format!(
                    "UPDATE person SET rank = {row}, manager_id = IF(id % 3 = 0, 1 + id DIV 11, manager_id) WHERE id BETWEEN {first} AND {}",
                    first + half - 1
                );
                conn.query_drop(update).await?;
                let begin = 100_000_000 + row;
                let insert = format!(
                    "INSERT INTO person SELECT seq, 'new', NULL, 1, NULL, 0, 1 + seq % {people} FROM seq_{begin}_to_{}",
                    begin + (until - row - half) - 1
                );
                conn.query_drop(insert).await?;
                conn.query_drop("COMMIT").await?;
            }
            row = until;
        }
        conn.disconnect().await?;
        Ok(())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.hoplake);
        command.args(arguments).current_dir(self.folder.path()).env_remove("HOPLAKE_DISK_CACHE");
        if let Some((server, proxy)) = &self.remote {
            command.envs(server.env_at(&proxy.endpoint()));
        }
        command
    }

    /// Runs a feed to its end.
    fn feed(&self, arguments: &[&str]) -> Result<Ended> {
        self.to_end(&[&["feed", "run", "feed.toml", "--json"], arguments].concat())
    }

    fn to_end(&self, arguments: &[&str]) -> Result<Ended> {
        let begun = Instant::now();
        let mut child = self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut peak = 0;
        while child.try_wait()?.is_none() {
            // The last figure and not the largest: before the child has replaced its image, the system names the peak of its parent.
            peak = peak_bytes(&child).unwrap_or(peak);
            std::thread::sleep(Duration::from_millis(5));
        }
        let time = begun.elapsed();
        let output = child.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let report = serde_json::from_slice(&output.stdout).with_context(|| said.clone())?;
        Ok(Ended { time, peak, report, status: output.status.code().unwrap_or(-1) })
    }

    fn row(&self, what: &str, count: u64, ended: &Ended) -> Result<()> {
        ensure!(ended.status == 0, "the feed ended with status {}", ended.status);
        let seconds = ended.time.as_secs_f64();
        println!(
            "| {what} | {} | {count} | {seconds:.1} | {:.0} | {:.0} |",
            self.store(),
            count as f64 / seconds,
            ended.peak as f64 / (1 << 20) as f64
        );
        Ok(())
    }

    /// Changes some vertices in the graph alone, and compares.
    async fn reconciled(&self, arguments: &Arguments) -> Result<()> {
        let people = arguments.rows / 2;
        let line = |number: u64| {
            let key = 1 + number * (people / arguments.differences.max(1));
            match number % 3 {
                0 => format!(r#"{{"op": "delete_vertex", "label": "Person", "key": {key}}}"#),
                1 => format!(
                    r#"{{"op": "upsert_vertex", "label": "Person", "key": {key}, "properties": {{"rank": -1}}}}"#
                ),
                _ => format!(r#"{{"op": "upsert_vertex", "label": "Person", "key": {}}}"#, 200_000_000 + number),
            }
        };
        let lines: Vec<_> = (0..arguments.differences).map(line).collect();
        fs::write(self.folder.path().join("damage.jsonl"), lines.join("\n"))?;
        let applied = self.command(&["apply", &self.graph, "damage.jsonl", "--create-missing"]).output()?;
        ensure!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
        let ended = self.to_end(&["feed", "reconcile", "feed.toml", "--repair", "--json"])?;
        let count = |name: &str| ended.report[name].as_u64().unwrap_or_default();
        let found = format!(
            "comparison and repair: {} missing, {} left over, {} different, {} scans",
            count("missing"),
            count("left_over"),
            count("different"),
            count("scans")
        );
        self.row(&found, arguments.rows, &ended)?;
        let again = self.to_end(&["feed", "reconcile", "feed.toml", "--json"])?;
        self.row("comparison of the same", arguments.rows, &again)
    }

    /// How long a number that is written to the database takes to be answered by a server.
    async fn lag(&self, arguments: &Arguments) -> Result<()> {
        self.fill(100_000, 1).await?;
        self.feed(&["--once"])?;
        let mut feed =
            self.command(&["feed", "run", "feed.toml"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let measured = async {
            let mut serve = self.command(&["serve", &format!("hr={}", self.graph), "--refresh", "250ms"]);
            let server = HoplakeServer::start(serve.stderr(Stdio::null()))?;
            let written = Arc::new(Mutex::new(Vec::new()));
            let seen = Arc::new(AtomicU64::new(0));
            let until = Instant::now() + Duration::from_secs(arguments.seconds);
            let load = self.load(arguments.rate, until);
            let marks = self.mark(&written, until);
            let (lags, ..) = tokio::try_join!(watch(server.http(), &written, &seen, until), load, marks)?;
            Ok::<_, anyhow::Error>(lags)
        }
        .await;
        let peak = peak_bytes(&feed).unwrap_or_default();
        feed.kill()?;
        feed.wait()?;
        let mut lags: Vec<Duration> = measured?;
        lags.sort_unstable();
        let at = |share: f64| lags[((lags.len() - 1) as f64 * share) as usize].as_millis();
        println!(
            "| {} | {} | {} | {} | {} | {:.0} |",
            self.store(),
            arguments.rate,
            at(0.5),
            at(0.99),
            at(1.0),
            peak as f64 / (1 << 20) as f64
        );
        Ok(())
    }

    /// Transactions of three rows at a rate.
    async fn load(&self, rate: u64, until: Instant) -> Result<()> {
        const CONNECTIONS: u64 = 8;
        let begun = tokio::time::Instant::now();
        let one = |connection: u64| async move {
            let mut conn = self.connect().await?;
            let mut number = connection;
            while Instant::now() < until {
                sleep_until(begun + Duration::from_secs_f64(number as f64 / rate as f64)).await;
                let id = 1 + number * 7919 % 99_990;
                let rows = format!("UPDATE person SET rank = {number} WHERE id BETWEEN {id} AND {}", id + 2);
                conn.query_drop(rows).await?;
                number += CONNECTIONS;
            }
            // What was due is done, or the rate is not what is said.
            let done = begun + Duration::from_secs_f64(number as f64 / rate as f64);
            ensure!(
                done + Duration::from_secs(1) > tokio::time::Instant::now(),
                "the database cannot do {rate} transactions/s"
            );
            Ok::<_, anyhow::Error>(())
        };
        futures::future::try_join_all((0..CONNECTIONS).map(one)).await?;
        Ok(())
    }

    /// Writes numbers that ascend, and when each was committed.
    async fn mark(&self, written: &Mutex<Vec<Instant>>, until: Instant) -> Result<()> {
        let mut conn = self.connect().await?;
        let mut number = 0;
        while Instant::now() < until {
            number += 1;
            conn.query_drop(format!("UPDATE mark SET number = {number} WHERE id = 1")).await?;
            if let Ok(mut written) = written.lock() {
                written.push(Instant::now());
            }
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }
}

/// Asks for the number until the last that was written is seen, and returns how long each took.
async fn watch(
    address: SocketAddr,
    written: &Mutex<Vec<Instant>>,
    seen: &AtomicU64,
    until: Instant,
) -> Result<Vec<Duration>> {
    const LATE: Duration = Duration::from_secs(60);
    let mut client = Client::connect(address).await?;
    let mut lags = Vec::new();
    loop {
        let body = r#"{"gremlin": "g.V().hasLabel('Mark').values('number')"}"#;
        let found = client.results("/v1/graphs/hr/gremlin", body).await?;
        let now = Instant::now();
        let number = found.first().and_then(Value::as_u64).unwrap_or_default();
        let before = seen.swap(number, Ordering::Relaxed);
        let last = {
            let Ok(written) = written.lock() else { bail!("the writer has panicked") };
            // The answer may come before the writer notes its commit.
            for number in before..number {
                let at = written.get(number as usize).copied().unwrap_or(now);
                lags.push(now.saturating_duration_since(at));
            }
            written.len() as u64
        };
        if now > until && number >= last {
            return Ok(lags);
        }
        ensure!(now < until + LATE, "number {last} is not visible after {} s", LATE.as_secs());
        sleep(Duration::from_millis(5)).await;
    }
}

/// What a command did.
struct Ended {
    time: Duration,
    peak: u64,
    report: Value,
    status: i32,
}

/// The most resident memory that a process has had so far; none when it has ended.
fn peak_bytes(child: &Child) -> Option<u64> {
    let status = fs::read_to_string(Path::new("/proc").join(child.id().to_string()).join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    Some(line?.parse::<u64>().ok()? << 10)
}
