//! Values of rows in the log, by what the log says of their columns.
//!
//! | type | in a row |
//! | --- | --- |
//! | integers, `float`, `double`, `enum`, `set` | the lowest byte first; an enum is the number of its label, a set a mask |
//! | `decimal` | nine digits in four bytes, the highest first |
//! | `char`, `varchar`, `text`, `binary`, … | a length, and bytes in the charset of the column; of `binary(n)` without zeros at the end |
//! | the same `COMPRESSED` | a byte that says how, the length before, and deflated bytes |
//! | `time`, `datetime`, `timestamp` | the highest byte first; before MariaDB 10.1 the lowest |
//!
//! What the log does not say is whether sixteen bytes are a `uuid`, an `inet6` or a `binary(16)`. The catalog does ([`Hint`]).

use std::io::Read;

use hoplake::{PropertyType, ScalarType, Value as Property};
use mysql_common::{binlog::jsonb, io::ParseBuf};

use super::{
    charsets::Charset,
    table_map::{Bytes, LoggedColumn, types},
    values::{self, bad, text},
};
use crate::{Cell, Row};

/// What bytes of a fixed length are, which the log does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hint {
    Binary,
    Uuid,
    Inet4,
    Inet6,
    /// The table no longer has the column.
    Unknown,
}

/// How the values of a column are read from the log.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Logged {
    extent: Extent,
    kind: Kind,
}

/// How many bytes a value takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    Fixed(usize),
    /// A length of so many bytes is before it.
    Counted(usize),
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Integer {
        is_unsigned: bool,
    },
    Float,
    Double,
    Decimal {
        precision: usize,
        scale: usize,
    },
    Text(Charset),
    Bytes,
    FixedBytes(usize, Hint),
    Bits,
    Year,
    Date,
    /// Digits of its fraction.
    Time(u8),
    DateTime(u8),
    Timestamp(u8),
    OldTime,
    OldDateTime,
    OldTimestamp,
    /// A charset, and labels or why they cannot be read.
    Enum(Result<Vec<String>, String>),
    Set(Result<Vec<String>, String>),
    Json,
    /// What it is, and how many bytes it may be.
    Compressed(Box<Kind>, u64),
    Unsupported,
}

impl Logged {
    /// Of a column in its charset, whose values may have `bytes_max` when they are inflated; the error is a type that takes an unknown
    /// number of bytes.
    pub(super) fn new(column: &LoggedColumn, charset: &Charset, hint: Hint, bytes_max: u64) -> Result<Self, u8> {
        use types::*;
        let first = (column.metadata & 0xFF) as u8;
        let second = (column.metadata >> 8) as u8;
        let fraction_bytes = usize::from(first.min(6).div_ceil(2));
        let integer = Kind::Integer { is_unsigned: column.is_unsigned };
        let text = || if charset.is_binary() { Kind::Bytes } else { Kind::Text(charset.clone()) };
        let labels = || column.labels.iter().map(|label| charset.decode(label)).collect();
        let of_string = Extent::Counted(if column.string_bytes() > 255 { 2 } else { 1 });
        let of_blob = Extent::Counted(usize::from(first.clamp(1, 4)));
        let (extent, kind) = match column.kind {
            TINY => (Extent::Fixed(1), integer),
            SHORT => (Extent::Fixed(2), integer),
            INT24 => (Extent::Fixed(3), integer),
            LONG => (Extent::Fixed(4), integer),
            LONGLONG => (Extent::Fixed(8), integer),
            FLOAT => (Extent::Fixed(4), Kind::Float),
            DOUBLE => (Extent::Fixed(8), Kind::Double),
            YEAR => (Extent::Fixed(1), Kind::Year),
            DATE | NEWDATE => (Extent::Fixed(3), Kind::Date),
            OLD_TIME => (Extent::Fixed(3), Kind::OldTime),
            OLD_DATETIME => (Extent::Fixed(8), Kind::OldDateTime),
            OLD_TIMESTAMP => (Extent::Fixed(4), Kind::OldTimestamp),
            TIME => (Extent::Fixed(3 + fraction_bytes), Kind::Time(first)),
            DATETIME => (Extent::Fixed(5 + fraction_bytes), Kind::DateTime(first)),
            TIMESTAMP => (Extent::Fixed(4 + fraction_bytes), Kind::Timestamp(first)),
            BIT => (Extent::Fixed(usize::from(second) + usize::from(first > 0)), Kind::Bits),
            DECIMAL => {
                let precision = usize::from(first);
                let scale = usize::from(second);
                if scale > precision {
                    return Err(DECIMAL);
                }
                (Extent::Fixed(decimal_bytes(precision, scale)), Kind::Decimal { precision, scale })
            }
            ENUM => (Extent::Fixed(usize::from(second)), Kind::Enum(labels())),
            SET => (Extent::Fixed(usize::from(second)), Kind::Set(labels())),
            STRING if charset.is_binary() => (of_string, Kind::FixedBytes(column.string_bytes(), hint)),
            STRING | VARCHAR | VAR_STRING => (of_string, text()),
            VARCHAR_COMPRESSED => (of_string, Kind::Compressed(Box::new(text()), bytes_max)),
            TINY_BLOB..=BLOB => (of_blob, text()),
            BLOB_COMPRESSED => (of_blob, Kind::Compressed(Box::new(text()), bytes_max)),
            JSON => (of_blob, Kind::Json),
            GEOMETRY | VECTOR => (of_blob, Kind::Unsupported),
            other => return Err(other),
        };
        Ok(Self { extent, kind })
    }

    /// The type of property that holds its values.
    pub(super) fn property(&self) -> Option<PropertyType> {
        let scalar = match &self.kind {
            Kind::Integer { .. } | Kind::Bits | Kind::Year => ScalarType::Int64,
            Kind::Float | Kind::Double => ScalarType::Float64,
            Kind::Date => ScalarType::Date,
            Kind::DateTime(_) | Kind::Timestamp(_) | Kind::OldDateTime | Kind::OldTimestamp => ScalarType::Timestamp,
            Kind::Set(_) => return Some(PropertyType::List(ScalarType::String)),
            Kind::Unsupported => return None,
            _ => ScalarType::String,
        };
        Some(PropertyType::Scalar(scalar))
    }

    /// Takes the value that is next in a row; `None` if the row is too short.
    pub(super) fn take(&self, row: &mut Bytes<'_>) -> Option<Cell> {
        let length = match self.extent {
            Extent::Fixed(length) => length,
            Extent::Counted(bytes) => usize::try_from(row.number(bytes)?).ok()?,
        };
        row.take(length).map(|bytes| self.kind.cell(bytes))
    }
}

/// Takes the row that is next; `None` if there is too little of it, or if it has no columns, so that it would have no end.
pub(super) fn row(columns: &[Logged], bytes: &mut Bytes<'_>) -> Option<Row> {
    if columns.is_empty() {
        return None;
    }
    let nulls = bytes.take(columns.len().div_ceil(8))?;
    let cell = |(at, column): (usize, &Logged)| match nulls[at / 8] & (1 << (at % 8)) != 0 {
        true => Some(Cell::Value(Property::Null)),
        false => column.take(bytes),
    };
    columns.iter().enumerate().map(cell).collect()
}

impl Kind {
    fn cell(&self, bytes: &[u8]) -> Cell {
        match self {
            Self::Integer { is_unsigned } => integer(bytes, *is_unsigned),
            Self::Float => match bytes.try_into() {
                Ok(four) => Cell::Value(Property::Float64(f64::from(f32::from_le_bytes(four)))),
                Err(_) => damaged(),
            },
            Self::Double => match bytes.try_into() {
                Ok(eight) => Cell::Value(Property::Float64(f64::from_le_bytes(eight))),
                Err(_) => damaged(),
            },
            Self::Decimal { precision, scale } => match decimal(bytes, *precision - *scale, *scale) {
                Some(digits) => values::decimal_of(&digits, *scale),
                None => damaged(),
            },
            Self::Text(charset) => match charset.decode(bytes) {
                Ok(decoded) => text(decoded),
                Err(why) => bad(why),
            },
            Self::Bytes => text(hex::encode(bytes)),
            Self::FixedBytes(length, hint) => fixed(bytes, *length, *hint),
            Self::Bits => values::bits(bytes),
            Self::Year => match low(bytes) {
                // 0 for 0000, or the years since 1900.
                0 => values::year(0),
                years => values::year(1900 + years as i64),
            },
            Self::Date => {
                let days = low(bytes);
                values::date((days >> 9) as u16, (days >> 5 & 15) as u8, (days & 31) as u8)
            }
            Self::Time(digits) => time(bytes, *digits),
            Self::DateTime(digits) => date_time(bytes, *digits),
            Self::Timestamp(digits) => {
                let (seconds, fraction) = bytes.split_at_checked(4).unwrap_or((bytes, &[]));
                values::moment(high(seconds) as i64, micros(high(fraction), *digits))
            }
            Self::OldTime => {
                let digits = low(bytes) as i64;
                // Of 24 bits.
                let signed = digits << 40 >> 40;
                let time = signed.unsigned_abs();
                values::time(signed < 0, time / 10_000, time / 100 % 100, time % 100, 0)
            }
            Self::OldDateTime => {
                let digits = low(bytes);
                let date = digits / 1_000_000;
                let time = digits % 1_000_000;
                let date = ((date / 10_000) as u16, (date / 100 % 100) as u8, (date % 100) as u8);
                values::date_time(date, ((time / 10_000) as u8, (time / 100 % 100) as u8, (time % 100) as u8), 0)
            }
            Self::OldTimestamp => values::moment(low(bytes) as i64, 0),
            Self::Enum(labels) => match labels {
                Ok(labels) => label(labels, low(bytes)),
                Err(why) => bad(why.clone()),
            },
            Self::Set(labels) => match labels {
                Ok(labels) => set(labels, low(bytes)),
                Err(why) => bad(why.clone()),
            },
            Self::Json => json(bytes),
            Self::Compressed(kind, bytes_max) => match inflated(bytes, *bytes_max) {
                Ok(bytes) => kind.cell(&bytes),
                Err(why) => bad(why),
            },
            Self::Unsupported => bad("its type is not supported".into()),
        }
    }
}

/// A number whose lowest byte is first.
fn low(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// A number whose highest byte is first.
fn high(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn damaged() -> Cell {
    bad("its bytes in the log are damaged".into())
}

fn integer(bytes: &[u8], is_unsigned: bool) -> Cell {
    let number = low(bytes);
    let shift = 64 - 8 * bytes.len().clamp(1, 8) as u32;
    match is_unsigned {
        true => values::unsigned(number),
        false => Cell::Value(Property::Int64((number << shift) as i64 >> shift)),
    }
}

/// Microseconds of a fraction that is stored with as many digits as are an even number.
fn micros(fraction: u64, digits: u8) -> u32 {
    let unit = match digits {
        1 | 2 => 10_000,
        3 | 4 => 100,
        _ => 1,
    };
    (fraction * unit) as u32
}

/// Hours, minutes and seconds in ten, six and six bits, then the fraction; the whole is a number above a middle that is zero.
fn time(bytes: &[u8], digits: u8) -> Cell {
    let fraction_bits = 8 * bytes.len().saturating_sub(3) as u32;
    let number = high(bytes) as i64 - (0x80_0000_i64 << fraction_bits);
    let size = number.unsigned_abs();
    let whole = size >> fraction_bits;
    let fraction = size & ((1 << fraction_bits) - 1);
    values::time(number < 0, whole >> 12 & 1023, whole >> 6 & 63, whole & 63, micros(fraction, digits))
}

/// Thirteen months a year, then 5, 5, 6 and 6 bits, then the fraction.
fn date_time(bytes: &[u8], digits: u8) -> Cell {
    let (whole, fraction) = bytes.split_at_checked(5).unwrap_or((bytes, &[]));
    let Some(whole) = high(whole).checked_sub(0x80_0000_0000) else { return Cell::Value(Property::Null) };
    let date = whole >> 17;
    let time = whole & 0x1_FFFF;
    let months = date >> 5;
    let date = ((months / 13) as u16, (months % 13) as u8, (date & 31) as u8);
    let time = ((time >> 12) as u8, (time >> 6 & 63) as u8, (time & 63) as u8);
    values::date_time(date, time, micros(high(fraction), digits))
}

/// The bytes of fewer than nine digits; nine take four.
const BYTES_OF_DIGITS: [usize; 9] = [0, 1, 1, 2, 2, 3, 3, 4, 4];

fn decimal_bytes(precision: usize, scale: usize) -> usize {
    let bytes = |digits: usize| digits / 9 * 4 + BYTES_OF_DIGITS[digits % 9];
    bytes(precision - scale) + bytes(scale)
}

/// The digits of a number with so many before and after the point. Groups of nine begin at the point, to both sides; the first bit is
/// inverted, and of a negative number all are.
fn decimal(bytes: &[u8], whole: usize, fraction: usize) -> Option<String> {
    let is_negative = bytes.first()? & 0x80 == 0;
    let mask = if is_negative { 0xFF } else { 0 };
    let mut plain: Vec<_> = bytes.iter().map(|byte| byte ^ mask).collect();
    plain[0] ^= 0x80;
    let nines = |digits: usize| std::iter::repeat_n(9, digits / 9);
    let groups = std::iter::once(whole % 9).chain(nines(whole)).map(|digits| (digits, false));
    let of_fraction = nines(fraction).chain([fraction % 9]).map(|digits| (digits, true));
    let mut text = [if is_negative { "-" } else { "" }.to_owned(), String::new()];
    let mut rest = Bytes(&plain);
    for (digits, is_fraction) in groups.chain(of_fraction).filter(|(digits, _)| *digits > 0) {
        let length = BYTES_OF_DIGITS.get(digits).copied().unwrap_or(4);
        let number = high(rest.take(length)?);
        if number >= 10_u64.pow(digits as u32) {
            return None;
        }
        text[usize::from(is_fraction)].push_str(&format!("{number:0digits$}"));
    }
    Some(text.join("."))
}

fn label(labels: &[String], number: u64) -> Cell {
    match number.checked_sub(1) {
        // What was not one of the labels when it was written.
        None => text(String::new()),
        Some(at) => usize::try_from(at)
            .ok()
            .and_then(|at| labels.get(at))
            .map_or_else(|| bad(format!("the enum has no label {number}")), |label| text(label.clone())),
    }
}

fn set(labels: &[String], mask: u64) -> Cell {
    let chosen = labels.iter().take(64).enumerate().filter(|(at, _)| mask & (1 << at) != 0);
    Cell::Value(Property::List(chosen.map(|(_, label)| Property::String(label.clone())).collect()))
}

/// Bytes of a column that always has so many: the log leaves zeros at the end out.
fn fixed(bytes: &[u8], length: usize, hint: Hint) -> Cell {
    let mut all = bytes.to_vec();
    all.resize(length, 0);
    match hint {
        Hint::Uuid => values::uuid(&all),
        Hint::Inet4 => values::inet4(&all),
        Hint::Inet6 => values::inet6(&all),
        Hint::Binary => text(hex::encode(&all)),
        // Only of these lengths may they be anything else.
        Hint::Unknown if length != 4 && length != 16 => text(hex::encode(&all)),
        Hint::Unknown => bad(format!(
            "the log does not say whether its {length} bytes are binary, a uuid or an address, and the table no longer has it"
        )),
    }
}

/// MySQL's own encoding.
fn json(bytes: &[u8]) -> Cell {
    let parsed = ParseBuf(bytes).parse::<jsonb::Value<'_>>(());
    match parsed
        .map_err(|error| error.to_string())
        .and_then(|json| serde_json::Value::try_from(json).map_err(|error| error.to_string()))
    {
        Ok(json) => text(json.to_string()),
        Err(error) => bad(format!("its JSON cannot be read: {error}")),
    }
}

/// The bytes of a `COMPRESSED` column: a byte of how (0: as they are), the length of what they were, and a stream of zlib's.
fn inflated(bytes: &[u8], bytes_max: u64) -> Result<Vec<u8>, String> {
    let damaged = || "its compressed bytes in the log are damaged".to_owned();
    let Some((how, rest)) = bytes.split_first() else { return Ok(Vec::new()) };
    if *how == 0 {
        return Ok(rest.to_vec());
    }
    if how & 0xF0 != 0x80 {
        return Err(format!("it is compressed in an unknown way ({how:#04x})"));
    }
    let (length, stream) = rest.split_at_checked(usize::from(how & 7)).ok_or_else(damaged)?;
    let length = high(length);
    if length > bytes_max {
        return Err(format!("it has {length} bytes, more than stream.transaction_bytes_max ({bytes_max})"));
    }
    let mut inflated = Vec::new();
    // One byte more than there may be shows that there are more.
    let read = match how & 8 {
        0 => flate2::read::ZlibDecoder::new(stream).take(length + 1).read_to_end(&mut inflated),
        _ => flate2::read::DeflateDecoder::new(stream).take(length + 1).read_to_end(&mut inflated),
    };
    match read {
        Ok(bytes) if bytes as u64 == length => Ok(inflated),
        _ => Err(damaged()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::mariadb::{Flavour, table_map::TableMap};

    /// A table map and the row of an insertion, as MariaDB 10.11 wrote them.
    const MAP: &str = "360000000000010001740001730010030dfefe8dfefe10f6041312110afffc14fe10fe055902f701f80101010a03040203060404feff0101e0\
                       03053f09013f2e070101042402696401790175016301760165017301620164016601740264740274730264610167016a0b02082d0505020178\
                       017906050201610178080100";
    const ROW: &str = "000007000000640e123e4567e89b12d3a4564266554401620f0081c8789c4b4c4a1c161000e98f4c2d020301018000000c01f40000c03f7fef7cd3\
                       99a54431051a7c5e0d5da50a5bf522c80f19000000000000000101000000000000000000f03f0000000000000040020000007b7d";

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    /// The cells of a row, by a table map; nothing if one of the two is damaged.
    fn cells(map: &[u8], row: &[u8]) -> Option<Vec<Cell>> {
        let map = TableMap::read(map, Flavour::MariaDb)?;
        let decoder = |column: &LoggedColumn| {
            let charset = if column.collation == Some(63) { Charset::Binary } else { Charset::Utf8 };
            let hint = if column.name == "u" { Hint::Uuid } else { Hint::Unknown };
            Logged::new(column, &charset, hint, 1 << 20).ok()
        };
        let decoders: Vec<_> = map.columns.iter().map(decoder).collect::<Option<_>>()?;
        let mut row = Bytes(row);
        row.take(decoders.len().div_ceil(8))?;
        decoders.iter().map(|decoder| decoder.take(&mut row)).collect()
    }

    #[test]
    fn a_row_is_read_by_its_table_map() {
        let text = |text: &str| Cell::Value(Property::from(text));
        let moment = Cell::Value(Property::Timestamp(1_577_934_245_678_000));
        let expected = [
            Cell::Value(Property::Int64(7)),
            Cell::Value(Property::Int64(2000)),
            text("123e4567-e89b-12d3-a456-426655440000"),
            text("b"),
            text(&"ab".repeat(100)),
            text("x"),
            Cell::Value(Property::List(vec!["x".into(), "y".into()])),
            Cell::Value(Property::Int64(257)),
            text("12.500"),
            Cell::Value(Property::Float64(1.5)),
            text("-01:02:03.45"),
            moment,
            Cell::Value(Property::Timestamp(1_577_934_245_678_901)),
            Cell::Value(Property::Date(18_263)),
            bad("its type is not supported".into()),
            text("{}"),
        ];
        assert_eq!(cells(&bytes(MAP), &bytes(ROW)).unwrap(), expected);
    }

    /// Whatever bytes a server sends, they are an error at most.
    #[test]
    fn damaged_bytes_are_not_read_beyond_their_end() {
        let mut dice = fastrand::Rng::with_seed(7);
        let map = bytes(MAP);
        let row = bytes(ROW);
        assert!(cells(&map, &row[..row.len() - 1]).is_none() && cells(&map[..40], &row).is_none());
        for _ in 0..20_000 {
            let mut damaged = [map.clone(), row.clone()];
            for _ in 0..dice.usize(1..4) {
                let part = &mut damaged[dice.usize(..2)];
                match dice.u8(..3) {
                    0 => part.truncate(dice.usize(..=part.len())),
                    _ if part.is_empty() => {}
                    _ => {
                        let at = dice.usize(..part.len());
                        part[at] = dice.u8(..);
                    }
                }
            }
            cells(&damaged[0], &damaged[1]);
        }
    }
}
