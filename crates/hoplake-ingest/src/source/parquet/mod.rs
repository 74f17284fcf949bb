//! Scans of Parquet files: columns are cast at once and passed on; rows are looked at one by one only
//! where a value is missing or does not fit its type.

mod types;

use std::{fs::File, path::PathBuf, sync::Arc};

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, cast::AsArray};
use arrow_schema::DataType;
use arrow_select::filter::filter_record_batch;
use hoplake_format::pages::{PageGroups, PageLimits, guarded, longest_of_dictionary, read_footer, reason};
use parquet::{
    arrow::{
        ProjectionMask,
        arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader},
        parquet_to_arrow_field_levels,
    },
    errors::ParquetError,
    file::metadata::ParquetMetaData,
};

pub(crate) use self::types::{ParquetColumn, cast, property_type, rejected, shown, type_name};
use super::{files::SourceFile, plan::FeedPlan};
use crate::{
    BadRow, BadRows, Chunk, Feed, IngestError, Input, Phase, RowTexts,
    dataset::{Chunks, Lines},
};

const BATCH_ROWS: u64 = 65_536;
/// Row groups are put together into inputs of this size, so that the parts of one large file are read in
/// parallel.
const INPUT_BYTES: u64 = 64 << 20;

/// A batch has at most this many times the bytes of a chunk, if all its texts are the longest of their dictionaries.
const CHUNKS_OF_BATCH_MAX: usize = 8;
/// The memory of an item of a list: its levels and its value.
const LEVEL_BYTES: usize = 16;

/// So many characters of a key that is too long are shown.
const LONG_KEY_SHOWN: usize = 64;

/// Rows that are decoded at a time when rows are looked for.
const FOUND_ROWS: usize = 1024;

/// A Parquet file whose footer has been read.
#[derive(Debug, Clone)]
pub(crate) struct ParquetFile {
    file: SourceFile,
    metadata: ArrowReaderMetadata,
}

/// The rows of some row groups of a file, in some of its columns.
pub(crate) struct ParquetRows {
    file: SourceFile,
    reader: ParquetRecordBatchReader,
    /// The types of its columns where the writer knows more than Parquet can say.
    restored: Vec<Option<DataType>>,
    /// Rows that the footer promises and that are not read yet.
    left: u64,
    failed: bool,
}

impl Iterator for ParquetRows {
    type Item = Result<RecordBatch, IngestError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let batch = guarded(|| self.reader.next().transpose().map_err(ParquetError::from)).transpose();
        let Some(batch) = batch else {
            // The decoder takes pages that end early for the end of the rows.
            self.failed = self.left > 0;
            let why = format!("{} rows that its footer promises are not in its pages", self.left);
            return self.failed.then(|| Err(IngestError::Damaged { path: self.file.path.clone(), why }));
        };
        self.left = self.left.saturating_sub(batch.as_ref().map_or(0, |batch| batch.num_rows() as u64));
        self.failed = batch.is_err();
        let restore = |batch| types::restore(&batch, &self.restored).map_err(ParquetError::from);
        Some(batch.and_then(restore).map_err(|error| damaged(&self.file, error)))
    }
}

/// The error that a file cannot be decoded.
fn damaged(file: &SourceFile, error: ParquetError) -> IngestError {
    IngestError::Damaged { path: file.path.clone(), why: reason(&error) }
}

impl ParquetFile {
    /// Reads the footer.
    pub(crate) fn open(file: &SourceFile) -> Result<Self, IngestError> {
        let handle = File::open(file.place()).map_err(|source| file.failed(source))?;
        let metadata = read_footer(&handle).map_err(|error| damaged(file, error))?;
        let metadata = guarded(|| ArrowReaderMetadata::try_new(Arc::new(metadata), ArrowReaderOptions::default()));
        Ok(Self { file: file.clone(), metadata: metadata.map_err(|error| damaged(file, error))? })
    }

    /// The file.
    pub(crate) fn file(&self) -> &SourceFile {
        &self.file
    }

    /// Its columns.
    pub(crate) fn columns(&self) -> Vec<ParquetColumn> {
        let schema = self.metadata.metadata().file_metadata().schema_descr();
        ParquetColumn::all(self.metadata.schema().fields(), schema)
    }

    /// Its rows in some columns, which are named by their position.
    pub(crate) fn rows(
        &self,
        groups: Vec<usize>,
        roots: &[usize],
        batch_rows: usize,
    ) -> Result<ParquetRows, IngestError> {
        rows(&self.file, &self.metadata, groups, roots, batch_rows)
    }

    /// All its row groups.
    pub(crate) fn groups(&self) -> Vec<usize> {
        (0..self.metadata.metadata().num_row_groups()).collect()
    }

    /// The inputs that read the file by these plans: one for each run of row groups.
    pub(crate) fn inputs(&self, plans: Vec<FeedPlan>) -> Vec<Box<dyn Input>> {
        let plans: Arc<[FeedPlan]> = plans.into();
        let mut feeds = Vec::new();
        for feed in plans.iter().map(|plan| plan.feed) {
            if !feeds.contains(&feed) {
                feeds.push(feed);
            }
        }
        let mut inputs = Vec::<ParquetInput>::new();
        let mut first_row = 1;
        for (position, group) in self.metadata.metadata().row_groups().iter().enumerate() {
            let rows = unsigned(group.num_rows());
            let bytes = unsigned(group.compressed_size());
            // Sums of what a footer claims; no check of it bounds the decoded bytes.
            match inputs.last_mut().filter(|input| input.bytes.saturating_add(bytes) <= INPUT_BYTES) {
                Some(input) => {
                    input.row_groups.push(position);
                    input.rows = input.rows.saturating_add(rows);
                    input.bytes += bytes;
                    input.bytes_decoded = input.bytes_decoded.saturating_add(unsigned(group.total_byte_size()));
                }
                None => inputs.push(ParquetInput {
                    file: self.file.clone(),
                    metadata: self.metadata.clone(),
                    row_groups: vec![position],
                    first_row,
                    rows,
                    bytes,
                    bytes_decoded: unsigned(group.total_byte_size()),
                    plans: Arc::clone(&plans),
                    feeds: feeds.clone(),
                }),
            }
            // Rows are numbered through the file, so that a bad row has one number whichever input reads it.
            first_row = u64::saturating_add(first_row, rows);
        }
        inputs.into_iter().map(|input| Box::new(input) as Box<dyn Input>).collect()
    }
}

/// Rows of a file whose footer was read.
fn rows(
    file: &SourceFile,
    of_arrow: &ArrowReaderMetadata,
    groups: Vec<usize>,
    roots: &[usize],
    batch_rows: usize,
) -> Result<ParquetRows, IngestError> {
    let metadata: &Arc<ParquetMetaData> = of_arrow.metadata();
    let handle = Arc::new(File::open(file.place()).map_err(|source| file.failed(source))?);
    let left = groups.iter().map(|group| unsigned(metadata.row_group(*group).num_rows())).fold(0, u64::saturating_add);
    let limits = PageLimits {
        page_bytes_max: file.limits.page().bytes,
        ratio_max: usize::try_from(file.limits.decompression_ratio_max).unwrap_or(usize::MAX),
    };
    let schema = metadata.file_metadata().schema_descr();
    let reader = guarded(|| {
        let leaves = (0..schema.num_columns()).filter(|leaf| roots.contains(&schema.get_column_root_idx(*leaf)));
        let mut longest = 0;
        let mut levels = 1;
        // A dictionary lets a few bytes of a page become a long text in each row, so that sizes in the footer bound nothing:
        // assume the longest entry of every column in each row, and the memory of a list's items.
        for group in &groups {
            let of_leaves = leaves.clone().map(|leaf| longest_of_dictionary(&handle, metadata, *group, leaf, limits));
            longest = longest.max(of_leaves.sum::<Result<usize, _>>()?);
            let rows = metadata.row_group(*group).num_rows().max(1);
            let of_leaves = leaves.clone().map(|leaf| metadata.row_group(*group).column(leaf).num_values() / rows);
            levels = of_leaves.fold(levels, i64::max);
        }
        let bytes_of_row = longest.max(usize::try_from(levels).unwrap_or(usize::MAX).saturating_mul(LEVEL_BYTES));
        let batch_rows = batch_rows.min(CHUNKS_OF_BATCH_MAX * file.limits.chunk_bytes() / bytes_of_row).max(1);
        // The types of the writer's own schema are not requested: they are casts, which happen later, and its
        // sizes could be anything.
        let mask = ProjectionMask::roots(schema, roots.iter().copied());
        let hint = types::exact(schema)?;
        let levels = parquet_to_arrow_field_levels(schema, mask, hint.as_ref())?;
        let groups = PageGroups::of_file(&handle, Arc::clone(metadata), groups, limits)?;
        ParquetRecordBatchReader::try_new_with_row_groups(&levels, &groups, batch_rows, None)
    });
    let of_root =
        |root: &usize| of_arrow.schema().fields().get(*root).and_then(|field| types::restored(field.data_type()));
    let restored = roots.iter().map(of_root).collect();
    let reader = reader.map_err(|error| damaged(file, error))?;
    Ok(ParquetRows { file: file.clone(), reader, restored, left, failed: false })
}

impl RowTexts for ParquetFile {
    fn find(
        &self,
        lines: &[u64],
        found: &mut dyn FnMut(u64, String) -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        let columns: Vec<ParquetColumn> = self.columns();
        let mut first = 1;
        for (position, group) in self.metadata.metadata().row_groups().iter().enumerate() {
            let end = u64::saturating_add(first, unsigned(group.num_rows()));
            let wanted = lines.partition_point(|line| *line < first)..lines.partition_point(|line| *line < end);
            let mut at = first;
            first = end;
            if wanted.is_empty() {
                continue;
            }
            for batch in self.rows(vec![position], &(0..columns.len()).collect::<Vec<_>>(), FOUND_ROWS)? {
                let batch = batch?;
                let rows = at..at + batch.num_rows() as u64;
                at = rows.end;
                for line in lines[wanted.clone()].iter().filter(|line| rows.contains(line)) {
                    found(*line, row_text(&columns, &batch, (line - rows.start) as usize))?;
                }
            }
        }
        Ok(())
    }
}

/// A row as an object of JSON, with all values as text.
fn row_text(columns: &[ParquetColumn], batch: &RecordBatch, row: usize) -> String {
    let value = |array: &ArrayRef| match array.is_null(row) {
        true => serde_json::Value::Null,
        false => types::shown(array, row).into(),
    };
    let cells = columns.iter().zip(batch.columns()).map(|(column, array)| (column.name.clone(), value(array)));
    serde_json::Value::Object(cells.collect()).to_string()
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

struct ParquetInput {
    file: SourceFile,
    metadata: ArrowReaderMetadata,
    row_groups: Vec<usize>,
    first_row: u64,
    rows: u64,
    bytes: u64,
    bytes_decoded: u64,
    plans: Arc<[FeedPlan]>,
    feeds: Vec<Feed>,
}

impl Input for ParquetInput {
    fn path(&self) -> &PathBuf {
        &self.file.path
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn feeds(&self) -> &[Feed] {
        &self.feeds
    }

    fn texts(&self) -> Arc<dyn RowTexts> {
        Arc::new(ParquetFile { file: self.file.clone(), metadata: self.metadata.clone() })
    }

    fn scan(&self, phase: Phase, bad_rows: Arc<BadRows>) -> Result<Chunks, IngestError> {
        if !self.plans.iter().any(|plan| plan.phase() == phase) {
            return Ok(Box::new(std::iter::empty()));
        }
        // The edge phase looks at the vertex columns too: a row that is bad there has been reported.
        let looked_at = |plan: &&FeedPlan| plan.phase() == phase || phase == Phase::Edges;
        let positions = self.plans.iter().filter(looked_at).flat_map(|plan| &plan.columns);
        let mut roots: Vec<usize> = positions.filter_map(|column| column.position).collect();
        roots.sort_unstable();
        roots.dedup();
        // The rows that make a chunk, by the sizes of the footer; `rows` lowers it where dictionaries could make them
        // larger.
        let batch_rows = (self.file.limits.chunk_bytes() as u64).saturating_mul(self.rows) / self.bytes_decoded.max(1);
        let batch_rows = batch_rows.clamp(1024, BATCH_ROWS);
        let batch_rows = usize::try_from(batch_rows).unwrap_or(8192);
        let reader = rows(&self.file, &self.metadata, self.row_groups.clone(), &roots, batch_rows)?;
        let file = self.file.clone();
        let plans = Arc::clone(&self.plans);
        let texts = self.texts();
        let batches = Batches { file, plans, phase, bad_rows, texts, reader, roots, next_row: self.first_row };
        let bytes_per_row = self.bytes as f64 / self.rows.max(1) as f64;
        Ok(Box::new(batches.flat_map(move |chunks| {
            let (chunks, error) = match chunks {
                Ok((rows, mut chunks)) => {
                    if let Some(first) = chunks.first_mut() {
                        first.bytes_read = (rows as f64 * bytes_per_row) as u64;
                    }
                    (chunks, None)
                }
                Err(error) => (Vec::new(), Some(Err(error))),
            };
            chunks.into_iter().map(Ok).chain(error)
        })))
    }
}

struct Batches {
    file: SourceFile,
    plans: Arc<[FeedPlan]>,
    phase: Phase,
    bad_rows: Arc<BadRows>,
    texts: Arc<dyn RowTexts>,
    reader: ParquetRows,
    roots: Vec<usize>,
    next_row: u64,
}

impl Iterator for Batches {
    type Item = Result<(usize, Vec<Chunk>), IngestError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = match self.reader.next()? {
            Ok(batch) => batch,
            Err(error) => return Some(Err(error)),
        };
        let first = self.next_row;
        self.next_row += batch.num_rows() as u64;
        Some(self.chunks(&batch, first).map(|chunks| (batch.num_rows(), chunks)))
    }
}

/// A value that does not fit.
struct Fault {
    row: usize,
    column: String,
    value: String,
    why: String,
}

impl Batches {
    /// The chunks of one batch of the file, whose first row is row `first`.
    fn chunks(&self, batch: &RecordBatch, first: u64) -> Result<Vec<Chunk>, IngestError> {
        let mut faults = Vec::new();
        let mut silent = Vec::new();
        let mut yielded = Vec::new();
        for plan in self.plans.iter() {
            if plan.phase() == self.phase {
                yielded.push((plan, self.cast(plan, batch, &mut faults)?));
            // Cast for their faults alone: a row that is bad as a vertex has no edges either.
            } else if self.phase == Phase::Edges {
                self.cast(plan, batch, &mut silent)?;
            }
        }
        let bad = self.report(faults, &silent, first)?;
        let mut chunks = Vec::with_capacity(yielded.len());
        for (plan, columns) in yielded {
            chunks.extend(self.chunk(plan, batch, columns, &bad, first)?);
        }
        Ok(chunks)
    }

    fn cast(
        &self,
        plan: &FeedPlan,
        batch: &RecordBatch,
        faults: &mut Vec<Fault>,
    ) -> Result<Vec<ArrayRef>, IngestError> {
        let absent = self.absent(plan, batch);
        let mut columns = Vec::with_capacity(plan.columns.len());
        for column in &plan.columns {
            let Some(array) = column.position.map(|position| self.root(batch, position)) else {
                columns.push(arrow_array::new_null_array(&column.parse.kind.arrow(), batch.num_rows()));
                continue;
            };
            let values = cast(array, column.parse)?;
            if column.required {
                self.reject_long_keys(&values, &column.header, faults);
            }
            // A look at single rows only if there is a null that the file did not have, or any in a key.
            if values.null_count() > if column.required { 0 } else { array.null_count() } {
                let fault = |row: usize| {
                    let (value, why) = if array.is_null(row) {
                        (String::new(), "is empty where a key is needed".to_owned())
                    } else {
                        (types::shown(array, row), format!("does not fit {}", column.parse.kind))
                    };
                    Fault { row, column: column.header.clone(), value, why }
                };
                for row in (0..batch.num_rows()).filter(|&row| values.is_null(row)) {
                    let missing = array.is_null(row);
                    let left_out = absent.as_ref().is_some_and(|absent| absent[row]);
                    if !left_out && (column.required || !missing) {
                        faults.push(fault(row));
                    }
                }
            }
            columns.push(values);
        }
        Ok(columns)
    }

    fn reject_long_keys(&self, keys: &ArrayRef, header: &str, faults: &mut Vec<Fault>) {
        let bound = self.file.limits.key();
        let Some(keys) = keys.as_string_opt::<i32>() else { return };
        for row in (0..keys.len()).filter(|row| keys.value_length(*row) as usize > bound.bytes) {
            let value: String = keys.value(row).chars().take(LONG_KEY_SHOWN).collect();
            faults.push(Fault { row, column: header.to_owned(), value, why: bound.exceeded("key") });
        }
    }

    /// The rows of the batch that have no row in this feed, because a column it needs is empty.
    fn absent(&self, plan: &FeedPlan, batch: &RecordBatch) -> Option<Vec<bool>> {
        let needed = plan.only_filled.iter().map(|&position| self.root(batch, position));
        if !needed.clone().any(|array| array.null_count() > 0) {
            return None;
        }
        Some((0..batch.num_rows()).map(|row| needed.clone().any(|array| array.is_null(row))).collect())
    }

    fn root<'a>(&self, batch: &'a RecordBatch, position: usize) -> &'a ArrayRef {
        batch.column(self.roots.binary_search(&position).expect("all columns of the plans are projected"))
    }

    /// Reports the first fault of each row that no earlier phase has reported; returns all bad rows.
    fn report(&self, mut faults: Vec<Fault>, silent: &[Fault], first: u64) -> Result<Vec<usize>, IngestError> {
        faults.sort_by_key(|fault| fault.row);
        let mut bad: Vec<usize> = silent.iter().map(|fault| fault.row).collect();
        bad.sort_unstable();
        bad.dedup();
        let said = bad.len();
        for fault in faults {
            let again = bad.len() > said && bad.last() == Some(&fault.row);
            if again || bad[..said].binary_search(&fault.row).is_ok() {
                continue;
            }
            bad.push(fault.row);
            let file = self.file.path.clone();
            let line = first + fault.row as u64;
            let column = Some(fault.column);
            let value = Some(fault.value);
            self.bad_rows.report(BadRow { file, line, column, value, why: fault.why }, &self.texts)?;
        }
        // Rows with faults came after the silent ones; the mask searches the list.
        bad.sort_unstable();
        Ok(bad)
    }

    fn chunk(
        &self,
        plan: &FeedPlan,
        batch: &RecordBatch,
        columns: Vec<ArrayRef>,
        bad: &[usize],
        first: u64,
    ) -> Result<Option<Chunk>, IngestError> {
        let rows = batch.num_rows();
        let absent = self.absent(plan, batch);
        let whole = Lines::Range(first..first + rows as u64);
        if bad.is_empty() && absent.is_none() {
            let batch = RecordBatch::try_new(Arc::clone(&plan.schema), columns)?;
            return Ok(Some(Chunk { feed: plan.feed, batch, lines: whole, bytes_read: 0 }));
        }
        // A bad row is left out of every feed, an absent one of this feed only.
        let keep = |row: usize| bad.binary_search(&row).is_err() && !absent.as_ref().is_some_and(|absent| absent[row]);
        let kept: Vec<u64> = (0..rows).filter(|&row| keep(row)).map(|row| first + row as u64).collect();
        let mask: BooleanArray = (0..rows).map(|row| Some(keep(row))).collect();
        // Keys must not be null in the schema of the feed, and before the filter they may be.
        let nullable: Vec<_> =
            plan.schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
        let all = RecordBatch::try_new(Arc::new(arrow_schema::Schema::new(nullable)), columns)?;
        let good = filter_record_batch(&all, &mask)?;
        if kept.is_empty() {
            return Ok(None);
        }
        let batch = RecordBatch::try_new(Arc::clone(&plan.schema), good.columns().to_vec())?;
        Ok(Some(Chunk { feed: plan.feed, batch, lines: Lines::List(kept), bytes_read: 0 }))
    }
}
