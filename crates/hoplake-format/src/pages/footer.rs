//! The footer of a Parquet file: read within the file's bounds, and its claims held against them.

use std::ops::Range;

use parquet::{
    errors::ParquetError,
    file::{
        metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader},
        reader::ChunkReader,
    },
};

use super::{
    corrupt,
    definition::{self, Fields},
    guarded,
    thrift::{Thrift, kind},
};

const MAGIC: &[u8] = b"PAR1";
/// The length of the footer, and the magic.
const END_BYTES: u64 = 8;
/// Footers of the widest files have tens of MiB.
const FOOTER_BYTES_MAX: u64 = 256 << 20;
/// The levels of a schema; a list of structures in a list takes six.
const SCHEMA_DEPTH_MAX: usize = 32;
/// The maximum memory of a footer, per byte of it, and for any size.
const DECODED_RATIO_MAX: usize = 64;
const DECODED_FREE_BYTES: usize = 16 << 20;

/// Reads the footer of a file, and checks it.
///
/// # Errors
/// The mistake, as the end of a sentence.
pub fn read_footer<R: ChunkReader>(file: &R) -> Result<ParquetMetaData, ParquetError> {
    let length = file.len();
    let too_short = || corrupt("it is shorter than a footer");
    let end_at = length.checked_sub(END_BYTES).ok_or_else(too_short)?;
    let end = file.get_bytes(end_at, END_BYTES as usize)?;
    if &end[4..] != MAGIC {
        return Err(corrupt("it does not end as Parquet files do"));
    }
    let footer_bytes = u64::from(u32::from_le_bytes([end[0], end[1], end[2], end[3]]));
    let footer_at = end_at.checked_sub(footer_bytes).ok_or_else(|| {
        corrupt(format!("its footer of {footer_bytes} bytes would be longer than the file, which has {length}"))
    })?;
    if footer_bytes > FOOTER_BYTES_MAX {
        return Err(corrupt(format!("its footer has {footer_bytes} bytes, more than {FOOTER_BYTES_MAX}")));
    }
    parse_footer(&file.get_bytes(footer_at, footer_bytes as usize)?, footer_at)
}

/// Decodes a footer and checks it. `data_end` is where the footer begins in its file: all pages must be before it.
///
/// # Errors
/// The mistake, as the end of a sentence.
pub fn parse_footer(bytes: &[u8], data_end: u64) -> Result<ParquetMetaData, ParquetError> {
    // Before Parquet's decoder, which allocates what lists claim.
    check_structure(bytes, definition::FILE)?;
    check_schema(bytes)?;
    let metadata = guarded(|| ParquetMetaDataReader::decode_metadata(bytes))?;
    let mut rows = 0u64;
    for (number, group) in metadata.row_groups().iter().enumerate() {
        let of_group = u64::try_from(group.num_rows())
            .map_err(|_| corrupt(format!("row group {number} has less than no rows")))?;
        rows =
            rows.checked_add(of_group).ok_or_else(|| corrupt("its row groups have more rows than can be counted"))?;
        if group.num_columns() != metadata.file_metadata().schema_descr().num_columns() {
            return Err(corrupt(format!("row group {number} has another number of columns than the schema")));
        }
        for column in group.columns() {
            check_chunk(column, of_group, data_end).map_err(|why| {
                corrupt(format!("column {} of row group {number} {why}", column.column_path().string()))
            })?;
        }
    }
    Ok(metadata)
}

/// Checks the index of the pages of a column: lists are within its bytes, and their decoded size is within the limits.
///
/// # Errors
/// The mistake, as the end of a sentence.
pub fn check_offset_index(bytes: &[u8]) -> Result<(), ParquetError> {
    check_structure(bytes, definition::OFFSET_INDEX)
}

/// Checks a structure: its fields have the types of its definition, lists, texts and nesting are within its bytes, and
/// their decoded size is within the limits.
fn check_structure(bytes: &[u8], fields: &Fields) -> Result<(), ParquetError> {
    let mut thrift = Thrift::new(bytes);
    definition::check(&mut thrift, fields).map_err(|error| corrupt(format!("its footer is damaged: {error}")))?;
    if thrift.decoded_bytes() > DECODED_FREE_BYTES + bytes.len().saturating_mul(DECODED_RATIO_MAX) {
        return Err(corrupt(format!("its footer of {} bytes has lists of empty things", bytes.len())));
    }
    Ok(())
}

/// Checks the groups of the schema before a decoder that calls itself for each of them, and reserves as much as they
/// claim: together they have as many children as there are elements after the root, and they are not nested too deep.
fn check_schema(bytes: &[u8]) -> Result<(), ParquetError> {
    const SCHEMA: i64 = 2;
    const CHILDREN: i64 = 5;
    let mut children: Vec<i32> = Vec::new();
    Thrift::new(bytes).fields(|thrift, number, of| {
        if (number, of) != (SCHEMA, kind::LIST) {
            return thrift.skip(of, 0);
        }
        let (count, of) = thrift.list()?;
        if of != kind::STRUCT {
            return Err(corrupt("its schema is not a list of columns"));
        }
        for _ in 0..count {
            let mut of_element = 0;
            thrift.fields(|thrift, number, of| match (number, of) {
                (CHILDREN, kind::I32) => thrift.number::<i32>().map(|count| of_element = count),
                _ => thrift.skip(of, 0),
            })?;
            children.push(of_element);
        }
        Ok(())
    })?;
    let claimed: i64 = children.iter().map(|count| i64::from(*count).max(0)).sum();
    if claimed >= children.len().max(1) as i64 {
        return Err(corrupt(format!(
            "the groups of its schema claim {claimed} children, and it has {}",
            children.len()
        )));
    }
    // The elements are in depth-first order: for each open group, the number of its remaining children.
    let mut open: Vec<i32> = Vec::new();
    for count in children {
        if let Some(left) = open.last_mut() {
            *left -= 1;
        }
        if count > 0 {
            open.push(count);
        }
        while open.last().is_some_and(|left| *left <= 0) {
            open.pop();
        }
        if open.len() > SCHEMA_DEPTH_MAX {
            return Err(corrupt(format!("its schema is nested more than {SCHEMA_DEPTH_MAX} levels deep")));
        }
    }
    Ok(())
}

/// Where a column chunk is in its file.
pub(super) fn chunk_range(column: &ColumnChunkMetaData) -> Option<Range<u64>> {
    let start = u64::try_from(column.dictionary_page_offset().unwrap_or(column.data_page_offset())).ok()?;
    Some(start..start.checked_add(u64::try_from(column.compressed_size()).ok()?)?)
}

fn check_chunk(column: &ColumnChunkMetaData, rows: u64, data_end: u64) -> Result<(), String> {
    let range = chunk_range(column).ok_or("is not within the file")?;
    if range.end > data_end {
        return Err(format!("ends at byte {}, after the last byte of data, {data_end}", range.end));
    }
    let values = u64::try_from(column.num_values()).map_err(|_| "has less than no values")?;
    // In lists, a row has any number of values.
    if column.column_descr().max_rep_level() == 0 && values != rows {
        return Err(format!("has {values} values in {rows} rows"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A footer without rows, of a schema with one column, whose root has this count of children.
    fn footer(children: &[u8]) -> Vec<u8> {
        let root = [&[0x48, 1, b's'], children, &[0]].concat();
        let column = [0x15, 2, 0x25, 0, 0x18, 1, b'c', 0];
        [&[0x15, 2, 0x19, 0x2c][..], &root, &column, &[0x16, 0, 0x19, 0x0c, 0]].concat()
    }

    fn rejected(bytes: &[u8]) -> String {
        parse_footer(bytes, 0).expect_err("the footer is forged").to_string()
    }

    #[test]
    fn groups_have_the_columns_they_claim() {
        assert_eq!(parse_footer(&footer(&[0x15, 2]), 0).unwrap().file_metadata().schema_descr().num_columns(), 1);
        for claimed in [&[0x15, 4][..], &[0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f]] {
            assert!(rejected(&footer(claimed)).contains("groups of its schema claim"));
        }
        // In a number of more than 32 bits, what the reader keeps of it.
        assert!(rejected(&footer(&[0x15, 0xfe, 0xff, 0xff, 0xff, 0x2f])).contains("more bits than its type"));
    }

    #[test]
    fn fields_that_a_reader_takes_for_others_are_rejected() {
        // The count of children as 64 bits, which are read all the same; and a second time.
        assert!(rejected(&footer(&[0x16, 0xfe, 0xff, 0xff, 0xff, 0x0f])).contains("has type 6 instead of 5"));
        assert!(rejected(&footer(&[0x15, 2, 0x05, 10, 2])).contains("field 5 of a structure occurs twice"));
        // Field 65541, of whose number a reader keeps 16 bits: 5.
        assert!(rejected(&footer(&[0x05, 0x8a, 0x80, 8, 0x15])).contains("more bits than its type"));
        // An unknown field: a list of booleans, which a reader could skip as if it had no bytes.
        let unknown = [&footer(&[0x15, 2])[..18], &[0xf9, 0x22, 1, 1, 0]].concat();
        assert!(rejected(&unknown).contains("a list holds truth values"));
        // Row groups as a text that holds a list of many.
        let mut groups = footer(&[0x15, 2]);
        groups.truncate(groups.len() - 3);
        groups.extend([0x18, 5, 0xfc, 0xff, 0xff, 0xff, 0x07, 0]);
        assert!(rejected(&groups).contains("field 4 of a structure has type 8 instead of 9"));
    }
}
