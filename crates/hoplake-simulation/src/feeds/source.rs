//! The database as a feed reaches it: connections break, answers come late, and what is purged is gone.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use async_trait::async_trait;
use hoplake_feed::{
    Catalog, FeedError, FeedErrorKind, Position, TableName, Transaction,
    followed::{Drift, StopNote, TableShape},
    source::{Following, Purpose, RowSink, Snapshot, Source, TransactionStream},
};
use tokio::time::{sleep, timeout};

use super::{
    database::Database,
    tables::{Definition, TABLES, Tables, cells},
};
use crate::{
    client::Client,
    machine::Machine,
    world::{Concern, World},
};

/// The name of the source in the graph.
pub const SOURCE: &str = "hr";

/// Rows of a table that come at a time.
const ROWS_AT_ONCE: usize = 3;

/// How long a server says nothing while nothing happens, at most.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// A connection of a process to the database.
#[derive(Clone)]
pub struct Connection {
    world: Arc<World>,
    machine: Arc<Machine>,
    database: Arc<Database>,
    client: Client,
    /// Bytes that a feed may have read and not committed: it counts full KiB, so twice as many as its setting says.
    outstanding_bytes_max: usize,
}

impl Connection {
    /// How a process reaches the database.
    pub fn new(world: &Arc<World>, machine: &Arc<Machine>, database: &Arc<Database>, ahead_bytes_max: u64) -> Self {
        let client = Client::new(world, machine);
        let world = world.clone();
        let machine = machine.clone();
        let database = database.clone();
        Self { world, machine, database, client, outstanding_bytes_max: 2 * ahead_bytes_max as usize }
    }

    /// Where the newest version of the graph is, if it is followed; a disk may have lost it.
    fn committed(&self) -> Option<u64> {
        if self.world.in_folder {
            return None;
        }
        let history = self.world.history();
        let position = history.manifest(history.newest())?.source_positions.get(SOURCE)?;
        number(&Position::parse(position).ok()?.of_source).ok()
    }

    /// A question and its answer, which may come late or never.
    async fn ask(&self, what: &str) -> Result<(), FeedError> {
        self.client.gate().await;
        self.machine.stepped();
        if self.machine.reliable {
            return Ok(());
        }
        let (breaks, pause_ms) = {
            let mut random = self.world.random(Concern::Feed);
            let is_late = random.below(100) == 0;
            let pause_ms = 1 + random.below(if is_late { 60_000 } else { 20 });
            (random.below(40) == 0 && !self.world.is_calm(), pause_ms)
        };
        sleep(Duration::from_millis(pause_ms)).await;
        self.client.gate().await;
        if breaks {
            self.world.log(|| format!("{} loses the database while it asks for {what}", self.machine.name));
            return Err(FeedError::unavailable("the connection to the database broke"));
        }
        Ok(())
    }
}

fn number(position: &str) -> Result<u64, FeedError> {
    position.parse().map_err(|_| FeedError::invalid(format!("{position:?} is no position of the database")))
}

#[async_trait]
impl Source for Connection {
    fn default_schema(&self) -> &str {
        "hr"
    }

    async fn catalog(&self, _: &BTreeSet<String>) -> Result<Catalog, FeedError> {
        self.ask("its tables").await?;
        Ok(self.database.kind.catalog())
    }

    /// As they are now, whatever of the log was read.
    async fn shapes(&self, _: &Catalog, tables: &[TableName]) -> Result<BTreeMap<TableName, TableShape>, FeedError> {
        self.ask("what its tables are").await?;
        let position = self.database.position();
        let shape = |name: &TableName| Some((name.clone(), self.database.shape(Definition::number(name)?, position)));
        Ok(tables.iter().filter_map(shape).collect())
    }

    async fn prepare(&self, _: &[TableName]) -> Result<(), FeedError> {
        self.ask("its settings").await
    }

    async fn snapshot<'a>(&'a self, purpose: Purpose) -> Result<Box<dyn Snapshot + 'a>, FeedError> {
        self.ask("a snapshot").await?;
        let position = self.database.position();
        self.world.log(|| format!("{} has a snapshot to {purpose:?} at {position}", self.machine.name));
        let tables = self.database.at(position).expect("it is the newest");
        self.machine.loads.fetch_or(purpose == Purpose::Copy, Relaxed);
        Ok(Box::new(Rows { connection: self.clone(), position: position.to_string(), tables }))
    }

    async fn stream(&self, from: &str, following: Following) -> Result<Box<dyn TransactionStream>, FeedError> {
        self.ask("its log").await?;
        let at = number(from)?;
        self.world.log(|| format!("{} reads the log behind {from}", self.machine.name));
        Ok(Box::new(Log { connection: self.clone(), at, following }))
    }

    fn is_within(&self, a: &str, b: &str) -> Result<bool, FeedError> {
        Ok(number(a)? <= number(b)?)
    }

    async fn position(&self) -> Result<String, FeedError> {
        self.ask("its position").await?;
        Ok(self.database.position().to_string())
    }
}

struct Rows {
    connection: Connection,
    position: String,
    tables: Arc<Tables>,
}

#[async_trait]
impl Snapshot for Rows {
    fn position(&self) -> &str {
        &self.position
    }

    async fn rows(&mut self, tables: &[TableName], rows: &mut dyn RowSink) -> Result<(), FeedError> {
        for table in tables {
            let missing = || FeedError::invalid(format!("table {table} does not exist"));
            let table = Definition::number(table).ok_or_else(missing)?;
            let columns = TABLES[table].columns();
            let all: Vec<_> = self.tables.rows(table).map(cells).collect();
            for some in all.chunks(ROWS_AT_ONCE) {
                self.connection.ask("rows").await?;
                rows.rows(&columns, some.to_vec()).await?;
            }
        }
        Ok(())
    }
}

struct Log {
    connection: Connection,
    at: u64,
    following: Following,
}

#[async_trait]
impl TransactionStream for Log {
    async fn next(&mut self) -> Result<Option<Transaction>, FeedError> {
        let Connection { world, machine, database, outstanding_bytes_max, .. } = &self.connection;
        self.connection.ask("the next transaction").await?;
        let purged = |()| {
            let why = format!("the log no longer has what comes behind {}", self.at);
            FeedError::new(FeedErrorKind::Purged, why)
        };
        let grown = database.grown.notified();
        if database.behind(self.at).map_err(purged)?.is_none() && !machine.reliable {
            let _ = timeout(IDLE_MAX, grown).await;
            self.connection.client.gate().await;
        }
        let Some(mut transaction) = database.behind(self.at).map_err(purged)? else { return Ok(None) };
        if let Some(committed) = &self.following.committed {
            let committed = number(&committed.borrow())?;
            // A database discards what the feed has confirmed.
            if let Some(graph) = self.connection.committed().filter(|graph| *graph < committed) {
                let name = &machine.name;
                world.violated(format!("{name} confirms {committed}, and the graph is at {graph}"));
            }
            let committed = committed.min(self.at);
            let outstanding = database.bytes_between(committed, self.at);
            let last = if committed < self.at { database.bytes_between(self.at - 1, self.at) } else { 0 };
            // One that was read may wait for its place.
            if outstanding - last > *outstanding_bytes_max {
                let name = &machine.name;
                world.violated(format!("{name} has read {outstanding} bytes that it has not committed"));
            }
        }
        for (table, definition) in TABLES.iter().enumerate() {
            let before = database.shape(table, self.at);
            let after = database.shape(table, self.at + 1);
            let name = definition.table_name();
            if before == after || !self.following.tables.contains_key(&name) {
                continue;
            }
            let carried = self.following.tables.get(&name).cloned().unwrap_or_default();
            let known = self.following.shapes.get(&name).cloned().unwrap_or_default();
            if let Drift::Stop(why) = known.drift(&after, &carried, |was, is| was == is)
                && self.following.accepted.as_deref() != Some(&self.at.to_string())
            {
                let note =
                    StopNote::new(self.at.to_string(), format!("after {}, table {name} was altered: {why}", self.at));
                return Err(note.error());
            }
            self.following.shapes.insert(name.clone(), after.clone());
            transaction.tables.push((name, after));
        }
        self.at += 1;
        Ok(Some(transaction))
    }
}
