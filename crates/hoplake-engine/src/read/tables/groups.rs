//! The row groups of a table, as a scan sees them.

use std::ops::Range;

use arrow_array::Array;
use arrow_schema::{DataType, Field};
use hoplake_format::pages::guarded;
use parquet::{arrow::arrow_reader::statistics::StatisticsConverter, basic::Type, file::metadata::ColumnChunkMetaData};

use super::Layout;
use crate::{EngineError, read::condition::Bounds};

/// The rows of a row group, within the table.
pub(crate) struct Group {
    pub(crate) rows: Range<u64>,
    /// Bytes of the columns asked for, decoded.
    pub(crate) bytes: u64,
}

impl Group {
    /// What a row takes, on average.
    pub(crate) fn row_bytes(&self) -> u64 {
        self.bytes / (self.rows.end - self.rows.start).max(1)
    }
}

/// What a column takes when it is decoded, by estimate. Encoded, numbers that ascend and texts that begin alike take almost nothing.
fn decoded_bytes(column: &ColumnChunkMetaData) -> u64 {
    let count = |number: i64| u64::try_from(number).unwrap_or(0);
    let of_texts = column.unencoded_byte_array_data_bytes().map_or(0, count);
    // Eight bytes are a number, or an offset and a bit.
    count(column.uncompressed_size()).max(of_texts).saturating_add(count(column.num_values()).saturating_mul(8))
}

impl Layout {
    /// All row groups, in order.
    pub(crate) fn groups(&self, columns: &[String]) -> Vec<Group> {
        let bounds = self.group_starts.windows(2);
        let group = |(bounds, group): (&[u64], &parquet::file::metadata::RowGroupMetaData)| {
            let is_wanted = |path: &[String]| path.first().is_some_and(|root| columns.contains(root));
            let wanted = group.columns().iter().filter(|column| is_wanted(column.column_path().parts()));
            let bytes = wanted.map(decoded_bytes).fold(0, u64::saturating_add);
            Group { rows: bounds[0]..bounds[1], bytes }
        };
        bounds.zip(self.metadata.row_groups()).map(group).collect()
    }

    /// What is known of a column in each row group; `None` if that is nothing.
    ///
    /// # Errors
    /// [`EngineError::Table`] if the statistics are not those of the column's type.
    pub(crate) fn bounds(&self, field: &Field, location: &str) -> Result<Option<Bounds>, EngineError> {
        let groups = self.metadata.row_groups();
        let rows = groups.iter().map(|group| u64::try_from(group.num_rows()).unwrap_or(0)).collect();
        let parquet_schema = self.metadata.file_metadata().schema_descr();
        let mine = parquet_schema.columns().iter().position(|column| column.path().parts()[0] == *field.name());
        let Some(mine) = mine else { return Ok(Some(Bounds::absent(rows))) };
        let stored = parquet_schema.column(mine);
        // Older tables may have a column of another type, whose bounds say nothing; a list has the bounds of its items. Integers and
        // timestamps have the same physical type. A column of the other one is null in all rows that are not deleted or replaced, so it does
        // no harm if its bounds exclude a row group.
        let expected = match field.data_type() {
            DataType::Boolean => Type::BOOLEAN,
            DataType::Float64 => Type::DOUBLE,
            DataType::Date32 => Type::INT32,
            DataType::Int64 | DataType::Timestamp(..) => Type::INT64,
            DataType::Utf8 => Type::BYTE_ARRAY,
            _ => return Ok(None),
        };
        if stored.physical_type() != expected || stored.path().parts().len() > 1 {
            return Ok(None);
        }
        let read = || {
            // By its position: by name it would be sought at that of the field in a schema of all columns, which is not at hand.
            let converter = StatisticsConverter::from_column_index(mine, field, parquet_schema)?
                .with_missing_null_counts_as_zero(false);
            let nulls = converter.row_group_null_counts(groups)?;
            let values = [converter.row_group_mins(groups)?, converter.row_group_maxes(groups)?];
            let nulls = nulls.iter().collect();
            Ok(Bounds { rows, nulls, values: Some(values).filter(|[least, _]| least.null_count() < least.len()) })
        };
        // Forged statistics may make the converter panic.
        guarded(read).map(Some).map_err(EngineError::table(location))
    }
}
