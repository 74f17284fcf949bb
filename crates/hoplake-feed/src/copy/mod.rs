//! The first copy: all rows, loaded in bulk, at one position.
//!
//! ```text
//! source ──rows──▶ images ──▶ Parquet in the temporary folder (files) ──▶ bulk load ──▶ version with the position
//!                                                                             └─ edges to vertices that are not there (rejects)
//!                                                                                   ──▶ a commit: they wait, or stubs are made
//! ```
//! The load publishes rows and position together. Only if foreign keys may name vertices that are not there, a commit follows with
//! what becomes of them; until then the position says that the copy is not complete, and a feed that finds that begins again.

mod columns;
mod files;
mod rejects;

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use async_trait::async_trait;
use hoplake::{BadRowPolicy, ErrorKind, Graph, LoadOptions, Operation, VertexOrder};
use tokio::task::{JoinHandle, spawn_blocking};

use self::files::CopyFiles;
pub(crate) use self::files::SET_ASIDE_MAX;
use crate::{
    Columns, Ends, FeedError, Position, Progress, Row, Settings, TableName,
    apply::{
        letters::{self, Letter},
        opening::open_graph,
        progress::{Copied, Event},
        state::{self, FeedState},
    },
    mapping::{Mapping, followed::FollowedTable},
    scratch::Scratch,
    source::{Purpose, RowSink},
};

/// Operations of a commit with stubs.
const STUBS_AT_ONCE: usize = 100_000;

/// Copies all rows into a graph that is not there yet or has no labels; or, if that was at a position `before`, in the place of a copy that
/// was not completed. `tables` are what they were before; `writer` is a name of the process for the position; `progress` receives the count of rows.
///
/// # Errors
/// The source's, the graph's; [`Row`](crate::FeedErrorKind::Row) if a row cannot be a vertex or an edge.
pub async fn copy(
    ends: &Ends,
    mapping: &Arc<Mapping>,
    settings: &Settings,
    before: Option<&Position>,
    tables: BTreeMap<TableName, FollowedTable>,
    writer: &str,
    progress: &Arc<dyn Progress>,
) -> Result<Copied, FeedError> {
    let begun = Instant::now();
    let folder = Scratch::new(settings)?;
    progress.report(&Event::Copying(0));
    let mut sink =
        Sink::begin(CopyFiles::new(mapping.clone(), settings.source.show_rows, folder.path())?, progress.clone());
    // The snapshot has all that was committed before it began.
    let store = &ends.store;
    let committed_unix_ms = i64::try_from(store.clock().unix_ms()).ok();
    let mut snapshot = ends.source.snapshot(Purpose::Copy).await?;
    snapshot.rows(&mapping.tables(), &mut sink).await?;
    let of_source = snapshot.position().to_owned();
    drop(snapshot);
    let (files, rows) = sink.end().await?;
    let read_ms = begun.elapsed().as_millis() as u64;
    let may_miss = files.may_miss();
    let mut remembered = FeedState { tables, ..FeedState::default() };
    let state = match may_miss {
        true => None,
        false => state::write(store, &settings.source.name, &mut remembered).await?,
    };
    let position = Position { of_source, is_copying: may_miss, state, committed_unix_ms, writer: writer.to_owned() };
    let rejects = folder.path().join("rejects.csv");
    let options = LoadOptions {
        mapping: Some(files.mapping_file().to_owned()),
        memory_bytes: settings.copy.memory_bytes,
        temp_dir: Some(folder.path().to_owned()),
        bad_rows: if may_miss { BadRowPolicy::Skip(rejects.clone()) } else { BadRowPolicy::Stop },
        replace: before.is_some(),
        // Meanwhile another feed may have completed its copy, and gone on.
        if_positions: BTreeMap::from([(settings.source.name.clone(), before.map(ToString::to_string))]),
        order: VertexOrder::Keys,
        message: format!("first copy of {}", settings.source.name),
        retry_seed: Some(fastrand::u64(..)),
        source_positions: BTreeMap::from([(settings.source.name.clone(), position.to_string())]),
        ..LoadOptions::from_paths::<&str>([])
    };
    let loaded = hoplake::load_with(store.clone(), options, Arc::new(())).await;
    let loaded = loaded.map_err(|error| match error.kind() {
        // There is a graph to go on from now, or there will be.
        ErrorKind::Conflict => FeedError::unavailable(format!("the first copy is of no use: {error}")),
        _ => rejects::explained(&files, error),
    })?;
    let mut version = loaded.version;
    let mut position = position;
    if may_miss {
        let (changes, stubs) = rejects::read(&files, &rejects)?;
        remembered.waiting.apply(&changes);
        let missing = || FeedError::unavailable("the graph that was loaded is not there");
        let graph = open_graph(store).await?.ok_or_else(missing)?;
        let letters = files.letters(&position.of_source);
        (version, position) = complete(&graph, settings, &position, &mut remembered, stubs, &letters).await?;
    }
    Ok(Copied {
        version,
        position,
        rows,
        vertices: loaded.vertices,
        edges: loaded.edges,
        waiting: remembered.waiting.len(),
        read_ms,
        load_ms: begun.elapsed().as_millis() as u64 - read_ms,
    })
}

/// Commits what became of edges to vertices that are not there, and that the copy is complete.
async fn complete(
    graph: &Graph,
    settings: &Settings,
    before: &Position,
    state: &mut FeedState,
    stubs: Vec<Operation>,
    letters: &[Letter],
) -> Result<(u64, Position), FeedError> {
    let name = &settings.source.name;
    if !letters.is_empty() {
        let id = letters::write(graph.store(), name, letters).await?;
        state.letters.push((id, letters.len() as u64));
        state.held = letters.iter().flat_map(|letter| letter.names.iter().cloned()).collect();
    }
    let state = state::write(graph.store(), name, state).await?;
    let position = Position { is_copying: false, state, ..before.clone() };
    let mut stubs = stubs.into_iter().peekable();
    loop {
        let mut commit = graph.begin();
        commit
            .if_position(name, Some(&before.to_string()))
            .create_missing()
            .message("vertices that rows name and no row is");
        for operation in stubs.by_ref().take(STUBS_AT_ONCE) {
            commit.push(operation);
        }
        let is_last = stubs.peek().is_none();
        if is_last {
            commit.source_position(name, position.to_string());
        }
        // What was written above, no position names then, and a vacuum may remove it.
        let committed = commit.commit().await.map_err(|error| match error.kind() {
            ErrorKind::Conflict => FeedError::unavailable(format!("the first copy is of no use: {error}")),
            _ => error.into(),
        })?;
        if is_last {
            return Ok((committed.version, position));
        }
    }
}

/// Writes rows to files, each batch while the next one is read.
///
/// A thread has the files only for as long as a batch takes: one that waited for rows would hold up a clock that is simulated.
struct Sink {
    writing: Option<JoinHandle<Result<CopyFiles, FeedError>>>,
    rows: u64,
    progress: Arc<dyn Progress>,
}

impl Sink {
    fn begin(files: CopyFiles, progress: Arc<dyn Progress>) -> Self {
        Self { writing: Some(spawn_blocking(|| Ok(files))), rows: 0, progress }
    }

    /// Waits for the batch before, then does `work` in a thread.
    async fn then(
        &mut self,
        work: impl FnOnce(&mut CopyFiles) -> Result<(), FeedError> + Send + 'static,
    ) -> Result<(), FeedError> {
        let mut files = self.written().await?;
        self.writing = Some(spawn_blocking(move || {
            work(&mut files)?;
            Ok(files)
        }));
        Ok(())
    }

    async fn written(&mut self) -> Result<CopyFiles, FeedError> {
        let stopped = || FeedError::unavailable("the thread that writes the copy stopped");
        let writing = self.writing.take().ok_or_else(stopped)?;
        writing.await.map_err(|_| stopped())?
    }

    /// Waits for all of it.
    async fn end(mut self) -> Result<(CopyFiles, u64), FeedError> {
        self.then(CopyFiles::finish).await?;
        Ok((self.written().await?, self.rows))
    }
}

#[async_trait]
impl RowSink for Sink {
    async fn rows(&mut self, columns: &Arc<Columns>, rows: Vec<Row>) -> Result<(), FeedError> {
        self.rows += rows.len() as u64;
        self.progress.report(&Event::Copying(self.rows));
        let columns = columns.clone();
        self.then(move |files| files.write(&columns, &rows)).await
    }
}
