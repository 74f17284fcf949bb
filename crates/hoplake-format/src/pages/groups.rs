//! Row groups for Parquet's reader of Arrow, made of checked pages.

use std::{ops::Range, sync::Arc};

use parquet::{
    arrow::arrow_reader::RowGroups,
    basic::Type,
    column::page::{Page, PageIterator, PageReader},
    errors::ParquetError,
    file::{
        metadata::{ParquetMetaData, RowGroupMetaData},
        reader::ChunkReader,
    },
};

use super::{PageLimits, chunk::ChunkPages, corrupt, footer::chunk_range, values::check_dictionary};

/// The widest values of fixed width: UUIDs have 16 bytes and decimals up to 32.
const WIDTH_MAX: i32 = 256;

/// Bytes of consecutive pages.
#[derive(Debug)]
pub struct Window<R> {
    /// The source of the bytes.
    pub reader: Arc<R>,
    /// Where in it they are.
    pub range: Range<u64>,
}

impl<R> Clone for Window<R> {
    fn clone(&self) -> Self {
        Self { reader: Arc::clone(&self.reader), range: self.range.clone() }
    }
}

/// Some row groups of a file, or some of their pages.
pub struct PageGroups<R> {
    metadata: Arc<ParquetMetaData>,
    groups: Vec<usize>,
    rows: usize,
    /// By position among the groups, then by leaf column: where the pages are.
    windows: Vec<Vec<Vec<Window<R>>>>,
    limits: PageLimits,
}

impl<R: ChunkReader + 'static> PageGroups<R> {
    /// These row groups of a file, whose footer has been [checked](super::read_footer).
    ///
    /// # Errors
    /// If a row group has more rows than can be counted.
    pub fn of_file(
        file: &Arc<R>,
        metadata: Arc<ParquetMetaData>,
        groups: Vec<usize>,
        limits: PageLimits,
    ) -> Result<Self, ParquetError> {
        let count =
            |sum: usize, group: &usize| sum.checked_add(usize::try_from(metadata.row_group(*group).num_rows()).ok()?);
        let rows = groups.iter().try_fold(0, count);
        let rows = rows.ok_or_else(|| corrupt("it has more rows than can be counted"))?;
        let window = |range| Window { reader: Arc::clone(file), range };
        let windows = |group: &usize| {
            let columns = metadata.row_group(*group).columns().iter();
            columns.map(|column| chunk_range(column).map(window).into_iter().collect()).collect()
        };
        let windows = groups.iter().map(windows).collect();
        Ok(Self { metadata, groups, rows, windows, limits })
    }

    /// Some pages of one leaf column, by row group, as if the file had no others: `rows` of them in all.
    pub fn of_pages(
        metadata: Arc<ParquetMetaData>,
        leaf: usize,
        pages: Vec<(usize, Vec<Window<R>>)>,
        rows: usize,
        limits: PageLimits,
    ) -> Self {
        let columns = metadata.file_metadata().schema_descr().num_columns();
        let (groups, windows) = pages
            .into_iter()
            .map(|(group, pages)| {
                let mut of_leaves = vec![Vec::new(); columns];
                if let Some(of_leaf) = of_leaves.get_mut(leaf) {
                    *of_leaf = pages;
                }
                (group, of_leaves)
            })
            .unzip();
        Self { metadata, groups, rows, windows, limits }
    }
}

impl<R: ChunkReader + 'static> RowGroups for PageGroups<R> {
    fn num_rows(&self) -> usize {
        self.rows
    }

    fn column_chunks(&self, leaf: usize) -> Result<Box<dyn PageIterator>, ParquetError> {
        let missing = || corrupt(format!("it has no column {leaf}"));
        let chunks = self.groups.iter().zip(&self.windows).map(|(group, windows)| {
            let column = self.metadata.row_group(*group).columns().get(leaf).ok_or_else(missing)?;
            // A null of such a column takes as much memory as a value.
            let width = column.column_descr().type_length();
            if column.column_type() == Type::FIXED_LEN_BYTE_ARRAY && width > WIDTH_MAX {
                return Err(corrupt(format!(
                    "its column {} has values of {width} bytes",
                    column.column_path().string()
                )));
            }
            let windows = windows.get(leaf).cloned().unwrap_or_default();
            Ok(Box::new(ChunkPages::new(column, windows, self.limits)) as Box<dyn PageReader>)
        });
        Ok(Box::new(Chunks(chunks.collect::<Vec<_>>().into_iter())))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(self.groups.iter().map(|group| self.metadata.row_group(*group)))
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

struct Chunks(std::vec::IntoIter<Result<Box<dyn PageReader>, ParquetError>>);

impl Iterator for Chunks {
    type Item = Result<Box<dyn PageReader>, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

impl PageIterator for Chunks {}

/// The longest text in the dictionary of a column chunk; 0 if it has none. Rows that name a text by its number take as
/// much memory as the text, whatever the file has: readers choose batches by this.
///
/// # Errors
/// If its first page is damaged.
pub fn longest_of_dictionary<R: ChunkReader + 'static>(
    file: &Arc<R>,
    metadata: &ParquetMetaData,
    group: usize,
    leaf: usize,
    limits: PageLimits,
) -> Result<usize, ParquetError> {
    let column = metadata.row_group(group).column(leaf);
    let Some(range) = chunk_range(column).filter(|_| column.column_type() == Type::BYTE_ARRAY) else { return Ok(0) };
    let windows = vec![Window { reader: Arc::clone(file), range }];
    let mut pages = ChunkPages::new(column, windows, limits);
    if !pages.peek_next_page()?.is_some_and(|page| page.is_dict) {
        return Ok(0);
    }
    match pages.get_next_page()? {
        Some(Page::DictionaryPage { buf, num_values, .. }) => check_dictionary(Type::BYTE_ARRAY, 0, num_values, &buf),
        _ => Ok(0),
    }
}
