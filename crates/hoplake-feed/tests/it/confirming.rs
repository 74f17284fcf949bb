//! What a feed says to PostgreSQL that it has is in the graph: the server throws it away.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use hoplake::{Graph, OpenSettings, Store};
use hoplake_feed::{Cause, Ends, Event, Feed, FeedError, Progress, RunOptions, Settings, source};
use hoplake_testkit::{Alteration, AlteredStore, PostgresServer};
use object_store::{ObjectStore, PutOptions, PutPayload, PutResult, memory::InMemory, path::Path};
use tokio::sync::oneshot;

use crate::{model::Model, postgres::number};

/// A store that takes no commits for some time.
#[derive(Debug)]
struct Rejecting {
    below: Arc<InMemory>,
    rejects: Arc<AtomicBool>,
}

#[async_trait]
impl Alteration for Rejecting {
    fn below(&self) -> &dyn ObjectStore {
        &self.below
    }

    async fn put(&self, path: &Path, payload: PutPayload, options: PutOptions) -> object_store::Result<PutResult> {
        if self.rejects.load(Ordering::SeqCst) && path.as_ref().contains("manifest") {
            return Err(object_store::Error::Generic { store: "test", source: "503".into() });
        }
        self.below.put_opts(path, payload, options).await
    }
}

/// A store that takes commits, and for some time does not answer them.
#[derive(Debug)]
struct Silent {
    below: Arc<InMemory>,
    is_silent: Arc<AtomicBool>,
}

#[async_trait]
impl Alteration for Silent {
    fn below(&self) -> &dyn ObjectStore {
        &self.below
    }

    async fn put(&self, path: &Path, payload: PutPayload, options: PutOptions) -> object_store::Result<PutResult> {
        let result = self.below.put_opts(path, payload, options).await;
        if self.is_silent.load(Ordering::SeqCst) && path.as_ref().contains("manifest") {
            std::future::pending::<()>().await;
        }
        result
    }
}

#[derive(Debug, Default)]
struct Counted {
    rows: AtomicU64,
    connections: AtomicU64,
    /// How often the feed began to follow, and how often it waited for the database.
    begins: AtomicU64,
    waits: AtomicU64,
}

impl Progress for Counted {
    fn report(&self, event: &Event<'_>) {
        match event {
            Event::Read { rows, .. } => drop(self.rows.fetch_add(*rows, Ordering::SeqCst)),
            Event::Connected => drop(self.connections.fetch_add(1, Ordering::SeqCst)),
            Event::Following(_) => drop(self.begins.fetch_add(1, Ordering::SeqCst)),
            Event::Retried { cause: Cause::Source, .. } => drop(self.waits.fetch_add(1, Ordering::SeqCst)),
            _ => {}
        }
    }
}

async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    for _ in 0..600 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{what}: not within a minute");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_step_of_a_feed_confirms_more_than_the_graph_has() {
    let notes = Notes::start();
    let rejects = Arc::new(AtomicBool::new(false));
    let altered = AlteredStore(Rejecting { below: notes.below.clone(), rejects: rejects.clone() });
    let check = async |step: &str| {
        // A status is sent every second.
        for _ in 0..8 {
            // In this order: the graph may go on in between.
            let confirmed = notes.confirmed();
            let position = notes.position().await;
            assert!(confirmed <= position, "{step}: {confirmed} is confirmed, the graph is at {position}");
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    };
    let counted = Arc::new(Counted::default());
    let mut feed = notes.feed(Arc::new(altered), counted.clone()).await;
    let running = tokio::spawn(async move { feed.run(std::future::pending()).await });
    notes.insert(0..3);
    until("the feed follows", async || notes.has(3).await).await;
    check("connected").await;
    rejects.store(true, Ordering::SeqCst);
    notes.insert(3..6);
    until("the feed reads ahead", async || counted.rows.load(Ordering::SeqCst) >= 6).await;
    check("read, and commits fail").await;
    for reconnects in 1..=3 {
        let before = counted.connections.load(Ordering::SeqCst);
        let terminate = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active";
        notes.server.sql("test", terminate).unwrap();
        until("the feed connects again", async || counted.connections.load(Ordering::SeqCst) > before).await;
        check(&format!("connected again, {reconnects} times")).await;
        notes.insert(3 + reconnects * 3..6 + reconnects * 3);
        check("read more").await;
    }
    running.abort();
    let _ = running.await;
    check("killed").await;
    let mut feed = loop {
        let options = RunOptions { once: true, ..RunOptions::default() };
        match notes.try_feed(notes.below.clone(), options, Arc::new(())).await {
            Err(error) if error.is_transient() => tokio::time::sleep(Duration::from_millis(100)).await,
            opened => break opened.unwrap(),
        }
    };
    feed.run(std::future::pending()).await.unwrap();
    assert_eq!(Model::of_graph(feed.graph()).await.vertices.len(), 15);
    check("started again").await;
}

/// A table of PostgreSQL, and a graph that feeds make of it.
struct Notes {
    server: PostgresServer,
    settings: Settings,
    below: Arc<InMemory>,
}

impl Notes {
    fn start() -> Self {
        let server = PostgresServer::start(&[]).unwrap();
        server
            .sql("test", "CREATE TABLE note (id int PRIMARY KEY); CREATE PUBLICATION hoplake_notes FOR TABLE note")
            .unwrap();
        let url = server.url("test");
        let text = format!(
            "graph = 'memory://notes'\n[source]\nname = 'notes'\nurl = '{url}'\n[stream]\nlinger_ms = 5\n\
             [[table]]\nname = 'note'\nvertex = {{ label = 'Note' }}\n"
        );
        Self { server, settings: Settings::parse(&text).unwrap(), below: Arc::default() }
    }

    async fn try_feed(
        &self,
        inner: Arc<dyn ObjectStore>,
        options: RunOptions,
        progress: Arc<dyn Progress>,
    ) -> Result<Feed, FeedError> {
        let store = Store::new(inner, Path::default(), "memory://notes");
        let ends = Ends { source: source::open(&self.settings).unwrap(), store };
        Feed::open_on(ends, self.settings.clone(), options, progress).await
    }

    async fn feed(&self, inner: Arc<dyn ObjectStore>, progress: Arc<dyn Progress>) -> Feed {
        self.try_feed(inner, RunOptions::default(), progress).await.unwrap()
    }

    fn insert(&self, ids: std::ops::Range<u32>) {
        for id in ids {
            self.server.sql("test", &format!("INSERT INTO note VALUES ({id})")).unwrap();
        }
    }

    async fn graph(&self) -> Graph {
        let store = Store::new(self.below.clone(), Path::default(), "memory://notes");
        Graph::open_with(store, &OpenSettings::default()).await.unwrap()
    }

    async fn has(&self, notes: usize) -> bool {
        Model::of_graph(&self.graph().await).await.vertices.len() == notes
    }

    /// Up to where the graph has followed.
    async fn position(&self) -> u64 {
        let graph = self.graph().await;
        number(graph.source_position("notes").unwrap().split(' ').next().unwrap())
    }

    /// Up to where the server may throw its log away.
    fn confirmed(&self) -> u64 {
        number(&self.server.sql("test", "SELECT confirmed_flush_lsn FROM pg_replication_slots").unwrap())
    }
}

/// A deployment starts the new process before it ends the old one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_feed_that_starts_while_another_runs_goes_on_when_that_ends() {
    let notes = Notes::start();
    let mut old = notes.feed(notes.below.clone(), Arc::new(())).await;
    let (stop, stopped) = oneshot::channel::<()>();
    let old = tokio::spawn(async move { old.run(async { drop(stopped.await) }).await });
    notes.insert(0..3);
    until("the old feed follows", async || notes.has(3).await).await;
    let counted = Arc::new(Counted::default());
    let mut new = notes.feed(notes.below.clone(), counted.clone()).await;
    let (stop_new, stopped) = oneshot::channel::<()>();
    let new = tokio::spawn(async move { new.run(async { drop(stopped.await) }).await });
    let mut inserted = 3;
    // However often the old one commits meanwhile.
    for begins in 1..=3 {
        until("the new feed waits for the slot", async || {
            assert!(!new.is_finished(), "the new feed has ended when it had begun {begins} times");
            counted.begins.load(Ordering::SeqCst) >= begins && counted.waits.load(Ordering::SeqCst) >= begins
        })
        .await;
        notes.insert(inserted..inserted + 3);
        inserted += 3;
        until("the old feed confirms", async || {
            notes.has(inserted as usize).await && notes.confirmed() >= notes.position().await
        })
        .await;
    }
    stop.send(()).unwrap();
    old.await.unwrap().unwrap();
    notes.insert(inserted..inserted + 3);
    until("the new feed follows", async || {
        assert!(!new.is_finished(), "the new feed has ended");
        notes.has(inserted as usize + 3).await
    })
    .await;
    stop_new.send(()).unwrap();
    new.await.unwrap().unwrap();
}

/// Otherwise the server keeps its log until the next change of a table.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_feed_confirms_the_commit_of_another_that_it_goes_on_from() {
    let notes = Notes::start();
    let is_silent = Arc::new(AtomicBool::new(false));
    let silent = AlteredStore(Silent { below: notes.below.clone(), is_silent: is_silent.clone() });
    let mut killed = notes.feed(Arc::new(silent), Arc::new(())).await;
    let mut next = notes.feed(notes.below.clone(), Arc::new(())).await;
    is_silent.store(true, Ordering::SeqCst);
    let running = tokio::spawn(async move { killed.run(std::future::pending()).await });
    notes.insert(0..1);
    until("the commit is in the graph", async || notes.has(1).await).await;
    running.abort();
    let _ = running.await;
    let position = notes.position().await;
    assert!(notes.confirmed() < position, "a feed that was killed before its commit was answered has confirmed it");
    let running = tokio::spawn(async move { next.run(std::future::pending()).await });
    until("the next feed confirms", async || {
        assert!(!running.is_finished(), "the next feed has ended");
        notes.confirmed() >= position
    })
    .await;
    running.abort();
}
