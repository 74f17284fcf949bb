//! Tables of properties: Parquet files read by the page.
//!
//! The end of a file (its page index and footer) is read once, when a query first names one of its
//! columns. From then on the pages that hold the wanted cells are known, and one wave brings all of
//! them, whatever the row groups, columns and files they are in. Parquet's own reader then decodes
//! from those pages alone.

mod decode;

use std::{ops::Range, sync::Arc};

use arrow_array::{RecordBatch, RecordBatchOptions, UInt32Array, new_null_array};
use arrow_cast::cast;
use arrow_schema::{ArrowError, Field, Schema as ArrowSchema};
use arrow_select::{concat::concat_batches, take::take_record_batch};
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use hoplake_format::{
    FormatError, TableOwner, TableRef,
    constants::PAGE_CHECKSUMS_ENTRY,
    pages::{check_offset_index, guarded, parse_footer},
};
use hoplake_storage::{BlockRequest, Branch, Check, Object, Reader};
use parquet::{
    errors::ParquetError,
    file::{
        metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader},
        statistics::Statistics,
    },
};
use tokio::sync::OnceCell;

use self::decode::{Decoding, TableRead};
use crate::{EngineError, Snapshot, memory::bytes_of, pieces::sort_by_key};

/// The length of the footer, and the magic.
const FOOTER_END_BYTES: usize = 8;

/// A table, as the manifest names it.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) reference: TableRef,
    object: Object,
    layout: OnceCell<Layout>,
}

/// What the end of a table says.
#[derive(Debug)]
pub(crate) struct Layout {
    metadata: Arc<ParquetMetaData>,
    /// The first row of each row group, and behind the last one the number of rows.
    group_starts: Vec<u64>,
    /// By row group and leaf column: its pages.
    pages: Vec<Vec<Vec<Page>>>,
}

#[derive(Debug, Clone)]
struct Page {
    range: Range<u64>,
    /// Its first row, within the row group.
    first_row: u64,
    checksum: u32,
}

impl Table {
    pub(crate) fn new(reference: TableRef, object: Object) -> Self {
        Self { reference, object, layout: OnceCell::new() }
    }

    /// Keeps in memory what later reads of cells ask for, from all bytes of the table. Of a table that came damaged, nothing:
    /// what is asked for is read then.
    pub(crate) fn keep(&self, reader: &Reader, bytes: &Bytes) {
        let TableRef { name, tail_position, length, tail_checksum, checksum, .. } = &self.reference;
        if crc32c::crc32c(bytes) != *checksum {
            return;
        }
        let keep = |range: &Range<u64>, checksum: u32| {
            let block =
                BlockRequest { object: &self.object, range: self.range(range.clone()), check: Check::Known(checksum) };
            let whole = bytes.get(range.start as usize..range.end as usize).is_some();
            whole.then(|| reader.keep(&block, &bytes.slice(range.start as usize..range.end as usize)))
        };
        keep(&(*tail_position..*length), *tail_checksum);
        let Some(tail) = bytes.get(*tail_position as usize..) else { return };
        let Ok(layout) = Layout::parse(&Bytes::copy_from_slice(tail), &self.reference, name) else { return };
        for page in layout.pages.iter().flatten().flatten() {
            keep(&page.range, page.checksum);
        }
        // If somebody was faster, theirs is the same.
        let _ = self.layout.set(layout);
    }

    /// Whether its end was read, or all of it was kept.
    pub(crate) fn is_known(&self) -> bool {
        self.layout.initialized()
    }

    /// Where in its object a range of the table is.
    fn range(&self, within: Range<u64>) -> Range<u64> {
        self.reference.position + within.start..self.reference.position + within.end
    }

    fn rows(&self) -> Range<u64> {
        self.reference.first_row..self.reference.first_row + self.reference.rows
    }

    async fn layout(&self, snapshot: &Snapshot, branch: &mut Branch) -> Result<&Layout, EngineError> {
        // Another may be reading it: then its answer is waited for.
        let waited = if self.layout.initialized() { branch.wave() } else { branch.wave().next() };
        let read = async {
            let TableRef { name, tail_position, length, tail_checksum, .. } = &self.reference;
            let check = Check::Known(*tail_checksum);
            let tail = BlockRequest { object: &self.object, range: self.range(*tail_position..*length), check };
            let tail = snapshot.reader().read(&[tail], branch).await?;
            Layout::parse(&tail[0], &self.reference, &snapshot.reader().store().location(name))
        };
        let layout = self.layout.get_or_try_init(|| read).await?;
        branch.reached(waited);
        Ok(layout)
    }
}

impl Layout {
    fn parse(tail: &Bytes, reference: &TableRef, location: &str) -> Result<Self, EngineError> {
        let metadata = Arc::new(checked(tail, reference).map_err(EngineError::table(location))?);
        let damaged = |why: &str| EngineError::format(location)(FormatError::corrupt("table", why));
        let pages = pages(&metadata, reference.tail_position)
            .ok_or_else(|| damaged("its pages and their checksums do not match"))?;
        let mut group_starts = vec![0u64];
        for group in metadata.row_groups() {
            let rows = u64::try_from(group.num_rows()).map_err(|_| damaged("a row group has less than no rows"))?;
            let before = group_starts[group_starts.len() - 1];
            group_starts.push(before.checked_add(rows).ok_or_else(|| damaged("it has more rows than can be counted"))?);
        }
        if group_starts.last() != Some(&reference.rows) {
            return Err(damaged("it has another number of rows than the manifest says"));
        }
        Ok(Self { metadata, group_starts, pages })
    }

    /// The least and greatest integer of a column in each row group that has any.
    fn int64_ranges(&self, column: &str) -> impl Iterator<Item = (i64, i64)> {
        let chunks = self.metadata.row_groups().iter().flat_map(|group| group.columns());
        let mine = chunks.filter(move |chunk| chunk.column_path().parts().first().is_some_and(|it| it == column));
        mine.filter_map(|chunk| match chunk.statistics() {
            Some(Statistics::Int64(of)) => match (of.min_opt(), of.max_opt()) {
                (Some(min), Some(max)) => Some((*min, *max)),
                _ if of.null_count_opt() == u64::try_from(chunk.num_values()).ok() => None,
                _ => Some((i64::MIN, i64::MAX)),
            },
            // Of another type: it has no integers.
            Some(_) => None,
            None if chunk.num_values() == 0 => None,
            None => Some((i64::MIN, i64::MAX)),
        })
    }
}

/// Reads the end of a table: its footer and the index of its pages, each checked before it is decoded.
fn checked(tail: &Bytes, reference: &TableRef) -> Result<ParquetMetaData, ParquetError> {
    let damaged = |why: &str| ParquetError::General(why.into());
    let end = tail.len().checked_sub(FOOTER_END_BYTES).ok_or_else(|| damaged("its end is cut off"))?;
    let length = tail[end..].first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize);
    let footer_at = end.checked_sub(length).ok_or_else(|| damaged("its footer is longer than its end"))?;
    let footer = parse_footer(&tail[footer_at..end], reference.tail_position)?;
    for column in footer.row_groups().iter().flat_map(|group| group.columns()) {
        let position_in = |at: u64| at.checked_sub(reference.tail_position).and_then(|at| usize::try_from(at).ok());
        let (from, length) = (column.offset_index_offset(), column.offset_index_length());
        let from = from.and_then(|at| u64::try_from(at).ok()).and_then(position_in);
        let until =
            from.zip(length.and_then(|length| usize::try_from(length).ok())).and_then(|(at, it)| at.checked_add(it));
        let index = from.zip(until).and_then(|(from, until)| tail.get(from..until.min(footer_at)));
        check_offset_index(index.ok_or_else(|| damaged("the index of its pages is not where its footer says"))?)?;
    }
    guarded(|| {
        let mut reader = ParquetMetaDataReader::new()
            .with_column_index_policy(PageIndexPolicy::Skip)
            .with_offset_index_policy(PageIndexPolicy::Required);
        reader.try_parse_sized(tail, reference.length)?;
        reader.finish()
    })
}

/// The pages of each row group and leaf column, with their checksums in that order. They lie before `data_end`, and their
/// rows ascend from the first of their group.
fn pages(metadata: &ParquetMetaData, data_end: u64) -> Option<Vec<Vec<Vec<Page>>>> {
    let entries = metadata.file_metadata().key_value_metadata()?;
    let entry = entries.iter().find(|entry| entry.key == PAGE_CHECKSUMS_ENTRY)?;
    let checksums = BASE64_STANDARD.decode(entry.value.as_ref()?).ok()?;
    let mut checksums =
        checksums.chunks_exact(4).map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
    let index = metadata.page_index()?;
    let mut groups = Vec::new();
    for (group, chunk) in metadata.row_groups().iter().enumerate() {
        let mut columns = Vec::new();
        for column in 0..chunk.num_columns() {
            let mut of_column: Vec<Page> = Vec::new();
            for location in index.offset_index(group, column)?.page_locations() {
                let start = u64::try_from(location.offset).ok()?;
                let length = u64::try_from(location.compressed_page_size).ok()?;
                let range = start..start.checked_add(length).filter(|end| *end <= data_end)?;
                let first_row = u64::try_from(location.first_row_index).ok()?;
                let expected = of_column.last().map_or(first_row == 0, |before: &Page| before.first_row < first_row);
                if !expected || i64::try_from(first_row).ok()? >= chunk.num_rows() {
                    return None;
                }
                of_column.push(Page { range, first_row, checksum: checksums.next()? });
            }
            columns.push(of_column);
        }
        groups.push(columns);
    }
    checksums.next().is_none().then_some(groups)
}

impl Snapshot {
    /// Starts to read the ends of the tables of `owner`, in all parts, so that a later read of cells takes one wave.
    pub(crate) async fn load_table_metadata(&self, owner: TableOwner, branch: &mut Branch) -> Result<(), EngineError> {
        let tables = self.tables.iter().filter(|table| table.reference.owner == owner);
        self.layouts(tables.map(Arc::as_ref), branch).await.map(drop)
    }

    /// The ends of some tables, read side by side.
    async fn layouts<'a>(
        &self,
        tables: impl Iterator<Item = &'a Table>,
        branch: &mut Branch,
    ) -> Result<Vec<&'a Layout>, EngineError> {
        let layouts = branch.each(tables, |table, mut line| async move {
            Ok::<_, EngineError>((table.layout(self, &mut line).await?, line))
        });
        layouts.await
    }

    /// A range that has all integers of a property in the tables of `owner`, items of lists included; `None` if there are
    /// none, all integers if a table does not tell. One wave for ends of tables that were not read before.
    pub(crate) async fn int64_range(
        &self,
        owner: TableOwner,
        property: &str,
        branch: &mut Branch,
    ) -> Result<Option<(i64, i64)>, EngineError> {
        let tables = self.tables.iter().filter(|table| table.reference.owner == owner);
        let layouts = self.layouts(tables.map(Arc::as_ref), branch).await?;
        let ranges = layouts.iter().flat_map(|layout| layout.int64_ranges(property));
        Ok(ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))))
    }

    /// The cells of `rows` (any order, repeats allowed) of the tables `chosen` of one owner, in the order of the rows,
    /// with these fields: a column that a table does not have, since its part is older, is null, and one of an older
    /// type is converted.
    pub(crate) async fn cells(
        &self,
        chosen: &[&Table],
        rows: &[u64],
        fields: &[Field],
        branch: &mut Branch,
    ) -> Result<RecordBatch, EngineError> {
        let context = branch.context().clone();
        // The rows in order, and which pages they are in.
        let mut memory = context.hold(bytes_of::<u64>(rows.len() * 3))?;
        let mut sorted = rows.to_vec();
        sort_by_key(&mut sorted, |row| *row, &context).await?;
        sorted.dedup();
        let mut reads = Vec::new();
        let layouts = self.layouts(chosen.iter().copied(), branch).await?;
        for (table, layout) in chosen.iter().zip(layouts) {
            let bounds = table.rows();
            let from = sorted.partition_point(|row| *row < bounds.start);
            let to = sorted.partition_point(|row| *row < bounds.end);
            if from < to {
                let rows = sorted[from..to].iter().map(|row| row - bounds.start).collect();
                reads.push((*table, TableRead::new(layout, rows, fields)));
            }
        }
        // By row: parts may be in any order in the manifest.
        reads.sort_by_key(|(table, _)| table.reference.first_row);
        let requests: Vec<_> = reads.iter().flat_map(|(table, read)| read.requests(table)).collect();
        let stored: u64 = requests.iter().map(|request| request.range.end - request.range.start).sum();
        let held = memory.bytes() + stored;
        context.resize(&mut memory, held)?;
        let mut pages = self.reader().read(&requests, branch).await?.into_iter();
        let mut decoding = Decoding::new(&context)?;
        let schema = Arc::new(ArrowSchema::new(fields.to_vec()));
        let mut batches = Vec::new();
        for (table, read) in &reads {
            let pages: Vec<_> = pages.by_ref().take(read.pages.len()).collect();
            let location = self.reader().store().location(&table.reference.name);
            let batch = read.decode(&pages, &location, &mut decoding).await?;
            batches.push(conform(&batch, &schema)?);
        }
        let batch = concat_batches(&schema, &batches)?;
        if batch.num_rows() != sorted.len() {
            let missing = sorted.len() - batch.num_rows();
            let why = format!("{missing} of {} rows are in no table of {:?}", sorted.len(), chosen.first());
            return Err(EngineError::format(self.reader().store().url())(FormatError::corrupt("manifest", why)));
        }
        Ok(arrange(batch, &sorted, rows)?)
    }
}

/// The columns of a schema: those of the batch, converted if need be, or nulls.
fn conform(batch: &RecordBatch, schema: &Arc<ArrowSchema>) -> Result<RecordBatch, ArrowError> {
    let column = |field: &Arc<Field>| match batch.column_by_name(field.name()) {
        Some(column) if column.data_type() == field.data_type() => Ok(column.clone()),
        Some(column) => cast(column, field.data_type()),
        None => Ok(new_null_array(field.data_type(), batch.num_rows())),
    };
    let columns = schema.fields().iter().map(column).collect::<Result<_, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
}

/// Puts rows back into the order they were asked in.
fn arrange(batch: RecordBatch, sorted: &[u64], rows: &[u64]) -> Result<RecordBatch, ArrowError> {
    if sorted == rows {
        return Ok(batch);
    }
    let position = |row: &u64| sorted.partition_point(|other| other < row) as u32;
    let indices: UInt32Array = rows.iter().map(|row| Some(position(row))).collect();
    if batch.num_columns() == 0 {
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        return RecordBatch::try_new_with_options(batch.schema(), vec![], &options);
    }
    take_record_batch(&batch, &indices)
}
