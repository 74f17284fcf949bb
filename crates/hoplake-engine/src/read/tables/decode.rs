//! Decodes cells from the pages that hold them.
//!
//! Pages of different columns hold different rows. So each column is decoded by itself, as if its table had no other pages,
//! and the columns are put side by side.
//!
//! To set up Parquet's reader for a column takes longer than to decode a page. So pages that are in memory, and from which somebody
//! reads again, are decoded as a whole, and their values are kept: the next query takes its rows from there. Stored pages are checked as those of any file would be: anyone who can write
//! to the bucket can give forged pages the right checksums.

use std::{collections::VecDeque, ops::Range, sync::Arc};

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array, new_empty_array};
use arrow_schema::{Field, Schema as ArrowSchema};
use arrow_select::take::take;
use bytes::Bytes;
use hoplake_format::pages::{PageGroups, PageLimits, Window};
use hoplake_storage::{BlockRequest, Check, QueryContext, Reader};
use parquet::{
    arrow::{
        ProjectionMask,
        arrow_reader::{ParquetRecordBatchReader, RowSelection},
        parquet_to_arrow_field_levels,
    },
    errors::ParquetError,
    file::metadata::ParquetMetaData,
};

use super::{Layout, Page, Table, stretches::clipped};

/// Rows that are decoded at a time.
const BATCH_ROWS: usize = 8192;

/// Cells of some rows of a table: which pages, and how to decode them.
pub(super) struct TableRead<'a> {
    table: &'a Table,
    layout: &'a Layout,
    /// Stretches of rows within the file, ascending.
    stretches: Vec<Range<u64>>,
    pub(super) row_count: usize,
    leaves: Vec<usize>,
    /// Those whose pages are decoded as a whole.
    whole: Vec<usize>,
    pages: Vec<WantedPage<'a>>,
}

/// A page that holds wanted cells.
pub(super) struct WantedPage<'a> {
    group: usize,
    leaf: usize,
    page: &'a Page,
    /// Its rows, within the file.
    rows: Range<u64>,
    /// What was read of it, unless its values were kept.
    bytes: Bytes,
    values: Option<Arc<PageValues>>,
}

/// A column of more pages than this is decoded at once: it is read for many rows, which take longer than setting up a reader.
const WHOLE_PAGES_MAX: usize = 256;

impl<'a> TableRead<'a> {
    pub(super) fn new(table: &'a Table, layout: &'a Layout, stretches: Vec<Range<u64>>, fields: &[Field]) -> Self {
        let schema = layout.metadata.file_metadata().schema_descr();
        let wanted = |leaf: &usize| fields.iter().any(|field| field.name() == schema.get_column_root(*leaf).name());
        let leaves: Vec<_> = (0..schema.num_columns()).filter(wanted).collect();
        let pages = wanted_pages(layout, &stretches, &leaves);
        let row_count = stretches.iter().map(|rows| (rows.end - rows.start) as usize).sum();
        Self { table, layout, stretches, row_count, leaves, whole: Vec::new(), pages }
    }

    /// Takes values that were kept, and decides which columns are decoded page by page: those with all pages in memory.
    pub(super) fn take_kept(&mut self, reader: &Reader, context: &QueryContext) {
        for leaf in &self.leaves {
            let mut of_leaf: Vec<_> = self.pages.iter_mut().filter(|wanted| wanted.leaf == *leaf).collect();
            let is_near = |wanted: &&mut WantedPage<'_>| {
                let request = request(self.table, wanted);
                reader.is_decoded(&request) || reader.is_in_memory(&request)
            };
            let is_small = |wanted: &&mut WantedPage<'_>| wanted.rows.end - wanted.rows.start <= BATCH_ROWS as u64;
            if of_leaf.is_empty()
                || of_leaf.len() > WHOLE_PAGES_MAX
                || !of_leaf.iter().all(|it| is_small(it) && is_near(it))
            {
                continue;
            }
            of_leaf.iter_mut().for_each(|wanted| wanted.values = reader.decoded(&request(self.table, wanted), context));
            self.whole.push(*leaf);
        }
    }

    /// What is left to be read.
    pub(super) fn requests(&self) -> impl Iterator<Item = BlockRequest<'a>> {
        let left = self.pages.iter().filter(|wanted| wanted.values.is_none());
        left.map(|wanted| request(self.table, wanted))
    }

    /// Takes what was read, in the order of the requests.
    pub(super) fn take_read(&mut self, pages: &mut impl Iterator<Item = Bytes>) {
        let left = self.pages.iter_mut().filter(|wanted| wanted.values.is_none());
        left.zip(pages).for_each(|(wanted, bytes)| wanted.bytes = bytes);
    }

    /// Begins to decode the cells.
    ///
    /// # Errors
    /// If a column cannot be decoded at all.
    pub(super) fn open(&mut self, reader: &Reader) -> Result<TableCells<'a>, ParquetError> {
        let columns = (0..self.leaves.len()).map(|at| {
            let leaf = self.leaves[at];
            if self.whole.contains(&leaf) { self.open_whole(leaf, reader) } else { self.open_leaf(leaf) }
        });
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let fields: Vec<Field> = columns.iter().map(|column| column.field.clone()).collect();
        Ok(TableCells { schema: Arc::new(ArrowSchema::new(fields)), columns, rows_left: self.row_count })
    }

    fn open_whole(&mut self, leaf: usize, reader: &Reader) -> Result<Column<'a>, ParquetError> {
        let mut pages =
            WholePages { metadata: &self.layout.metadata, leaf, reader: reader.clone(), left: VecDeque::new() };
        for wanted in self.pages.iter_mut().filter(|wanted| wanted.leaf == leaf) {
            let within = |row: u64| (row - wanted.rows.start) as usize;
            let chosen = clipped(&self.stretches, &wanted.rows).map(|rows| within(rows.start)..within(rows.end));
            pages.left.push_back(WholePage {
                chosen: chosen.collect(),
                rows: (wanted.rows.end - wanted.rows.start) as usize,
                group: wanted.group,
                bytes: std::mem::take(&mut wanted.bytes),
                values: wanted.values.take(),
                request: request(self.table, wanted),
            });
        }
        // Its type is that of its first values.
        let lacks = || ParquetError::General(format!("column {leaf} has no pages"));
        let (field, decoded) = pages.next().transpose()?.ok_or_else(lacks)?;
        Ok(Column { field, decoded, source: Source::Whole(pages) })
    }

    fn open_leaf(&self, leaf: usize) -> Result<Column<'a>, ParquetError> {
        let mut groups: Vec<(usize, Vec<Window<Bytes>>)> = Vec::new();
        let mut chosen = Vec::new();
        let mut rows_before = 0;
        for wanted in self.pages.iter().filter(|wanted| wanted.leaf == leaf) {
            let bytes = &wanted.bytes;
            let window = Window { range: 0..bytes.len() as u64, reader: Arc::new(bytes.clone()) };
            match groups.last_mut().filter(|(group, _)| *group == wanted.group) {
                Some((_, windows)) => windows.push(window),
                None => groups.push((wanted.group, vec![window])),
            }
            // The reader sees only the pages that were read, as if they were the whole column: rows are counted from the first of these
            // pages on, and gaps between pages do not count.
            let within = |row: u64| rows_before + (row - wanted.rows.start) as usize;
            chosen.extend(clipped(&self.stretches, &wanted.rows).map(|rows| within(rows.start)..within(rows.end)));
            rows_before += (wanted.rows.end - wanted.rows.start) as usize;
        }
        let metadata = &self.layout.metadata;
        let schema = metadata.file_metadata().schema_descr();
        let levels = parquet_to_arrow_field_levels(schema, ProjectionMask::leaves(schema, [leaf]), None)?;
        let selection = RowSelection::from_consecutive_ranges(chosen.into_iter(), rows_before);
        let groups = PageGroups::of_pages(Arc::clone(metadata), leaf, groups, rows_before, PageLimits::default());
        let batch_rows = self.row_count.clamp(1, BATCH_ROWS);
        let reader = ParquetRecordBatchReader::try_new_with_row_groups(&levels, &groups, batch_rows, Some(selection))?;
        let field = levels_field(&reader)?;
        let decoded = new_empty_array(field.data_type());
        Ok(Column { field, decoded, source: Source::Selected(Box::new(reader)) })
    }
}

/// Cells of a table that are decoded some rows at a time: so few that they stay in the processor's caches.
pub(super) struct TableCells<'a> {
    schema: Arc<ArrowSchema>,
    columns: Vec<Column<'a>>,
    rows_left: usize,
}

/// A column that is decoded.
struct Column<'a> {
    field: Field,
    source: Source<'a>,
    /// Rows that were decoded and not handed out: pages of other columns may end elsewhere.
    decoded: ArrayRef,
}

/// Where the values of a column come from.
enum Source<'a> {
    /// Those of the wanted rows, decoded now.
    Selected(Box<ParquetRecordBatchReader>),
    /// Those of whole pages, from which the wanted rows are taken.
    Whole(WholePages<'a>),
}

/// All values of a page.
pub(super) struct PageValues {
    field: Field,
    values: ArrayRef,
}

/// Pages that are decoded one by one, each when its turn comes.
struct WholePages<'a> {
    metadata: &'a Arc<ParquetMetaData>,
    leaf: usize,
    reader: Reader,
    left: VecDeque<WholePage<'a>>,
}

struct WholePage<'a> {
    /// The wanted rows, within the page.
    chosen: Vec<Range<usize>>,
    rows: usize,
    group: usize,
    bytes: Bytes,
    /// If they were kept.
    values: Option<Arc<PageValues>>,
    request: BlockRequest<'a>,
}

impl Iterator for WholePages<'_> {
    type Item = Result<(Field, ArrayRef), ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        let page = self.left.pop_front()?;
        Some(self.wanted(page))
    }
}

impl WholePages<'_> {
    fn wanted(&self, page: WholePage<'_>) -> Result<(Field, ArrayRef), ParquetError> {
        let of_page = match page.values {
            // Forged pages may begin at the same place and have other rows.
            Some(values) if values.values.len() == page.rows => values,
            _ => {
                let decoded = Arc::new(self.decode(&page)?);
                let bytes = decoded.values.get_array_memory_size() as u64;
                self.reader.keep_decoded(&page.request, decoded.clone(), bytes);
                decoded
            }
        };
        let PageValues { field, values } = &*of_page;
        let wanted = match &page.chosen[..] {
            [rows] => values.slice(rows.start, rows.len()),
            many => {
                let rows = many.iter().cloned().flatten().map(|row| row as u32);
                take(values, &UInt32Array::from_iter_values(rows), None)?
            }
        };
        Ok((field.clone(), wanted))
    }

    fn decode(&self, page: &WholePage<'_>) -> Result<PageValues, ParquetError> {
        let schema = self.metadata.file_metadata().schema_descr();
        let levels = parquet_to_arrow_field_levels(schema, ProjectionMask::leaves(schema, [self.leaf]), None)?;
        let window = Window { range: 0..page.bytes.len() as u64, reader: Arc::new(page.bytes.clone()) };
        let pages = vec![(page.group, vec![window])];
        let groups = PageGroups::of_pages(self.metadata.clone(), self.leaf, pages, page.rows, PageLimits::default());
        let mut reader = ParquetRecordBatchReader::try_new_with_row_groups(&levels, &groups, page.rows.max(1), None)?;
        let field = levels_field(&reader)?;
        let values = next_array(&mut reader)?.filter(|values| values.len() == page.rows);
        let lacks =
            || ParquetError::General(format!("a page of column {} does not have {} rows", field.name(), page.rows));
        Ok(PageValues { values: values.ok_or_else(lacks)?, field })
    }
}

impl TableCells<'_> {
    /// The next rows, in order; `None` behind the last.
    ///
    /// # Errors
    /// If a page is damaged, or there are fewer rows than the index of pages says.
    pub(super) fn next(&mut self) -> Result<Option<RecordBatch>, ParquetError> {
        if self.rows_left == 0 {
            return Ok(None);
        }
        let mut rows = self.rows_left;
        for column in &mut self.columns {
            while column.decoded.is_empty() {
                // Whether pages hold the rows that the index says is known only now: a forged page may have fewer.
                let name = column.field.name().clone();
                let missing = || ParquetError::General(format!("column {name} lacks {} rows", self.rows_left));
                let next = match &mut column.source {
                    Source::Selected(reader) => next_array(reader)?,
                    Source::Whole(pages) => pages.next().transpose()?.map(|(_, values)| values),
                };
                column.decoded = next.ok_or_else(missing)?;
            }
            rows = rows.min(column.decoded.len());
        }
        self.rows_left -= rows;
        let columns = self.columns.iter_mut().map(|Column { decoded, .. }| {
            let rest = decoded.slice(rows, decoded.len() - rows);
            std::mem::replace(decoded, rest).slice(0, rows)
        });
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(Some(RecordBatch::try_new_with_options(self.schema.clone(), columns.collect(), &options)?))
    }
}

/// The next rows of the one column that a reader has.
fn next_array(reader: &mut ParquetRecordBatchReader) -> Result<Option<ArrayRef>, ParquetError> {
    let Some(batch) = reader.next().transpose()? else { return Ok(None) };
    match batch.columns() {
        [column] => Ok(Some(Arc::clone(column))),
        columns => Err(ParquetError::General(format!("a column was decoded as {}", columns.len()))),
    }
}

fn levels_field(reader: &ParquetRecordBatchReader) -> Result<Field, ParquetError> {
    let schema = arrow_array::RecordBatchReader::schema(reader);
    let field = schema.fields().first().ok_or_else(|| ParquetError::General("a column has no type".into()))?;
    Ok(field.as_ref().clone())
}

/// What to read of a page.
fn request<'a>(table: &'a Table, wanted: &WantedPage<'_>) -> BlockRequest<'a> {
    BlockRequest {
        object: &table.object,
        range: table.range(wanted.page.range.clone()),
        check: Check::Known(wanted.page.checksum),
    }
}

/// The pages that hold cells of ascending stretches of rows, within the file, in these leaf columns.
fn wanted_pages<'a>(layout: &'a Layout, stretches: &[Range<u64>], leaves: &[usize]) -> Vec<WantedPage<'a>> {
    let mut wanted = Vec::new();
    for (group, bounds) in layout.group_starts.windows(2).enumerate() {
        let bounds = bounds[0]..bounds[1];
        for leaf in leaves {
            let pages = &layout.pages[group][*leaf];
            // Where the last page ends: its other rows are there, too.
            let mut behind = bounds.start;
            for rows in clipped(stretches, &bounds) {
                // From page to page, not from row to row: a scan wants all rows of most pages.
                let mut row = rows.start.max(behind);
                while row < rows.end {
                    // First rows ascend from 0, as the layout was checked to. A column without pages will be short.
                    let page = pages.partition_point(|page| page.first_row <= row - bounds.start).checked_sub(1);
                    let Some(at) = page else { break };
                    let end = pages.get(at + 1).map_or(bounds.end, |next| bounds.start + next.first_row);
                    let of_page = bounds.start + pages[at].first_row..end;
                    wanted.push(WantedPage {
                        group,
                        leaf: *leaf,
                        page: &pages[at],
                        rows: of_page,
                        bytes: Bytes::new(),
                        values: None,
                    });
                    row = end;
                }
                behind = row;
            }
        }
    }
    wanted
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::process::Command;

    use std::io::Cursor;

    use arrow_array::{
        Float64Array, Int64Array, StringArray,
        builder::{ListBuilder, StringBuilder},
    };
    use hoplake_format::{
        Direction, EdgeTypeId, TableOwner, TableRef, VersionRange,
        pages::guarded,
        table::{TableRows, TableSettings, TableWriter},
    };
    use hoplake_storage::{ReadPool, ReadSettings, Store};

    use super::*;

    const ROWS: i64 = 700;
    /// Bounds the address space of the child process, so that an allocation of a claimed size is the end of it.
    const ADDRESS_SPACE_KIB: u64 = 1 << 20;

    fn table() -> (Vec<u8>, TableRef, Vec<Field>, RecordBatch) {
        let some = |row: i64| (row % 7 != 3).then_some(row);
        let mut words = ListBuilder::new(StringBuilder::new());
        for row in 0..ROWS {
            (0..row % 3).for_each(|item| words.values().append_value(format!("word {item}")));
            words.append(row % 5 != 3);
        }
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("int", Arc::new((0..ROWS).map(some).collect::<Int64Array>())),
            ("float", Arc::new((0..ROWS).map(|row| some(row).map(|row| row as f64)).collect::<Float64Array>())),
            (
                "text",
                Arc::new((0..ROWS).map(|row| some(row).map(|row| format!("beginning {row}"))).collect::<StringArray>()),
            ),
            ("words", Arc::new(words.finish())),
        ];
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true)));
        let batch = batch.unwrap();
        let owner = TableOwner::Edges(EdgeTypeId(0), Direction::Out);
        let settings = TableSettings { page_rows: 128, ..TableSettings::default() };
        let rows = TableRows { owner, versions: VersionRange::of(1), first: 0 };
        let mut writer = TableWriter::new(rows, settings, || Ok(Cursor::new(Vec::new())));
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        let mut bytes = Vec::new();
        let reference = writer.take().unwrap().write_to(&mut bytes).unwrap().at("table", 0);
        let fields = batch.schema().fields().iter().map(|field| field.as_ref().clone()).collect();
        (bytes, reference, fields, batch)
    }

    /// Decoded from what was read, from what is in memory, and from values that were kept.
    fn cells(bytes: &[u8], reference: &TableRef, fields: &[Field], rows: &[u64]) -> [Result<RecordBatch, String>; 3] {
        let store = Store::open("memory://decode").unwrap();
        let reader = Reader::new(store, ReadPool::new(ReadSettings::default()).unwrap());
        let table = Table::new(reference.clone(), reader.object("table"));
        let tail = Bytes::copy_from_slice(&bytes[reference.tail_position as usize..]);
        let layout = match Layout::parse(&tail, reference, "table") {
            Ok(layout) => layout,
            Err(error) => return [(); 3].map(|()| Err(error.to_string())),
        };
        let mut found = Vec::new();
        for whole in [false, true, true] {
            let stretches = rows.iter().map(|row| *row..row + 1).collect();
            let mut read = TableRead::new(&table, &layout, stretches, fields);
            if whole {
                for wanted in &read.pages {
                    // Of forged pages, too: as if they had the right checksum.
                    let request = BlockRequest { check: Check::Later, ..request(&table, wanted) };
                    let stored =
                        Bytes::copy_from_slice(&bytes[request.range.start as usize..request.range.end as usize]);
                    reader.keep(&request, &stored).unwrap();
                }
                read.take_kept(&reader, &QueryContext::new());
            }
            let page = |request: BlockRequest<'_>| {
                Bytes::copy_from_slice(&bytes[request.range.start as usize..request.range.end as usize])
            };
            let pages: Vec<_> = read.requests().map(page).collect();
            read.take_read(&mut pages.into_iter());
            let decode = || {
                let mut cells = read.open(&reader)?;
                let mut batches = Vec::new();
                while let Some(batch) = cells.next()? {
                    batches.push(batch);
                }
                Ok(arrow_select::concat::concat_batches(&cells.schema, &batches)?)
            };
            found.push(guarded(decode).map_err(|error| error.to_string()));
        }
        found.try_into().unwrap()
    }

    #[test]
    fn any_rows_are_decoded_from_their_pages_alone() {
        let (bytes, reference, fields, batch) = table();
        for rows in [vec![0], vec![699], vec![127, 128], (0..700).collect(), (0..700).step_by(50).collect::<Vec<u64>>()]
        {
            let found = cells(&bytes, &reference, &fields, &rows);
            let indices = arrow_array::UInt64Array::from(rows);
            let expected = arrow_select::take::take_record_batch(&batch, &indices).unwrap();
            found.into_iter().for_each(|found| assert_eq!(found.unwrap().columns(), expected.columns()));
        }
        for none in cells(&bytes, &reference, &[], &[1, 2]) {
            assert_eq!(none.map(|none| (none.num_rows(), none.num_columns())), Ok((2, 0)));
        }
    }

    #[test]
    fn forged_tables_are_decoded_or_rejected() {
        // Without the name of the crate, as tests are called.
        let (_, module) = module_path!().split_once("::").unwrap();
        let output = Command::new("sh")
            .args(["-c", &format!("ulimit -v {ADDRESS_SPACE_KIB}; exec \"$@\""), "sh"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", &format!("{module}::forged_tables"), "--ignored", "--test-threads=1"])
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && told.contains("1 passed"), "{:?}: {told}", output.status);
    }

    #[test]
    #[ignore = "runs in a child process"]
    fn forged_tables() {
        let (bytes, reference, fields, _) = table();
        let rows: Vec<u64> = (0..700).step_by(3).collect();
        let tail = Bytes::copy_from_slice(&bytes[reference.tail_position as usize..]);
        let layout = Layout::parse(&tail, &reference, "table").unwrap();
        let starts: Vec<usize> =
            layout.pages.iter().flatten().flatten().map(|page| page.range.start as usize).collect();
        let mut rejected = 0;
        let mut seed = 1u64;
        let mut below = |bound: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % bound
        };
        for round in 0..3000 {
            let mut forged = bytes.clone();
            for _ in 0..=below(3) {
                // Headers of pages, what is in them, and the end.
                let at = match round % 3 {
                    0 => starts[below(starts.len())] + below(30),
                    1 => 4 + below(reference.tail_position as usize - 4),
                    _ => reference.tail_position as usize + below(tail.len()),
                };
                match below(3) {
                    0 => forged[at] ^= 1 << below(8),
                    1 => forged[at] = below(256) as u8,
                    _ => (0..5)
                        .zip(&mut forged[at..])
                        .for_each(|(place, byte)| *byte = [0xfe, 0xff, 0xff, 0xff, 0x0f][place]),
                }
            }
            rejected += u32::from(cells(&forged, &reference, &fields, &rows).iter().any(Result::is_err));
        }
        assert!(rejected > 1000, "{rejected}");
    }
}
