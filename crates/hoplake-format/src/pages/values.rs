//! Encoded values of a page: the lengths and counts within it, before a decoder allocates by them.
//!
//! Most encodings are decoded as far as a batch of rows needs, and cannot claim more than there is. Three can: a
//! dictionary has its number of values; the delta encodings of texts begin with the lengths of all texts, with a count
//! of their own; and a text that shares a prefix with the one before may be large in few bytes.

use parquet::{
    basic::{Encoding, Type},
    errors::ParquetError,
};

use super::{PageLimits, corrupt};

/// Lengths of texts take four bytes each in memory and may take far less in the page. Any page may have this many,
const LENGTHS_FREE: usize = 1 << 20;
/// and this many more for each of its bytes. Texts of one length take a 21st of a byte for it.
const LENGTHS_OF_BYTE: usize = 64;
/// Writers use 128; larger ones would claim many values in few bytes.
const DELTA_BLOCK_MAX: u64 = 1 << 16;

/// Checks the values of a data page, at most `values` of them.
pub(super) fn check_values(
    encoding: Encoding,
    data: &[u8],
    values: u32,
    limits: &PageLimits,
) -> Result<(), ParquetError> {
    let values = values as usize;
    match encoding {
        Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY => {
            // The first byte is the width of the indices. Their dictionary is checked when it is read.
            if data.first().is_some_and(|bits| *bits > 32) {
                return Err(corrupt("the indices of a page have more than 32 bits"));
            }
            Ok(())
        }
        Encoding::DELTA_BINARY_PACKED if !data.is_empty() => Deltas::begin(data)?.check_count(values, usize::MAX),
        Encoding::DELTA_LENGTH_BYTE_ARRAY if !data.is_empty() => {
            let (lengths, rest) = lengths(data, values)?;
            check_sum(&lengths, rest.len())
        }
        Encoding::DELTA_BYTE_ARRAY if !data.is_empty() => check_shared(data, values, limits),
        _ => Ok(()),
    }
}

/// Checks texts that share beginnings: what they are in full is within the limits.
fn check_shared(data: &[u8], values: usize, limits: &PageLimits) -> Result<(), ParquetError> {
    let (shared, rest) = lengths(data, values)?;
    let (own, texts) = lengths(rest, values)?;
    check_sum(&own, texts.len())?;
    if shared.len() != own.len() {
        return Err(corrupt("a page has another number of beginnings than of texts"));
    }
    let mut before = 0usize;
    let mut decoded = 0usize;
    for (shared, own) in shared.iter().zip(&own) {
        let shared = *shared as usize;
        let own = *own as usize;
        if shared > before {
            return Err(corrupt("a text shares more of the one before than that has"));
        }
        // Both have 31 bits, so the sum fits.
        before = shared + own;
        decoded = decoded.saturating_add(before);
    }
    if limits.allows(data.len(), decoded) {
        return Ok(());
    }
    Err(corrupt(format!(
        "the texts of a page of {} bytes would take {decoded} bytes; raise page_bytes_max",
        data.len()
    )))
}

fn check_sum(lengths: &[u32], bytes: usize) -> Result<(), ParquetError> {
    let sum: usize = lengths.iter().map(|length| *length as usize).sum();
    if sum > bytes { Err(corrupt(format!("a page has {bytes} bytes for texts of {sum}"))) } else { Ok(()) }
}

/// Decodes lengths, and returns them with what follows.
fn lengths(data: &[u8], values: usize) -> Result<(Vec<u32>, &[u8]), ParquetError> {
    let deltas = Deltas::begin(data)?;
    deltas.check_count(values, LENGTHS_FREE.saturating_add(data.len().saturating_mul(LENGTHS_OF_BYTE)))?;
    let mut lengths = Vec::new();
    let rest = deltas.decode(|length| {
        lengths.push(u32::try_from(length).ok().filter(|it| *it <= i32::MAX as u32)?);
        Some(())
    })?;
    Ok((lengths, rest))
}

/// The values of a dictionary: how many there can be, and the length of the longest if they are texts.
pub(super) fn check_dictionary(of: Type, type_length: i32, values: u32, data: &[u8]) -> Result<usize, ParquetError> {
    let width = match of {
        Type::INT32 | Type::FLOAT => 4,
        Type::INT64 | Type::DOUBLE => 8,
        Type::INT96 => 12,
        Type::FIXED_LEN_BYTE_ARRAY => usize::try_from(type_length).unwrap_or(0).max(1),
        Type::BYTE_ARRAY => return longest_text(values, data),
        Type::BOOLEAN => return Err(corrupt("a column of bool has a dictionary")),
    };
    match (values as usize).checked_mul(width).filter(|bytes| *bytes <= data.len()) {
        Some(_) => Ok(width),
        None => Err(corrupt(format!("a dictionary of {} bytes cannot hold {values} values", data.len()))),
    }
}

fn longest_text(values: u32, data: &[u8]) -> Result<usize, ParquetError> {
    let mut left = data;
    let mut longest = 0;
    for _ in 0..values {
        let short = || corrupt(format!("a dictionary of {} bytes cannot hold {values} values", data.len()));
        let (length, rest) = left.split_first_chunk::<4>().ok_or_else(short)?;
        let length = u32::from_le_bytes(*length) as usize;
        left = rest.get(length..).ok_or_else(short)?;
        longest = longest.max(length);
    }
    Ok(longest)
}

/// Integers in Parquet's delta encoding: blocks of miniblocks of differences, packed to the bits they need.
struct Deltas<'a> {
    data: &'a [u8],
    at: usize,
    block_values: u64,
    miniblocks: u64,
    count: u64,
}

impl<'a> Deltas<'a> {
    fn begin(data: &'a [u8]) -> Result<Self, ParquetError> {
        let mut deltas = Self { data, at: 0, block_values: 0, miniblocks: 0, count: 0 };
        deltas.block_values = deltas.varint()?;
        deltas.miniblocks = deltas.varint()?;
        deltas.count = deltas.varint()?;
        // The format's rules: blocks are multiples of 128 and miniblocks of 32. Zero is excluded before the division.
        let plausible = (1..=DELTA_BLOCK_MAX).contains(&deltas.block_values)
            && deltas.block_values.is_multiple_of(128)
            && (1..=deltas.block_values / 32).contains(&deltas.miniblocks)
            && (deltas.block_values / deltas.miniblocks).is_multiple_of(32)
            && deltas.block_values.is_multiple_of(deltas.miniblocks);
        if plausible { Ok(deltas) } else { Err(corrupt("a page has differences in impossible blocks")) }
    }

    fn check_count(&self, values: usize, bound: usize) -> Result<(), ParquetError> {
        if self.count <= values.min(bound) as u64 {
            return Ok(());
        }
        Err(corrupt(format!("a page of {values} values claims {}", self.count)))
    }

    fn varint(&mut self) -> Result<u64, ParquetError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.data.get(self.at).ok_or_else(cut_off)?;
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(corrupt("a number has more than 64 bits"))
    }

    fn zigzag(&mut self) -> Result<i64, ParquetError> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Gives all values to `take`, which rejects impossible ones; returns the rest of the bytes.
    fn decode(mut self, mut take: impl FnMut(i64) -> Option<()>) -> Result<&'a [u8], ParquetError> {
        let mut value = self.zigzag()?;
        if self.count == 0 {
            return Ok(&self.data[self.at..]);
        }
        let impossible = || corrupt("a text has an impossible length");
        take(value).ok_or_else(impossible)?;
        let mut left = self.count - 1;
        let of_miniblock = self.block_values / self.miniblocks;
        while left > 0 {
            let least = self.zigzag()?;
            let widths_end = self.at + self.miniblocks as usize;
            let widths = self.data.get(self.at..widths_end).ok_or_else(cut_off)?;
            self.at = widths_end;
            for &bits in widths {
                // Miniblocks after the last value have a width and no bytes.
                if left == 0 {
                    break;
                }
                if bits > 64 {
                    return Err(corrupt("a difference has more than 64 bits"));
                }
                let bytes = of_miniblock as usize / 8 * usize::from(bits);
                let packed = self.data.get(self.at..self.at + bytes).ok_or_else(cut_off)?;
                for index in 0..left.min(of_miniblock) as usize {
                    // Differences wrap around, as the encoding defines.
                    value = value.wrapping_add(least).wrapping_add(unpack(packed, index, bits.into()) as i64);
                    take(value).ok_or_else(impossible)?;
                }
                left -= left.min(of_miniblock);
                self.at += bytes;
            }
        }
        Ok(&self.data[self.at..])
    }
}

fn cut_off() -> ParquetError {
    corrupt("a page ends within its lengths")
}

/// The number at this index of packed numbers of `bits` each.
fn unpack(packed: &[u8], index: usize, bits: usize) -> u64 {
    let from = index * bits;
    let mut value = 0u128;
    // 64 bits that begin within a byte span nine.
    for (at, byte) in packed.iter().skip(from / 8).take(9).enumerate() {
        value |= u128::from(*byte) << (8 * at);
    }
    let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
    (value >> (from % 8)) as u64 & mask
}
