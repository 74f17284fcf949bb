//! The structures of Parquet's metadata, and what their fields hold, as `parquet.thrift` defines them.
//!
//! Parquet's reader takes the type of a field from its definition, and skips by the type that the bytes name only what
//! it does not know. A field of another type than defined would be read in one way there and in another here, and the
//! checks here would not hold. So such a field is rejected. If the reader uses more fields of a structure, extend it
//! here.

use parquet::errors::ParquetError;

use super::{
    corrupt,
    thrift::{Thrift, kind},
};

/// The type of a field.
pub(super) enum Type {
    Bool,
    I8,
    I16,
    I32,
    I64,
    Double,
    /// Bytes or text.
    Binary,
    List(&'static Type),
    Structure(&'static Fields),
}

/// The fields of a structure or a union, by their number. Others are skipped.
pub(super) type Fields = [(i64, Type)];

/// `OffsetIndex`.
pub(super) const OFFSET_INDEX: &Fields = &[
    (1, Type::List(&Type::Structure(&[(1, Type::I64), (2, Type::I32), (3, Type::I64)]))),
    (2, Type::List(&Type::I64)),
];

/// `FileMetaData`.
pub(super) const FILE: &Fields = &[
    (1, Type::I32),
    (2, Type::List(&Type::Structure(SCHEMA_ELEMENT))),
    (3, Type::I64),
    (4, Type::List(&Type::Structure(ROW_GROUP))),
    (5, Type::List(&Type::Structure(KEY_VALUE))),
    (6, Type::Binary),
    (7, Type::List(&Type::Structure(&[(1, EMPTY), (2, EMPTY), (3, EMPTY)]))),
];

const EMPTY: Type = Type::Structure(&[]);
const KEY_VALUE: &Fields = &[(1, Type::Binary), (2, Type::Binary)];

const SCHEMA_ELEMENT: &Fields = &[
    (1, Type::I32),
    (2, Type::I32),
    (3, Type::I32),
    (4, Type::Binary),
    (5, Type::I32),
    (6, Type::I32),
    (7, Type::I32),
    (8, Type::I32),
    (9, Type::I32),
    (10, Type::Structure(LOGICAL_TYPE)),
];

const LOGICAL_TYPE: &Fields = &[
    (1, EMPTY),
    (2, EMPTY),
    (3, EMPTY),
    (4, EMPTY),
    (5, Type::Structure(&[(1, Type::I32), (2, Type::I32)])),
    (6, EMPTY),
    (7, Type::Structure(TIME)),
    (8, Type::Structure(TIME)),
    (10, Type::Structure(&[(1, Type::I8), (2, Type::Bool)])),
    (11, EMPTY),
    (12, EMPTY),
    (13, EMPTY),
    (14, EMPTY),
    (15, EMPTY),
    (16, Type::Structure(&[(1, Type::I8)])),
    (17, Type::Structure(&[(1, Type::Binary)])),
    (18, Type::Structure(&[(1, Type::Binary), (2, Type::I32)])),
    (19, EMPTY),
];
const TIME: &Fields = &[(1, Type::Bool), (2, Type::Structure(&[(1, EMPTY), (2, EMPTY), (3, EMPTY)]))];

const ROW_GROUP: &Fields = &[
    (1, Type::List(&Type::Structure(COLUMN_CHUNK))),
    (2, Type::I64),
    (3, Type::I64),
    (4, Type::List(&Type::Structure(&[(1, Type::I32), (2, Type::Bool), (3, Type::Bool)]))),
    (5, Type::I64),
    (7, Type::I16),
];

const COLUMN_CHUNK: &Fields = &[
    (1, Type::Binary),
    (2, Type::I64),
    (3, Type::Structure(COLUMN)),
    (4, Type::I64),
    (5, Type::I32),
    (6, Type::I64),
    (7, Type::I32),
];

const COLUMN: &Fields = &[
    (1, Type::I32),
    (2, Type::List(&Type::I32)),
    (4, Type::I32),
    (5, Type::I64),
    (6, Type::I64),
    (7, Type::I64),
    (9, Type::I64),
    (10, Type::I64),
    (11, Type::I64),
    (12, Type::Structure(STATISTICS)),
    (13, Type::List(&Type::Structure(&[(1, Type::I32), (2, Type::I32), (3, Type::I32)]))),
    (14, Type::I64),
    (15, Type::I32),
    (16, Type::Structure(&[(1, Type::I64), (2, Type::List(&Type::I64)), (3, Type::List(&Type::I64))])),
    (17, Type::Structure(&[(1, Type::Structure(BOUNDING_BOX)), (2, Type::List(&Type::I32))])),
];

const STATISTICS: &Fields = &[
    (1, Type::Binary),
    (2, Type::Binary),
    (3, Type::I64),
    (4, Type::I64),
    (5, Type::Binary),
    (6, Type::Binary),
    (7, Type::Bool),
    (8, Type::Bool),
    (9, Type::I64),
];

const BOUNDING_BOX: &Fields = &[
    (1, Type::Double),
    (2, Type::Double),
    (3, Type::Double),
    (4, Type::Double),
    (5, Type::Double),
    (6, Type::Double),
    (7, Type::Double),
    (8, Type::Double),
];

impl Type {
    fn kind(&self) -> u8 {
        match self {
            Self::Bool => kind::TRUE,
            Self::I8 => kind::I8,
            Self::I16 => kind::I16,
            Self::I32 => kind::I32,
            Self::I64 => kind::I64,
            Self::Double => kind::DOUBLE,
            Self::Binary => kind::BINARY,
            Self::List(_) => kind::LIST,
            Self::Structure(_) => kind::STRUCT,
        }
    }

    fn check(&self, thrift: &mut Thrift<'_>) -> Result<(), ParquetError> {
        match self {
            // A wider number on the wire would be truncated by a reader that casts.
            Self::I16 => thrift.number::<i16>().map(|_| ()),
            Self::I32 => thrift.number::<i32>().map(|_| ()),
            Self::List(element) => {
                let (count, of) = thrift.list()?;
                if count > 0 && of != element.kind() {
                    return Err(corrupt(format!("a list has elements of type {of} instead of {}", element.kind())));
                }
                (0..count).try_for_each(|_| element.check(thrift))
            }
            Self::Structure(fields) => check(thrift, fields),
            Self::Bool | Self::I8 | Self::I64 | Self::Double | Self::Binary => thrift.skip(self.kind(), 0),
        }
    }
}

/// Reads a structure with these fields, and checks that each has its type and occurs once.
pub(super) fn check(thrift: &mut Thrift<'_>, fields: &Fields) -> Result<(), ParquetError> {
    let mut seen = 0u32;
    thrift.fields(|thrift, number, of| {
        let Some(index) = fields.iter().position(|field| field.0 == number) else { return thrift.skip(of, 0) };
        let expected = &fields[index].1;
        // The compact protocol stores the value of a bool in its type.
        let is_expected = of == expected.kind() || (matches!(expected, Type::Bool) && of == kind::FALSE);
        if !is_expected {
            return Err(corrupt(format!("field {number} of a structure has type {of} instead of {}", expected.kind())));
        }
        if seen & (1 << index) != 0 {
            return Err(corrupt(format!("field {number} of a structure occurs twice")));
        }
        seen |= 1 << index;
        expected.check(thrift)
    })
}
