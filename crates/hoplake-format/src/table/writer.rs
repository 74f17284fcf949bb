//! Rows on their way into tables.

use std::{
    collections::VecDeque,
    io::{self, Read, Seek, Write},
};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    errors::ParquetError,
    file::properties::{EnabledStatistics, WriterProperties, WriterVersion},
};

use super::{EncodedTable, TABLE_ROWS_MAX, TableSettings};
use crate::{TableOwner, VersionRange};

/// Which rows these are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableRows {
    /// Their owner.
    pub owner: TableOwner,
    /// The versions that they stand for.
    pub versions: VersionRange,
    /// The number of the first; the others follow it.
    pub first: u64,
}

/// Writes the rows of one owner, in order, to as many tables as they take: one ends at [`TABLE_ROWS_MAX`] rows.
///
/// Nothing is sent: the caller [takes](Self::take) tables that have ended when it likes.
pub struct TableWriter<S: Write + Send> {
    rows: TableRows,
    settings: TableSettings,
    /// Makes the scratch of a table.
    scratch: Box<dyn FnMut() -> io::Result<S> + Send>,
    open: Option<Open<S>>,
    ended: VecDeque<EncodedTable<S>>,
}

/// The table under way.
struct Open<S: Write + Send> {
    writer: ArrowWriter<S>,
    rows: u64,
}

impl<S: Read + Write + Seek + Send> TableWriter<S> {
    /// Writes rows through scratches that `scratch` makes: one for each table, as large as the table.
    pub fn new(
        rows: TableRows,
        settings: TableSettings,
        scratch: impl FnMut() -> io::Result<S> + Send + 'static,
    ) -> Self {
        Self { rows, settings, scratch: Box::new(scratch), open: None, ended: VecDeque::new() }
    }

    /// Appends rows, which all have the columns of the first.
    ///
    /// # Errors
    /// Parquet's, if a type cannot be written; those of the scratch, as Parquet's.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), ParquetError> {
        let mut written = 0;
        while written < batch.num_rows() {
            let open = match &mut self.open {
                Some(open) => open,
                None => {
                    let writer = begin((self.scratch)()?, batch.schema(), self.settings)?;
                    self.open.insert(Open { writer, rows: 0 })
                }
            };
            let fitting = (TABLE_ROWS_MAX - open.rows).min((batch.num_rows() - written) as u64);
            open.writer.write(&batch.slice(written, fitting as usize))?;
            open.rows += fitting;
            written += fitting as usize;
            if open.rows == TABLE_ROWS_MAX {
                self.finish()?;
            }
        }
        Ok(())
    }

    /// Takes the oldest table of those that have ended.
    pub fn take(&mut self) -> Option<EncodedTable<S>> {
        self.ended.pop_front()
    }

    /// Ends the table under way, if there is one.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn finish(&mut self) -> Result<(), ParquetError> {
        let Some(Open { mut writer, rows }) = self.open.take() else { return Ok(()) };
        let metadata = writer.finish()?;
        self.ended.push_back(EncodedTable { rows: self.rows, count: rows, scratch: writer, metadata });
        self.rows.first += rows;
        Ok(())
    }
}

fn begin<S: Write + Send>(
    scratch: S,
    schema: SchemaRef,
    settings: TableSettings,
) -> Result<ArrowWriter<S>, ParquetError> {
    let properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_created_by(concat!("hoplake ", env!("CARGO_PKG_VERSION")).to_owned())
        // A dictionary would be a second range to read for one cell.
        .set_dictionary_enabled(false)
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_data_page_row_count_limit(settings.page_rows)
        .set_data_page_size_limit(settings.page_bytes)
        // The writer compares a page with its limits only after each batch, so that a batch must not exceed a page.
        .set_write_batch_size(settings.page_rows.min(256))
        .set_max_row_group_bytes(Some(settings.group_bytes))
        .build();
    ArrowWriter::try_new(scratch, schema, Some(properties))
}

#[cfg(test)]
mod tests {
    use std::{io::Cursor, sync::Arc};

    use arrow_array::{ArrayRef, Int64Array};

    use super::*;
    use crate::LabelId;

    /// One batch may be longer than a table.
    #[test]
    fn tables_end_at_their_most_rows() {
        let versions = VersionRange::of(3);
        let rows = TableRows { owner: TableOwner::Vertices(LabelId(1)), versions, first: 5 };
        let mut writer = TableWriter::new(rows, TableSettings::default(), || Ok(Cursor::new(Vec::new())));
        let column: ArrayRef = Arc::new(Int64Array::from_value(7, TABLE_ROWS_MAX as usize + 3));
        let batch = RecordBatch::try_from_iter([("seven", column)]).unwrap();
        writer.write(&batch.slice(0, 2)).unwrap();
        assert!(writer.take().is_none(), "the table goes on");
        writer.write(&batch.slice(2, batch.num_rows() - 2)).unwrap();
        writer.finish().unwrap();
        writer.finish().unwrap();
        let mut written = Vec::new();
        while let Some(table) = writer.take() {
            let mut bytes = Vec::new();
            let end = table.write_to(&mut bytes).unwrap().at("table", 9);
            let tail = &bytes[end.tail_position as usize..];
            assert_eq!((end.length, end.checksum), (bytes.len() as u64, crc32c::crc32c(&bytes)));
            assert_eq!((end.position, end.versions, end.tail_checksum), (9, versions, crc32c::crc32c(tail)));
            written.push((end.first_row, end.rows));
        }
        assert_eq!(written, [(5, TABLE_ROWS_MAX), (5 + TABLE_ROWS_MAX, 3)]);
    }
}
