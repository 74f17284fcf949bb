//! Goes over Thrift's compact encoding, in which footers and page headers are written, without building anything.
//!
//! **Why not a library's.** Those build what they read, and a footer of a few bytes can announce lists of any length: what decoding
//! would take has to be known before.

use parquet::errors::ParquetError;

use super::corrupt;

/// Deeper nesting than any footer has.
const DEPTH_MAX: u32 = 24;

/// The memory of decoded list elements: of structures, and of all others.
const DECODED_STRUCTURE_BYTES: usize = 256;
const DECODED_VALUE_BYTES: usize = 32;

/// The types of the compact protocol.
pub(super) mod kind {
    pub(crate) const TRUE: u8 = 1;
    pub(crate) const FALSE: u8 = 2;
    pub(crate) const I8: u8 = 3;
    pub(crate) const I16: u8 = 4;
    pub(crate) const I32: u8 = 5;
    pub(crate) const I64: u8 = 6;
    pub(crate) const DOUBLE: u8 = 7;
    pub(crate) const BINARY: u8 = 8;
    pub(crate) const LIST: u8 = 9;
    pub(crate) const SET: u8 = 10;
    pub(crate) const MAP: u8 = 11;
    pub(crate) const STRUCT: u8 = 12;
    pub(crate) const UUID: u8 = 13;
}

/// A cursor in encoded bytes.
pub(super) struct Thrift<'a> {
    bytes: &'a [u8],
    at: usize,
    decoded_bytes: usize,
}

impl<'a> Thrift<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, decoded_bytes: 0 }
    }

    /// The number of bytes read.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// The approximate memory of the decoded elements of all lists.
    pub(super) fn decoded_bytes(&self) -> usize {
        self.decoded_bytes
    }

    fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    fn byte(&mut self) -> Result<u8, ParquetError> {
        let byte =
            self.bytes.get(self.at).copied().ok_or_else(|| ParquetError::EOF("a structure is cut off".into()))?;
        self.at += 1;
        Ok(byte)
    }

    fn advance(&mut self, bytes: u64) -> Result<(), ParquetError> {
        let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes <= self.left());
        self.at += bytes.ok_or_else(|| ParquetError::EOF("a structure is cut off".into()))?;
        Ok(())
    }

    fn varint(&mut self) -> Result<u64, ParquetError> {
        let mut value = 0u64;
        // Ten bytes at most: 64 bits, seven in each.
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(corrupt("a number has more than 64 bits"))
    }

    /// A number of up to 64 bits with its sign.
    pub(super) fn integer(&mut self) -> Result<i64, ParquetError> {
        let zigzag = self.varint()?;
        Ok((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
    }

    /// A number within the bits of its type: readers cut off the others.
    pub(super) fn number<N: TryFrom<i64>>(&mut self) -> Result<N, ParquetError> {
        N::try_from(self.integer()?).map_err(|_| corrupt("a number has more bits than its type"))
    }

    /// Reads the fields of a structure. `field` gets the number and the type of each, and reads its value.
    pub(super) fn fields(
        &mut self,
        mut field: impl FnMut(&mut Self, i64, u8) -> Result<(), ParquetError>,
    ) -> Result<(), ParquetError> {
        let mut number = 0i16;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(());
            }
            number = match head >> 4 {
                // The long form: a field number that is too far from the one before for four bits.
                0 => self.number::<i16>()?,
                delta => number.checked_add(delta.into()).ok_or_else(|| corrupt("a field has an impossible number"))?,
            };
            field(self, number.into(), head & 0x0f)?;
        }
    }

    /// Reads the head of a list: its length and element type. The remaining bytes suffice for that length.
    pub(super) fn list(&mut self) -> Result<(usize, u8), ParquetError> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.varint()?,
            count => count.into(),
        };
        // Each takes a byte or more.
        let count = usize::try_from(count).ok().filter(|count| *count <= self.left());
        let count = count.ok_or_else(|| corrupt("a list has more elements than bytes"))?;
        let of = head & 0x0f;
        let of_element = if of == kind::STRUCT { DECODED_STRUCTURE_BYTES } else { DECODED_VALUE_BYTES };
        self.decoded_bytes = self.decoded_bytes.saturating_add(count.saturating_mul(of_element));
        Ok((count, of))
    }

    /// Goes over a value.
    pub(super) fn skip(&mut self, of: u8, depth: u32) -> Result<(), ParquetError> {
        if depth > DEPTH_MAX {
            return Err(corrupt("its structures are nested too deeply"));
        }
        match of {
            kind::TRUE | kind::FALSE => Ok(()),
            kind::I8 => self.advance(1),
            kind::I16 | kind::I32 | kind::I64 => self.varint().map(|_| ()),
            kind::DOUBLE => self.advance(8),
            kind::BINARY => {
                let length = self.varint()?;
                self.advance(length)
            }
            kind::LIST | kind::SET => {
                let (count, of) = self.list()?;
                (0..count).try_for_each(|_| self.element(of, depth))
            }
            kind::MAP => {
                let count = self.varint()?;
                if count == 0 {
                    return Ok(());
                }
                // Before the loop: the entries of an honest map take a byte or more each.
                if count > self.left() as u64 {
                    return Err(corrupt("a map has more entries than bytes"));
                }
                let kinds = self.byte()?;
                (0..count).try_for_each(|_| {
                    self.element(kinds >> 4, depth)?;
                    self.element(kinds & 0x0f, depth)
                })
            }
            kind::STRUCT => self.fields(|thrift, _, of| thrift.skip(of, depth + 1)),
            kind::UUID => self.advance(16),
            other => Err(corrupt(format!("a value has the unknown type {other}"))),
        }
    }

    fn element(&mut self, of: u8, depth: u32) -> Result<(), ParquetError> {
        match of {
            // They have a byte each, and Parquet's reader goes over them as if they had none.
            kind::TRUE | kind::FALSE => Err(corrupt("a list holds truth values")),
            other => self.skip(other, depth + 1),
        }
    }
}
