//! A column under construction: converts fields of text to an Arrow array.
//!
//! Arrow's own builders cannot take a value back, and a row that turns out bad in its last field has
//! already been written to the columns before. These columns can be [truncated](Column::truncate); their
//! vectors become the buffers of the array without a copy.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Float64Array, Int64Array, ListArray, StringArray, TimestampMicrosecondArray,
};
use arrow_buffer::{BooleanBufferBuilder, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field};
use hoplake_format::{
    KeyType, PropertyType, ScalarType, TIMESTAMP_ZONE,
    text::{self, DATE_DAYS, OUT_OF_RANGE, TIMESTAMP_MICROS, boolean, int64},
};

use jiff::{fmt::temporal::DateTimeParser, tz::TimeZone};

use super::values;

const MILLIS_PER_DAY: i64 = 86_400_000;
const MICROS_PER_MILLI: i64 = 1_000;

/// How a field of text becomes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parse {
    /// The type of the value.
    pub(crate) kind: PropertyType,
    /// The unit of a whole number in a column of dates or timestamps: microseconds since 1970.
    pub(crate) epoch_unit_micros: Option<i64>,
    /// How a list is written.
    pub(crate) list: ListForm,
    /// The time zone of moments without one; UTC if it is not set.
    pub(crate) zone: Option<Zone>,
}

/// How the items of a list are written in a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListForm {
    /// What is between items.
    pub(crate) separator: u8,
    /// What is before a separator that is part of an item.
    pub(crate) escape: Option<u8>,
    /// Whether nothing between separators is an item, and an empty field in quotes a list without any; else both are left out.
    pub(crate) empty_items: bool,
    /// Whether a field in brackets is an array of JSON, as rows are printed.
    pub(crate) json: bool,
}

impl ListForm {
    /// Items between separators; arrays of JSON, too, if that is `;`.
    pub(crate) fn separated(separator: u8) -> Self {
        Self { separator, escape: None, empty_items: false, json: separator == b';' }
    }

    /// The items of a field that is not an array of JSON.
    fn items<'a>(self, field: &'a [u8]) -> Vec<Cow<'a, [u8]>> {
        if field.is_empty() {
            return Vec::new();
        }
        let mut items: Vec<Cow<'a, [u8]>> = Vec::new();
        let mut goes_on = false;
        for piece in field.split(|byte| *byte == self.separator) {
            let escaped = self.escape.and_then(|escape| piece.strip_suffix(&[escape]));
            match items.last_mut().filter(|_| goes_on) {
                Some(item) => {
                    item.to_mut().push(self.separator);
                    item.to_mut().extend_from_slice(escaped.unwrap_or(piece));
                }
                None => items.push(escaped.unwrap_or(piece).into()),
            }
            goes_on = escaped.is_some();
        }
        // Behind the last there is no separator.
        if let (true, Some(escape), Some(last)) = (goes_on, self.escape, items.last_mut()) {
            last.to_mut().push(escape);
        }
        items.retain(|item| self.empty_items || !item.is_empty());
        items
    }
}

/// A time zone, by offset or name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Zone(&'static TimeZone);

/// The zones that headers named so far. There are some 600 names and 2,880 offsets, so that what is kept for ever is bounded, and
/// [`Parse`] stays plain data that is copied for each column.
static ZONES: Mutex<BTreeMap<String, Zone>> = Mutex::new(BTreeMap::new());

impl Zone {
    /// The zone called `+02:00`, `Z` or `Europe/Stockholm`.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let mut zones = ZONES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(zone) = zones.get(name) {
            return Some(*zone);
        }
        let zone = match name {
            "Z" | "z" => TimeZone::UTC,
            // `+02`, `+0200` and `+02:00`, which are read like those of a moment.
            name if name.starts_with(['+', '-']) => {
                let moment = format!("1970-01-01T00:00{name}");
                let pieces = OFFSETS.parse_pieces(&moment).ok()?;
                let offset = pieces.to_numeric_offset().filter(|_| pieces.time_zone_annotation().is_none())?;
                TimeZone::fixed(Some(offset).filter(|it| it.seconds().abs() < 86_400)?)
            }
            name => TimeZone::get(name).ok()?,
        };
        let zone = Self(Box::leak(Box::new(zone)));
        zones.insert(name.to_owned(), zone);
        Some(zone)
    }
}

static OFFSETS: DateTimeParser = DateTimeParser::new();

impl Parse {
    /// Values of this type, dates in ISO 8601, lists separated by `;`.
    pub(crate) fn new(kind: PropertyType) -> Self {
        Self { kind, epoch_unit_micros: None, list: ListForm::separated(b';'), zone: None }
    }

    /// A key of this type.
    pub(crate) fn key(kind: KeyType) -> Self {
        Self::new(PropertyType::Scalar(match kind {
            KeyType::Int64 => ScalarType::Int64,
            KeyType::String => ScalarType::String,
        }))
    }

    /// The same, whole numbers being milliseconds since 1970.
    pub(crate) fn or_millis(self) -> Self {
        Self { epoch_unit_micros: Some(MICROS_PER_MILLI), ..self }
    }
}

/// A column under construction.
pub(crate) struct Column {
    parse: Parse,
    values: Values,
    nulls: NullBufferBuilder,
    rows: usize,
}

enum Values {
    Bool(BooleanBufferBuilder),
    Int64(Vec<i64>),
    Float64(Vec<f64>),
    Text { ends: Vec<i32>, bytes: Vec<u8> },
    Date(Vec<i32>),
    Timestamp(Vec<i64>),
    List { ends: Vec<i32>, items: Box<Column> },
}

impl Column {
    /// An empty column.
    pub(crate) fn new(parse: Parse) -> Self {
        let values = match parse.kind {
            PropertyType::Scalar(ScalarType::Bool) => Values::Bool(BooleanBufferBuilder::new(0)),
            PropertyType::Scalar(ScalarType::Int64) => Values::Int64(Vec::new()),
            PropertyType::Scalar(ScalarType::Float64) => Values::Float64(Vec::new()),
            PropertyType::Scalar(ScalarType::String) => Values::Text { ends: vec![0], bytes: Vec::new() },
            PropertyType::Scalar(ScalarType::Date) => Values::Date(Vec::new()),
            PropertyType::Scalar(ScalarType::Timestamp) => Values::Timestamp(Vec::new()),
            PropertyType::List(scalar) => {
                let item = Parse { kind: PropertyType::Scalar(scalar), ..parse };
                Values::List { ends: vec![0], items: Box::new(Self::new(item)) }
            }
        };
        Self { parse, values, nulls: NullBufferBuilder::new(1024), rows: 0 }
    }

    /// Appends the value of a field; an empty one is a null. Returns the bytes it takes, or why it is not
    /// a value, as the end of a sentence; the column is then as it was.
    #[cfg(test)]
    fn append(&mut self, field: &[u8]) -> Result<usize, &'static str> {
        if field.is_empty() { Ok(self.append_null()) } else { self.append_value(field) }
    }

    /// As [`Self::append`], but empty text is a value.
    pub(crate) fn append_value(&mut self, field: &[u8]) -> Result<usize, &'static str> {
        let bytes = match &mut self.values {
            Values::Int64(values) => {
                values.push(int64(field)?);
                8
            }
            Values::Text { ends, bytes } => {
                // Checked once per field, so that the array is made of the bytes as they are.
                std::str::from_utf8(field).map_err(|_| "is not UTF-8 text")?;
                bytes.extend_from_slice(field);
                ends.push(i32::try_from(bytes.len()).map_err(|_| "is longer than 2 GiB")?);
                field.len() + 4
            }
            Values::Float64(values) => {
                values.push(text::float64(field)?);
                8
            }
            Values::Bool(values) => {
                values.append(boolean(field)?);
                1
            }
            Values::Date(values) => {
                values.push(date(field, self.parse.epoch_unit_micros)?);
                4
            }
            Values::Timestamp(values) => {
                values.push(timestamp(field, self.parse)?);
                8
            }
            Values::List { ends, items } => append_list(field, self.parse.list, ends, items)?,
        };
        self.nulls.append_non_null();
        self.rows += 1;
        Ok(bytes)
    }

    /// Appends a null, and returns the bytes it takes: a slot of its column like any value.
    pub(crate) fn append_null(&mut self) -> usize {
        match &mut self.values {
            Values::Bool(values) => values.append(false),
            Values::Int64(values) | Values::Timestamp(values) => values.push(0),
            Values::Float64(values) => values.push(0.0),
            Values::Date(values) => values.push(0),
            // `ends` starts with 0 and so has one more entry than rows: this one is the end of the row before.
            Values::Text { ends, .. } | Values::List { ends, .. } => ends.push(ends[self.rows]),
        }
        self.nulls.append_null();
        self.rows += 1;
        8
    }

    /// Takes back all rows from `rows` on.
    pub(crate) fn truncate(&mut self, rows: usize) {
        if rows >= self.rows {
            return;
        }
        match &mut self.values {
            Values::Bool(values) => values.truncate(rows),
            Values::Int64(values) | Values::Timestamp(values) => values.truncate(rows),
            Values::Float64(values) => values.truncate(rows),
            Values::Date(values) => values.truncate(rows),
            Values::Text { ends, bytes } => {
                ends.truncate(rows + 1);
                bytes.truncate(position(ends[rows]));
            }
            Values::List { ends, items } => {
                ends.truncate(rows + 1);
                items.truncate(position(ends[rows]));
            }
        }
        self.nulls.truncate(rows);
        self.rows = rows;
    }

    /// The array of all rows.
    pub(crate) fn finish(mut self) -> Result<ArrayRef, ArrowError> {
        let nulls = self.nulls.finish();
        Ok(match self.values {
            Values::Bool(mut values) => Arc::new(BooleanArray::new(values.finish(), nulls)),
            Values::Int64(values) => Arc::new(Int64Array::try_new(values.into(), nulls)?),
            Values::Float64(values) => Arc::new(Float64Array::try_new(values.into(), nulls)?),
            Values::Date(values) => Arc::new(Date32Array::try_new(values.into(), nulls)?),
            Values::Timestamp(values) => {
                Arc::new(TimestampMicrosecondArray::try_new(values.into(), nulls)?.with_timezone(TIMESTAMP_ZONE))
            }
            Values::Text { ends, bytes } => {
                Arc::new(StringArray::try_new(OffsetBuffer::new(ScalarBuffer::from(ends)), bytes.into(), nulls)?)
            }
            Values::List { ends, items } => {
                let item = match self.parse.kind.arrow() {
                    DataType::List(item) => item,
                    other => Arc::new(Field::new("item", other, true)),
                };
                let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
                Arc::new(ListArray::try_new(item, offsets, items.finish()?, nulls)?)
            }
        })
    }
}

/// Appends the items of a list.
fn append_list(field: &[u8], form: ListForm, ends: &mut Vec<i32>, items: &mut Column) -> Result<usize, &'static str> {
    let before = items.rows;
    let mut bytes = 4;
    let json = text::trimmed(field).filter(|text| form.json && text.starts_with('[') && text.ends_with(']'));
    if let Some(json) = json {
        for item in values::list_items(json)? {
            match item {
                Some(item) => {
                    bytes += items.append_value(item.as_bytes()).inspect_err(|_| items.truncate(before))?;
                }
                None => bytes += items.append_null(),
            }
        }
        ends.push(i32::try_from(items.rows).map_err(|_| "makes a list that is too long")?);
        return Ok(bytes);
    }
    let mut append = |item: &[u8]| {
        // Items before the bad one are in the child column already, which no end of a list covers yet.
        bytes += items.append_value(item).inspect_err(|_| items.truncate(before))?;
        Ok::<_, &'static str>(())
    };
    // Most lists are as they stand, and their items are not kept.
    if form.escape.is_some() || form.empty_items {
        form.items(field).iter().try_for_each(|item| append(item))?;
    } else {
        field.split(|&byte| byte == form.separator).filter(|item| !item.is_empty()).try_for_each(append)?;
    }
    ends.push(i32::try_from(items.rows).map_err(|_| "makes a list that is too long")?);
    Ok(bytes)
}

fn position(offset: i32) -> usize {
    usize::try_from(offset).expect("offsets grow from 0")
}

/// Days since 1970.
pub(super) fn date(field: &[u8], epoch_unit_micros: Option<i64>) -> Result<i32, &'static str> {
    if let Some(number) = epoch_unit_micros.zip(int64(field).ok()) {
        // Rounded down, so that a moment before 1970 belongs to the day it is in.
        let days = number.1.checked_mul(number.0).ok_or(OUT_OF_RANGE)?.div_euclid(MILLIS_PER_DAY * MICROS_PER_MILLI);
        return i32::try_from(days).ok().filter(|days| DATE_DAYS.contains(days)).ok_or(OUT_OF_RANGE);
    }
    text::date(field)
}

fn in_range(micros: i64) -> Result<i64, &'static str> {
    if TIMESTAMP_MICROS.contains(&micros) { Ok(micros) } else { Err(OUT_OF_RANGE) }
}

/// Microseconds since 1970. Without an offset, the time is taken as that of the column's zone, or UTC.
fn timestamp(field: &[u8], parse: Parse) -> Result<i64, &'static str> {
    if let Some((unit, number)) = parse.epoch_unit_micros.zip(int64(field).ok()) {
        return number.checked_mul(unit).ok_or(OUT_OF_RANGE).and_then(in_range);
    }
    match parse.zone {
        None => text::timestamp(field),
        Some(Zone(zone)) => text::timestamp_in(field, zone),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use arrow_array::{Array, cast::AsArray, types::TimestampMicrosecondType};

    use super::*;

    fn scalar(kind: ScalarType) -> Parse {
        Parse::new(PropertyType::Scalar(kind))
    }

    #[test]
    fn moments_are_read_in_every_notation() {
        let ldbc = scalar(ScalarType::Timestamp).or_millis();
        let mut column = Column::new(ldbc);
        for field in
            ["2010-02-14T15:32:10.447+0000", "1266161530447", "2010-02-14T15:32:10.447Z", "2010-02-14 15:32:10.447"]
        {
            column.append(field.as_bytes()).unwrap();
        }
        let array = column.finish().unwrap();
        assert_eq!(array.data_type(), &ScalarType::Timestamp.arrow());
        assert_eq!(array.as_primitive::<TimestampMicrosecondType>().values(), &[1_266_161_530_447_000; 4]);
        let plain = scalar(ScalarType::Timestamp);
        assert_eq!(timestamp(b"2010-02-14", plain), Ok(1_266_105_600_000_000));
        assert!(timestamp(b"1266161530447", plain).is_err());
        // The zone of a column is that of moments without one. In the gap of spring a clock shows an hour more, and of the two
        // hours of autumn the first is meant, as in Java.
        for (zone, field, utc) in [
            ("+02:00", "2020-01-02T03:04:05", "2020-01-02T01:04:05Z"),
            ("+0200", "2020-01-02T03:04:05Z", "2020-01-02T03:04:05Z"),
            ("Europe/Stockholm", "2020-07-02T03:04:05.0000019", "2020-07-02T01:04:05.000001Z"),
            ("Europe/Stockholm", "2020-07-02T03:04:05-01:00", "2020-07-02T04:04:05Z"),
            ("Europe/Stockholm", "2020-03-29T02:30:00", "2020-03-29T01:30:00Z"),
            ("Europe/Stockholm", "2020-10-25T02:30:00", "2020-10-25T00:30:00Z"),
            ("-05:30", "1969-12-31", "1969-12-31T05:30:00Z"),
        ] {
            let zoned = Parse { zone: Some(Zone::named(zone).unwrap()), ..plain };
            assert_eq!(timestamp(field.as_bytes(), zoned), timestamp(utc.as_bytes(), plain), "{zone} {field}");
        }
        let zoned = Parse { zone: Zone::named("-01:00"), ..plain };
        assert!(timestamp(b"9999-12-31T23:30:00", zoned).is_err());
        for unknown in ["Nowhere/Town", "+25:00", "+24:00", "+02:00[Europe/Berlin]", "", "+"] {
            assert_eq!(Zone::named(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn days_are_read_as_iso_or_as_milliseconds() {
        assert_eq!(date(b"1989-12-03", Some(1000)), Ok(7276));
        assert_eq!(date(b"628646400000", Some(1000)), Ok(7276));
        assert_eq!(date(b"-1", Some(1000)), Ok(-1));
        assert!(date(b"3. 12. 1989", None).is_err());
    }

    #[test]
    fn a_list_that_was_printed_is_the_same_list() {
        let mut column = Column::new(Parse::new(PropertyType::List(ScalarType::String)));
        column.append(br#"["a;b","",null]"#).unwrap();
        column.append(b"a;b").unwrap();
        assert!(column.append(b"[a;b]").is_err());
        let array = column.finish().unwrap();
        let items = |row: usize| {
            array
                .as_list::<i32>()
                .value(row)
                .as_string::<i32>()
                .iter()
                .map(|item| item.map(str::to_owned))
                .collect::<Vec<_>>()
        };
        assert_eq!(items(0), [Some("a;b".to_owned()), Some(String::new()), None]);
        assert_eq!(items(1), ["a", "b"].map(|item| Some(item.to_owned())));
        let exact = ListForm { empty_items: true, ..ListForm::separated(0x1f) };
        let escaped = ListForm { separator: b';', escape: Some(b'\\'), empty_items: true, json: false };
        for (form, field, expected) in [
            (exact, "", &[][..]),
            (exact, "a\x1f\x1fb;\x1f", &["a", "", "b;", ""]),
            (exact, "[\"a\"]", &["[\"a\"]"]),
            (escaped, "a\\;b;c\\d;\\", &["a;b", "c\\d", "\\"]),
            (escaped, "\\;;\\\\;x;[]", &[";", "\\;x", "[]"]),
            (ListForm { empty_items: false, ..escaped }, ";a;;\\;", &["a", ";"]),
        ] {
            let mut column = Column::new(Parse { list: form, ..Parse::new(PropertyType::List(ScalarType::String)) });
            column.append_value(field.as_bytes()).unwrap();
            let array = column.finish().unwrap();
            let found: Vec<_> =
                array.as_list::<i32>().value(0).as_string::<i32>().iter().map(|it| it.unwrap().to_owned()).collect();
            assert_eq!(found, expected, "{field:?}");
        }
        let mut numbers = Column::new(scalar(ScalarType::Float64));
        assert_eq!(numbers.append(b"1e400"), Err("is too large for a float64"));
    }

    #[test]
    fn a_row_can_be_taken_back() {
        for (kind, first, second) in [
            (PropertyType::Scalar(ScalarType::Bool), "true", "false"),
            (PropertyType::Scalar(ScalarType::Int64), "1", ""),
            (PropertyType::Scalar(ScalarType::Float64), "1.5", "2"),
            (PropertyType::Scalar(ScalarType::String), "é", "second"),
            (PropertyType::Scalar(ScalarType::Date), "2020-01-01", "2021-01-01"),
            (PropertyType::List(ScalarType::String), "a;;b", "c"),
            (PropertyType::List(ScalarType::Int64), "1;2", "3"),
        ] {
            let mut one = Column::new(Parse::new(kind));
            let mut two = Column::new(Parse::new(kind));
            one.append(first.as_bytes()).unwrap();
            two.append(first.as_bytes()).unwrap();
            two.append(second.as_bytes()).unwrap();
            two.truncate(1);
            one.append_null();
            two.append_null();
            let one = one.finish().unwrap();
            let two = two.finish().unwrap();
            assert_eq!(&one, &two);
            assert_eq!((one.data_type(), one.null_count()), (&kind.arrow(), 1));
        }
    }

    #[test]
    fn a_bad_value_leaves_the_column_as_it_was() {
        let mut column = Column::new(Parse::new(PropertyType::List(ScalarType::Int64)));
        assert_eq!(column.append(b"1;x"), Err("is not an int64"));
        column.append(b"2;3").unwrap();
        let array = column.finish().unwrap();
        assert_eq!(array.as_list::<i32>().value_length(0), 2);
        assert_eq!(Column::new(scalar(ScalarType::String)).append(&[0xff]), Err("is not UTF-8 text"));
    }
}
