//! Decodes cells from the pages that hold them.
//!
//! Pages of different columns hold different rows. So each column is decoded by itself, as if its table had no other pages,
//! and the columns are put side by side. Stored pages are checked as those of any file would be: anyone who can write
//! to the bucket can give forged pages the right checksums.

use std::{ops::Range, sync::Arc};

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, new_empty_array};
use arrow_schema::{Field, Schema as ArrowSchema};
use bytes::Bytes;
use hoplake_format::pages::{PageGroups, PageLimits, Window};
use hoplake_storage::{BlockRequest, Check};
use parquet::{
    arrow::{
        ProjectionMask,
        arrow_reader::{ParquetRecordBatchReader, RowSelection},
        parquet_to_arrow_field_levels,
    },
    errors::ParquetError,
};

use super::{Layout, Page, Table, cells::clipped};

/// Rows that are decoded at a time.
const BATCH_ROWS: usize = 8192;

/// Cells of some rows of a table: which pages, and how to decode them.
pub(super) struct TableRead<'a> {
    layout: &'a Layout,
    /// Stretches of rows within the file, ascending.
    stretches: Vec<Range<u64>>,
    pub(super) row_count: usize,
    leaves: Vec<usize>,
    pub(super) pages: Vec<WantedPage<'a>>,
}

/// A page that holds wanted cells.
pub(super) struct WantedPage<'a> {
    group: usize,
    leaf: usize,
    page: &'a Page,
    /// Its rows, within the file.
    rows: Range<u64>,
}

impl<'a> TableRead<'a> {
    pub(super) fn new(layout: &'a Layout, stretches: Vec<Range<u64>>, fields: &[Field]) -> Self {
        let schema = layout.metadata.file_metadata().schema_descr();
        let wanted = |leaf: &usize| fields.iter().any(|field| field.name() == schema.get_column_root(*leaf).name());
        let leaves: Vec<_> = (0..schema.num_columns()).filter(wanted).collect();
        let pages = wanted_pages(layout, &stretches, &leaves);
        let row_count = stretches.iter().map(|rows| (rows.end - rows.start) as usize).sum();
        Self { layout, stretches, row_count, leaves, pages }
    }

    /// What to read of `table`.
    pub(super) fn requests(&self, table: &'a Table) -> impl Iterator<Item = BlockRequest<'a>> {
        self.pages.iter().map(move |wanted| BlockRequest {
            object: &table.object,
            range: table.range(wanted.page.range.clone()),
            check: Check::Known(wanted.page.checksum),
        })
    }

    /// Begins to decode the cells; `pages` are what was asked for, in that order.
    ///
    /// # Errors
    /// If a column cannot be decoded at all.
    pub(super) fn open(&self, pages: &[Bytes]) -> Result<TableCells, ParquetError> {
        let columns = self.leaves.iter().map(|leaf| self.open_leaf(*leaf, pages)).collect::<Result<Vec<_>, _>>()?;
        let fields: Vec<Field> = columns.iter().map(|column| column.field.clone()).collect();
        Ok(TableCells { schema: Arc::new(ArrowSchema::new(fields)), columns, rows_left: self.row_count })
    }

    fn open_leaf(&self, leaf: usize, pages: &[Bytes]) -> Result<Column, ParquetError> {
        let mut groups: Vec<(usize, Vec<Window<Bytes>>)> = Vec::new();
        let mut chosen = Vec::new();
        let mut rows_before = 0;
        for (wanted, bytes) in self.pages.iter().zip(pages).filter(|(wanted, _)| wanted.leaf == leaf) {
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
        Ok(Column { decoded: new_empty_array(field.data_type()), field, reader })
    }
}

/// Cells of a table that are decoded some rows at a time: so few that they stay in the processor's caches.
pub(super) struct TableCells {
    schema: Arc<ArrowSchema>,
    columns: Vec<Column>,
    rows_left: usize,
}

/// A column that is decoded.
struct Column {
    field: Field,
    reader: ParquetRecordBatchReader,
    /// Rows that were decoded and not handed out: pages of other columns may end elsewhere.
    decoded: ArrayRef,
}

impl TableCells {
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
                let name = column.field.name();
                let missing = || ParquetError::General(format!("column {name} lacks {} rows", self.rows_left));
                column.decoded = next_array(&mut column.reader)?.ok_or_else(missing)?;
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
                    wanted.push(WantedPage { group, leaf: *leaf, page: &pages[at], rows: of_page });
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

    fn cells(bytes: &[u8], reference: &TableRef, fields: &[Field], rows: &[u64]) -> Result<RecordBatch, String> {
        let tail = Bytes::copy_from_slice(&bytes[reference.tail_position as usize..]);
        let layout = Layout::parse(&tail, reference, "table").map_err(|error| error.to_string())?;
        let stretches = rows.iter().map(|row| *row..row + 1).collect();
        let read = TableRead::new(&layout, stretches, fields);
        let page = |wanted: &WantedPage<'_>| {
            let range = wanted.page.range.start as usize..wanted.page.range.end as usize;
            Bytes::copy_from_slice(&bytes[range])
        };
        let pages: Vec<_> = read.pages.iter().map(page).collect();
        let decode = || {
            let (mut cells, mut batches) = (read.open(&pages)?, Vec::new());
            while let Some(batch) = cells.next()? {
                batches.push(batch);
            }
            Ok(arrow_select::concat::concat_batches(&cells.schema, &batches)?)
        };
        guarded(decode).map_err(|error| error.to_string())
    }

    #[test]
    fn any_rows_are_decoded_from_their_pages_alone() {
        let (bytes, reference, fields, batch) = table();
        for rows in [vec![0], vec![699], vec![127, 128], (0..700).collect(), (0..700).step_by(50).collect::<Vec<u64>>()]
        {
            let found = cells(&bytes, &reference, &fields, &rows).unwrap();
            let indices = arrow_array::UInt64Array::from(rows);
            let expected = arrow_select::take::take_record_batch(&batch, &indices).unwrap();
            assert_eq!(found.columns(), expected.columns());
        }
        let none = cells(&bytes, &reference, &[], &[1, 2]).unwrap();
        assert_eq!((none.num_rows(), none.num_columns()), (2, 0));
    }

    #[test]
    fn forged_tables_are_decoded_or_refused() {
        let output = Command::new("sh")
            .args(["-c", &format!("ulimit -v {ADDRESS_SPACE_KIB}; exec \"$@\""), "sh"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "table::decode::tests::forged_tables", "--ignored", "--test-threads=1"])
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
        let (mut refused, mut seed) = (0, 1u64);
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
            refused += u32::from(cells(&forged, &reference, &fields, &rows).is_err());
        }
        assert!(refused > 1000, "{refused}");
    }
}
