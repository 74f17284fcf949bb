//! Properties as they are stored, and as queries have them.
//!
//! Types that are not stored as such, such as integers of 32 bits, UUIDs and sets, are kept as the logical type of the property.

use arrow_array::{
    Array, RecordBatch,
    cast::AsArray,
    types::{Date32Type, TimestampMicrosecondType},
};
use hoplake_engine::change::{self};
use hoplake_format::{
    CollectionType, ItemType, LogicalType,
    text::{DATE_DAYS, OUT_OF_RANGE, TIMESTAMP_MICROS},
};
use jiff::SignedDuration;
use uuid::Uuid;

use super::batch::Element;
use crate::{
    error::{Done, QueryError},
    literal::Number,
    moment::Moment,
    value::Value,
};

/// The values that a stored value is. A list of a vertex is several, unless it is one as a whole; a list of an edge is one.
pub(crate) fn values(element: Element, stored: change::Value, logical: LogicalType) -> Vec<Value> {
    let mut values = Vec::new();
    each(element, stored, logical, |value| values.push(value));
    values
}

/// As [`values`], one by one.
pub(crate) fn each(element: Element, stored: change::Value, logical: LogicalType, mut give: impl FnMut(Value)) {
    match (element, stored) {
        (_, change::Value::Null) => {}
        (Element::Vertex(_), change::Value::List(items)) if logical.collection.is_none() => {
            let items = items.into_iter().filter(|item| *item != change::Value::Null);
            items.for_each(|item| give(from_stored(item, logical)));
        }
        (_, stored) => give(from_stored(stored, logical)),
    }
}

/// Fails if a column has a date or a timestamp that no [`Moment`] is. Files, feeds, servers and queries cannot store one; a program that
/// applies batches of [`change::Value`] itself can. `owner` names the element of a row. Returns the work of it, in places looked at.
pub(crate) fn check_moments(batch: &RecordBatch, owner: impl Fn(usize) -> String) -> Done<u64> {
    let mut places = 0;
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        let Some(beyond_at) = beyond_moments(column) else { continue };
        places += column.as_list_opt::<i32>().map_or(column.len(), |lists| column.len() + lists.values().len());
        for row in 0..column.len() {
            if let Some(beyond) = beyond_at(row) {
                let name = field.name();
                let owner = owner(row);
                return Err(QueryError::wrong_type(format!(
                    "property {name} of {owner} is {beyond} after 1970-01-01, which {OUT_OF_RANGE}"
                )));
            }
        }
    }
    Ok(places as u64)
}

/// The first date or timestamp of a row that no [`Moment`] is, as the time since 1970. It is read where it is stored.
type BeyondAt<'a> = Box<dyn Fn(usize) -> Option<String> + 'a>;

/// `None` if the column has neither dates nor timestamps.
fn beyond_moments(column: &dyn Array) -> Option<BeyondAt<'_>> {
    if let Some(lists) = column.as_list_opt::<i32>() {
        let of_item = beyond_moments(lists.values())?;
        let offsets = lists.value_offsets();
        // A list that is null may have items.
        let items =
            move |row: usize| if lists.is_null(row) { 0..0 } else { offsets[row] as usize..offsets[row + 1] as usize };
        return Some(Box::new(move |row| items(row).find_map(&of_item)));
    }
    if let Some(days) = column.as_primitive_opt::<Date32Type>() {
        let is_beyond = |row: usize| days.is_valid(row) && !DATE_DAYS.contains(&days.value(row));
        return Some(Box::new(move |row| is_beyond(row).then(|| format!("{} days", days.value(row)))));
    }
    let micros = column.as_primitive_opt::<TimestampMicrosecondType>()?;
    let is_beyond = |row: usize| micros.is_valid(row) && !TIMESTAMP_MICROS.contains(&micros.value(row));
    Some(Box::new(move |row| is_beyond(row).then(|| format!("{} microseconds", micros.value(row)))))
}

/// A stored value as queries have it. [`check_moments`] has passed it.
fn from_stored(stored: change::Value, logical: LogicalType) -> Value {
    let at = |since| Value::DateTime(Moment::since_epoch(since).expect("dates are checked as they are read"));
    match (stored, logical.item) {
        (change::Value::Null, _) => Value::Null,
        (change::Value::Bool(boolean), _) => boolean.into(),
        (change::Value::Int64(number), item) => Value::Number(match item {
            Some(ItemType::Int8) => i8::try_from(number).map_or(Number::Long(number), Number::Byte),
            Some(ItemType::Int16) => i16::try_from(number).map_or(Number::Long(number), Number::Short),
            Some(ItemType::Int32) => i32::try_from(number).map_or(Number::Long(number), Number::Int),
            _ => Number::Long(number),
        }),
        (change::Value::Float64(number), Some(ItemType::Float32)) => Value::Number(Number::Float(number as f32)),
        (change::Value::Float64(number), _) => number.into(),
        (change::Value::String(text), Some(ItemType::Uuid)) => {
            Uuid::try_parse(&text).map_or_else(|_| Value::Text(text.into()), Value::Uuid)
        }
        (change::Value::String(text), _) => Value::Text(text.into()),
        (change::Value::Date(days), _) => at(SignedDuration::from_secs(i64::from(days) * 86_400)),
        (change::Value::Timestamp(micros), _) => at(SignedDuration::from_micros(micros)),
        (change::Value::List(items), _) => {
            let items = items.into_iter().map(|item| from_stored(item, logical)).collect();
            match logical.collection {
                Some(CollectionType::Set) => Value::Set(items),
                _ => Value::List(items),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Date32Array, Int64Array, ListArray, TimestampMicrosecondArray};
    use hoplake_format::{LabelId, VertexId};

    use super::*;

    #[test]
    fn dates_that_are_no_moments_are_named() {
        let days = |days: Vec<Option<i32>>| -> ArrayRef { Arc::new(Date32Array::from(days)) };
        let micros = |micros: Vec<i64>| -> ArrayRef {
            Arc::new(TimestampMicrosecondArray::from(micros).with_timezone("+00:00"))
        };
        let lists = |lists: [Option<Vec<Option<i32>>>; 2]| -> ArrayRef {
            Arc::new(ListArray::from_iter_primitive::<Date32Type, _, _>(lists))
        };
        let check = |column: &ArrayRef| {
            let batch = RecordBatch::try_from_iter([("x", column.clone())]).unwrap();
            check_moments(&batch, |row| format!("P:{row}")).map_err(|error| error.to_string())
        };
        let (first_day, last_day) = DATE_DAYS.into_inner();
        let (first, last) = TIMESTAMP_MICROS.into_inner();
        for (column, values) in [
            (days(vec![Some(first_day), None, Some(last_day)]), 2),
            (micros(vec![first, -1, last]), 3),
            (lists([None, Some(vec![Some(first_day), None, Some(last_day)])]), 2),
            (Arc::new(Int64Array::from(vec![i64::MAX])), 1),
        ] {
            assert!(check(&column).is_ok());
            let vertex = VertexId::new(LabelId(0), 0).unwrap();
            let logical = LogicalType::default();
            let mut read = Vec::new();
            for row in 0..column.len() {
                let stored = change::Value::at(&column, row);
                read.extend(super::values(Element::Vertex(vertex), stored, logical));
            }
            assert_eq!(read.len(), values, "{read:?}");
        }
        for (column, what) in [
            (days(vec![None, Some(last_day + 1)]), "P:1 is 2932897 days"),
            (days(vec![Some(first_day - 1)]), "P:0 is -4371588 days"),
            (days(vec![Some(i32::MIN)]), "P:0 is -2147483648 days"),
            (micros(vec![0, last + 1]), "P:1 is 253402300800000000 microseconds"),
            (micros(vec![first - 1]), "P:0 is -377705116800000001 microseconds"),
            (micros(vec![i64::MAX]), "P:0 is 9223372036854775807 microseconds"),
            (lists([None, Some(vec![Some(0), Some(i32::MAX)])]), "P:1 is 2147483647 days"),
        ] {
            let expected =
                format!("property x of {what} after 1970-01-01, which is not between -9999-01-01 and 9999-12-31");
            assert_eq!(check(&column), Err(expected));
        }
    }
}
