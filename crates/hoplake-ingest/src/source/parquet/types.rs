//! The conversion of columns of Parquet files: the property types of Arrow types, their names for people, and the
//! casts.
//!
//! A cast converts a column at once. A value that does not fit becomes null, which the caller distinguishes from
//! earlier nulls; so nothing is rounded or cut in silence, but for moments and dates, which are kept to the microsecond
//! and the day.

use std::{ops::RangeInclusive, sync::Arc};

use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, FixedSizeBinaryArray, Float64Array, ListArray, PrimitiveArray, RecordBatch,
    StringArray, TimestampMicrosecondArray,
    cast::AsArray,
    types::{Date32Type, Int64Type, TimestampMicrosecondType, TimestampNanosecondType, UInt64Type},
};
use arrow_buffer::NullBuffer;
use arrow_cast::{CastOptions, can_cast_types, cast_with_options, display::array_value_to_string};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, TimeUnit};
use hoplake_format::{
    KeyType, PropertyType, ScalarType, TIMESTAMP_ZONE,
    text::{DATE_DAYS, TIMESTAMP_MICROS},
};
use parquet::{
    arrow::parquet_to_arrow_schema,
    basic::{LogicalType, Type as PhysicalType},
    errors::ParquetError,
    schema::types::{SchemaDescriptor, Type},
};
use uuid::Uuid;

use crate::source::column::Parse;

const MICROS_PER_MILLI: i64 = 1_000;
const UUID_BYTES: i32 = 16;

/// A column of a Parquet file.
#[derive(Debug, Clone)]
pub(crate) struct ParquetColumn {
    pub(crate) name: String,
    /// Its type, for messages.
    pub(crate) type_name: String,
    /// The type of property it becomes by default; `None` if it cannot be one.
    pub(crate) property: Option<PropertyType>,
    /// The type of the keys it holds, if it can hold keys.
    pub(crate) key: Option<KeyType>,
    /// Whether it can be a weight.
    pub(crate) is_number: bool,
    arrow: DataType,
}

impl ParquetColumn {
    /// The columns of a file. `fields` are their types as the writer declared them, which may be more precise than
    /// Parquet can.
    pub(crate) fn all(fields: &Fields, schema: &SchemaDescriptor) -> Vec<Self> {
        let of_parquet = schema.root_schema().get_fields();
        fields.iter().zip(of_parquet).map(|(field, of_parquet)| Self::new(field, of_parquet)).collect()
    }

    fn new(field: &Field, of_parquet: &Type) -> Self {
        // As an Arrow type, a UUID is any sixteen bytes; only Parquet's own schema says more.
        let is_uuid = of_parquet.get_basic_info().logical_type_ref() == Some(&LogicalType::Uuid)
            && *field.data_type() == DataType::FixedSizeBinary(UUID_BYTES);
        let scalar = if is_uuid { Some(ScalarType::String) } else { scalar_type(field.data_type()) };
        Self {
            name: field.name().clone(),
            type_name: if is_uuid { "UUID".into() } else { type_name(field.data_type()) },
            property: if is_uuid { scalar.map(PropertyType::Scalar) } else { property_type(field.data_type()) },
            key: match scalar {
                Some(ScalarType::Int64) => Some(KeyType::Int64),
                Some(ScalarType::String) => Some(KeyType::String),
                _ => None,
            },
            is_number: matches!(scalar, Some(ScalarType::Int64 | ScalarType::Float64)),
            arrow: field.data_type().clone(),
        }
    }

    /// `column "x" (UUID)`, for messages.
    pub(crate) fn shown(&self) -> String {
        format!("{:?} ({})", self.name, self.type_name)
    }

    /// Whether its values can be read so.
    pub(crate) fn can_be(&self, parse: Parse) -> bool {
        let item = |column: &DataType| match column {
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                Some(item.data_type().clone())
            }
            _ => None,
        };
        match (parse.kind, item(&self.arrow)) {
            _ if self.property.is_none() => false,
            (PropertyType::List(scalar), Some(item)) => can_cast_types(&item, &scalar.arrow()),
            (PropertyType::Scalar(scalar), None) if self.type_name == "UUID" => scalar == ScalarType::String,
            // Arrow would cast any integer to a moment or a day; only a unit in the mapping says what it counts.
            (PropertyType::Scalar(ScalarType::Timestamp), None) if self.arrow.is_integer() => {
                parse.epoch_unit_micros.is_some()
            }
            (PropertyType::Scalar(ScalarType::Date), None) if self.arrow.is_integer() => false,
            (PropertyType::Scalar(scalar), None) => can_cast_types(&self.arrow, &scalar.arrow()),
            _ => false,
        }
    }
}

/// The names and types of columns that cannot become properties, if any.
pub(crate) fn rejected<'a>(columns: impl Iterator<Item = &'a ParquetColumn>) -> Option<String> {
    let rejected: Vec<_> = columns.filter(|column| column.property.is_none()).map(ParquetColumn::shown).collect();
    match &rejected[..] {
        [] => None,
        [one] => Some(format!("has column {one}, a type that no property has")),
        many => Some(format!("has columns {}, types that no property has", many.join(", "))),
    }
}

/// The type of property that an Arrow column becomes.
pub(crate) fn property_type(column: &DataType) -> Option<PropertyType> {
    match column {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            scalar_type(item.data_type()).map(PropertyType::List)
        }
        other => scalar_type(other).map(PropertyType::Scalar),
    }
}

fn scalar_type(column: &DataType) -> Option<ScalarType> {
    Some(match column {
        DataType::Boolean => ScalarType::Bool,
        integer if integer.is_integer() => ScalarType::Int64,
        float if float.is_floating() => ScalarType::Float64,
        // Without digits after the point, a decimal is a whole number; one beyond int64 is a bad row.
        DataType::Decimal32(_, 0)
        | DataType::Decimal64(_, 0)
        | DataType::Decimal128(_, 0)
        | DataType::Decimal256(_, 0) => ScalarType::Int64,
        decimal if decimal.is_decimal() => ScalarType::Float64,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => ScalarType::String,
        DataType::Date32 | DataType::Date64 => ScalarType::Date,
        DataType::Timestamp(_, _) => ScalarType::Timestamp,
        DataType::Dictionary(_, values) => return scalar_type(values),
        _ => return None,
    })
}

/// A value, for messages. Arrow shows moments only without a zone or in one given as an offset.
pub(crate) fn shown(array: &ArrayRef, row: usize) -> String {
    let one = array.slice(row, 1);
    let plain = match array.data_type() {
        DataType::Timestamp(unit, Some(_)) => {
            cast_with_options(&one, &DataType::Timestamp(*unit, None), &CastOptions::default())
        }
        _ => Ok(one),
    };
    let text = plain.and_then(|plain| array_value_to_string(&plain, 0));
    text.unwrap_or_else(|_| "a value that no calendar has".into())
}

/// The name of a type, for people.
pub(crate) fn type_name(column: &DataType) -> String {
    match column {
        DataType::Null => "null".into(),
        DataType::Boolean => "bool".into(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "string".into(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "binary".into(),
        DataType::FixedSizeBinary(bytes) => format!("binary of {bytes} bytes"),
        DataType::Date32 | DataType::Date64 => "date".into(),
        DataType::Timestamp(..) => "timestamp".into(),
        DataType::Time32(_) | DataType::Time64(_) => "time of day".into(),
        DataType::Duration(_) => "duration".into(),
        DataType::Interval(_) => "interval".into(),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            format!("list of {}", type_name(item.data_type()))
        }
        DataType::Struct(_) => "struct".into(),
        DataType::Map(..) => "map".into(),
        DataType::Dictionary(_, values) => type_name(values),
        decimal if decimal.is_decimal() => "decimal".into(),
        other => other.to_string().to_lowercase(),
    }
}

/// The types in which the columns of a file are decoded, if they are not all those that Parquet's reader chooses: moments of 96 bits
/// are microseconds instead of nanoseconds, which end in the years 1677 and 2262 and wrap around beyond.
pub(super) fn exact(schema: &SchemaDescriptor) -> Result<Option<Fields>, ParquetError> {
    let of_root = |root: usize| (0..schema.num_columns()).filter(move |leaf| schema.get_column_root_idx(*leaf) == root);
    let is_int96 = |leaf: usize| schema.column(leaf).physical_type() == PhysicalType::INT96;
    if !(0..schema.num_columns()).any(is_int96) {
        return Ok(None);
    }
    let chosen = parquet_to_arrow_schema(schema, None)?.fields;
    // No property is a structure, so that a root with such a moment has no other leaf.
    let exact = |(root, field): (usize, &Arc<Field>)| match of_root(root).all(is_int96) {
        true => Arc::new(in_micros(field)),
        false => Arc::clone(field),
    };
    Ok(Some(chosen.iter().enumerate().map(exact).collect()))
}

fn in_micros(field: &Field) -> Field {
    let kind = match field.data_type() {
        DataType::Timestamp(TimeUnit::Nanosecond, None) => DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::List(item) => DataType::List(Arc::new(in_micros(item))),
        other => other.clone(),
    };
    field.clone().with_data_type(kind)
}

/// The type of a column that is stored as plain numbers, whose meaning only the writer's own schema has: moments in
/// seconds and dates in milliseconds.
pub(super) fn restored(column: &DataType) -> Option<DataType> {
    // Parquet's moments start at milliseconds and its dates are in days; Arrow writes these two as plain int64.
    let number = |column: &DataType| matches!(column, DataType::Date64 | DataType::Timestamp(TimeUnit::Second, _));
    match column {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            number(item.data_type()).then(|| DataType::List(Arc::clone(item)))
        }
        other => number(other).then(|| other.clone()),
    }
}

fn is_moment(column: &DataType) -> bool {
    match column {
        DataType::List(item) => is_moment(item.data_type()),
        other => matches!(other, DataType::Timestamp(..)),
    }
}

/// Gives columns the types that they were written with.
pub(super) fn restore(batch: &RecordBatch, types: &[Option<DataType>]) -> Result<RecordBatch, ArrowError> {
    if types.iter().all(Option::is_none) {
        return Ok(batch.clone());
    }
    let mut fields = Vec::new();
    let mut columns = Vec::new();
    for ((field, column), restored) in batch.schema().fields().iter().zip(batch.columns()).zip(types) {
        // A moment of 96 bits is one already, whatever its writer says.
        let column = match restored.as_ref().filter(|_| !is_moment(column.data_type())) {
            Some(restored) => cast_with_options(column, restored, &CastOptions::default())?,
            None => Arc::clone(column),
        };
        fields.push(field.as_ref().clone().with_data_type(column.data_type().clone()));
        columns.push(column);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

/// Casts a column; values that do not fit become nulls, and so do lists with such a value.
pub(crate) fn cast(array: &ArrayRef, parse: Parse) -> Result<ArrayRef, ArrowError> {
    if let PropertyType::List(scalar) = parse.kind {
        return cast_list(array, Parse { kind: PropertyType::Scalar(scalar), ..parse });
    }
    let wanted = parse.kind.arrow();
    let options = CastOptions { safe: true, ..CastOptions::default() };
    match &wanted {
        DataType::Timestamp(..) => {
            within(moments(array, parse, &options)?.as_primitive::<TimestampMicrosecondType>(), TIMESTAMP_MICROS)
        }
        DataType::Date32 => {
            within(cast_with_options(array, &wanted, &options)?.as_primitive::<Date32Type>(), DATE_DAYS)
        }
        DataType::Utf8 => match array.as_fixed_size_binary_opt() {
            Some(uuids) => Ok(Arc::new(uuid_texts(uuids))),
            None => cast_with_options(array, &wanted, &options),
        },
        DataType::Float64 if array.data_type().is_integer() => exact_floats(array, &options),
        same if same == array.data_type() => Ok(Arc::clone(array)),
        _ => cast_with_options(array, &wanted, &options),
    }
}

/// Integers as floating-point numbers; those that have no exact one become nulls.
fn exact_floats(array: &ArrayRef, options: &CastOptions<'_>) -> Result<ArrayRef, ArrowError> {
    let exact = |integer: i128| {
        let float = integer as f64;
        (float as i128 == integer).then_some(float)
    };
    let floats: Float64Array = match array.data_type() {
        DataType::Int64 => array.as_primitive::<Int64Type>().unary_opt(|integer| exact(integer.into())),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().unary_opt(|integer| exact(integer.into())),
        // All of 32 bits have one.
        _ => return cast_with_options(array, &DataType::Float64, options),
    };
    Ok(Arc::new(floats))
}

/// Values outside of a range become nulls.
fn within<T: ArrowPrimitiveType>(
    values: &PrimitiveArray<T>,
    range: RangeInclusive<T::Native>,
) -> Result<ArrayRef, ArrowError> {
    // The usual case costs no copy. Slots under a null may hold anything and at worst lead to the copy.
    if values.values().iter().all(|value| range.contains(value)) {
        return Ok(Arc::new(values.clone()));
    }
    let kept: PrimitiveArray<T> = values.unary_opt(|value| range.contains(&value).then_some(value));
    Ok(Arc::new(kept.with_data_type(values.data_type().clone())))
}

fn cast_list(array: &ArrayRef, item: Parse) -> Result<ArrayRef, ArrowError> {
    let (DataType::List(of) | DataType::LargeList(of) | DataType::FixedSizeList(of, _)) = array.data_type() else {
        return cast_with_options(array, &PropertyType::List(ScalarType::String).arrow(), &CastOptions::default());
    };
    // Three kinds of lists become one, so that the items can be cast as a column and the offsets kept.
    let lists = cast_with_options(array, &DataType::List(Arc::clone(of)), &CastOptions::default())?;
    let lists = lists.as_list::<i32>();
    let items = cast(lists.values(), item)?;
    let lost = |at: usize| items.is_null(at) && !lists.values().is_null(at);
    let mut nulls = lists.nulls().cloned();
    // The caller compares the nulls of rows alone: an item that was lost has to make its list null.
    if items.null_count() > lists.values().null_count() {
        let whole = |row: usize| {
            let from = lists.value_offsets()[row] as usize;
            let to = lists.value_offsets()[row + 1] as usize;
            lists.is_valid(row) && !(from..to).any(lost)
        };
        nulls = Some(NullBuffer::from_iter((0..lists.len()).map(whole)));
    }
    let field = Arc::new(Field::new("item", items.data_type().clone(), true));
    Ok(Arc::new(ListArray::try_new(field, lists.offsets().clone(), items, nulls)?))
}

/// Microseconds in UTC. Arrow counts moments with a zone from 1970 in UTC already; those without one are
/// taken as UTC, so that in both cases only the unit changes.
fn moments(array: &ArrayRef, parse: Parse, options: &CastOptions<'_>) -> Result<ArrayRef, ArrowError> {
    let mut array = Arc::clone(array);
    if let Some(unit) = parse.epoch_unit_micros.filter(|_| array.data_type().is_integer()) {
        let unit = match unit {
            1 => TimeUnit::Microsecond,
            MICROS_PER_MILLI => TimeUnit::Millisecond,
            _ => TimeUnit::Second,
        };
        let numbers = cast_with_options(&array, &DataType::Int64, options)?;
        // The same numbers under another type; the unit changes below.
        array = cast_with_options(&numbers, &DataType::Timestamp(unit, None), options)?;
    }
    let zone = match array.data_type() {
        DataType::Timestamp(_, zone) => zone.clone(),
        _ => None,
    };
    if let DataType::Timestamp(TimeUnit::Nanosecond, _) = array.data_type() {
        // Rounded down as text is; a cast would round to 1970.
        let nanos = array.as_primitive::<TimestampNanosecondType>();
        let micros: TimestampMicrosecondArray = nanos.unary(|nanos| nanos.div_euclid(1_000));
        return Ok(Arc::new(micros.with_timezone(TIMESTAMP_ZONE)));
    }
    let moments = cast_with_options(&array, &DataType::Timestamp(TimeUnit::Microsecond, zone), options)?;
    Ok(Arc::new(moments.as_primitive::<TimestampMicrosecondType>().clone().with_timezone(TIMESTAMP_ZONE)))
}

/// UUIDs as text in their usual form, in lower case.
fn uuid_texts(uuids: &FixedSizeBinaryArray) -> StringArray {
    let text = |bytes: &[u8]| Uuid::from_slice(bytes).map_or_else(|_| hex::encode(bytes), |uuid| uuid.to_string());
    uuids.iter().map(|uuid| uuid.map(text)).collect()
}
