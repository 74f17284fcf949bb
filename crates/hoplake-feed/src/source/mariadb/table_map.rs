//! What the log says of a table when it has rows of it: the columns in their order, with names, types, signs, charsets and labels.
//!
//! ```text
//! id (6) flags (2) | length database 0 | length table 0 | count types | length metadata | may be null | optional fields
//! optional field:  kind (1) length value
//! ```
//! Numbers of columns and lengths are MySQL's packed integers. The rows that follow have no meaning without it, and no catalog of a
//! later time has the same: a label, a sign or a charset may be another by then.
//!
//! **Why not the driver's.** It knows neither MariaDB's compressed columns nor that its geometries have a charset, and a rows event of a
//! table with one of them cannot be read at all.

use hoplake::Name;

use super::Flavour;

/// Types of columns, as the log numbers them.
pub(super) mod types {
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const DOUBLE: u8 = 5;
    pub const OLD_TIMESTAMP: u8 = 7;
    pub const LONGLONG: u8 = 8;
    pub const INT24: u8 = 9;
    pub const DATE: u8 = 10;
    pub const OLD_TIME: u8 = 11;
    pub const OLD_DATETIME: u8 = 12;
    pub const YEAR: u8 = 13;
    pub const NEWDATE: u8 = 14;
    pub const VARCHAR: u8 = 15;
    pub const BIT: u8 = 16;
    pub const TIMESTAMP: u8 = 17;
    pub const DATETIME: u8 = 18;
    pub const TIME: u8 = 19;
    pub const BLOB_COMPRESSED: u8 = 140;
    pub const VARCHAR_COMPRESSED: u8 = 141;
    pub const VECTOR: u8 = 242;
    pub const JSON: u8 = 245;
    pub const DECIMAL: u8 = 246;
    pub const ENUM: u8 = 247;
    pub const SET: u8 = 248;
    pub const TINY_BLOB: u8 = 249;
    pub const BLOB: u8 = 252;
    pub const VAR_STRING: u8 = 253;
    pub const STRING: u8 = 254;
    pub const GEOMETRY: u8 = 255;
}

/// Kinds of optional fields.
mod fields {
    pub const SIGNS: u8 = 1;
    pub const DEFAULT_CHARSET: u8 = 2;
    pub const CHARSETS: u8 = 3;
    pub const NAMES: u8 = 4;
    pub const SET_LABELS: u8 = 5;
    pub const ENUM_LABELS: u8 = 6;
    pub const LABELS_DEFAULT_CHARSET: u8 = 10;
    pub const LABELS_CHARSETS: u8 = 11;
}

/// The columns of a table as the log describes them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TableMap {
    pub(super) id: u64,
    pub(super) database: String,
    pub(super) table: String,
    pub(super) columns: Vec<LoggedColumn>,
    /// All of it after the name of the table: of two equal ones all values have the same meaning.
    pub(super) described: Vec<u8>,
}

/// A column as the log describes it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct LoggedColumn {
    /// Empty if the log does not name columns.
    pub(super) name: Name,
    /// Its type; of an enum or a set that one.
    pub(super) kind: u8,
    /// What its type says more, such as a length; the first byte lower.
    pub(super) metadata: u16,
    pub(super) is_unsigned: bool,
    /// The number of its collation.
    pub(super) collation: Option<u64>,
    /// Of an enum or a set, in its charset.
    pub(super) labels: Vec<Vec<u8>>,
}

impl TableMap {
    /// Reads the data of an event; `None` if it is damaged.
    pub(super) fn read(data: &[u8], flavour: Flavour) -> Option<Self> {
        let mut bytes = Bytes(data);
        let id = bytes.number(6)?;
        bytes.number(2)?;
        let database = bytes.name()?;
        let table = bytes.name()?;
        let described = bytes.0.to_vec();
        let count = usize::try_from(bytes.packed()?).ok()?;
        let kinds = bytes.take(count)?;
        let length = usize::try_from(bytes.packed()?).ok()?;
        let mut metadata = Bytes(bytes.take(length)?);
        bytes.take(count.div_ceil(8))?;
        let mut columns = Vec::with_capacity(count);
        for kind in kinds {
            columns.push(LoggedColumn::read(*kind, &mut metadata)?);
        }
        while !bytes.0.is_empty() {
            let field = bytes.number(1)? as u8;
            let length = usize::try_from(bytes.packed()?).ok()?;
            describe(&mut columns, field, Bytes(bytes.take(length)?), flavour)?;
        }
        Some(Self { id, database, table, columns, described })
    }

    /// Whether the log names all columns.
    pub(super) fn has_names(&self) -> bool {
        self.columns.iter().all(|column| !column.name.is_empty())
    }
}

impl LoggedColumn {
    fn read(kind: u8, metadata: &mut Bytes<'_>) -> Option<Self> {
        use types::*;
        let length = match kind {
            FLOAT
            | DOUBLE
            | TIMESTAMP
            | DATETIME
            | TIME
            | TINY_BLOB..=BLOB
            | BLOB_COMPRESSED
            | GEOMETRY
            | JSON
            | VECTOR => 1,
            VARCHAR | VARCHAR_COMPRESSED | VAR_STRING | STRING | ENUM | SET | BIT | DECIMAL => 2,
            _ => 0,
        };
        let metadata = metadata.number(length)? as u16;
        // Enums, sets and long strings say so in the metadata of a string.
        let kind = match (kind, (metadata & 0xFF) as u8) {
            (STRING, real @ (ENUM | SET)) => real,
            (kind, _) => kind,
        };
        Some(Self { kind, metadata, ..Self::default() })
    }

    fn is_number(&self) -> bool {
        use types::*;
        matches!(self.kind, TINY | SHORT | INT24 | LONG | LONGLONG | YEAR | FLOAT | DOUBLE | DECIMAL)
    }

    /// Whether the log has its collation. MariaDB says of geometries that they are bytes.
    fn has_charset(&self, flavour: Flavour) -> bool {
        use types::*;
        match self.kind {
            GEOMETRY => flavour == Flavour::MariaDb,
            kind => {
                matches!(kind, VARCHAR | VARCHAR_COMPRESSED | VAR_STRING | STRING | TINY_BLOB..=BLOB | BLOB_COMPRESSED)
            }
        }
    }

    fn has_labels(&self) -> bool {
        matches!(self.kind, types::ENUM | types::SET)
    }

    /// The bytes of a string's longest value.
    pub(super) fn string_bytes(&self) -> usize {
        let first = usize::from(self.metadata & 0xFF);
        let second = usize::from(self.metadata >> 8);
        match self.kind {
            // Two bits of the length are in the first byte, inverted.
            types::STRING if first & 0x30 != 0x30 => second | ((first & 0x30) ^ 0x30) << 4,
            types::STRING => second,
            _ => usize::from(self.metadata),
        }
    }
}

/// Takes an optional field.
fn describe(columns: &mut [LoggedColumn], field: u8, mut bytes: Bytes<'_>, flavour: Flavour) -> Option<()> {
    let is_text = |column: &LoggedColumn| column.has_charset(flavour);
    match field {
        fields::SIGNS => {
            let bits = bytes.0;
            for (at, column) in columns.iter_mut().filter(|column| column.is_number()).enumerate() {
                column.is_unsigned = bits.get(at / 8)? & (0x80 >> (at % 8)) != 0;
            }
        }
        fields::NAMES => {
            for column in columns {
                let length = usize::try_from(bytes.packed()?).ok()?;
                column.name = Name::from(&*String::from_utf8_lossy(bytes.take(length)?));
            }
        }
        fields::DEFAULT_CHARSET => default_charset(columns, is_text, bytes)?,
        fields::LABELS_DEFAULT_CHARSET => default_charset(columns, LoggedColumn::has_labels, bytes)?,
        fields::CHARSETS => charsets(columns, is_text, bytes)?,
        fields::LABELS_CHARSETS => charsets(columns, LoggedColumn::has_labels, bytes)?,
        fields::ENUM_LABELS => labels(columns, types::ENUM, bytes)?,
        fields::SET_LABELS => labels(columns, types::SET, bytes)?,
        _ => {}
    }
    Some(())
}

/// The collation of most columns of a kind, then the others by their number among these.
fn default_charset(
    columns: &mut [LoggedColumn],
    is_meant: impl Fn(&LoggedColumn) -> bool,
    mut bytes: Bytes<'_>,
) -> Option<()> {
    let most = bytes.packed()?;
    let mut meant: Vec<_> = columns.iter_mut().filter(|column| is_meant(column)).collect();
    meant.iter_mut().for_each(|column| column.collation = Some(most));
    while !bytes.0.is_empty() {
        let at = usize::try_from(bytes.packed()?).ok()?;
        meant.get_mut(at)?.collation = Some(bytes.packed()?);
    }
    Some(())
}

/// The collation of each column of a kind.
fn charsets(
    columns: &mut [LoggedColumn],
    is_meant: impl Fn(&LoggedColumn) -> bool,
    mut bytes: Bytes<'_>,
) -> Option<()> {
    for column in columns.iter_mut().filter(|column| is_meant(column)) {
        column.collation = Some(bytes.packed()?);
    }
    Some(())
}

fn labels(columns: &mut [LoggedColumn], kind: u8, mut bytes: Bytes<'_>) -> Option<()> {
    for column in columns.iter_mut().filter(|column| column.kind == kind) {
        for _ in 0..bytes.packed()? {
            let length = usize::try_from(bytes.packed()?).ok()?;
            column.labels.push(bytes.take(length)?.to_vec());
        }
    }
    Some(())
}

/// Bytes that are read from the front.
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// A number of some bytes, the lowest first.
    pub(super) fn number(&mut self, bytes: usize) -> Option<u64> {
        Some(self.take(bytes)?.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn packed(&mut self) -> Option<u64> {
        match self.number(1)? {
            252 => self.number(2),
            253 => self.number(3),
            254 => self.number(8),
            251 | 255 => None,
            small => Some(small),
        }
    }

    /// A name with its length before it, and a zero after it.
    fn name(&mut self) -> Option<String> {
        let length = self.number(1)? as usize;
        let name = String::from_utf8_lossy(self.take(length)?).into_owned();
        self.take(1)?;
        Some(name)
    }
}
