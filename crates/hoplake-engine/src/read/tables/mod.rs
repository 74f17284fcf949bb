//! Tables of properties: Parquet files read by the page.
//!
//! The end of a file (its page index and footer) is read once, when a query first names one of its
//! columns. From then on the pages that hold the wanted cells are known, and one wave brings all of
//! them, whatever the row groups, columns and files they are in. Parquet's own reader then decodes
//! from those pages alone.

mod cells;
mod decode;
mod extents;
mod groups;
mod stretches;

use std::{collections::HashMap, ops::Range, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use hoplake_format::{
    FormatError, Manifest, TableOwner, TableRef,
    constants::PAGE_CHECKSUMS_ENTRY,
    pages::{check_offset_index, guarded, parse_footer},
};
use hoplake_storage::{BlockRequest, Branch, Check, Object, Reader};
use parquet::{
    errors::ParquetError,
    file::{
        metadata::{ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader},
        statistics::Statistics,
    },
};
use tokio::sync::OnceCell;

pub(crate) use cells::{Cells, Gathering};
pub(crate) use extents::EXTENT_BYTES;
pub(crate) use groups::Group;

use crate::EngineError;

/// The tables of a version.
#[derive(Debug)]
pub(crate) struct Tables {
    reader: Reader,
    tables: Vec<Arc<Table>>,
}

impl Tables {
    /// Those that a manifest names. What is known of an object before holds in every version, because an object never changes.
    pub(crate) fn new(manifest: &Manifest, reader: &Reader, before: Option<&Self>) -> Self {
        let by_place: HashMap<(&str, u64), &Arc<Table>> = before
            .iter()
            .flat_map(|before| &before.tables)
            .map(|it| ((&*it.reference.name, it.reference.position), it))
            .collect();
        let tables = manifest.tables.iter().map(|reference| {
            let known = by_place.get(&(&*reference.name, reference.position)).copied();
            known.cloned().unwrap_or_else(|| Arc::new(Table::new(reference.clone(), reader.object(&reference.name))))
        });
        Self { tables: tables.collect(), reader: reader.clone() }
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.tables.iter()
    }

    /// The tables of an owner, of one run or of all.
    pub(crate) fn of(&self, owner: TableOwner, run: Option<u64>) -> Vec<&Table> {
        let of = |table: &&Arc<Table>| {
            let reference = &table.reference;
            reference.owner == owner && run.is_none_or(|run| reference.versions.until == run)
        };
        self.tables.iter().filter(of).map(Arc::as_ref).collect()
    }
}

/// The length of the footer, and the magic.
const FOOTER_END_BYTES: usize = 8;

/// How pages are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Through {
    /// Through the caches, for queries that may come back to them.
    Caches,
    /// Many with one request, and past the caches: a scan would push out what queries come back to.
    Extents,
}

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
        // The layout below is taken from these bytes, so all of them are checked first.
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

    async fn layout(&self, reader: &Reader, branch: &mut Branch) -> Result<&Layout, EngineError> {
        // Another may be reading it: then its answer is waited for.
        let waited = if self.layout.initialized() { branch.wave() } else { branch.wave().next() };
        let read = async {
            let TableRef { name, tail_position, length, tail_checksum, .. } = &self.reference;
            let check = Check::Known(*tail_checksum);
            let tail = BlockRequest { object: &self.object, range: self.range(*tail_position..*length), check };
            let tail = reader.read(&[tail], branch).await?;
            Layout::parse(&tail[0], &self.reference, &reader.store().location(name))
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
        // A property may have been a timestamp, whose bounds are of the same physical type.
        let are_integers = |chunk: &&ColumnChunkMetaData| chunk.column_descr().logical_type_ref().is_none();
        let mine = chunks.filter(move |chunk| chunk.column_path().parts().first().is_some_and(|it| it == column));
        let mine = mine.filter(are_integers);
        mine.filter_map(|chunk| match chunk.statistics() {
            Some(Statistics::Int64(of)) => match (of.min_opt(), of.max_opt()) {
                (Some(min), Some(max)) => Some((*min, *max)),
                // Nothing but nulls has no least value, and no integer.
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
        let from = column.offset_index_offset();
        let length = column.offset_index_length();
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
