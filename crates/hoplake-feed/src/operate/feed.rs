//! A feed: opened on a source and a graph, it runs until it is stopped.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    sync::Arc,
    time::Duration,
};

use futures::FutureExt;
use hoplake::{CompactionSettings, Graph, Name};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{sleep, sleep_until},
};
use tracing::{Instrument, Span};

use super::{
    check::{check_keys, check_new_columns, remembered_tables},
    pending_batch::{PendingBatch, Trace, failed, far_future},
    read_ahead::{ReadAhead, ReadTransaction},
    schedule::Schedule,
    stopping::Stop,
};
use crate::{
    Ends, FeedError, FeedErrorKind, Position, Progress, Settings, TableName, Transaction,
    apply::{
        applier::{Applier, remembered},
        fold::Plans,
        letters::Letter,
        opening::{Accepted, carry_no_ignored, catalog_on, open_graph},
        position,
        progress::{Applied, Cause, Event},
    },
    backoff::Backoff,
    copy,
    mapping::{
        Mapping,
        followed::{FollowedTable, tables_of},
    },
    reconcile, scratch,
    source::{Following, Source},
};

/// Memory of a compaction.
const COMPACTION_BYTES: u64 = 64 << 20;

/// After how many commits the feed looks whether sorted runs are to be merged.
const COMPACT_EVERY: u64 = 16;

/// How often the source is asked what its backlog is.
const BACKLOG_EVERY: Duration = Duration::from_secs(10);

/// Columns by their tables.
type DroppedColumns = BTreeSet<(TableName, Name)>;

/// How a feed begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunOptions {
    /// The position of a statement that is passed over, whatever it does to the tables.
    pub accepted: Option<String>,
    /// Whether the feed ends when the source has no more for now.
    pub once: bool,
    /// Whether all rows are compared first, and the graph is made what they are, whatever its position.
    pub resnapshot: bool,
    /// Whether a source or store that is away at the start is an error at once; otherwise they are waited for, as they are later.
    pub no_wait: bool,
}

/// A graph that follows a source.
pub struct Feed {
    settings: Settings,
    ends: Ends,
    applier: Applier,
    options: RunOptions,
    commits: u64,
    compaction: Option<JoinHandle<()>>,
    /// Up to where the graph has followed, for the source.
    committed: watch::Sender<String>,
}

impl Feed {
    /// Connects to both; makes the first copy if the graph has nothing of the source.
    ///
    /// # Errors
    /// As [`check`](crate::check) and [`copy::copy`]; [`Conflict`](FeedErrorKind::Conflict) if the graph has content and no position of the source.
    pub async fn open(settings: Settings, options: RunOptions, progress: Arc<dyn Progress>) -> Result<Self, FeedError> {
        Self::open_on(Ends::open(&settings)?, settings, options, progress).await
    }

    /// [`Self::open`] on other ends than those that the settings name.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn open_on(
        ends: Ends,
        settings: Settings,
        options: RunOptions,
        progress: Arc<dyn Progress>,
    ) -> Result<Self, FeedError> {
        scratch::remove_left(&settings);
        let mut pauses = Backoff::new();
        loop {
            let opened = Self::try_open(ends.clone(), settings.clone(), options.clone(), progress.clone());
            // What a first copy has left that was cut off, the next one replaces.
            let error = match Box::pin(opened).await {
                Err(error) if error.is_transient() && !options.no_wait => error,
                opened => return opened,
            };
            let pause = pauses.next();
            let cause = if error.kind() == FeedErrorKind::Graph { Cause::Store } else { Cause::Source };
            let pause_ms = pause.as_millis() as u64;
            tracing::warn!(cause = cause.name(), error = %error, pause_ms, "the feed cannot begin for now");
            progress.report(&Event::Retried { cause, error: &error, pause });
            sleep(pause).await;
        }
    }

    async fn try_open(
        ends: Ends,
        settings: Settings,
        options: RunOptions,
        progress: Arc<dyn Progress>,
    ) -> Result<Self, FeedError> {
        let store = &ends.store;
        let name = settings.source.name.clone();
        let writer = position::writer();
        let mut found = open_graph(store).await?;
        let position =
            found.as_ref().and_then(|graph| graph.source_position(&name)).map(Position::parse).transpose()?;
        let is_complete = position.as_ref().is_some_and(|position| !position.is_copying);
        let accepted = Accepted(options.accepted.as_deref());
        let state = match &mut found {
            Some(graph) if is_complete && !options.resnapshot => {
                let (position, state) = remembered(graph, &name).await?;
                accepted.on_stop(&state)?;
                Some((position, state))
            }
            _ => None,
        };
        let was = match (&state, &mut found) {
            (Some((_, state)), _) => state.tables.clone(),
            (None, Some(graph)) if is_complete => remembered_tables(graph, &name).await?,
            (None, _) => BTreeMap::new(),
        };
        let catalog = catalog_on(&*ends.source, &settings).await?;
        let source = ends.source.clone();
        let mut mapping = Mapping::after(&was, &settings, &catalog, source.default_schema())?;
        if let (Some(graph), Some(_)) = (&found, &state) {
            mapping = mapping.typed_as(graph.schema());
        }
        let mapping = Arc::new(mapping);
        // Before any row is read: what changes meanwhile is noticed then.
        let shapes = source.shapes(&catalog, &mapping.tables()).await?;
        let mut tables = tables_of(&settings, &mapping, shapes);
        if let Some((position, state)) = &state {
            accepted.on_tables(position, state, &mut tables)?;
            carry_no_ignored(&mut tables, &mapping);
        }
        source.prepare(&mapping.tables()).await?;
        if !is_complete {
            if let Some(graph) = found.as_ref().filter(|_| position.is_none()) {
                check_no_content(graph, &settings)?;
            }
            check_keys(&*source, &mapping).await?;
            let copied =
                copy::copy(&ends, &mapping, &settings, position.as_ref(), tables.clone(), &writer, &progress).await?;
            progress.report(&Event::Copied(&copied));
            found = open_graph(store).await?;
        } else if options.resnapshot {
            let reconciled = reconcile::resnapshot(&ends, &settings, &mapping, tables.clone()).await?;
            progress.report(&Event::Reconciled(&reconciled));
            found = open_graph(store).await?;
        }
        let mut graph =
            found.ok_or_else(|| FeedError::unavailable(format!("the graph at {} is gone", settings.graph)))?;
        let (position, state) = match state {
            Some(known) => known,
            None => remembered(&mut graph, &name).await?,
        };
        if is_complete && state.tables.is_empty() && options.accepted.as_deref() != Some(&position.of_source) {
            check_new_columns(&*source, &mapping, &graph, &position).await?;
        }
        // Another feed may have gone on before the answer to the last commit of the copy came: this one begins after it.
        let is_overtaken = !is_complete && position.writer != writer;
        let writer = if is_overtaken { position::writer() } else { writer };
        // A first copy is the first of its commits.
        let commits = u64::from(position.writer == writer);
        let mut applier = Applier { progress, ..Applier::new(graph, &settings, mapping, position, state, writer) };
        // Also of a graph of before tables were remembered.
        applier.remember(|state| state.tables.clone_from(&tables)).await?;
        let committed = watch::Sender::new(applier.position.of_source.clone());
        Ok(Self { settings, ends, applier, options, commits, compaction: None, committed })
    }

    /// Up to where the graph has followed.
    pub fn position(&self) -> &Position {
        &self.applier.position
    }

    /// Changes that were set aside, oldest first.
    ///
    /// # Errors
    /// The store's.
    pub async fn dead_letters(&self) -> Result<Vec<Letter>, FeedError> {
        self.applier.letters().await
    }

    /// The graph, at the version of its last commit.
    pub fn graph(&self) -> &Graph {
        &self.applier.graph
    }

    /// Follows the source until `stop` is ready; what is whole is committed then, within `stream.grace_ms`.
    ///
    /// # Errors
    /// What cannot be followed; see [`FeedErrorKind`]. Everything before it is committed. [`Unavailable`](FeedErrorKind::Unavailable) if
    /// the store did not take the last commit within the grace: its transactions are read again by the next feed.
    pub async fn run(&mut self, stop: impl Future<Output = ()>) -> Result<(), FeedError> {
        let progress = self.applier.progress.clone();
        let stop = stop.map(move |()| progress.report(&Event::Stopping));
        let mut stop = Stop::new(stop, Duration::from_millis(self.settings.stream.grace_ms));
        let mut ended = self.follow(&mut stop).await;
        let mut has_conflicted = false;
        while self.commits == 0
            && let Err(error) = &ended
        {
            let goes_on = match error.kind() {
                // A process that was killed may have a commit on its way: this one goes on after it, once. If there is another conflict,
                // another feed is alive.
                FeedErrorKind::Conflict => !std::mem::replace(&mut has_conflicted, true),
                // The one that ran when this one was opened has the slot of PostgreSQL until it ends. What it commits until then it
                // confirms, too.
                FeedErrorKind::Purged => true,
                _ => false,
            };
            if !goes_on {
                break;
            }
            let before = self.applier.position.of_source.clone();
            match stop.or_over(self.adopt()).await {
                None => ended = Err(self.cut_off()),
                Some(Err(error)) => ended = Err(error),
                Some(Ok(())) if self.applier.position.of_source != before => {
                    tracing::warn!("the graph has moved since the feed was opened; it goes on from there");
                    ended = self.follow(&mut stop).await;
                    continue;
                }
                // The source no longer has what follows the graph's position.
                Some(Ok(())) => {}
            }
            break;
        }
        if let Some(compaction) = self.compaction.take() {
            compaction.abort();
        }
        stop.or_over(self.applier.graph.settled()).await;
        ended
    }

    /// Takes over the graph as another feed has left it.
    async fn adopt(&mut self) -> Result<(), FeedError> {
        self.applier.adopt().await?;
        Accepted(self.options.accepted.as_deref()).on_stop(&self.applier.state)
    }

    /// The grace is over, and a commit is not.
    fn cut_off(&self) -> FeedError {
        let why = format!(
            "the store did not take the last commit within the {} ms after the stop; the graph is at {}",
            self.settings.stream.grace_ms, self.applier.position.of_source
        );
        FeedError::unavailable(why).hint("nothing is lost: the next run goes on from there, or from that commit")
    }

    /// Follows the source until the end.
    async fn follow(&mut self, stop: &mut Stop<impl Future<Output = ()>>) -> Result<(), FeedError> {
        while let Some(dropped) = self.follow_with_mapping(stop).await? {
            self.forget_dropped(&dropped).await?;
        }
        Ok(())
    }

    /// Follows the source until the end, or until columns are dropped that the mapping has to forget.
    async fn follow_with_mapping(
        &mut self,
        stop: &mut Stop<impl Future<Output = ()>>,
    ) -> Result<Option<DroppedColumns>, FeedError> {
        // Another feed may have gone on: what it has committed is committed.
        self.committed.send_replace(self.applier.position.of_source.clone());
        let following = Following {
            accepted: self.options.accepted.clone(),
            committed: Some(self.committed.subscribe()),
            once: self.options.once,
            ..self.applier.following(&self.settings)
        };
        let from = self.applier.position.of_source.clone();
        let ahead = self.settings.stream.ahead_bytes_max;
        let progress = self.applier.progress.clone();
        progress.report(&Event::Following(self.applier.at()));
        let mut reading = ReadAhead::begin(self.ends.source.clone(), from, following, ahead, progress);
        let watching = watch_backlog(self.ends.source.clone(), self.applier.progress.clone());
        let ended = tokio::select! {
            ended = self.take(&mut reading, stop) => ended,
            never = watching => match never {},
        };
        // Only then is nothing more reported of it.
        reading.end().await;
        ended
    }

    /// Collects what is read, and commits it when it is due.
    async fn take(
        &mut self,
        reading: &mut ReadAhead,
        stop: &mut Stop<impl Future<Output = ()>>,
    ) -> Result<Option<DroppedColumns>, FeedError> {
        let mut batch = PendingBatch::default();
        let mut schedule = Schedule::new(&self.settings)?;
        let ended = loop {
            let due = batch.due(&self.settings);
            let arrived = tokio::select! {
                biased;
                () = stop.wanted() => break Ok(None),
                // What has come while the last commit was under way belongs to this one, too.
                () = sleep_until(due.unwrap_or_else(far_future)), if due.is_some() => match reading.next_now() {
                    None => {
                        self.commit(&mut batch, stop).await?;
                        continue;
                    }
                    arrived => arrived,
                },
                reconciled = schedule.reconciled(&self.ends, &self.settings) => {
                    match reconciled {
                        Ok(reconciled) => self.applier.progress.report(&Event::Reconciled(&reconciled)),
                        Err(error) => tracing::warn!(error = %error, "the tables could not be compared with the graph"),
                    }
                    continue;
                }
                arrived = reading.next() => arrived,
            };
            match arrived {
                None => break Err(FeedError::unavailable("reading the source has ended")),
                Some(Err(error)) => break Err(error),
                Some(Ok(None)) if self.options.once => break Ok(None),
                Some(Ok(None)) => {}
                Some(Ok(Some(arrived))) => {
                    let dropped = self.dropped_unnamed(&arrived.transaction);
                    batch.add(arrived);
                    if !dropped.is_empty() {
                        break Ok(Some(dropped));
                    }
                    if batch.is_full(&self.settings) {
                        self.commit(&mut batch, stop).await?;
                    }
                }
            }
        };
        // What came before the end is whole transactions.
        self.commit(&mut batch, stop).await?;
        if let Some(note) = ended.as_ref().err().and_then(FeedError::stop_note) {
            // The next feed would not see it: the tables are what they are by then.
            let noting = self.applier.remember(|state| state.stop = Some(note.clone()));
            // A stop that is not there is none: the feed ends with what kept it from being written.
            stop.or_over(noting).await.unwrap_or_else(|| Err(self.cut_off()))?;
        }
        ended
    }

    /// The columns that a transaction drops and that the mapping ignores without naming them. One of the same name that comes later is
    /// another.
    fn dropped_unnamed(&self, transaction: &Transaction) -> DroppedColumns {
        let Applier { mapping, state, .. } = &self.applier;
        let mut dropped = DroppedColumns::new();
        for (table, shape) in transaction.tables.iter().filter(|(_, shape)| !shape.columns.is_empty()) {
            let was = state.tables.get(table).map(|known| known.shape.clone()).unwrap_or_default();
            let unnamed = mapping.entries_of(table).flat_map(|(_, entry)| &entry.gone);
            dropped.extend(
                unnamed.filter(|column| was.is_dropped_in(shape, column)).map(|column| (table.clone(), column.clone())),
            );
        }
        dropped
    }

    /// Ignores columns no longer that the mapping does not name and that the log has dropped, as a feed does not that begins now.
    async fn forget_dropped(&mut self, dropped: &DroppedColumns) -> Result<(), FeedError> {
        let Applier { mapping, state, .. } = &self.applier;
        let is_dropped = |table: &TableName, column: &Name| dropped.contains(&(table.clone(), column.clone()));
        let without = Arc::new(Mapping::clone(mapping).without(is_dropped));
        let mut tables = state.tables.clone();
        for entry in &mapping.entries {
            let Some(FollowedTable { entries, .. }) = tables.get_mut(&entry.table) else { continue };
            for known in entries.iter_mut().filter(|known| known.is_of(&entry.item)) {
                known.columns.retain(|column, _| !entry.gone.contains(column) || !is_dropped(&entry.table, column));
            }
        }
        self.applier.mapping = without;
        self.applier.plans = Plans::default();
        self.applier.remember(|state| state.tables.clone_from(&tables)).await
    }

    async fn commit(
        &mut self,
        batch: &mut PendingBatch,
        stop: &mut Stop<impl Future<Output = ()>>,
    ) -> Result<(), FeedError> {
        let PendingBatch { arrived, trace, .. } = std::mem::take(batch);
        let (transactions, permits): (Vec<Transaction>, Vec<_>) =
            arrived.into_iter().map(|ReadTransaction { transaction, _permit, .. }| (transaction, _permit)).unzip();
        let Some(last) = transactions.last() else { return Ok(()) };
        let committed_unix_ms = last.committed_unix_ms;
        self.applier.progress.report(&Event::Applying);
        let span = trace.map_or_else(Span::none, Trace::read);
        let applier = self.applier.apply(&transactions).instrument(span.clone());
        // A commit that is dropped is in the graph or not; the condition of the next one finds out.
        let applied = stop.or_over(applier).await.unwrap_or_else(|| Err(self.cut_off()));
        let applied = applied.inspect_err(|error| failed(&span, error))?;
        drop(permits);
        self.committed.send_replace(self.applier.position.of_source.clone());
        self.log_commit(&applied, committed_unix_ms, &span);
        self.commits += 1;
        if self.settings.stream.compact && self.commits.is_multiple_of(COMPACT_EVERY) {
            self.compact().await;
        }
        Ok(())
    }

    /// Logs a commit, and ends its trace.
    fn log_commit(&self, applied: &Applied, committed_unix_ms: i64, span: &Span) {
        let Applier { graph, name, position, .. } = &self.applier;
        let Applied { rows, transactions, version, .. } = *applied;
        let now = i64::try_from(graph.store().clock().unix_ms()).unwrap_or(i64::MAX);
        let lag_ms = now.saturating_sub(committed_unix_ms).max(0);
        let position = &*position.of_source;
        let graph = &*self.settings.graph;
        tracing::info!(source = name, graph, position, version, rows, transactions, lag_ms, "committed");
        // OpenTelemetry has no unsigned numbers; they would become text.
        span.record("position", position).record("version", version as i64);
        span.record("rows", rows as i64).record("transactions", transactions as i64);
        span.record("committed_unix_ms", committed_unix_ms).record("lag_ms", lag_ms);
    }

    /// Merges sorted runs in the background, if that is due and not under way. That it fails costs only time: the next one tries again.
    async fn compact(&mut self) {
        if self.compaction.as_ref().is_some_and(|compaction| !compaction.is_finished()) {
            return;
        }
        let settings = CompactionSettings {
            memory_bytes: COMPACTION_BYTES,
            retry_seed: Some(fastrand::u64(..)),
            ..CompactionSettings::default()
        };
        if !matches!(self.applier.graph.compaction_is_due(&settings).await, Ok(true)) {
            return;
        }
        let store = self.applier.graph.store().clone();
        let progress = self.applier.progress.clone();
        self.compaction = Some(tokio::spawn(async move {
            let compacted = Graph::compact(&store, &settings).await;
            progress.report(&Event::Compacted(compacted.is_ok()));
            if let Err(error) = compacted {
                tracing::warn!(error = %error, "the graph could not be compacted for now");
            }
        }));
    }
}

/// Rejects a graph that others have loaded: a first copy would replace it.
fn check_no_content(graph: &Graph, settings: &Settings) -> Result<(), FeedError> {
    if graph.schema().vertex_labels.is_empty() {
        return Ok(());
    }
    let why = format!(
        "the graph at {} has content in version {}, and no position of source {}",
        settings.graph,
        graph.version(),
        settings.source.name
    );
    Err(FeedError::new(FeedErrorKind::Conflict, why)
        .hint("feed into a place that has no graph, or correct source.name if it was fed before"))
}

/// Asks the source again and again what its backlog is, if it can say that.
async fn watch_backlog(source: Arc<dyn Source>, progress: Arc<dyn Progress>) -> Infallible {
    loop {
        match source.backlog().await {
            Ok(Some(backlog)) => progress.report(&Event::Backlog(backlog)),
            Ok(None) => return std::future::pending().await,
            // It is away, and the reader says so.
            Err(error) => tracing::debug!(error = %error, "the source does not say what its backlog is"),
        }
        sleep(BACKLOG_EVERY).await;
    }
}
