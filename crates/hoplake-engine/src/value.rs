//! Values of properties one by one, as changes have them, and their Arrow columns.

use std::{fmt, sync::Arc};

use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Float64Array, Int64Array, ListArray, StringArray,
    TimestampMicrosecondArray,
    cast::AsArray,
    types::{Date32Type, Float64Type, Int64Type, TimestampMicrosecondType},
};
use arrow_schema::{ArrowError, DataType};
use hoplake_format::{PropertyType, ScalarType, TIMESTAMP_ZONE};
use jiff::{SignedDuration, civil};

use crate::float;

/// The value of a property.
///
/// Two are equal as conditions and keys of edges have it: −0.0 is 0.0, and any NaN is NaN. [`Self::is_same`]
/// distinguishes these.
#[derive(Debug, Clone)]
pub enum Value {
    /// None: the property is absent.
    Null,
    /// True or false.
    Bool(bool),
    /// An integer.
    Int64(i64),
    /// A floating-point number.
    Float64(f64),
    /// Text.
    String(String),
    /// A calendar day, as days since 1970-01-01.
    Date(i32),
    /// A moment, as microseconds since 1970-01-01T00:00:00Z.
    Timestamp(i64),
    /// A list of values of one type.
    List(Vec<Value>),
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int64(a), Self::Int64(b)) => a == b,
            (Self::Float64(a), Self::Float64(b)) => float::compare(*a, *b).is_eq(),
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Date(a), Self::Date(b)) => a == b,
            (Self::Timestamp(a), Self::Timestamp(b)) => a == b,
            (Self::List(a), Self::List(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Value {}

impl Value {
    /// Whether both are stored alike, floating-point numbers bit for bit.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Float64(a), Self::Float64(b)) => a.to_bits() == b.to_bits(),
            (Self::List(a), Self::List(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_same(b)),
            _ => self == other,
        }
    }

    /// One value of a column of a property; null of a column that no property has.
    pub fn at(column: &dyn Array, row: usize) -> Self {
        if column.is_null(row) {
            return Self::Null;
        }
        match column.data_type() {
            DataType::Boolean => Self::Bool(column.as_boolean().value(row)),
            DataType::Int64 => Self::Int64(column.as_primitive::<Int64Type>().value(row)),
            DataType::Float64 => Self::Float64(column.as_primitive::<Float64Type>().value(row)),
            DataType::Utf8 => Self::String(column.as_string::<i32>().value(row).to_owned()),
            DataType::Date32 => Self::Date(column.as_primitive::<Date32Type>().value(row)),
            DataType::Timestamp(..) => Self::Timestamp(column.as_primitive::<TimestampMicrosecondType>().value(row)),
            DataType::List(_) => {
                let items = column.as_list::<i32>().value(row);
                Self::List((0..items.len()).map(|item| Self::at(&items, item)).collect())
            }
            _ => Self::Null,
        }
    }

    /// The memory that it takes besides its own size.
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Self::String(text) => text.capacity(),
            Self::List(items) => {
                items.capacity() * size_of::<Self>() + items.iter().map(Self::heap_bytes).sum::<usize>()
            }
            _ => 0,
        }
    }

    /// The type of property that holds it; `None` of null and of lists that are empty or of several types.
    pub fn property_type(&self) -> Option<PropertyType> {
        match self {
            Self::List(items) => {
                // Nulls fit every type, so they do not decide on it.
                let mut types = items.iter().filter(|item| **item != Self::Null).map(Self::scalar_type);
                let first = types.next()??;
                types.all(|it| it == Some(first)).then_some(PropertyType::List(first))
            }
            scalar => scalar.scalar_type().map(PropertyType::Scalar),
        }
    }

    fn scalar_type(&self) -> Option<ScalarType> {
        match self {
            Self::Bool(_) => Some(ScalarType::Bool),
            Self::Int64(_) => Some(ScalarType::Int64),
            Self::Float64(_) => Some(ScalarType::Float64),
            Self::String(_) => Some(ScalarType::String),
            Self::Date(_) => Some(ScalarType::Date),
            Self::Timestamp(_) => Some(ScalarType::Timestamp),
            Self::Null | Self::List(_) => None,
        }
    }

    /// Whether a property of this type holds it as it is.
    pub(crate) fn is_of(&self, kind: PropertyType) -> bool {
        match (self, kind) {
            (Self::Null, _) => true,
            (Self::List(items), PropertyType::List(scalar)) => {
                items.iter().all(|item| item.is_of(PropertyType::Scalar(scalar)))
            }
            (value, PropertyType::Scalar(scalar)) => value.scalar_type() == Some(scalar),
            _ => false,
        }
    }

    /// Itself as a property of this type has it: an integer becomes a floating-point number where the type is one and
    /// has that integer. `None` if the type cannot hold it.
    pub fn conform(self, kind: PropertyType) -> Option<Self> {
        match (self, kind) {
            (Self::Null, _) => Some(Self::Null),
            (Self::List(items), PropertyType::List(scalar)) => {
                let items = items.into_iter().map(|item| item.conform(PropertyType::Scalar(scalar)));
                items.collect::<Option<_>>().map(Self::List)
            }
            (Self::Int64(number), PropertyType::Scalar(ScalarType::Float64)) => {
                float::exactly(number).map(Self::Float64)
            }
            (value, PropertyType::Scalar(scalar)) if value.scalar_type() == Some(scalar) => Some(value),
            _ => None,
        }
    }
}

/// The form in messages: text in quotes, dates and moments in ISO 8601.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int64(value) => write!(f, "{value}"),
            Self::Float64(value) => f.write_str(&float::text(*value)),
            Self::String(value) => write!(f, "{value:?}"),
            Self::Date(days) => f.write_str(&date_text(*days)),
            Self::Timestamp(micros) => f.write_str(&timestamp_text(*micros)),
            Self::List(items) => {
                let items: Vec<_> = items.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", items.join(", "))
            }
        }
    }
}

/// Days since 1970-01-01 as an ISO 8601 date; the number where no calendar has it.
pub fn date_text(days: i32) -> String {
    let date = civil::date(1970, 1, 1).checked_add(SignedDuration::from_hours(24 * i64::from(days)));
    date.map_or_else(|_| days.to_string(), |date| date.to_string())
}

/// Microseconds since 1970 as an ISO 8601 moment in UTC; the number where no calendar has it.
pub fn timestamp_text(micros: i64) -> String {
    // By way of a civil time: a moment of the library ends a day before the year 9999 does.
    let at = civil::date(1970, 1, 1).at(0, 0, 0, 0).checked_add(SignedDuration::from_micros(micros));
    at.map_or_else(|_| micros.to_string(), |at| format!("{at}Z"))
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int64(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float64(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::String(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::String(value)
    }
}

/// A column of values that fit its type, as [`Value::conform`] has them; others are null.
pub fn column<'a>(values: impl Iterator<Item = &'a Value>, kind: PropertyType) -> Result<ArrayRef, ArrowError> {
    let scalar = match kind {
        PropertyType::Scalar(scalar) => return Ok(scalars(values, scalar)),
        PropertyType::List(scalar) => scalar,
    };
    let mut items = Vec::new();
    let mut lengths = Vec::new();
    let mut there = Vec::new();
    for value in values {
        let list = if let Value::List(list) = value { list.as_slice() } else { &[] };
        items.extend(list);
        lengths.push(list.len());
        // An empty list and no list have the same length, so a bitmap distinguishes them.
        there.push(*value != Value::Null);
    }
    let field = match kind.arrow() {
        DataType::List(field) => field,
        other => return Err(ArrowError::SchemaError(format!("{other} is not a list"))),
    };
    let offsets = arrow_buffer::OffsetBuffer::from_lengths(lengths);
    let list = ListArray::try_new(field, offsets, scalars(items.into_iter(), scalar), Some(there.into()))?;
    Ok(Arc::new(list))
}

fn scalars<'a>(values: impl Iterator<Item = &'a Value>, scalar: ScalarType) -> ArrayRef {
    macro_rules! of {
        ($array:ident, $variant:ident) => {
            values.map(|value| if let Value::$variant(value) = value { Some(*value) } else { None }).collect::<$array>()
        };
    }
    match scalar {
        ScalarType::Bool => Arc::new(of!(BooleanArray, Bool)),
        ScalarType::Int64 => Arc::new(of!(Int64Array, Int64)),
        ScalarType::Float64 => {
            let number = |value: &Value| match value {
                Value::Float64(number) => Some(*number),
                // Exact: `fit` has rejected integers that a float64 cannot hold.
                Value::Int64(number) => Some(*number as f64),
                _ => None,
            };
            Arc::new(values.map(number).collect::<Float64Array>())
        }
        ScalarType::String => {
            let text = |value: &'a Value| if let Value::String(text) = value { Some(text) } else { None };
            Arc::new(values.map(text).collect::<StringArray>())
        }
        ScalarType::Date => Arc::new(of!(Date32Array, Date)),
        ScalarType::Timestamp => Arc::new(of!(TimestampMicrosecondArray, Timestamp).with_timezone(TIMESTAMP_ZONE)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_is_not_always_the_same() {
        let zero = Value::Float64(0.0);
        let minus = Value::Float64(-0.0);
        let nan = Value::Float64(f64::NAN);
        let other = Value::Float64(f64::from_bits(0xfff8_0000_0000_0001));
        assert_eq!((&zero, &nan), (&minus, &other));
        assert!(!zero.is_same(&minus) && !nan.is_same(&other) && nan.is_same(&nan));
        let list = |value: &Value| Value::List(vec![value.clone()]);
        assert!(list(&zero) == list(&minus) && !list(&zero).is_same(&list(&minus)));
    }

    #[test]
    fn values_are_shown_as_they_are_written() {
        let list = Value::List(vec![Value::Date(20_513), Value::Null, "a".into()]);
        for (value, text) in [
            (Value::Date(20_513), "2026-03-01"),
            (Value::Timestamp(1_266_161_530_447_001), "2010-02-14T15:32:10.447001Z"),
            (Value::Float64(3.0), "3.0"),
            (Value::Float64(1e300), "1e300"),
            (Value::Float64(f64::NEG_INFINITY), "-Infinity"),
            (list, "[2026-03-01, null, \"a\"]"),
        ] {
            assert_eq!(value.to_string(), text);
        }
        // No calendar has them.
        assert_eq!(timestamp_text(i64::MAX), i64::MAX.to_string());
    }

    #[test]
    fn a_column_widens_what_it_has() {
        let list = |items: Vec<Value>| Value::List(items);
        for (kind, value, expected) in [
            (PropertyType::Scalar(ScalarType::Float64), Value::Int64(3), Value::Float64(3.0)),
            (
                PropertyType::List(ScalarType::Float64),
                list(vec![Value::Int64(3), Value::Float64(0.5)]),
                list(vec![Value::Float64(3.0), Value::Float64(0.5)]),
            ),
        ] {
            let column = column([&value, &Value::Null].into_iter(), kind).unwrap();
            assert_eq!(Value::at(&column, 0), expected);
            assert_eq!(value.conform(kind), Some(expected));
            assert_eq!(Value::at(&column, 1), Value::Null);
        }
    }
}
