//! A feed: opened on a source and a graph, it runs until it is stopped.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use hoplake::{CompactionSettings, ErrorKind, Graph, OpenSettings, ReadSettings, Store};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep_until},
};

use crate::{
    Catalogue, FeedError, FeedErrorKind, Position, Settings, TableName, Transaction,
    applying::{Applied, Applying, remembered},
    copy::{self, Copied},
    error::COPY_ANEW,
    fold::Plans,
    letters::Letter,
    mapping::{Item, Mapping, PropertyMap},
    position,
    reading::{Arrived, Reading},
    reconcile::{self, Reconciled},
    schedule::Schedule,
    source::{self, Following, Source},
    state::State,
    stopping::Stop,
};

/// Memory of the graph's cache: what a fold looks up is of recent changes.
const CACHE_BYTES: u64 = 32 << 20;

/// Memory of a compaction.
const COMPACTION_BYTES: u64 = 64 << 20;

/// After how many commits the feed looks whether sorted runs are to be merged.
const COMPACT_EVERY: u64 = 16;

/// What a feed reports while it runs.
pub trait Progress: Send + Sync {
    /// The first copy was made.
    fn copied(&self, _copied: &Copied) {}
    /// The tables were compared with the graph.
    fn reconciled(&self, _reconciled: &Reconciled) {}
    /// Transactions were applied; the time is that of the last of them at the source, in milliseconds since 1970.
    fn applied(&self, _applied: &Applied, _position: &Position, _committed_unix_ms: i64) {}
}

impl Progress for () {}

/// How a feed begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunOptions {
    /// The position of a statement that is passed over, whatever it does to the tables.
    pub accepted: Option<String>,
    /// Whether the feed ends when the source has no more for now.
    pub once: bool,
    /// Whether all rows are compared first, and the graph is made what they are, whatever its position.
    pub resnapshot: bool,
}

/// A source, what its tables become, and whether the two fit.
pub struct Checked {
    /// The source.
    pub source: Arc<dyn Source>,
    /// Its tables.
    pub catalogue: Catalogue,
    /// What they become.
    pub mapping: Arc<Mapping>,
}

/// Connects to the source, and compares its tables with the mapping.
///
/// # Errors
/// The source's; [`Invalid`](FeedErrorKind::Invalid) if something does not fit.
pub async fn check(settings: &Settings) -> Result<Checked, FeedError> {
    let source = source::open(settings)?;
    let default_schema = source.default_schema().to_owned();
    let named = settings.tables.iter().map(|entry| TableName::parse(&entry.name, &default_schema).schema.to_string());
    let schemas: BTreeSet<String> = named.chain([default_schema.clone()]).collect();
    let catalogue = source.catalogue(&schemas).await?;
    let mapping = Arc::new(Mapping::new(settings, &catalogue, &default_schema)?);
    source.prepare(&mapping.tables()).await?;
    Ok(Checked { source, catalogue, mapping })
}

/// A graph that follows a source.
pub struct Feed {
    settings: Settings,
    source: Arc<dyn Source>,
    applying: Applying,
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
    /// As [`check`] and [`copy::copy`]; [`Conflict`](FeedErrorKind::Conflict) if the graph has content and no position of the source.
    pub async fn open(settings: Settings, options: RunOptions, progress: &dyn Progress) -> Result<Self, FeedError> {
        let Checked { source, mapping, .. } = check(&settings).await?;
        let store = Store::open(&settings.graph).map_err(hoplake::Error::from)?;
        let name = settings.source.name.clone();
        let writer = position::writer();
        let mut found = open_graph(&store).await?;
        let position =
            found.as_ref().and_then(|graph| graph.source_position(&name)).map(Position::parse).transpose()?;
        let is_complete = position.as_ref().is_some_and(|position| !position.is_copying);
        if !is_complete {
            if let Some(graph) =
                found.as_ref().filter(|graph| position.is_none() && !graph.schema().vertex_labels.is_empty())
            {
                let why = format!(
                    "the graph at {} has content in version {}, and no position of source {name}",
                    settings.graph,
                    graph.version()
                );
                return Err(FeedError::new(FeedErrorKind::Conflict, why)
                    .hint("feed into a place that has no graph, or correct source.name if it was fed before"));
            }
            let copied = copy::copy(&*source, &mapping, &settings, position.is_some(), &writer).await?;
            progress.copied(&copied);
            found = open_graph(&store).await?;
        } else if options.resnapshot {
            let reconciled = reconcile::resnapshot(&*source, &settings, &mapping).await?;
            progress.reconciled(&reconciled);
            found = open_graph(&store).await?;
        }
        let mut graph =
            found.ok_or_else(|| FeedError::unavailable(format!("the graph at {} is gone", settings.graph)))?;
        let (position, state) = remembered(&mut graph, &name).await?;
        if is_complete && !options.resnapshot && options.accepted.as_deref() != Some(&position.of_source) {
            check_new_columns(&*source, &mapping, &graph, &position).await?;
        }
        let attempts_max = settings.stream.attempts;
        let applying =
            Applying { graph, mapping, name, position, writer, state, plans: Plans::default(), attempts_max };
        let committed = watch::Sender::new(applying.position.of_source.clone());
        Ok(Self { settings, source, applying, options, commits: 0, compaction: None, committed })
    }

    /// Up to where the graph has followed.
    pub fn position(&self) -> &Position {
        &self.applying.position
    }

    /// Changes that were set aside, oldest first.
    ///
    /// # Errors
    /// The store's.
    pub async fn dead_letters(&self) -> Result<Vec<Letter>, FeedError> {
        self.applying.letters().await
    }

    /// The graph, at the version of its last commit.
    pub fn graph(&self) -> &Graph {
        &self.applying.graph
    }

    /// Follows the source until `stop` is ready; what is whole is committed then, within `stream.grace_ms`.
    ///
    /// # Errors
    /// What cannot be followed; see [`FeedErrorKind`]. Everything before it is committed. [`Unavailable`](FeedErrorKind::Unavailable) if
    /// the store did not take the last commit within the grace: its transactions are read again by the next feed.
    pub async fn run(&mut self, stop: impl Future<Output = ()>, progress: &dyn Progress) -> Result<(), FeedError> {
        let mut stop = Stop::new(stop, Duration::from_millis(self.settings.stream.grace_ms));
        let mut ended = self.follow(&mut stop, progress).await;
        // A process that was killed may have a commit on its way: this one goes on behind it, once. If there is another conflict, another
        // feed is alive.
        if ended.as_ref().is_err_and(|error| error.kind() == FeedErrorKind::Conflict) && self.commits == 0 {
            tracing::warn!("the graph has moved since the feed was opened; it goes on from there");
            ended = match stop.or_over(self.applying.adopt()).await {
                Some(adopted) => {
                    adopted?;
                    self.follow(&mut stop, progress).await
                }
                None => Err(self.cut_off()),
            };
        }
        if let Some(compaction) = self.compaction.take() {
            compaction.abort();
        }
        stop.or_over(self.applying.graph.settled()).await;
        ended
    }

    /// The grace is over, and a commit is not.
    fn cut_off(&self) -> FeedError {
        let why = format!(
            "the store did not take the last commit within the {} ms after the stop; the graph is at {}",
            self.settings.stream.grace_ms, self.applying.position.of_source
        );
        FeedError::unavailable(why).hint("nothing is lost: the next run goes on from there, or from that commit")
    }

    async fn follow(
        &mut self,
        stop: &mut Stop<impl Future<Output = ()>>,
        progress: &dyn Progress,
    ) -> Result<(), FeedError> {
        let following = Following {
            tables: self.applying.mapping.followed(),
            transaction_bytes_max: self.settings.stream.transaction_bytes_max,
            accepted: self.options.accepted.clone(),
            committed: Some(self.committed.subscribe()),
        };
        let from = self.applying.position.of_source.clone();
        let ahead = self.settings.stream.ahead_bytes_max;
        let mut reading = Reading::begin(self.source.clone(), from, following, ahead);
        let mut batch = Collected::default();
        let mut schedule = Schedule::new(&self.settings)?;
        let ended = loop {
            let due = batch.due(&self.settings);
            let arrived = tokio::select! {
                biased;
                () = stop.wanted() => break Ok(()),
                // What has come while the last commit was under way belongs to this one, too.
                () = sleep_until(due.unwrap_or_else(far_future)), if due.is_some() => match reading.next_now() {
                    None => {
                        self.commit(&mut batch, stop, progress).await?;
                        continue;
                    }
                    arrived => arrived,
                },
                reconciled = schedule.reconciled(&self.settings) => {
                    match reconciled {
                        Ok(reconciled) => progress.reconciled(&reconciled),
                        Err(error) => tracing::warn!(error = %error, "the tables could not be compared with the graph"),
                    }
                    continue;
                }
                arrived = reading.next() => arrived,
            };
            match arrived {
                None => break Err(FeedError::unavailable("reading the source has ended")),
                Some(Err(error)) => break Err(error),
                Some(Ok(None)) if self.options.once => break Ok(()),
                Some(Ok(None)) => {}
                Some(Ok(Some(arrived))) => {
                    batch.add(arrived);
                    if batch.is_full(&self.settings) {
                        self.commit(&mut batch, stop, progress).await?;
                    }
                }
            }
        };
        // What came before the end is whole transactions.
        self.commit(&mut batch, stop, progress).await?;
        ended
    }

    async fn commit(
        &mut self,
        batch: &mut Collected,
        stop: &mut Stop<impl Future<Output = ()>>,
        progress: &dyn Progress,
    ) -> Result<(), FeedError> {
        let Collected { arrived, .. } = std::mem::take(batch);
        let (transactions, permits): (Vec<Transaction>, Vec<_>) =
            arrived.into_iter().map(|Arrived { transaction, _permit, .. }| (transaction, _permit)).unzip();
        let Some(last) = transactions.last() else { return Ok(()) };
        let committed_unix_ms = last.committed_unix_ms;
        // A commit that is dropped is in the graph or not; the condition of the next one finds out.
        let Some(applied) = stop.or_over(self.applying.apply(&transactions)).await else { return Err(self.cut_off()) };
        let applied = applied?;
        drop(permits);
        self.committed.send_replace(self.applying.position.of_source.clone());
        progress.applied(&applied, &self.applying.position, committed_unix_ms);
        self.commits += 1;
        if self.settings.stream.compact && self.commits.is_multiple_of(COMPACT_EVERY) {
            self.compact().await;
        }
        Ok(())
    }

    /// Merges sorted runs in the background, if that is due and not under way. That it fails costs only time: the next one tries again.
    async fn compact(&mut self) {
        if self.compaction.as_ref().is_some_and(|compaction| !compaction.is_finished()) {
            return;
        }
        let settings = CompactionSettings { memory_bytes: COMPACTION_BYTES, ..CompactionSettings::default() };
        if !matches!(self.applying.graph.compaction_is_due(&settings).await, Ok(true)) {
            return;
        }
        let store = self.applying.graph.store().clone();
        self.compaction = Some(tokio::spawn(async move {
            if let Err(error) = Graph::compact(&store, &settings).await {
                tracing::warn!(error = %error, "the graph could not be compacted for now");
            }
        }));
    }
}

async fn open_graph(store: &Store) -> Result<Option<Graph>, FeedError> {
    let read = ReadSettings { cache_bytes_max: CACHE_BYTES, ..ReadSettings::default() };
    match Graph::open_with(store.clone(), &OpenSettings { read, ..OpenSettings::default() }).await {
        Ok(graph) => Ok(Some(graph)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Refuses columns that the graph does not have yet, if their rows have values that no change shows.
async fn check_new_columns(
    source: &dyn Source,
    mapping: &Mapping,
    graph: &Graph,
    position: &Position,
) -> Result<(), FeedError> {
    for entry in &mapping.entries {
        let schema = graph.schema();
        let known = match &entry.item {
            Item::Vertex(vertex) => {
                schema.label_id(&vertex.label).and_then(|label| schema.label(label)).map(|label| &label.properties)
            }
            Item::Edge(edge) => {
                let ends = schema.label_id(&edge.ends[0].label).zip(schema.label_id(&edge.ends[1].label));
                let mut types = schema.edge_types.iter();
                types.find(|it| edge.label == it.label && ends == Some((it.source, it.target))).map(|it| &it.properties)
            }
        };
        let Some(known) = known else { continue };
        let is_new = |property: &&PropertyMap| !known.iter().any(|it| property.property == it.name);
        let new: Vec<_> = entry.properties.iter().filter(is_new).map(|property| property.column.clone()).collect();
        if new.is_empty() {
            continue;
        }
        if let Some(column) = source.filled(&entry.table, &new).await? {
            let why = format!("table {} was given column {column}, in which each row has a value", entry.table);
            let hint = format!(
                "{COPY_ANEW}; or, if you know that the graph is right without it, run the feed with --accept-ddl {}",
                position.of_source
            );
            return Err(FeedError::invalid(why).hint(hint));
        }
    }
    Ok(())
}

/// A graph at its position, to be changed without a stream.
pub(crate) async fn applying(settings: &Settings, mapping: Arc<Mapping>) -> Result<Applying, FeedError> {
    let mut forgetting = forgetting(settings, mapping).await?;
    (forgetting.position, forgetting.state) = remembered(&mut forgetting.graph, &forgetting.name).await?;
    Ok(forgetting)
}

/// The same, without what is remembered: for a feed that begins anew.
pub(crate) async fn forgetting(settings: &Settings, mapping: Arc<Mapping>) -> Result<Applying, FeedError> {
    let store = Store::open(&settings.graph).map_err(hoplake::Error::from)?;
    let name = settings.source.name.clone();
    let absent = || FeedError::invalid(format!("the graph at {} is not fed by {name}", settings.graph));
    let graph = open_graph(&store).await?.ok_or_else(absent)?;
    let position = Position::parse(graph.source_position(&name).ok_or_else(absent)?)?;
    if position.is_copying {
        let why = format!("the graph at {} is not complete: its first copy was cut off", settings.graph);
        return Err(FeedError::invalid(why).hint("hoplake feed run makes it again"));
    }
    let state = State::default();
    let (writer, plans, attempts_max) = (position::writer(), Plans::default(), settings.stream.attempts);
    Ok(Applying { graph, mapping, name, position, writer, state, plans, attempts_max })
}

/// Transactions that wait for a commit.
#[derive(Default)]
struct Collected {
    arrived: Vec<Arrived>,
    rows: usize,
    bytes: usize,
    /// When the first arrived that changes a table.
    first_change: Option<Instant>,
    /// When the first arrived.
    first: Option<Instant>,
}

impl Collected {
    fn add(&mut self, arrived: Arrived) {
        self.first.get_or_insert(arrived.at);
        if !arrived.transaction.changes.is_empty() {
            self.first_change.get_or_insert(arrived.at);
        }
        self.rows += arrived.transaction.changes.len();
        self.bytes += arrived.transaction.bytes;
        // Of transactions that change nothing, the last position is enough.
        if let Some(last) = self.arrived.last_mut().filter(|last| last.transaction.changes.is_empty()) {
            *last = arrived;
        } else {
            self.arrived.push(arrived);
        }
    }

    fn is_full(&self, settings: &Settings) -> bool {
        self.rows >= settings.stream.rows_max || self.bytes as u64 >= settings.stream.bytes_max
    }

    /// When it is committed, if nothing else comes.
    fn due(&self, settings: &Settings) -> Option<Instant> {
        let change = self.first_change.map(|first| first + Duration::from_millis(settings.stream.linger_ms));
        let any = self.first.map(|first| first + Duration::from_millis(settings.stream.position_every_ms));
        change.into_iter().chain(any).min()
    }
}

fn far_future() -> Instant {
    Instant::now() + Duration::from_secs(86_400)
}
