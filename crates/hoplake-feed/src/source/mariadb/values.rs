//! Values of columns: one way of each type to become a property, whether they come of the log or of a query.
//!
//! A query's answer has them in the binary protocol ([`Decoder`]), a row of the log in the server's own encoding
//! ([`Logged`](super::logged::Logged)). Both end in the functions here.

use std::net::{Ipv4Addr, Ipv6Addr};

use hoplake::Value as Property;
use jiff::civil;
use mysql_async::Value;
use uuid::Uuid;

use crate::{
    Cell,
    source::declared::{decimal, declaration},
    value,
};

/// How the values of a column are read from the answer to a query in the binary protocol. Text is UTF-8 there, and labels are text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Decoder {
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Integer { bits: u32, is_unsigned: bool },
    Float,
    Decimal { scale: usize },
    Text,
    Bytes,
    Bits,
    Year,
    Date,
    DateTime,
    Time,
    Set,
    Json,
    Unsupported,
}

impl Decoder {
    /// Of a column by its declaration, such as `decimal(10,2)`.
    pub(super) fn new(declared: &str) -> Self {
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
            "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" | "enum" | "uuid" | "inet4"
            | "inet6" => Kind::Text,
            "json" => Kind::Json,
            "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => Kind::Bytes,
            "bit" => Kind::Bits,
            "year" => Kind::Year,
            "date" => Kind::Date,
            "datetime" | "timestamp" => Kind::DateTime,
            "time" => Kind::Time,
            "set" => Kind::Set,
            _ => Kind::Unsupported,
        };
        Self { kind }
    }

    /// A value of an answer.
    pub(super) fn of_query(&self, value: Value) -> Cell {
        match (&self.kind, value) {
            (_, Value::NULL) => Cell::Value(Property::Null),
            (Kind::Integer { bits, is_unsigned }, Value::Int(number)) => integer(number, *bits, *is_unsigned),
            (Kind::Integer { .. } | Kind::Year, Value::UInt(number)) => unsigned(number),
            (Kind::Year, Value::Int(number)) => year(number),
            (Kind::Float, Value::Float(number)) => Cell::Value(Property::Float64(f64::from(number))),
            (Kind::Float, Value::Double(number)) => Cell::Value(Property::Float64(number)),
            (Kind::Decimal { scale }, Value::Bytes(digits)) => match String::from_utf8(digits) {
                Ok(digits) => decimal_of(&digits, *scale),
                Err(_) => bad("it is not a decimal".into()),
            },
            (Kind::Date, Value::Date(year, month, day, ..)) => date(year, month, day),
            (Kind::DateTime, Value::Date(year, month, day, hour, minute, second, micros)) => {
                date_time((year, month, day), (hour, minute, second), micros)
            }
            (Kind::Time, Value::Time(is_negative, days, hours, minutes, seconds, micros)) => {
                let hours = u64::from(days) * 24 + u64::from(hours);
                time(is_negative, hours, u64::from(minutes), u64::from(seconds), micros)
            }
            (Kind::Bits, Value::Bytes(bytes)) => bits(&bytes),
            (Kind::Bytes, Value::Bytes(bytes)) => text(hex::encode(&bytes)),
            (Kind::Set, Value::Bytes(labels)) => match String::from_utf8(labels) {
                Ok(labels) => {
                    let labels = labels.split(',').filter(|label| !label.is_empty());
                    Cell::Value(Property::List(labels.map(|label| Property::String(label.to_owned())).collect()))
                }
                Err(_) => bad("it is not text".into()),
            },
            (Kind::Json, Value::Bytes(json)) => match serde_json::from_slice::<serde_json::Value>(&json) {
                Ok(json) => text(json.to_string()),
                Err(_) => bad("it is not JSON".into()),
            },
            (Kind::Text, Value::Bytes(bytes)) => match String::from_utf8(bytes) {
                Ok(found) => text(found),
                Err(_) => bad("it is not text".into()),
            },
            (Kind::Unsupported, _) => bad("its type is not supported".into()),
            // Without the value, which errors do not show.
            (_, _) => bad("a value of another type came".into()),
        }
    }
}

pub(super) fn text(text: String) -> Cell {
    Cell::Value(Property::String(text))
}

pub(super) fn bad(why: String) -> Cell {
    Cell::Bad(why.into())
}

pub(super) fn unsigned(number: u64) -> Cell {
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

pub(super) fn year(year: i64) -> Cell {
    Cell::Value(Property::Int64(year))
}

pub(super) fn decimal_of(digits: &str, scale: usize) -> Cell {
    text(decimal(digits, scale))
}

/// Bits, the highest first.
pub(super) fn bits(bytes: &[u8]) -> Cell {
    let number = bytes.iter().try_fold(0_u64, |number, byte| number.checked_mul(256)?.checked_add(u64::from(*byte)));
    number.map_or_else(|| bad("it has more than 64 bits".into()), unsigned)
}

/// Null for a date of no calendar, such as 0000-00-00.
pub(super) fn date(year: u16, month: u8, day: u8) -> Cell {
    let days = civil_date(year, month, day).and_then(value::date);
    Cell::Value(days.map_or(Property::Null, Property::Date))
}

/// Likewise.
pub(super) fn date_time((year, month, day): (u16, u8, u8), (hour, minute, second): (u8, u8, u8), micros: u32) -> Cell {
    let at = civil_date(year, month, day).and_then(|date| {
        let nanos = i32::try_from(micros).ok()?.checked_mul(1_000)?;
        let part = |part: u8| i8::try_from(part).ok();
        let time = civil::Time::new(part(hour)?, part(minute)?, part(second)?, nanos).ok()?;
        value::civil_micros(date.to_datetime(time))
    });
    Cell::Value(at.map_or(Property::Null, Property::Timestamp))
}

/// Seconds and microseconds since 1970, and null for none at all: 0000-00-00.
pub(super) fn moment(seconds: i64, micros: u32) -> Cell {
    Cell::Value(match (seconds, micros) {
        (0, 0) => Property::Null,
        _ => Property::Timestamp(seconds * 1_000_000 + i64::from(micros)),
    })
}

/// `-838:59:59.5`, with as many digits as are not zero.
pub(super) fn time(is_negative: bool, hours: u64, minutes: u64, seconds: u64, micros: u32) -> Cell {
    let sign = if is_negative { "-" } else { "" };
    let fraction = if micros == 0 { String::new() } else { format!(".{micros:06}") };
    text(format!("{sign}{hours:02}:{minutes:02}:{seconds:02}{}", fraction.trim_end_matches('0')))
}

/// A UUID of MariaDB, whose bytes are stored in the order in which it sorts them.
pub(super) fn uuid(stored: &[u8]) -> Cell {
    match Uuid::from_slice(stored) {
        Ok(uuid) => text(uuid.to_string()),
        Err(_) => bad("it is not a uuid".into()),
    }
}

pub(super) fn inet4(bytes: &[u8]) -> Cell {
    match <[u8; 4]>::try_from(bytes) {
        Ok(four) => text(Ipv4Addr::from(four).to_string()),
        Err(_) => bad("it is not an address".into()),
    }
}

/// As MariaDB writes it: the first of the longest runs of zeros is left out, also a single one, and addresses that stand for such of
/// version 4 end as those.
pub(super) fn inet6(bytes: &[u8]) -> Cell {
    let Ok(sixteen) = <[u8; 16]>::try_from(bytes) else { return bad("it is not an address".into()) };
    let words = Ipv6Addr::from(sixteen).segments();
    let zeros = |at: usize| words[at..].iter().take_while(|word| **word == 0).count();
    // Of equal ones the first: `max_by_key` finds the last.
    let (gap, length) = (0..8).rev().map(|at| (at, zeros(at))).max_by_key(|(_, length)| *length).unwrap_or_default();
    let hex = |words: &[u16]| words.iter().map(|word| format!("{word:x}")).collect::<Vec<_>>().join(":");
    if length == 0 {
        return text(hex(&words));
    }
    let is_of_version_4 = gap == 0 && (length == 6 || length == 5 && words[5] == 0xFFFF);
    let end = match is_of_version_4 {
        false => hex(&words[gap + length..]),
        true => {
            let [.., a, b, c, d] = sixteen;
            let before = if length == 5 { "ffff:" } else { "" };
            format!("{before}{}", Ipv4Addr::new(a, b, c, d))
        }
    };
    text(format!("{}::{end}", hex(&words[..gap])))
}

fn civil_date(year: u16, month: u8, day: u8) -> Option<civil::Date> {
    civil::Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_sign_and_digits() {
        let int = |number: i64| Cell::Value(Property::Int64(number));
        assert_eq!(Decoder::new("mediumint(9)").of_query(Value::Int(16_777_215)), int(-1));
        assert_eq!(Decoder::new("mediumint(9) unsigned").of_query(Value::Int(16_777_215)), int(16_777_215));
        assert_eq!(Decoder::new("tinyint(4)").of_query(Value::Int(-1)), int(-1));
        assert!(matches!(Decoder::new("bigint(20) unsigned").of_query(Value::UInt(u64::MAX)), Cell::Digits(_)));
    }

    #[test]
    fn addresses_are_written_as_the_server_does() {
        for (hex, expected) in [
            ("00000000000000000000000000000000", "::"),
            ("00000000000000000000000001020304", "::1.2.3.4"),
            ("00000000000000000000000000010000", "::0.1.0.0"),
            ("00000000000000000000ffff01020304", "::ffff:1.2.3.4"),
            ("0000000000000000000000000000ffff", "::ffff"),
            ("20010db8000000000001000000000001", "2001:db8::1:0:0:1"),
            ("20010db8000000010001000100010000", "2001:db8::1:1:1:1:0"),
            ("00010002000300040005000600070000", "1:2:3:4:5:6:7::"),
            ("00000001000100010001000100010001", "::1:1:1:1:1:1:1"),
            ("0000000000000000ffff000001020304", "::ffff:0:102:304"),
            ("00010002000300040005000600070008", "1:2:3:4:5:6:7:8"),
        ] {
            let bytes: Vec<_> = (0..16).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect();
            assert_eq!(inet6(&bytes), text(expected.into()), "{hex}");
        }
    }
}
