//! Tables of properties: Parquet files read by the page.
//!
//! The end of a file (its page index and footer) is read once, when a query first names one of its
//! columns. From then on the pages that hold the wanted cells are known, and one wave brings all of
//! them, whatever the row groups, columns and files they are in. Parquet's own reader then decodes
//! from those pages alone.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use arrow_array::{RecordBatch, RecordBatchOptions, UInt32Array, new_null_array};
use arrow_cast::cast;
use arrow_schema::{ArrowError, Field, Schema as ArrowSchema};
use arrow_select::{concat::concat_batches, take::take_record_batch};
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::{Buf, Bytes};
use futures::future::try_join_all;
use hoplake_format::{FormatError, TableOwner, TableRef, constants::PAGE_CHECKSUMS_ENTRY};
use hoplake_storage::{BlockRequest, Check, Object, QueryContext, Reader, Wave};
use parquet::{
    arrow::{
        ProjectionMask,
        arrow_reader::{
            ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection, RowSelectionPolicy,
        },
    },
    errors::ParquetError,
    file::{
        metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader},
        reader::{ChunkReader, Length},
    },
};
use tokio::sync::OnceCell;

use crate::{EngineError, Snapshot};

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
    metadata: ArrowReaderMetadata,
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

    /// Where in its object a range of the table is.
    fn range(&self, within: Range<u64>) -> Range<u64> {
        self.reference.position + within.start..self.reference.position + within.end
    }

    fn rows(&self) -> Range<u64> {
        self.reference.first_row..self.reference.first_row + self.reference.rows
    }

    async fn layout(
        &self,
        snapshot: &Snapshot,
        after: Wave,
        context: &QueryContext,
    ) -> Result<(&Layout, Wave), EngineError> {
        let mut wave = if self.layout.initialized() { after } else { after.next() };
        let read = async {
            let TableRef { name, tail_position, length, tail_checksum, .. } = &self.reference;
            let check = Check::Known(*tail_checksum);
            let tail = BlockRequest { object: &self.object, range: self.range(*tail_position..*length), check };
            let (tail, came) = snapshot.reader().read(after, &[tail], context).await?;
            wave = came;
            Layout::parse(&tail[0], &self.reference, &snapshot.reader().store().place(name))
        };
        let layout = self.layout.get_or_try_init(|| read).await?;
        Ok((layout, wave))
    }
}

impl Layout {
    fn parse(tail: &Bytes, reference: &TableRef, place: &str) -> Result<Self, EngineError> {
        let mut reader = ParquetMetaDataReader::new()
            .with_column_index_policy(PageIndexPolicy::Skip)
            .with_offset_index_policy(PageIndexPolicy::Required);
        reader.try_parse_sized(tail, reference.length).map_err(EngineError::table(place))?;
        let metadata = Arc::new(reader.finish().map_err(EngineError::table(place))?);
        let damaged = |why: &str| EngineError::format(place)(FormatError::corrupt("table", why));
        let pages = pages(&metadata).ok_or_else(|| damaged("its pages and their checksums do not match"))?;
        let mut group_starts = vec![0];
        for group in metadata.row_groups() {
            let rows = u64::try_from(group.num_rows()).map_err(|_| damaged("a row group has less than no rows"))?;
            group_starts.push(group_starts[group_starts.len() - 1] + rows);
        }
        if group_starts.last() != Some(&reference.rows) {
            return Err(damaged("it has another number of rows than the manifest says"));
        }
        let options = ArrowReaderOptions::new();
        let metadata = ArrowReaderMetadata::try_new(metadata, options).map_err(EngineError::table(place))?;
        Ok(Self { metadata, group_starts, pages })
    }

    /// The pages that hold cells of `rows` (ascending, within the file) in the leaf columns of `mask`.
    fn pages_of(&self, rows: &[u64], leaves: &[usize]) -> Vec<&Page> {
        let mut wanted = Vec::new();
        for (group, bounds) in self.group_starts.windows(2).enumerate() {
            let (from, to) =
                (rows.partition_point(|row| *row < bounds[0]), rows.partition_point(|row| *row < bounds[1]));
            for leaf in leaves {
                let pages = &self.pages[group][*leaf];
                let mut last = None;
                for row in &rows[from..to] {
                    let page = pages.partition_point(|page| page.first_row <= row - bounds[0]).checked_sub(1);
                    if let Some(page) = page.filter(|page| last != Some(*page)) {
                        wanted.push(&pages[page]);
                        last = Some(page);
                    }
                }
            }
        }
        wanted
    }
}

/// The pages of each row group and leaf column, with their checksums in that order.
fn pages(metadata: &ParquetMetaData) -> Option<Vec<Vec<Vec<Page>>>> {
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
            let mut of_column = Vec::new();
            for location in index.offset_index(group, column)?.page_locations() {
                let start = u64::try_from(location.offset).ok()?;
                let length = u64::try_from(location.compressed_page_size).ok()?;
                of_column.push(Page {
                    range: start..start.checked_add(length)?,
                    first_row: u64::try_from(location.first_row_index).ok()?,
                    checksum: checksums.next()?,
                });
            }
            columns.push(of_column);
        }
        groups.push(columns);
    }
    checksums.next().is_none().then_some(groups)
}

/// Cells of some rows of a table: which pages, and how to decode them.
struct TableRead<'a> {
    table: &'a Table,
    layout: &'a Layout,
    /// Rows within the file, ascending.
    rows: Vec<u64>,
    mask: ProjectionMask,
    pages: Vec<&'a Page>,
}

impl Snapshot {
    /// Starts to read the ends of the tables of `owner`, in all parts, so that a later read of cells takes one wave.
    pub(crate) async fn touch_tables(
        &self,
        owner: TableOwner,
        after: Wave,
        context: &QueryContext,
    ) -> Result<Wave, EngineError> {
        let tables = self.tables.iter().filter(|table| table.reference.owner == owner);
        let layouts = try_join_all(tables.map(|table| table.layout(self, after, context))).await?;
        Ok(layouts.into_iter().map(|(_, wave)| wave).max().unwrap_or(after))
    }

    /// The cells of `rows` (any order, repeats allowed) of the tables `chosen` of one owner, in the order of the rows,
    /// with these fields: a column that a table does not have, since its part is older, is null, and one of an older
    /// type is converted.
    pub(crate) async fn cells(
        &self,
        chosen: &[&Table],
        rows: &[u64],
        fields: &[Field],
        after: Wave,
        context: &QueryContext,
    ) -> Result<(RecordBatch, Wave), EngineError> {
        let mut sorted = rows.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let mut reads = Vec::new();
        let layouts = try_join_all(chosen.iter().map(|table| table.layout(self, after, context))).await?;
        let ready = layouts.iter().map(|(_, wave)| *wave).max().unwrap_or(after);
        for (table, (layout, _)) in chosen.iter().zip(&layouts) {
            let bounds = table.rows();
            let from = sorted.partition_point(|row| *row < bounds.start);
            let to = sorted.partition_point(|row| *row < bounds.end);
            if from < to {
                let rows = sorted[from..to].iter().map(|row| row - bounds.start).collect();
                reads.push((TableRead::new(table, layout, rows, fields), bounds.start));
            }
        }
        // By row: parts may be in any order in the manifest.
        reads.sort_by_key(|(_, first_row)| *first_row);
        let requests: Vec<_> = reads.iter().flat_map(|(read, _)| read.requests()).collect();
        let (pages, wave) = self.reader().read(ready, &requests, context).await?;
        let mut pages = pages.into_iter();
        let schema = Arc::new(ArrowSchema::new(fields.to_vec()));
        let mut batches = Vec::new();
        for (read, _) in &reads {
            let pages = read.pages.iter().map(|page| page.range.start).zip(pages.by_ref()).collect();
            let place = self.reader().store().place(&read.table.reference.name);
            let batch = read.decode(pages).map_err(EngineError::table(place))?;
            batches.push(conform(&batch, &schema)?);
        }
        let batch = concat_batches(&schema, &batches)?;
        if batch.num_rows() != sorted.len() {
            let missing = sorted.len() - batch.num_rows();
            let why = format!("{missing} of {} rows are in no table of {:?}", sorted.len(), chosen.first());
            return Err(EngineError::format(self.reader().store().url())(FormatError::corrupt("manifest", why)));
        }
        Ok((arrange(batch, &sorted, rows)?, wave))
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

impl<'a> TableRead<'a> {
    fn new(table: &'a Table, layout: &'a Layout, rows: Vec<u64>, fields: &[Field]) -> Self {
        let schema = layout.metadata.parquet_schema();
        let wanted = |leaf: &usize| fields.iter().any(|field| field.name() == schema.get_column_root(*leaf).name());
        let leaves: Vec<_> = (0..schema.num_columns()).filter(wanted).collect();
        let pages = layout.pages_of(&rows, &leaves);
        Self { table, layout, rows, mask: ProjectionMask::leaves(schema, leaves), pages }
    }

    fn requests(&self) -> impl Iterator<Item = BlockRequest<'a>> {
        let table = self.table;
        self.pages.iter().map(move |page| BlockRequest {
            object: &table.object,
            range: table.range(page.range.clone()),
            check: Check::Known(page.checksum),
        })
    }

    fn decode(&self, pages: BTreeMap<u64, Bytes>) -> Result<RecordBatch, ParquetError> {
        let ranges = self.rows.chunk_by(|a, b| a + 1 == *b);
        let ranges = ranges.map(|run| run[0] as usize..run[0] as usize + run.len());
        let selection = RowSelection::from_consecutive_ranges(ranges, self.table.reference.rows as usize);
        let pages = Pages { pages, length: self.table.reference.length };
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(pages, self.layout.metadata.clone())
            .with_projection(self.mask.clone())
            .with_row_selection(selection)
            // A mask would read every page between the first and the last row.
            .with_row_selection_policy(RowSelectionPolicy::Selectors)
            .with_batch_size(self.rows.len().clamp(1, 8192))
            .build()?;
        let schema = reader.schema();
        let batches = reader.collect::<Result<Vec<_>, _>>()?;
        Ok(concat_batches(&schema, &batches)?)
    }
}

use arrow_array::RecordBatchReader;

/// A file of which only some pages are at hand.
struct Pages {
    pages: BTreeMap<u64, Bytes>,
    length: u64,
}

impl Pages {
    fn from(&self, start: u64) -> Result<Bytes, ParquetError> {
        let before = self.pages.range(..=start).next_back();
        let found = before.and_then(|(position, page)| {
            let skip = (start - position) as usize;
            (skip < page.len()).then(|| page.slice(skip..))
        });
        found.ok_or_else(|| ParquetError::General(format!("byte {start} is in none of the pages that were planned")))
    }
}

impl Length for Pages {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for Pages {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        self.from(start).map(Buf::reader)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let page = self.from(start)?;
        if page.len() < length {
            return Err(ParquetError::General(format!("{length} bytes at {start} cross the end of a page")));
        }
        Ok(page.slice(..length))
    }
}
