//! Scans of text files by their plan.
//!
//! A row is good or bad as a unit: if one of its fields is not a value, no table gets the row. A
//! file that feeds vertices and edges is read in both phases; a row that the first phase has reported is
//! passed over by the second in silence, which is why the second reads the vertex columns too.

use std::{
    borrow::Cow,
    collections::VecDeque,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use arrow_array::RecordBatch;
use hoplake_format::{PropertyType, ScalarType};

use super::{
    column::Column,
    files::SourceFile,
    limits::Bound,
    plan::{ByLabel, ColumnPlan, FeedPlan, FieldCount, TextPlan},
    records::{Records, TextRows},
};
use crate::{
    BadRow, BadRows, Chunk, Feed, IngestError, Input, Phase, RowTexts,
    dataset::{Chunks, Lines},
};

/// A chunk ends at this many rows, or at the bytes that the limits allow; all chunks of a scan end when together they
/// hold twice as much.
const CHUNK_ROWS: usize = 32_768;

/// A text file with its plan.
pub(crate) struct TextInput {
    file: SourceFile,
    plan: Arc<TextPlan>,
    feeds: Vec<Feed>,
}

impl TextInput {
    /// The input that reads `file` by `plan`.
    pub(crate) fn new(file: &SourceFile, plan: TextPlan) -> Self {
        let mut feeds = Vec::new();
        for feed in plan.feeds.iter().map(|plan| plan.feed) {
            if !feeds.contains(&feed) {
                feeds.push(feed);
            }
        }
        Self { file: file.clone(), plan: Arc::new(plan), feeds }
    }
}

impl Input for TextInput {
    fn path(&self) -> &PathBuf {
        &self.file.path
    }

    fn bytes(&self) -> u64 {
        self.file.bytes
    }

    fn feeds(&self) -> &[Feed] {
        &self.feeds
    }

    fn texts(&self) -> Arc<dyn RowTexts> {
        Arc::new(TextRows::new(&self.file, self.plan.format))
    }

    fn scan(&self, phase: Phase, bad_rows: Arc<BadRows>) -> Result<Chunks, IngestError> {
        // A file in which no row has a label feeds nothing, and still has its rows to report.
        let nothing = self.plan.feeds.is_empty() && phase == Phase::Edges;
        if !nothing && !self.plan.feeds.iter().any(|feed| feed.phase() == phase) {
            return Ok(Box::new(std::iter::empty()));
        }
        let bytes_read = Arc::new(AtomicU64::new(0));
        let mut records = Records::open(&self.file, self.plan.format, Arc::clone(&bytes_read))?;
        if self.plan.header {
            records.advance()?;
            records.reject_fault()?;
        }
        let row = Row::new(&self.plan, phase, self.file.limits.key());
        Ok(Box::new(Scan {
            file: self.file.clone(),
            plan: Arc::clone(&self.plan),
            records,
            row,
            bad_rows,
            texts: self.texts(),
            bytes_read,
            told: 0,
            chunks: VecDeque::new(),
            ended: false,
        }))
    }
}

struct Scan {
    file: SourceFile,
    plan: Arc<TextPlan>,
    records: Records,
    row: Row,
    bad_rows: Arc<BadRows>,
    texts: Arc<dyn RowTexts>,
    bytes_read: Arc<AtomicU64>,
    told: u64,
    chunks: VecDeque<Chunk>,
    ended: bool,
}

impl Iterator for Scan {
    type Item = Result<Chunk, IngestError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.chunks.is_empty() && !self.ended {
            if let Err(error) = self.fill() {
                self.ended = true;
                self.chunks.clear();
                return Some(Err(error));
            }
        }
        self.chunks.pop_front().map(Ok)
    }
}

impl Scan {
    /// Reads until a chunk is full or the file ends.
    fn fill(&mut self) -> Result<(), IngestError> {
        let plan = Arc::clone(&self.plan);
        let chunk_bytes = self.file.limits.chunk_bytes();
        let mut held: usize = self.row.buffers.iter().map(|buffer| buffer.bytes).sum();
        while self.records.advance()? {
            match self.row.take(&plan, &self.records) {
                Ok(bytes) => held += bytes,
                Err(fault) => self.report(fault)?,
            }
            // Many feeds may each be below their limit, and together above what a thread may hold.
            if held >= 2 * chunk_bytes {
                return self.finish(|_| true);
            }
            if self.row.touched.iter().any(|&feed| self.row.buffers[feed].is_full(chunk_bytes)) {
                return self.finish(|buffer| buffer.is_full(chunk_bytes));
            }
        }
        self.ended = true;
        self.finish(|_| true)
    }

    fn finish(&mut self, which: impl Fn(&FeedBuffer) -> bool) -> Result<(), IngestError> {
        for position in 0..self.row.buffers.len() {
            if self.row.buffers[position].rows == 0 || !which(&self.row.buffers[position]) {
                continue;
            }
            // Several chunks come of the same bytes: the first reports them all, so that progress counts each byte once.
            let read = self.bytes_read.load(Ordering::Relaxed);
            let plan = &self.plan.feeds[position];
            let fresh = FeedBuffer::new(plan, plan.phase(), self.file.limits.key());
            let full = std::mem::replace(&mut self.row.buffers[position], fresh);
            self.chunks.push_back(full.chunk(plan, read - self.told)?);
            self.told = read;
        }
        Ok(())
    }

    fn report(&self, fault: Fault) -> Result<(), IngestError> {
        // The vertex phase has reported its own mistakes.
        let Fault::Said { column, value, why } = fault else { return Ok(()) };
        let file = self.file.path.clone();
        let line = self.records.first_line();
        self.bad_rows.report(BadRow { file, line, column, value, why }, &self.texts)
    }
}

/// The mistake in a row.
enum Fault {
    Said { column: Option<String>, value: Option<String>, why: String },
    Silent,
}

/// Takes records apart into the buffers of all feeds.
struct Row {
    buffers: Vec<FeedBuffer>,
    /// The feeds that already have the current row.
    touched: Vec<usize>,
    /// Whether an earlier phase has reported the rows that are bad for vertices.
    second_look: bool,
    /// Whether the one edge feed reads all that the vertex feeds read: its keys, which come first among
    /// its columns. Then these need not be read again, and faults in the keys have been reported.
    keys_seen: bool,
}

impl Row {
    fn new(plan: &TextPlan, phase: Phase, key_bytes_max: Bound) -> Self {
        let second_look = phase == Phase::Edges && plan.feeds.iter().any(|feed| feed.phase() == Phase::Vertices);
        let (vertices, edges): (Vec<_>, Vec<_>) = plan.feeds.iter().partition(|feed| feed.phase() == Phase::Vertices);
        let keys_seen = second_look
            && plan.by_label.is_none()
            && matches!(edges[..], [edge] if vertices.iter().all(|feed| implied_by(feed, edge)) && all_keys(edge, &vertices));
        let buffers = plan.feeds.iter().map(|plan| FeedBuffer::new(plan, phase, key_bytes_max)).collect();
        Self { buffers, touched: Vec::new(), second_look, keys_seen }
    }

    /// Appends a record to the feeds that want it, or to none. Returns the bytes it takes.
    fn take(&mut self, plan: &TextPlan, records: &Records) -> Result<usize, Fault> {
        self.touched.clear();
        if let Some(why) = records.fault() {
            return Err(self.fault(None, None, why.to_owned()));
        }
        // First of all: with another number of fields, a value may be in a column that is not its own.
        self.check_count(plan, records)?;
        let mut bytes = 0;
        let picked = match &plan.by_label {
            Some(by_label) => Some((self.labelled(by_label, records)?, by_label.among)),
            None => None,
        };
        for (position, feed) in plan.feeds.iter().enumerate() {
            let passed_over = picked.is_some_and(|(picked, among)| position < among && position != picked);
            if passed_over || !self.wants(position, feed, records) {
                continue;
            }
            self.touched.push(position);
            match append(&mut self.buffers[position], feed, records) {
                Ok(added) if self.buffers[position].active => bytes += added,
                // Only checked: nothing of it stays.
                Ok(_) => {}
                Err((column, fault)) => {
                    // What only vertex columns show was reported by the vertex phase, and so were keys that both phases read.
                    let said = !self.buffers[position].active || (self.keys_seen && feed.columns[column].required);
                    // The row is already in the feeds before this one; a row is in all its tables or in none.
                    self.take_back();
                    return Err(if said { Fault::Silent } else { fault });
                }
            }
        }
        self.keep(records.first_line());
        Ok(bytes)
    }

    fn check_count(&self, plan: &TextPlan, records: &Records) -> Result<(), Fault> {
        let found = records.len();
        let why = match plan.fields {
            FieldCount::Exactly(expected) if found != expected => {
                format!("has {found} columns where {expected} are expected")
            }
            FieldCount::AtLeast(expected) if found < expected => {
                format!("has {found} columns where at least {expected} are expected")
            }
            _ => return Ok(()),
        };
        Err(self.fault(None, None, why))
    }

    fn labelled(&self, by_label: &ByLabel, records: &Records) -> Result<usize, Fault> {
        let field = records.field(by_label.position).unwrap_or_default();
        let label = first_label(field);
        let feed = if label.is_empty() { by_label.unlabelled } else { by_label.feeds.get(label).copied() };
        feed.ok_or_else(|| {
            let value = String::from_utf8_lossy(field).into_owned();
            self.fault(Some(by_label.header.clone()), Some(value), "is not a label".to_owned())
        })
    }

    /// Whether this feed has a row for this record; in the edge phase, vertex columns are read to see
    /// whether the row is good, in the vertex phase the edges do not matter.
    fn wants(&self, position: usize, feed: &FeedPlan, records: &Records) -> bool {
        let buffer = &self.buffers[position];
        (buffer.active || (self.second_look && !self.keys_seen && feed.phase() == Phase::Vertices))
            && feed.only_filled.iter().all(|&at| records.field(at).is_some_and(|field| !field.is_empty()))
    }

    fn fault(&self, column: Option<String>, value: Option<String>, why: String) -> Fault {
        // The number of fields and the label are the same in both phases: the first has said it.
        if self.second_look { Fault::Silent } else { Fault::Said { column, value, why } }
    }

    fn keep(&mut self, line: u64) {
        for &position in &self.touched {
            let buffer = &mut self.buffers[position];
            if buffer.active {
                buffer.rows += 1;
                buffer.bytes_of_rows = buffer.bytes;
                buffer.lines.push(line);
            } else {
                buffer.truncate();
            }
        }
    }

    fn take_back(&mut self) {
        for &position in &self.touched {
            self.buffers[position].truncate();
        }
    }
}

/// The first of labels that are separated by `;`.
pub(crate) fn first_label(field: &[u8]) -> &[u8] {
    field.split(|&byte| byte == b';').map(<[u8]>::trim_ascii).find(|label| !label.is_empty()).unwrap_or_default()
}

/// Whether a vertex feed reads nothing but keys of this edge feed, and in the same rows.
fn implied_by(vertices: &FeedPlan, edges: &FeedPlan) -> bool {
    let is_key = |column: &ColumnPlan| {
        let same = |key: &ColumnPlan| {
            key.required && (key.position, key.parse, &key.prefix) == (column.position, column.parse, &column.prefix)
        };
        column.required && edges.columns.iter().any(same)
    };
    vertices.only_filled == edges.only_filled && vertices.columns.iter().all(is_key)
}

/// Whether these vertex feeds read all keys of an edge feed.
fn all_keys(edges: &FeedPlan, vertices: &[&FeedPlan]) -> bool {
    let read = |key: &ColumnPlan| {
        vertices.iter().any(|feed| feed.columns.iter().any(|column| column.position == key.position))
    };
    edges.columns.iter().filter(|column| column.required).all(read)
}

/// Appends a record; the error has the column and its mistake.
fn append(buffer: &mut FeedBuffer, feed: &FeedPlan, records: &Records) -> Result<usize, (usize, Fault)> {
    let mut bytes = 0;
    for (position, (column, plan)) in buffer.columns.iter_mut().zip(&feed.columns).enumerate() {
        let field = plan.position.and_then(|position| records.field(position)).unwrap_or_default();
        let added = value(field, plan, records).and_then(|value| match value {
            None if plan.required => Err("is empty where a key is needed".into()),
            None => Ok(column.append_null()),
            Some(value) if plan.required && value.len() > buffer.key_bytes_max.bytes => {
                Err(buffer.key_bytes_max.exceeded("key").into())
            }
            Some(value) => column.append_value(value).map_err(Into::into),
        });
        let why: Cow<'static, str> = match added {
            Ok(added) => {
                bytes += added;
                continue;
            }
            Err(why) => why,
        };
        let value = String::from_utf8_lossy(field).into_owned();
        let fault = Fault::Said { column: Some(plan.header.clone()), value: Some(value), why: why.into_owned() };
        return Err((position, fault));
    }
    buffer.bytes += bytes;
    Ok(bytes)
}

/// The value of a field, if it is not absent, without its prefix; or why it has none.
fn value<'a>(field: &'a [u8], plan: &ColumnPlan, records: &Records) -> Result<Option<&'a [u8]>, Cow<'static, str>> {
    if let (Some(prefix), false) = (&plan.prefix, field.is_empty()) {
        let value = field.strip_prefix(prefix.as_bytes());
        return value.map(Some).ok_or_else(|| format!("does not begin with {prefix:?}").into());
    }
    let is_text = match plan.parse.kind {
        PropertyType::Scalar(scalar) => scalar == ScalarType::String,
        PropertyType::List(_) => plan.parse.list.empty_items,
    };
    let is_value = !field.is_empty() || is_text && plan.position.is_some_and(|at| records.is_empty_text(at));
    Ok(is_value.then_some(field))
}

/// The rows of one feed that have not been yielded yet.
struct FeedBuffer {
    columns: Vec<Column>,
    rows: usize,
    /// The bytes of complete rows, and with those of the row under way.
    bytes_of_rows: usize,
    bytes: usize,
    lines: LineList,
    /// Whether its rows are yielded; else they are only checked.
    active: bool,
    key_bytes_max: Bound,
}

impl FeedBuffer {
    fn new(plan: &FeedPlan, phase: Phase, key_bytes_max: Bound) -> Self {
        let columns = plan.columns.iter().map(|column| Column::new(column.parse)).collect();
        let active = plan.phase() == phase;
        Self { columns, rows: 0, bytes_of_rows: 0, bytes: 0, lines: LineList::default(), active, key_bytes_max }
    }

    fn is_full(&self, chunk_bytes: usize) -> bool {
        self.rows >= CHUNK_ROWS || self.bytes >= chunk_bytes
    }

    /// Drops the row under way, with its bytes: counted on, they would end every chunk after a single row.
    fn truncate(&mut self) {
        self.bytes = self.bytes_of_rows;
        for column in &mut self.columns {
            column.truncate(self.rows);
        }
    }

    fn chunk(self, plan: &FeedPlan, bytes_read: u64) -> Result<Chunk, IngestError> {
        let columns = self.columns.into_iter().map(Column::finish).collect::<Result<_, _>>()?;
        let batch = RecordBatch::try_new(Arc::clone(&plan.schema), columns)?;
        Ok(Chunk { feed: plan.feed, batch, lines: self.lines.finish(), bytes_read })
    }
}

/// The lines of rows: a range while they are consecutive.
#[derive(Default)]
struct LineList {
    first: u64,
    count: u64,
    list: Vec<u64>,
}

impl LineList {
    fn push(&mut self, line: u64) {
        if self.count == 0 {
            self.first = line;
        } else if self.list.is_empty() && line != self.first + self.count {
            // The first gap: from here every line is in the list. Until then a range stands for all.
            self.list.extend(self.first..self.first + self.count);
        }
        if !self.list.is_empty() {
            self.list.push(line);
        }
        self.count += 1;
    }

    fn finish(self) -> Lines {
        if self.list.is_empty() { Lines::Range(self.first..self.first + self.count) } else { Lines::List(self.list) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_a_range_while_they_follow_one_another() {
        let mut lines = LineList::default();
        for line in 5..8 {
            lines.push(line);
        }
        assert_eq!(lines.finish(), Lines::Range(5..8));
        let mut lines = LineList::default();
        for line in [2, 3, 7, 8] {
            lines.push(line);
        }
        assert_eq!(lines.finish(), Lines::List(vec![2, 3, 7, 8]));
    }

    #[test]
    fn the_first_label_counts() {
        assert_eq!(first_label(b"a;b"), b"a");
        assert_eq!(first_label(b"; b"), b"b");
        assert_eq!(first_label(b""), b"");
    }
}
