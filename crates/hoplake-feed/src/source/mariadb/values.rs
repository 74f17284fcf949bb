//! Values of columns, as rows of the binlog and rows of queries have them: two encodings of one thing.
//!
//! | type | in the binlog | in the answer to a query |
//! | --- | --- | --- |
//! | text | bytes in the charset of the column | UTF-8 |
//! | `binary(n)`, `uuid`, `inet` | bytes, zeros at the end left out | bytes; text |
//! | `enum`, `set` | a number; a mask | labels |
//! | `timestamp` | seconds since 1970 | a date and time in UTC |
//! | `mediumint` | three bytes, not extended by their sign | a number |

use std::net::{Ipv4Addr, Ipv6Addr};

use encoding_rs::Encoding;
use hoplake::Value as Property;
use jiff::civil;
use mysql_async::{Value, binlog::value::BinlogValue};

use crate::{
    Cell,
    source::declared::{decimal, declaration},
    value,
};

/// How the values of a column are read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Decoder {
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Integer {
        bits: u32,
        is_unsigned: bool,
    },
    Float,
    Decimal {
        scale: usize,
    },
    Text(Charset),
    /// Of a fixed length, or any.
    Bytes(Option<usize>),
    Bits,
    Year,
    Date,
    DateTime,
    Time,
    Enum(Vec<String>),
    Set(Vec<String>),
    Uuid,
    Inet4,
    Inet6,
    Json,
    Unsupported,
}

/// How text is encoded in the binlog.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Charset {
    Known(&'static Encoding),
    /// Four bytes for each character, the highest first.
    Utf32,
}

impl Decoder {
    /// Of a column by its declaration, such as `decimal(10,2)`, and its charset.
    pub(super) fn new(declared: &str, charset: Option<&str>) -> Self {
        let (data_type, arguments) = declaration(declared);
        let is_unsigned = declared.contains("unsigned");
        let integer = |bits| Kind::Integer { bits, is_unsigned };
        let number = |at: usize| arguments.get(at).and_then(|text| text.trim().parse().ok());
        let kind = match data_type.as_str() {
            "tinyint" => integer(8),
            "smallint" => integer(16),
            "mediumint" => integer(24),
            "int" => integer(32),
            "bigint" => integer(64),
            "float" | "double" => Kind::Float,
            "decimal" => Kind::Decimal { scale: number(1).unwrap_or(0) },
            "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" => {
                charset_named(charset.unwrap_or("utf8mb4")).map_or(Kind::Unsupported, Kind::Text)
            }
            "json" => Kind::Json,
            "binary" => Kind::Bytes(number(0).or(Some(1))),
            "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => Kind::Bytes(None),
            "bit" => Kind::Bits,
            "year" => Kind::Year,
            "date" => Kind::Date,
            "datetime" | "timestamp" => Kind::DateTime,
            "time" => Kind::Time,
            "enum" => Kind::Enum(arguments),
            "set" => Kind::Set(arguments),
            "uuid" => Kind::Uuid,
            "inet4" => Kind::Inet4,
            "inet6" => Kind::Inet6,
            _ => Kind::Unsupported,
        };
        Self { kind }
    }

    /// A value of the binlog.
    pub(super) fn of_binlog(&self, value: BinlogValue<'_>) -> Cell {
        match value {
            BinlogValue::Value(Value::NULL) => Cell::Value(Property::Null),
            BinlogValue::Value(value) => self.of_log(value),
            BinlogValue::Jsonb(json) => match serde_json::Value::try_from(json) {
                Ok(json) => text(json.to_string()),
                Err(error) => bad(format!("its JSON cannot be read: {error}")),
            },
            BinlogValue::JsonDiff(_) => {
                bad("the log has a part of a JSON value only; set binlog_row_value_options=''".into())
            }
        }
    }

    fn of_log(&self, value: Value) -> Cell {
        match (&self.kind, value) {
            (Kind::Text(charset), Value::Bytes(bytes)) => match charset.decode(&bytes) {
                Some(decoded) => text(decoded),
                None => bad("its bytes are not text in the column's charset".into()),
            },
            (Kind::Bytes(Some(length)), Value::Bytes(mut bytes)) => {
                bytes.resize(*length, 0);
                text(value::hexadecimal(&bytes))
            }
            (Kind::Uuid, Value::Bytes(bytes)) => uuid(&bytes),
            (Kind::Inet4, Value::Bytes(bytes)) => text(Ipv4Addr::from(padded::<4>(&bytes)).to_string()),
            (Kind::Inet6, Value::Bytes(bytes)) => text(Ipv6Addr::from(padded::<16>(&bytes)).to_string()),
            (Kind::Enum(labels), Value::Int(number)) => {
                match usize::try_from(number).ok().and_then(|at| at.checked_sub(1)) {
                    // What was not one of the labels when it was written.
                    None => text(String::new()),
                    Some(at) => labels
                        .get(at)
                        .map_or_else(|| bad(format!("the enum has no label {number}")), |it| text(it.clone())),
                }
            }
            (Kind::Set(labels), Value::Bytes(mask)) => {
                let is_in = |at: usize| mask.get(at / 8).is_some_and(|byte| byte & (1 << (at % 8)) != 0);
                let chosen = labels.iter().enumerate().filter(|(at, _)| is_in(*at));
                Cell::Value(Property::List(chosen.map(|(_, label)| Property::String(label.clone())).collect()))
            }
            (Kind::DateTime, Value::Bytes(seconds)) => seconds_of_text(&seconds),
            (Kind::DateTime, Value::Int(seconds)) => match seconds {
                0 => Cell::Value(Property::Null),
                seconds => Cell::Value(Property::Timestamp(seconds.saturating_mul(1_000_000))),
            },
            (_, value) => self.of_query(value),
        }
    }

    /// A value of the answer to a query in the binary protocol.
    pub(super) fn of_query(&self, value: Value) -> Cell {
        match (&self.kind, value) {
            (_, Value::NULL) => Cell::Value(Property::Null),
            (Kind::Integer { bits, is_unsigned }, Value::Int(number)) => integer(number, *bits, *is_unsigned),
            (Kind::Integer { .. } | Kind::Year, Value::UInt(number)) => unsigned(number),
            (Kind::Float, Value::Float(number)) => Cell::Value(Property::Float64(f64::from(number))),
            (Kind::Float, Value::Double(number)) => Cell::Value(Property::Float64(number)),
            (Kind::Year, Value::Int(year)) => Cell::Value(Property::Int64(year)),
            (Kind::Year, Value::Bytes(year)) => {
                match std::str::from_utf8(&year).ok().and_then(|year| year.parse().ok()) {
                    // The binlog has the year less 1900, and 0 for 0000.
                    Some(1900) => Cell::Value(Property::Int64(0)),
                    Some(year) => Cell::Value(Property::Int64(year)),
                    None => bad("it is not a year".into()),
                }
            }
            (Kind::Decimal { scale }, Value::Bytes(digits)) => match String::from_utf8(digits) {
                Ok(digits) => text(decimal(&digits, *scale)),
                Err(_) => bad("it is not a decimal".into()),
            },
            (Kind::Date, Value::Date(year, month, day, ..)) => match civil_date(year, month, day).and_then(value::date)
            {
                Some(days) => Cell::Value(Property::Date(days)),
                // Of no calendar, such as 0000-00-00.
                None => Cell::Value(Property::Null),
            },
            (Kind::DateTime, Value::Date(year, month, day, hour, minute, second, micros)) => {
                let at = civil_date(year, month, day).and_then(|date| {
                    let nanos = i32::try_from(micros).ok()?.checked_mul(1_000)?;
                    let time = civil::Time::new(hour as i8, minute as i8, second as i8, nanos).ok()?;
                    value::civil_micros(date.to_datetime(time))
                });
                Cell::Value(at.map_or(Property::Null, Property::Timestamp))
            }
            (Kind::Time, Value::Time(is_negative, days, hours, minutes, seconds, micros)) => {
                let sign = if is_negative { "-" } else { "" };
                let hours = u64::from(days) * 24 + u64::from(hours);
                let fraction = if micros == 0 { String::new() } else { format!(".{micros:06}") };
                text(format!("{sign}{hours:02}:{minutes:02}:{seconds:02}{}", fraction.trim_end_matches('0')))
            }
            (Kind::Bits, Value::Bytes(bytes)) => {
                let number =
                    bytes.iter().try_fold(0_u64, |number, byte| number.checked_mul(256)?.checked_add(u64::from(*byte)));
                number.map_or_else(|| bad("it has more than 64 bits".into()), unsigned)
            }
            (Kind::Bytes(_), Value::Bytes(bytes)) => text(value::hexadecimal(&bytes)),
            (Kind::Set(_), Value::Bytes(labels)) => match String::from_utf8(labels) {
                Ok(labels) => {
                    let labels = labels.split(',').filter(|label| !label.is_empty());
                    Cell::Value(Property::List(labels.map(|label| Property::String(label.to_owned())).collect()))
                }
                Err(_) => bad("it is not text".into()),
            },
            (Kind::Unsupported, _) => bad("its type is not supported".into()),
            (Kind::Json, Value::Bytes(json)) => match serde_json::from_slice::<serde_json::Value>(&json) {
                Ok(json) => text(json.to_string()),
                Err(_) => bad("it is not JSON".into()),
            },
            (_, Value::Bytes(bytes)) => match String::from_utf8(bytes) {
                Ok(found) => text(found),
                Err(_) => bad("it is not text".into()),
            },
            (_, other) => bad(format!("a value of another type came: {other:?}")),
        }
    }
}

fn text(text: String) -> Cell {
    Cell::Value(Property::String(text))
}

fn bad(why: String) -> Cell {
    Cell::Bad(why.into())
}

fn unsigned(number: u64) -> Cell {
    match i64::try_from(number) {
        Ok(number) => Cell::Value(Property::Int64(number)),
        Err(_) => Cell::Digits(number.to_string().into()),
    }
}

/// An integer that may have arrived with its sign cut off, or as the one of the same bits.
fn integer(number: i64, bits: u32, is_unsigned: bool) -> Cell {
    let shift = 64 - bits;
    match is_unsigned {
        true if bits == 64 => unsigned(number as u64),
        true => Cell::Value(Property::Int64(((number as u64) << shift >> shift) as i64)),
        false => Cell::Value(Property::Int64(number << shift >> shift)),
    }
}

fn civil_date(year: u16, month: u8, day: u8) -> Option<civil::Date> {
    civil::Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

/// `1266161530.447001`, or `0` for no moment.
fn seconds_of_text(text: &[u8]) -> Cell {
    let text = std::str::from_utf8(text).unwrap_or_default();
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let micros = format!("{fraction:0<6}").parse::<i64>().ok();
    match seconds.parse::<i64>().ok().zip(micros) {
        Some((0, 0)) => Cell::Value(Property::Null),
        Some((seconds, micros)) => Cell::Value(Property::Timestamp(seconds * 1_000_000 + micros)),
        None => bad("it is not a timestamp".into()),
    }
}

fn padded<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut all = [0; N];
    let length = bytes.len().min(N);
    all[..length].copy_from_slice(&bytes[..length]);
    all
}

/// A UUID of MariaDB, whose bytes are stored in the order in which it sorts them.
fn uuid(bytes: &[u8]) -> Cell {
    let stored = padded::<16>(bytes);
    let hex = value::hexadecimal(&stored);
    text(format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]))
}

/// Whether text in a charset can be read.
pub(super) fn is_known_charset(name: &str) -> bool {
    charset_named(name).is_some()
}

fn charset_named(name: &str) -> Option<Charset> {
    let label = match name {
        "utf8" | "utf8mb3" | "utf8mb4" | "ascii" => "utf-8",
        // The server's own latin1 is Windows' western code page.
        "latin1" => "windows-1252",
        "latin2" => "iso-8859-2",
        "latin5" => "windows-1254",
        "latin7" => "iso-8859-13",
        "greek" => "iso-8859-7",
        "hebrew" => "iso-8859-8",
        "cp1250" => "windows-1250",
        "cp1251" => "windows-1251",
        "cp1256" => "windows-1256",
        "cp1257" => "windows-1257",
        "cp866" => "ibm866",
        "koi8r" => "koi8-r",
        "koi8u" => "koi8-u",
        "gbk" | "gb2312" => "gbk",
        "gb18030" => "gb18030",
        "big5" => "big5",
        "sjis" | "cp932" => "shift_jis",
        "ujis" | "eucjpms" => "euc-jp",
        "euckr" => "euc-kr",
        "tis620" => "windows-874",
        "ucs2" | "utf16" => "utf-16be",
        "utf16le" => "utf-16le",
        "utf32" => return Some(Charset::Utf32),
        _ => return None,
    };
    Encoding::for_label(label.as_bytes()).map(Charset::Known)
}

impl Charset {
    fn decode(self, bytes: &[u8]) -> Option<String> {
        match self {
            Self::Known(encoding) => {
                encoding.decode_without_bom_handling_and_without_replacement(bytes).map(std::borrow::Cow::into_owned)
            }
            Self::Utf32 => {
                let characters = bytes.chunks(4).map(|four| {
                    let four: [u8; 4] = four.try_into().ok()?;
                    char::from_u32(u32::from_be_bytes(four))
                });
                characters.collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_sign_and_digits() {
        let int = |number: i64| Cell::Value(Property::Int64(number));
        assert_eq!(Decoder::new("mediumint(9)", None).of_query(Value::Int(16_777_215)), int(-1));
        assert_eq!(Decoder::new("mediumint(9) unsigned", None).of_query(Value::Int(16_777_215)), int(16_777_215));
        assert_eq!(Decoder::new("tinyint(4)", None).of_query(Value::Int(-1)), int(-1));
        assert!(matches!(Decoder::new("bigint(20) unsigned", None).of_query(Value::UInt(u64::MAX)), Cell::Digits(_)));
    }
}
