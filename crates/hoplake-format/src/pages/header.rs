//! Headers of pages: decoded from bytes in memory, and checked against their chunk.

use parquet::{basic::Encoding, errors::ParquetError};

use super::{
    corrupt,
    thrift::{Thrift, kind},
};

/// The kind of a page, and its sizes.
#[derive(Debug, Clone)]
pub(super) struct PageHeader {
    pub(super) compressed: usize,
    pub(super) decompressed: usize,
    pub(super) kind: PageKind,
}

/// The kinds of pages.
#[derive(Debug, Clone)]
pub(super) enum PageKind {
    Data {
        values: u32,
        encoding: Encoding,
        definitions: Encoding,
        repetitions: Encoding,
    },
    DataV2(DataV2),
    Dictionary {
        values: u32,
        encoding: Encoding,
    },
    /// A kind without values.
    Other,
}

/// The header of a data page of the second version.
#[derive(Debug, Clone)]
pub(super) struct DataV2 {
    pub(super) values: u32,
    pub(super) nulls: u32,
    pub(super) rows: u32,
    pub(super) encoding: Encoding,
    pub(super) definition_bytes: u32,
    pub(super) repetition_bytes: u32,
    pub(super) is_compressed: bool,
}

/// The numbers of a structure, by the number of their field; the first fields only.
type Numbers = [Option<i64>; 9];

fn numbers(thrift: &mut Thrift<'_>) -> Result<Numbers, ParquetError> {
    let mut numbers = Numbers::default();
    thrift.fields(|thrift, number, of| {
        // Field numbers beyond those in use, and negative ones, are skipped.
        let field = usize::try_from(number).ok().and_then(|number| numbers.get_mut(number));
        match (of, field) {
            (kind::TRUE | kind::FALSE, Some(field)) => *field = Some((of == kind::TRUE).into()),
            (kind::I16 | kind::I32 | kind::I64, Some(field)) => *field = Some(thrift.integer()?),
            _ => thrift.skip(of, 0)?,
        }
        Ok(())
    })?;
    Ok(numbers)
}

fn unsigned<T: TryFrom<i64>>(numbers: &Numbers, field: usize, what: &str) -> Result<T, ParquetError> {
    let number = numbers[field].ok_or_else(|| corrupt(format!("a page lacks its {what}")))?;
    // Sizes and counts have 31 bits.
    let plausible = (0..=i64::from(i32::MAX)).contains(&number);
    let number = Some(number).filter(|_| plausible).and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| corrupt(format!("a page has an impossible {what}")))
}

fn encoding(numbers: &Numbers, field: usize) -> Result<Encoding, ParquetError> {
    Ok(match numbers[field] {
        Some(0) => Encoding::PLAIN,
        Some(2) => Encoding::PLAIN_DICTIONARY,
        Some(3) => Encoding::RLE,
        #[expect(deprecated, reason = "old files have levels in it")]
        Some(4) => Encoding::BIT_PACKED,
        Some(5) => Encoding::DELTA_BINARY_PACKED,
        Some(6) => Encoding::DELTA_LENGTH_BYTE_ARRAY,
        Some(7) => Encoding::DELTA_BYTE_ARRAY,
        Some(8) => Encoding::RLE_DICTIONARY,
        Some(9) => Encoding::BYTE_STREAM_SPLIT,
        other => return Err(corrupt(format!("a page has the unknown encoding {}", other.unwrap_or(-1)))),
    })
}

impl PageHeader {
    /// Reads a header from the first of these bytes; returns it with its length.
    pub(super) fn read(bytes: &[u8]) -> Result<(Self, usize), ParquetError> {
        const DATA: i64 = 5;
        const DICTIONARY: i64 = 7;
        const DATA_V2: i64 = 8;
        let mut thrift = Thrift::new(bytes);
        let mut own = Numbers::default();
        let mut data = None;
        let mut dictionary = None;
        let mut data_v2 = None;
        thrift.fields(|thrift, number, of| {
            match (number, of) {
                (DATA, kind::STRUCT) => data = Some(numbers(thrift)?),
                (DICTIONARY, kind::STRUCT) => dictionary = Some(numbers(thrift)?),
                (DATA_V2, kind::STRUCT) => data_v2 = Some(numbers(thrift)?),
                (1..=3, kind::I32) => own[number as usize] = Some(thrift.integer()?),
                _ => thrift.skip(of, 0)?,
            }
            Ok(())
        })?;
        let missing = || corrupt("a page has a header of another kind");
        let kind = match own[1] {
            Some(0) => page_of_data(&data.ok_or_else(missing)?)?,
            Some(2) => {
                let numbers = dictionary.ok_or_else(missing)?;
                PageKind::Dictionary {
                    values: unsigned(&numbers, 1, "count of values")?,
                    encoding: encoding(&numbers, 2)?,
                }
            }
            Some(3) => page_of_data_v2(&data_v2.ok_or_else(missing)?)?,
            Some(_) => PageKind::Other,
            None => return Err(missing()),
        };
        let decompressed = unsigned(&own, 2, "size")?;
        let compressed = unsigned(&own, 3, "size on disk")?;
        Ok((Self { compressed, decompressed, kind }, thrift.position()))
    }
}

fn page_of_data(numbers: &Numbers) -> Result<PageKind, ParquetError> {
    Ok(PageKind::Data {
        values: unsigned(numbers, 1, "count of values")?,
        encoding: encoding(numbers, 2)?,
        definitions: encoding(numbers, 3)?,
        repetitions: encoding(numbers, 4)?,
    })
}

fn page_of_data_v2(numbers: &Numbers) -> Result<PageKind, ParquetError> {
    Ok(PageKind::DataV2(DataV2 {
        values: unsigned(numbers, 1, "count of values")?,
        nulls: unsigned(numbers, 2, "count of nulls")?,
        rows: unsigned(numbers, 3, "count of rows")?,
        encoding: encoding(numbers, 4)?,
        definition_bytes: unsigned(numbers, 5, "length of definition levels")?,
        repetition_bytes: unsigned(numbers, 6, "length of repetition levels")?,
        // The format's default is true if the field is absent.
        is_compressed: numbers[7] != Some(0),
    }))
}
