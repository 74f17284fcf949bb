//! Reads a log: first a snapshot at its beginning, then transactions.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::time::Instant;

use super::{
    assembler::Assembler,
    event::{ChangeKind, Event, SnapshotRow, Tables},
    maxwell,
    place::{LogPosition, Offsets},
    transport::{LogConsumer, Next, Record},
    unfinished::SAME_RUN_MS,
    values::Style,
};
use crate::{
    Change, Columns, FeedError, Images, Row, TableName, Transaction,
    source::{Following, RowSink, TransactionStream, shape::TableShape},
};

/// Rows that are passed on at a time.
const ROWS: usize = 2_048;

/// A log that is read, and a record of it that is to be read again.
pub(super) struct Opened {
    log: Box<dyn LogConsumer>,
    again: Option<Record>,
}

impl Opened {
    pub(super) fn new(log: Box<dyn LogConsumer>) -> Self {
        Self { log, again: None }
    }

    async fn next(&mut self) -> Result<Next, FeedError> {
        match self.again.take() {
            Some(record) => Ok(Next::Record(record)),
            None => self.log.next().await,
        }
    }
}

/// Takes the rows of a snapshot at the beginning of a log, and returns the position after them. Rows of it that come later are changes
/// as any other.
pub(super) async fn copy(
    opened: &mut Opened,
    tables: &Tables,
    style: Style,
    quiet: Duration,
    sink: &mut dyn RowSink,
) -> Result<LogPosition, FeedError> {
    let mut position = LogPosition { offsets: opened.log.offsets(), ..LogPosition::default() };
    let mut rows = Rows::default();
    // Also if there are none: the tables are there.
    for table in tables.all() {
        sink.rows(&table.columns, Vec::new()).await?;
    }
    let mut has_rows = false;
    let mut last = Instant::now();
    loop {
        let record = match opened.next().await? {
            Next::Record(record) => record,
            Next::Nothing => continue,
            // A producer that pauses before or within a snapshot goes on with rows that are changes as any other.
            Next::End if last.elapsed() >= quiet => break,
            Next::End => continue,
        };
        last = Instant::now();
        match style.decode(&record, tables)? {
            Event::Change(event) => match event.kind {
                ChangeKind::Snapshot(row) => {
                    if has_rows && row == SnapshotRow::First {
                        let why = format!("the snapshot begins again at {}", record.at);
                        return Err(FeedError::invalid(why).hint("let the producer begin with a new log"));
                    }
                    has_rows = true;
                    if let Some(mark) = &event.mark {
                        position.place.advance(mark);
                    }
                    position.offsets.insert(record.part, record.after);
                    if let Some(Change::Row(change)) = event.change
                        && let Images::Update { after, .. } = change.images
                    {
                        rows.push(change.columns, after, sink).await?;
                    }
                    if row == SnapshotRow::Last {
                        break;
                    }
                }
                // What Maxwell notes of its own.
                _ if &*event.table.schema == maxwell::OWN_DATABASE && event.change.is_none() => {
                    position.offsets.insert(record.part, record.after);
                }
                _ => {
                    opened.again = Some(record);
                    break;
                }
            },
            Event::Nothing => drop(position.offsets.insert(record.part, record.after)),
            Event::Begin { .. } | Event::End { .. } | Event::Statement { .. } => {
                opened.again = Some(record);
                break;
            }
        }
    }
    rows.flush(sink).await?;
    position.offsets.retain(|_, after| !after.is_empty());
    Ok(position)
}

/// Rows that wait to be passed on.
#[derive(Default)]
struct Rows(Option<(Arc<Columns>, Vec<Row>)>);

impl Rows {
    async fn push(&mut self, columns: Arc<Columns>, row: Row, sink: &mut dyn RowSink) -> Result<(), FeedError> {
        let is_full = |(last, rows): &(Arc<Columns>, Vec<Row>)| !Arc::ptr_eq(last, &columns) || rows.len() == ROWS;
        if self.0.as_ref().is_some_and(is_full) {
            self.flush(sink).await?;
        }
        self.0.get_or_insert_with(|| (columns, Vec::with_capacity(ROWS))).1.push(row);
        Ok(())
    }

    async fn flush(&mut self, sink: &mut dyn RowSink) -> Result<(), FeedError> {
        match self.0.take() {
            Some((columns, rows)) => sink.rows(&columns, rows).await,
            None => Ok(()),
        }
    }
}

/// The transactions of a log.
pub(super) struct LogStream {
    opened: Opened,
    assembler: Assembler,
    style: Style,
    quiet: Duration,
    last: Instant,
    /// What the next transaction lacks, and since when.
    incomplete: Option<(String, Instant)>,
    /// Where the log ended when this began, if nothing after that is wanted.
    ends: Offsets,
}

impl LogStream {
    pub(super) fn new(
        opened: Opened,
        position: LogPosition,
        tables: Tables,
        following: Following,
        changed: Vec<(TableName, TableShape)>,
        style: Style,
        quiet: Duration,
    ) -> Self {
        let offsets = opened.log.offsets();
        let is_split = opened.log.is_split();
        let ends = if following.once { opened.log.ends() } else { Offsets::new() };
        let mut position = position;
        // Parts that came since the graph's position was written are read from their beginning.
        position.offsets = offsets.into_iter().chain(position.offsets).collect();
        let assembler = Assembler::new(position, tables, following, changed, is_split);
        Self { opened, assembler, style, quiet, last: Instant::now(), incomplete: None, ends }
    }

    /// Whether the next transaction has its END record and lacks changes. Called at the end of the log, and after each record with the time at
    /// which it was written.
    ///
    /// # Errors
    /// [`Unavailable`](crate::FeedErrorKind::Unavailable) if they are still missing after `source.quiet_ms`, so that the log is read again from
    /// the graph's position.
    fn awaits_changes(&mut self, read_ms: Option<i64>) -> Result<bool, FeedError> {
        let since = self.incomplete.take();
        let Some((what, end_ms)) = self.assembler.incomplete() else { return Ok(false) };
        let since = since.filter(|(known, _)| *known == what).map_or_else(Instant::now, |(_, since)| since);
        // All parts have been read about as far, so the changes are not in a backlog.
        let is_late = |read_ms: i64| read_ms.saturating_sub(end_ms) > SAME_RUN_MS + self.quiet.as_millis() as i64;
        if since.elapsed() >= self.quiet && read_ms.is_none_or(is_late) {
            let why = format!("{what}, and the others are missing: reading the log again from the graph's position");
            return Err(FeedError::unavailable(why).hint("is each topic with tables in source.url?"));
        }
        self.incomplete = Some((what, since));
        Ok(true)
    }

    /// Whether all has been handed on that the log had when this began, if nothing else is wanted.
    fn is_over(&self) -> bool {
        let is_past = |(part, end): (&String, &String)| {
            self.assembler.position().offsets.get(part).is_some_and(|at| self.opened.log.is_past(at, end))
        };
        !self.ends.is_empty() && self.ends.iter().all(is_past)
    }
}

#[async_trait]
impl TransactionStream for LogStream {
    async fn next(&mut self) -> Result<Option<Transaction>, FeedError> {
        loop {
            if let Some(transaction) = self.assembler.next()? {
                return Ok(Some(transaction));
            }
            if self.is_over() {
                return Ok(None);
            }
            match self.opened.next().await? {
                Next::Record(record) => {
                    self.last = Instant::now();
                    let event = self.style.decode(&record, self.assembler.tables())?;
                    self.assembler.take(&record, event).map_err(|error| record.located(error))?;
                    self.awaits_changes(Some(record.written_unix_ms))?;
                }
                _ if self.assembler.is_undecided() => {
                    if self.last.elapsed() >= self.quiet {
                        self.assembler.settle();
                    }
                }
                Next::Nothing => {}
                Next::End => {
                    if !self.awaits_changes(None)? {
                        return Ok(None);
                    }
                }
            }
        }
    }
}
