//! How feeds begin, end and are watched, whatever else happens: databases that are away, writers that go on, transactions that are too large
//! for memory, names that need quotes.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use hoplake::Graph;
use hoplake_feed::{
    Cause, Event, Feed, FeedErrorKind, Monitor, Progress, RunOptions, Settings, SourceSettings, mapping::infer, source,
};
use hoplake_testkit::{MariaDbServer, PostgresServer};
use tokio::{sync::Notify, task::JoinSet, time::timeout};

use crate::{following::caught_up, model::Model};

/// Far beyond what any of this takes; what does not come is a failure.
const PATIENCE: Duration = Duration::from_secs(90);

/// A database, of either kind.
enum Server {
    MariaDb(MariaDbServer),
    Postgres(PostgresServer),
}

impl Server {
    fn both() -> [Self; 2] {
        [
            Self::MariaDb(MariaDbServer::start(&[]).unwrap()),
            Self::Postgres(PostgresServer::start(&["fsync=off"]).unwrap()),
        ]
    }

    fn sql(&self, statements: &str) -> String {
        match self {
            Self::MariaDb(server) => server.sql("test", statements).unwrap(),
            Self::Postgres(server) => server.sql("test", statements).unwrap(),
        }
    }

    fn url(&self) -> String {
        match self {
            Self::MariaDb(server) => server.url("test"),
            Self::Postgres(server) => server.url("test"),
        }
    }

    /// Makes a table `note` that is followed, and `other` that is not.
    fn with_notes(&self) {
        self.sql("CREATE TABLE note (id int PRIMARY KEY, body text); CREATE TABLE other (id int PRIMARY KEY)");
        if let Self::Postgres(_) = self {
            self.sql("CREATE PUBLICATION hoplake_hr FOR TABLE note");
        }
    }

    fn settings(&self, folder: &Path, more: &str) -> Settings {
        let url = self.url();
        let graph = folder.join(if matches!(self, Self::MariaDb(_)) { "m" } else { "p" });
        let entry = "[[table]]\nname = 'note'\nvertex = { label = 'Note' }\n";
        Settings::parse(&format!("graph = {graph:?}\n[source]\nname = 'hr'\nurl = '{url}'\n{more}\n{entry}")).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn once_ends_where_the_source_was_though_others_go_on_writing() {
    let folder = tempfile::tempdir().unwrap();
    for server in Server::both() {
        server.with_notes();
        let settings = server.settings(folder.path(), "[stream]\nlinger_ms = 5");
        drop(caught_up(&settings).await);
        // One writer for what is followed, and one for what is not: each by itself would keep a feed busy.
        for table in ["note", "other"] {
            let server = &server;
            let stop = &AtomicBool::new(false);
            let before: i64 = server.sql(&format!("SELECT coalesce(max(id), 0) FROM {table}")).trim().parse().unwrap();
            server.sql(&format!("INSERT INTO {table} (id) VALUES ({})", before + 1));
            let graph = std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mut next = before + 2;
                    while !stop.load(Relaxed) {
                        let rows: String =
                            (0..200).map(|id| format!("INSERT INTO {table} (id) VALUES ({});", next + id)).collect();
                        server.sql(&rows);
                        next += 200;
                    }
                });
                let ended = tokio::task::block_in_place(|| {
                    tokio::runtime::Handle::current().block_on(timeout(PATIENCE, caught_up(&settings)))
                });
                stop.store(true, Relaxed);
                ended.unwrap_or_else(|_| panic!("it does not end while {table} changes")).graph().clone()
            });
            if table == "note" {
                let found = Model::of_graph(&graph).await;
                assert!(found.vertices.contains_key(&format!("Note:{}", before + 1)), "what was there is followed");
            }
        }
    }
}

/// Counts what was tried again.
#[derive(Default)]
struct Retries(std::sync::Mutex<Vec<(Cause, String)>>);

impl Progress for Retries {
    fn report(&self, event: &Event<'_>) {
        if let Event::Retried { cause, error, .. } = event {
            self.0.lock().unwrap().push((*cause, error.to_string()));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_away_at_the_start_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    for mut server in Server::both() {
        server.with_notes();
        let settings = server.settings(folder.path(), "timeout_ms = 2000");
        match &mut server {
            Server::MariaDb(server) => server.kill(),
            Server::Postgres(server) => server.kill(),
        }
        let no_wait = RunOptions { no_wait: true, ..RunOptions::default() };
        let error = Feed::open(settings.clone(), no_wait, Arc::new(())).await.err().unwrap();
        assert_eq!(error.kind(), FeedErrorKind::Unavailable, "{error}");
        let retries = Arc::new(Retries::default());
        let of_feed = settings.clone();
        let progress = retries.clone();
        let mut opening = JoinSet::new();
        opening.spawn(async move { Feed::open(of_feed, RunOptions::default(), progress).await });
        while retries.0.lock().unwrap().len() < 2 {
            assert!(opening.try_join_next().is_none(), "it has not waited");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(retries.0.lock().unwrap().iter().all(|(cause, _)| *cause == Cause::Source));
        match &mut server {
            Server::MariaDb(server) => server.restart().unwrap(),
            Server::Postgres(server) => server.restart().unwrap(),
        }
        let opened = timeout(PATIENCE, opening.join_next()).await.expect("it begins").unwrap().unwrap();
        assert!(opened.is_ok(), "{:?}", opened.err());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_too_large_for_memory_is_one_version_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let scratch = folder.path().join("scratch");
    std::fs::create_dir(&scratch).unwrap();
    let left = || std::fs::read_dir(&scratch).unwrap().count();
    for server in Server::both() {
        server.with_notes();
        // A hundredth of the transaction is kept in memory.
        let more = format!(
            "[copy]\ntemp_dir = {scratch:?}\n[stream]\nbytes_max = 65536\ntransaction_bytes_max = 65536\nahead_bytes_max = 65536"
        );
        let settings = server.settings(folder.path(), &more);
        let mut feed = caught_up(&settings).await;
        let before = feed.graph().version();
        // One that changes nothing of the graph, and waits for the next commit, is before it: it leaves all room to it.
        server.sql("CREATE TABLE apart (id int PRIMARY KEY); INSERT INTO apart VALUES (1)");
        let rows: Vec<_> = (0..20_000).map(|id| format!("({id}, '{id} {}')", "x".repeat(300))).collect();
        let changes = "UPDATE note SET body = 'changed' WHERE id % 7 = 0; DELETE FROM note WHERE id % 11 = 0";
        server.sql(&format!("BEGIN; INSERT INTO note VALUES {}; {changes}; COMMIT", rows.join(",")));
        feed.run(std::future::pending()).await.unwrap();
        let versions = Graph::versions(feed.graph().store()).await.unwrap();
        assert_eq!(versions.into_iter().filter(|version| *version > before).count(), 1, "it was split");
        let found = Model::of_graph(feed.graph()).await.vertices;
        assert_eq!(found.len(), (0..20_000).filter(|id| id % 11 != 0).count());
        assert_eq!((&*found["Note:7"]["body"], found["Note:8"]["body"].len()), ("changed", 302));
        assert_eq!(left(), 0, "what was kept on disk stays there");
        // What is beyond the bound of the disk stops it, and says so.
        let mut bounded = settings.clone();
        bounded.stream.spill_bytes_max = 1 << 20;
        drop(feed);
        server.sql("UPDATE note SET body = concat(body, '!')");
        let once = RunOptions { once: true, ..RunOptions::default() };
        let mut feed = Feed::open(bounded, once, Arc::new(())).await.unwrap();
        let error = feed.run(std::future::pending()).await.unwrap_err();
        assert!(error.to_string().contains("a transaction has more than 1048576 bytes"), "{error}");
        assert!(error.what_to_do().contains("raise stream.spill_bytes_max"), "{}", error.what_to_do());
        drop(feed);
        assert_eq!(left(), 0, "what was kept on disk stays there");
        // One that is ended while it reads leaves nothing, either.
        let stop = Arc::new(Notify::new());
        stop.notify_one();
        let mut feed = Feed::open(settings.clone(), RunOptions::default(), Arc::new(())).await.unwrap();
        feed.run(stop.notified()).await.unwrap();
        drop(feed);
        let found = Model::of_graph(caught_up(&settings).await.graph()).await.vertices;
        assert_eq!(found["Note:7"]["body"], "changed!");
        assert_eq!(left(), 0, "what was kept on disk stays there");
    }
}

/// What `infer` writes can be run, whatever the names are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_whose_names_need_quotes_are_inferred_copied_and_followed() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["t.x", "a b", "\"q\"", "`b`", ".", "Ü.é", "s.t.u", "plain"];
    for server in Server::both() {
        let quote = if matches!(server, Server::MariaDb(_)) { '`' } else { '"' };
        let quoted = |name: &str| format!("{quote}{}{quote}", name.replace(quote, &String::from_iter([quote; 2])));
        let create: String = names
            .map(|name| {
                format!("CREATE TABLE {0} (id int PRIMARY KEY, n int); INSERT INTO {0} VALUES (1, 1);", quoted(name))
            })
            .concat();
        server.sql(&create);
        if let Server::Postgres(_) = server {
            server.sql(&format!("CREATE PUBLICATION hoplake_hr FOR TABLE {}", names.map(quoted).join(", ")));
        }
        let mut settings = server.settings(folder.path(), "");
        let url = hoplake_feed::OneOrMore::One(server.url());
        settings.tables = Vec::new();
        settings.source = SourceSettings::new("hr", url);
        let opened = source::open(&settings).unwrap();
        let schema = opened.default_schema().to_owned();
        let catalog = opened.catalog(&BTreeSet::from([schema.clone()])).await.unwrap();
        settings.tables = infer(&catalog, &schema).0;
        assert_eq!(settings.tables.len(), names.len());
        // As it is written to a file, and with the schema before it.
        let mut settings = Settings::parse(&toml_of(&settings)).unwrap();
        drop(caught_up(&settings).await);
        for table in &catalog.tables {
            let entry = settings.tables.iter_mut().find(|entry| entry.name == table.name.written(&schema)).unwrap();
            entry.name = table.name.quoted(quote);
        }
        server.sql(
            &names.map(|name| format!("UPDATE {0} SET n = 2; INSERT INTO {0} VALUES (2, 2);", quoted(name))).concat(),
        );
        let found = Model::of_graph(caught_up(&settings).await.graph()).await.vertices;
        assert_eq!(found.len(), 2 * names.len(), "{found:?}");
        assert!(found.values().all(|it| it["n"] == "2"), "{found:?}");
    }
}

/// Settings as `hoplake feed infer` prints them.
fn toml_of(settings: &Settings) -> String {
    toml::to_string(settings).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_holds_up_a_feed_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    for server in Server::both() {
        server.with_notes();
        let settings = server.settings(folder.path(), "");
        let monitor = Arc::new(Monitor::new(&settings));
        let value = |name: &str| -> f64 {
            let metrics = monitor.metrics();
            let start = format!("hoplake_feed_{name}{{source=\"hr\"}} ");
            metrics.lines().find_map(|line| line.strip_prefix(&*start)).unwrap().parse().unwrap()
        };
        assert!(
            ["slot_lag_bytes", "slot_kept_bytes", "oldest_transaction_seconds"].iter().all(|name| value(name).is_nan())
        );
        // A transaction that stays open while the feed begins.
        let sleeps = match &server {
            Server::MariaDb(_) => "BEGIN; INSERT INTO other VALUES (1); SELECT SLEEP(6); COMMIT",
            Server::Postgres(_) => "BEGIN; INSERT INTO note VALUES (1); SELECT pg_sleep(6); COMMIT",
        };
        let is_postgres = matches!(server, Server::Postgres(_));
        let mut feed = Feed::open(settings, RunOptions::default(), monitor.clone()).await.unwrap();
        std::thread::scope(|scope| {
            let open = scope.spawn(|| server.sql(sleeps));
            std::thread::sleep(Duration::from_secs(3));
            let running = async {
                let seen = async {
                    // Not a number until it was asked for.
                    while value("oldest_transaction_seconds").partial_cmp(&1.0).is_none_or(std::cmp::Ordering::is_lt) {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                };
                feed.run(async { timeout(PATIENCE, seen).await.expect("an open transaction is seen") }).await.unwrap();
            };
            tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(running));
            open.join().unwrap();
        });
        // Of MariaDB there is no slot.
        assert_eq!(value("slot_lag_bytes") >= 0.0 && value("slot_kept_bytes") >= 0.0, is_postgres);
    }
}
