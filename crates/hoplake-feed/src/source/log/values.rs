//! Values of columns as Debezium and Maxwell write them in JSON.
//!
//! A record does not say what type a value has, so the declaration of its column does; what becomes of it is what the sources of
//! MariaDB and PostgreSQL make of the same row. Numbers are read from their digits as they are written, never through a float.

use std::borrow::Cow;

use base64::{
    Engine,
    alphabet::{STANDARD, URL_SAFE},
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use bigdecimal::{BigDecimal, num_bigint::BigInt};
use hoplake::Value;
use serde_json::{error::Category, value::RawValue};

use super::Database;
use crate::{
    Cell, Column, DecimalHandling, LogFormat, TimePrecision,
    source::declared::{decimal, declaration},
    value,
};

/// What Debezium writes for a long value that PostgreSQL did not log, since it has not changed.
const UNAVAILABLE: &str = "__debezium_unavailable_value";

/// The largest exponent of a decimal that is written out.
const EXPONENT_MAX: i64 = 20_000;

const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const BASE64: GeneralPurpose = GeneralPurpose::new(&STANDARD, LENIENT);
const BASE64_URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, LENIENT);

/// How the values of all columns of a log are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    pub(super) format: LogFormat,
    pub(super) database: Database,
    pub(super) times: TimePrecision,
    pub(super) decimals: DecimalHandling,
}

/// How the values of a column are read.
#[derive(Debug, Clone)]
pub(super) struct Decoder {
    style: Style,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    /// With 64 bits that have no sign, or fewer.
    Integer {
        is_unsigned_64: bool,
    },
    Bool,
    Float4,
    Float8,
    Decimal {
        precision: usize,
        scale: usize,
    },
    /// Of PostgreSQL, with any number of digits.
    Numeric,
    Text,
    /// Fixed-length text, whose blanks at the end mean nothing.
    Padded,
    /// Of a fixed length, or any.
    Bytes(Option<usize>),
    /// Of MariaDB a number, of PostgreSQL a text of so many digits.
    Bits(usize),
    Year,
    Date,
    /// A date and a time without a zone, and its number of fractional digits.
    DateTime(usize),
    /// A moment, with so many.
    Moment(usize),
    Time(usize),
    /// One of these labels.
    Enum(Vec<String>),
    /// Several of them.
    Set(Vec<String>),
    /// Of MySQL.
    Json,
    /// Of MariaDB.
    Uuid,
    Interval,
    List(Box<Kind>),
    /// Why the value is unknown.
    Unclear(&'static str),
}

/// A value of JSON, as far as it has to be read to know what it is.
enum Json<'a> {
    Null,
    Bool(bool),
    /// As it is written.
    Number(&'a str),
    Text(Cow<'a, str>),
    List(Vec<&'a RawValue>),
    Object(&'a str),
}

impl Decoder {
    /// Of a column by its declaration.
    pub(super) fn new(column: &Column, style: Style) -> Self {
        let kind = match (column.kind, style.database) {
            (None, _) => Kind::Unclear("its type is not supported"),
            (_, Database::MariaDb) => of_mariadb(&column.declared),
            (_, Database::Postgres) => of_postgres(&column.declared),
        };
        Self { style, kind }
    }

    /// The cell of a value, of a snapshot or of a change.
    pub(super) fn decode(&self, raw: &RawValue, is_snapshot: bool) -> Cell {
        match read(raw) {
            Err(why) => bad(why),
            Ok(Json::Null) => Cell::Value(Value::Null),
            Ok(json) if self.is_changed(&json, is_snapshot) => {
                bad("the producer may have written another value; ignore the column".into())
            }
            Ok(json) if self.style.format == LogFormat::Debezium && self.is_unavailable(&json) => Cell::Absent,
            Ok(json) => self.cell(&self.kind, json, raw).unwrap_or_else(|why| Cell::Bad(why.into())),
        }
    }

    /// Whether the producer may have written something else than the database has, in a way that it is known to.
    fn is_changed(&self, json: &Json<'_>, is_snapshot: bool) -> bool {
        match (self.style.format, &self.kind, json) {
            // Debezium moves the bytes of one that ends with zeros.
            (LogFormat::Debezium, Kind::Uuid, Json::Text(uuid)) => !is_snapshot && uuid.starts_with("00"),
            // Maxwell takes MariaDB for a server without fractions of seconds, has no times of more than a day, and when it bootstraps
            // swaps the bytes of bits, and writes 2000 for the year 0.
            (LogFormat::Maxwell, Kind::DateTime(1..) | Kind::Moment(1..), Json::Text(moment)) => {
                !moment.contains('.') && !moment.starts_with("0000")
            }
            (LogFormat::Maxwell, Kind::Time(_), _) => true,
            (LogFormat::Maxwell, Kind::Bits(9..), _) => is_snapshot,
            (LogFormat::Maxwell, Kind::Year, Json::Number(year)) => is_snapshot && *year == "2000",
            _ => false,
        }
    }

    fn is_unavailable(&self, json: &Json<'_>) -> bool {
        match (json, &self.kind) {
            (Json::Text(text), Kind::Bytes(_)) => decoded(text).is_ok_and(|bytes| bytes == UNAVAILABLE.as_bytes()),
            (Json::Text(text), _) => text == UNAVAILABLE,
            (Json::List(items), Kind::List(_)) => {
                matches!(items[..], [one] if one.get().trim_matches('"') == UNAVAILABLE)
            }
            _ => false,
        }
    }

    fn cell(&self, kind: &Kind, json: Json<'_>, raw: &RawValue) -> Result<Cell, String> {
        let is_postgres = self.style.database == Database::Postgres;
        match (kind, json) {
            (Kind::Unclear(why), _) => Err((*why).to_owned()),
            (Kind::Integer { is_unsigned_64 }, Json::Number(digits)) => integer(digits, *is_unsigned_64),
            // tinyint(1) with a converter of the producer.
            (Kind::Integer { .. }, Json::Bool(it)) => Ok(Cell::Value(Value::Int64(i64::from(it)))),
            // An unsigned bigint with all its digits, as a decimal is written.
            (Kind::Integer { .. }, Json::Text(text)) => integer(&unscaled(&text)?.to_string(), true),
            (Kind::Bool, Json::Bool(it)) => Ok(Cell::Value(Value::Bool(it))),
            // The shortest digits that name the number of 32 bits.
            (Kind::Float4, json @ (Json::Number(_) | Json::Text(_))) => {
                let text = digits_of(&json);
                text.parse::<f32>().map(|it| Cell::Value(Value::Float64(f64::from(it)))).map_err(|_| not("number"))
            }
            (Kind::Float8, json @ (Json::Number(_) | Json::Text(_))) => {
                let text = digits_of(&json);
                text.parse().map(|it| Cell::Value(Value::Float64(it))).map_err(|_| not("number"))
            }
            (Kind::Decimal { .. } | Kind::Numeric, json) => self.decimal(kind, json).map(text),
            (Kind::Json, Json::Text(json)) if self.style.format == LogFormat::Debezium => json_text(&json),
            (Kind::Json, _) => json_text(raw.get()),
            (Kind::Bytes(length), Json::Text(base64)) => {
                let mut bytes = decoded(&base64)?;
                bytes.resize(length.unwrap_or(bytes.len()), 0);
                Ok(text(hex::encode(&bytes)))
            }
            (Kind::Bits(length), json) => bits(*length, json, is_postgres),
            (Kind::Year, json @ (Json::Number(_) | Json::Text(_))) => match digits_of(&json).parse() {
                // MariaDB counts from 1900, and 0000 is its zero.
                Ok(1900) => Ok(Cell::Value(Value::Int64(0))),
                Ok(year) => Ok(Cell::Value(Value::Int64(year))),
                Err(_) => Err(not("year")),
            },
            (Kind::Date, Json::Number(days)) => {
                let found = days.parse().ok().filter(|days| (FIRST_DAY..=LAST_DAY).contains(days));
                self.or_beyond(found.map(Value::Date), days)
            }
            (Kind::Date, Json::Text(day)) => {
                self.or_beyond(value::date_of_text(day.trim_end_matches('Z')).map(Value::Date), &day)
            }
            (Kind::DateTime(precision), Json::Number(number)) => {
                let found = self.micros(number, self.times_of_datetime(*precision))?;
                let range = i64::from(FIRST_DAY) * DAY_MICROS..i64::from(LAST_DAY + 1) * DAY_MICROS;
                self.or_beyond(Some(found).filter(|it| range.contains(it)).map(Value::Timestamp), number)
            }
            (Kind::DateTime(_) | Kind::Moment(_), Json::Text(moment)) => {
                // As a civil time: the last hours of the calendar are moments of other zones' next year.
                let found = value::timestamp_of_text(moment.trim_end_matches('Z'));
                let is_zero = found == Some(0) && matches!(kind, Kind::Moment(_)) && !is_postgres;
                self.or_beyond(found.filter(|_| !is_zero).map(Value::Timestamp), &moment)
            }
            (Kind::Time(precision), Json::Number(number)) => {
                self.micros(number, self.times_of_time(*precision)).map(|micros| text(time_text(micros)))
            }
            (Kind::Time(_), Json::Text(time)) => Ok(text(shortened(time.trim_end_matches('Z')))),
            (Kind::Enum(labels), Json::Text(it)) => label(&it, labels).map(Cell::Value),
            (Kind::Set(known), Json::Text(labels)) => {
                let labels = labels.split(',').filter(|label| !label.is_empty());
                let labels = labels.map(|it| label(it, known)).collect::<Result<_, _>>()?;
                Ok(Cell::Value(Value::List(labels)))
            }
            (Kind::Set(known), Json::List(labels)) => {
                let text = |raw: &RawValue| serde_json::from_str::<String>(raw.get()).map_err(|_| not("label"));
                let labels = labels.into_iter().map(|raw| label(&text(raw)?, known)).collect::<Result<_, _>>()?;
                Ok(Cell::Value(Value::List(labels)))
            }
            (Kind::Interval, Json::Text(span)) => Ok(text(interval(&span))),
            (Kind::Interval, _) => {
                Err("a number does not say which of it are months and days; let the producer write \
                                        interval.handling.mode=string"
                    .into())
            }
            (Kind::List(kind), Json::List(items)) => {
                let mut values = Vec::with_capacity(items.len());
                for item in items {
                    match read(item)? {
                        Json::Null => values.push(Value::Null),
                        json => match self.cell(kind, json, item)? {
                            Cell::Value(value) => values.push(value),
                            _ => return Err("an item of the list cannot be read".into()),
                        },
                    }
                }
                Ok(Cell::Value(Value::List(values)))
            }
            (Kind::Padded, Json::Text(it)) => Ok(text(it.trim_end_matches(' ').to_owned())),
            (Kind::Text | Kind::Uuid, Json::Text(it)) => Ok(text(it.into_owned())),
            (_, json) => Err(format!("a value of another type came: {}", json.kind())),
        }
    }

    /// A date or moment; one of no calendar is nothing in MariaDB, and beyond what a property holds in PostgreSQL.
    fn or_beyond(&self, found: Option<Value>, written: &str) -> Result<Cell, String> {
        let is_like_one = !written.is_empty() && written.bytes().all(|byte| b"0123456789-:. TZ+".contains(&byte));
        match found {
            Some(found) => Ok(Cell::Value(found)),
            None if self.style.database == Database::MariaDb && is_like_one => Ok(Cell::Value(Value::Null)),
            None => Err("it is beyond the dates and times of properties; ignore the column".into()),
        }
    }

    /// A decimal with the digits that its column declares.
    fn decimal(&self, kind: &Kind, json: Json<'_>) -> Result<String, String> {
        let (precision, scale) = match kind {
            Kind::Decimal { precision, scale } => (Some(*precision), Some(*scale)),
            _ => (None, None),
        };
        let is_maxwell = self.style.format == LogFormat::Maxwell;
        let as_written = self.style.decimals == DecimalHandling::String || is_maxwell;
        let digits = match json {
            // A double has fifteen digits for sure.
            Json::Number(digits) if is_maxwell || precision.is_some_and(|digits| digits <= 15) => Cow::Borrowed(digits),
            Json::Number(_) => {
                return Err("it was written as a double, which has lost digits; let the producer write \
                            decimal.handling.mode=string"
                    .into());
            }
            Json::Text(it) if it.eq_ignore_ascii_case("nan") => return Ok("NaN".into()),
            Json::Text(it) if as_written => it,
            Json::Text(it) if it.contains(['.', '-']) => {
                return Err("it is written in digits; set source.decimal_handling_mode = \"string\"".into());
            }
            Json::Text(it) => {
                let scale = scale.ok_or("its scale is not known")?;
                return Ok(BigDecimal::new(unscaled(&it)?, scale as i64).to_plain_string());
            }
            Json::Object(it) => return variable_decimal(it),
            other => return Err(format!("a value of another type came: {}", other.kind())),
        };
        plain(&digits, scale).ok_or_else(|| {
            let hint = if as_written && !is_maxwell { "; is source.decimal_handling_mode right?" } else { "" };
            format!("it is not a decimal{hint}")
        })
    }

    /// Units in a second of a date with a time.
    fn times_of_datetime(&self, precision: usize) -> i64 {
        match self.style.times {
            TimePrecision::Connect => 1_000,
            TimePrecision::Microseconds => 1_000_000,
            TimePrecision::Nanoseconds => 1_000_000_000,
            _ if precision <= 3 => 1_000,
            _ => 1_000_000,
        }
    }

    /// Units in a second of a time of day.
    fn times_of_time(&self, precision: usize) -> i64 {
        match self.style.times {
            TimePrecision::Connect => 1_000,
            TimePrecision::Nanoseconds => 1_000_000_000,
            TimePrecision::Adaptive if self.style.database == Database::Postgres && precision <= 3 => 1_000,
            _ => 1_000_000,
        }
    }

    fn micros(&self, number: &str, units: i64) -> Result<i64, String> {
        let number: i64 = number.parse().map_err(|_| not("time"))?;
        let micros =
            if units > 1_000_000 { number / (units / 1_000_000) } else { number.saturating_mul(1_000_000 / units) };
        Ok(micros)
    }
}

/// The days of 0001-01-01 and 9999-12-31.
const FIRST_DAY: i32 = -719_162;
const LAST_DAY: i32 = 2_932_896;
const DAY_MICROS: i64 = 86_400_000_000;

fn of_mariadb(declared: &str) -> Kind {
    let (name, arguments) = declaration(declared);
    let number = |at: usize| arguments.get(at).and_then(|text| text.trim().parse::<usize>().ok());
    match name.as_str() {
        "tinyint" | "smallint" | "mediumint" | "int" => Kind::Integer { is_unsigned_64: false },
        "bigint" => Kind::Integer { is_unsigned_64: declared.contains("unsigned") },
        "float" => Kind::Float4,
        "double" => Kind::Float8,
        "decimal" => of_decimal(number(0).unwrap_or(10), number(1).unwrap_or(0)),
        "json" => Kind::Json,
        "binary" => Kind::Bytes(Some(number(0).unwrap_or(1)).filter(|length| *length <= 255)),
        "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => Kind::Bytes(None),
        "bit" => Kind::Bits(number(0).unwrap_or(1)),
        "year" => Kind::Year,
        "date" => Kind::Date,
        "datetime" => Kind::DateTime(number(0).unwrap_or(0)),
        "timestamp" => Kind::Moment(number(0).unwrap_or(0)),
        "time" => Kind::Time(number(0).unwrap_or(0)),
        "enum" => Kind::Enum(arguments),
        "set" => Kind::Set(arguments),
        "uuid" => Kind::Uuid,
        _ => Kind::Text,
    }
}

fn of_postgres(declared: &str) -> Kind {
    if let Some(item) = declared.strip_suffix("[]") {
        return Kind::List(Box::new(of_postgres(item)));
    }
    let (_, arguments) = declaration(declared);
    let number = |at: usize| arguments.get(at).and_then(|text| text.trim().parse::<usize>().ok());
    // Without what is between parentheses: `timestamp(3) with time zone`.
    let before = declared.split('(').next().unwrap_or_default().trim_end();
    let after = declared.rsplit_once(')').map_or("", |(_, after)| after);
    match format!("{before}{after}").as_str() {
        "smallint" | "integer" | "bigint" | "oid" => Kind::Integer { is_unsigned_64: false },
        "boolean" => Kind::Bool,
        "real" => Kind::Float4,
        "double precision" => Kind::Float8,
        "numeric" => match (number(0), number(1)) {
            (Some(precision), scale) => of_decimal(precision, scale.unwrap_or(0)),
            (None, _) => Kind::Numeric,
        },
        "character" => Kind::Padded,
        "bytea" => Kind::Bytes(None),
        "bit" => Kind::Bits(number(0).unwrap_or(1)),
        "date" => Kind::Date,
        "timestamp without time zone" => Kind::DateTime(number(0).unwrap_or(6)),
        "timestamp with time zone" => Kind::Moment(number(0).unwrap_or(6)),
        "time without time zone" => Kind::Time(number(0).unwrap_or(6)),
        "time with time zone" => Kind::Unclear("the log has lost its zone; ignore the column"),
        "money" => Kind::Unclear("the log has lost how the database writes it; ignore the column"),
        "bit varying" => Kind::Unclear("the log has lost its length; ignore the column"),
        it if it.starts_with("interval") => Kind::Interval,
        _ => Kind::Text,
    }
}

fn of_decimal(precision: usize, scale: usize) -> Kind {
    // As many as PostgreSQL allows.
    match precision <= 1_000 && scale <= 1_000 {
        true => Kind::Decimal { precision, scale },
        false => Kind::Unclear("its type is not supported"),
    }
}

fn read(raw: &RawValue) -> Result<Json<'_>, String> {
    let text = raw.get();
    let unreadable = |error: serde_json::Error| format!("it is not JSON: {}", fault(&error));
    Ok(match text.as_bytes().first() {
        Some(b'n') => Json::Null,
        Some(b't') => Json::Bool(true),
        Some(b'f') => Json::Bool(false),
        Some(b'"') => Json::Text(serde_json::from_str(text).map(Cow::Owned).map_err(unreadable)?),
        Some(b'[') => Json::List(serde_json::from_str(text).map_err(unreadable)?),
        Some(b'{') => Json::Object(text),
        _ => Json::Number(text),
    })
}

impl Json<'_> {
    /// What it is, for a message.
    fn kind(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "a boolean",
            Json::Number(_) => "a number",
            Json::Object(_) => "an object",
            Json::Text(_) => "a text",
            Json::List(_) => "a list",
        }
    }
}

/// What is wrong with JSON, without what it says: an error of a wrong type repeats the value.
pub(super) fn fault(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match error.classify() {
        Category::Data if !text.starts_with("missing field") => {
            format!("a field is not what it has to be at line {} column {}", error.line(), error.column())
        }
        _ => text,
    }
}

/// The beginning of a text, for a message.
pub(super) fn brief(text: &str) -> String {
    let mut shortened: String = text.chars().take(60).collect();
    if shortened.len() < text.len() {
        shortened.push('…');
    }
    shortened
}

fn digits_of<'a>(json: &'a Json<'_>) -> &'a str {
    match json {
        Json::Number(it) => it,
        Json::Text(it) => it,
        _ => "",
    }
}

fn text(text: String) -> Cell {
    Cell::Value(Value::String(text))
}

fn bad(why: String) -> Cell {
    Cell::Bad(why.into())
}

/// Why a value is none of its column: without the value, which errors do not show.
fn not(what: &str) -> String {
    format!("it is not a {what}")
}

fn integer(digits: &str, is_unsigned_64: bool) -> Result<Cell, String> {
    match digits.parse::<i64>() {
        // Java has no unsigned numbers: the producer wrote the one of the same bits.
        Ok(number) if number < 0 && is_unsigned_64 => Ok(Cell::Digits((number as u64).to_string().into())),
        Ok(number) => Ok(Cell::Value(Value::Int64(number))),
        Err(_) => match digits.parse::<u64>() {
            Ok(_) => Ok(Cell::Digits(digits.into())),
            Err(_) => Err(not("integer of 64 bits")),
        },
    }
}

/// One of the labels of an enum or a set.
fn label(text: &str, labels: &[String]) -> Result<Value, String> {
    // Maxwell writes the quotes of a label as its declaration has them.
    let undoubled = text.replace("''", "'");
    let found = labels.iter().find(|label| *label == text).or_else(|| labels.iter().find(|label| **label == undoubled));
    match found {
        Some(label) => Ok(Value::from(label.as_str())),
        // What was not one of the labels when it was written.
        None if text.is_empty() => Ok(Value::from("")),
        None => Err(not("label of the column")),
    }
}

/// Bytes of base64, of either alphabet.
fn decoded(text: &str) -> Result<Vec<u8>, String> {
    BASE64.decode(text).or_else(|_| BASE64_URL.decode(text)).map_err(|_| not("text in base64"))
}

/// The integer that a decimal is without its point: big-endian bytes in base64.
fn unscaled(text: &str) -> Result<BigInt, String> {
    Ok(BigInt::from_signed_bytes_be(&decoded(text)?))
}

/// A decimal that says its scale itself.
fn variable_decimal(json: &str) -> Result<String, String> {
    #[derive(serde::Deserialize)]
    struct Variable {
        scale: i64,
        value: String,
    }
    let it: Variable = serde_json::from_str(json).map_err(|_| not("decimal"))?;
    if it.scale.abs() > EXPONENT_MAX {
        return Err(format!("its scale is {}, and may be {EXPONENT_MAX}", it.scale));
    }
    Ok(BigDecimal::new(unscaled(&it.value)?, it.scale).to_plain_string())
}

/// Digits without an exponent, as many after the point as the column has.
fn plain(digits: &str, scale: Option<usize>) -> Option<String> {
    let is_plain = digits.strip_prefix('-').unwrap_or(digits).split('.').count() <= 2
        && digits.bytes().any(|byte| byte.is_ascii_digit())
        && digits.strip_prefix('-').unwrap_or(digits).bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let digits = match is_plain {
        true => digits.to_owned(),
        false => {
            let exponent: i64 = digits.split_once(['e', 'E'])?.1.parse().ok()?;
            if exponent.abs() > EXPONENT_MAX {
                return None;
            }
            digits.parse::<BigDecimal>().ok()?.to_plain_string()
        }
    };
    Some(scale.map_or_else(|| digits.clone(), |scale| decimal(&digits, scale)))
}

/// The text of JSON without what its writer chose: blanks, and the order of keys.
fn json_text(json: &str) -> Result<Cell, String> {
    let parsed: serde_json::Value = serde_json::from_str(json).map_err(|_| "it is not JSON".to_owned())?;
    Ok(text(parsed.to_string()))
}

/// Bits, the lowest byte first.
fn bits(length: usize, json: Json<'_>, is_postgres: bool) -> Result<Cell, String> {
    let number = match json {
        Json::Bool(it) => u128::from(it),
        Json::Number(digits) => digits.parse().map_err(|_| not("number"))?,
        Json::Text(base64) => {
            let bytes = decoded(&base64)?;
            let significant = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
            if significant > 16 || length > 128 {
                return Err("bits beyond 128 are not supported; ignore the column".into());
            }
            bytes[..significant].iter().rev().fold(0, |number, byte| (number << 8) | u128::from(*byte))
        }
        other => return Err(format!("a value of another type came: {}", other.kind())),
    };
    match is_postgres {
        true => Ok(text(format!("{number:0length$b}"))),
        false => integer(&number.to_string(), false),
    }
}

/// `-12:59:07.5`.
fn time_text(micros: i64) -> String {
    let sign = if micros < 0 { "-" } else { "" };
    let all = micros.unsigned_abs();
    let seconds = all / 1_000_000;
    let fraction = all % 1_000_000;
    shortened(&format!("{sign}{:02}:{:02}:{:02}.{fraction:06}", seconds / 3_600, seconds / 60 % 60, seconds % 60))
}

/// A time without zeros at the end of its fraction.
fn shortened(time: &str) -> String {
    match time.contains('.') {
        true => time.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => time.to_owned(),
    }
}

/// A span in ISO 8601 without the units of which it has none, as PostgreSQL writes it.
fn interval(span: &str) -> String {
    let mut kept = String::from("P");
    let mut unit = String::new();
    let mut is_time = false;
    for character in span.chars().skip_while(|it| *it != 'P').skip(1) {
        match character {
            'T' => is_time = true,
            '0'..='9' | '.' | '-' | '+' => unit.push(character),
            letter => {
                let number = shortened(&std::mem::take(&mut unit));
                if number.bytes().any(|byte| (b'1'..=b'9').contains(&byte)) {
                    if is_time && !kept.contains('T') {
                        kept.push('T');
                    }
                    kept.push_str(&number);
                    kept.push(letter);
                }
            }
        }
    }
    if kept == "P" { "PT0S".to_owned() } else { kept }
}
