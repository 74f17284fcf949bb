//! Properties as they are stored, and as queries have them.
//!
//! Types that are not stored as such, such as integers of 32 bits, UUIDs and sets, are kept as the logical type of the property.

use std::collections::{BTreeMap, HashMap, HashSet};

use arrow_array::{
    Array, RecordBatch,
    cast::AsArray,
    types::{Date32Type, TimestampMicrosecondType},
};
use hoplake_engine::{
    change::{self, LogicalTypes, Name as EngineName, Properties},
    float,
};
use hoplake_format::{
    CollectionType, ItemType, LogicalType, PropertyType,
    text::{DATE_DAYS, OUT_OF_RANGE, TIMESTAMP_MICROS},
};
use jiff::SignedDuration;
use uuid::Uuid;

use super::{
    Done, Run,
    batch::Element,
    by::kind_of,
    change::{NewValues, check_name},
};
use crate::{
    error::QueryError,
    literal::Number,
    moment::Moment,
    plan::Name,
    tokens::Cardinality,
    value::{Key as ValueKey, Value},
};

/// The values of properties, by name.
pub(crate) type Values = Vec<(Name, Vec<Value>)>;

/// What properties belong to, by its label.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Owner<'a> {
    Vertex(&'a str),
    Edge(&'a str),
}

impl Run {
    /// New values as they are stored, and all that the properties have then. Those of one name are put together as their cardinality
    /// says, after those of `before`.
    pub(crate) fn stored(
        &self,
        owner: Owner<'_>,
        new: &NewValues,
        before: &HashMap<Name, Vec<Value>>,
        logical_types: &mut LogicalTypes,
    ) -> Done<(Properties, Values)> {
        let mut all: BTreeMap<&Name, Put<'_>> = BTreeMap::new();
        for (name, cardinality, value) in new {
            let stored = || before.get(name).map_or_else(Vec::new, |values| values.iter().collect());
            let put = all.entry(name).or_insert_with(|| Put { values: stored(), ..Put::default() });
            match (cardinality.filter(|_| matches!(owner, Owner::Vertex(_))), value) {
                (None | Some(Cardinality::Single), Value::Null) => put.replace(None),
                (None | Some(Cardinality::Single), value) => put.replace(Some(value)),
                (Some(_), Value::Null) => {}
                (Some(Cardinality::List), value) => put.add(value),
                (Some(Cardinality::Set), value) => put.add_once(value),
            }
        }
        let mut properties = Properties::new();
        let mut now = Vec::with_capacity(all.len());
        for (name, Put { several, values, .. }) in all {
            check_name(name)?;
            let values: Vec<Value> = values.into_iter().cloned().collect();
            if let Some(logical) = logical_type(&values, several) {
                let property = EngineName::from(&**name);
                match owner {
                    Owner::Vertex(label) => logical_types.of_vertices(&label.into(), &property, logical),
                    Owner::Edge(label) => logical_types.of_edges(&label.into(), &property, logical),
                }
            }
            let value = match (several || self.is_list(owner, name), &values[..]) {
                (_, []) => change::Value::Null,
                (false, [value, ..]) | (true, [value @ (Value::List(_) | Value::Set(_))]) => to_stored(name, value)?,
                (true, values) => to_stored(name, &Value::List(values.to_vec()))?,
            };
            properties.extend([(EngineName::from(&**name), value)].into_iter().collect::<Properties>());
            now.push((name.clone(), values));
        }
        Ok((properties, now))
    }

    /// Whether a property of vertices is a list already, so that a value becomes one of several.
    fn is_list(&self, owner: Owner<'_>, name: &str) -> bool {
        let Owner::Vertex(label) = owner else { return false };
        let schema = self.snapshot.schema();
        let label = schema.label_id(label).and_then(|id| schema.label(id));
        let property = label.and_then(|label| label.properties.iter().find(|property| property.name == name));
        property.is_some_and(|property| matches!(property.kind, PropertyType::List(_)))
    }
}

/// What a property is to have.
#[derive(Debug, Default)]
struct Put<'a> {
    several: bool,
    values: Vec<&'a Value>,
    /// The first of the values, as far as one was sought among them.
    sought: HashSet<ValueKey<'a>>,
    sought_to: usize,
}

impl<'a> Put<'a> {
    fn replace(&mut self, value: Option<&'a Value>) {
        *self = Self { several: self.several, values: value.into_iter().collect(), ..Self::default() };
    }

    fn add(&mut self, value: &'a Value) {
        self.several = true;
        self.values.push(value);
    }

    fn add_once(&mut self, value: &'a Value) {
        self.several = true;
        self.sought.extend(self.values[self.sought_to..].iter().map(|value| ValueKey(value)));
        if self.sought.insert(ValueKey(value)) {
            self.values.push(value);
        }
        self.sought_to = self.values.len();
    }
}

/// What values of a property are beyond their types; `None` if there is none of them.
fn logical_type(values: &[Value], several: bool) -> Option<LogicalType> {
    let of_value = |value: &Value| match value {
        Value::List(items) => collection(items, CollectionType::List),
        Value::Set(items) => collection(items, CollectionType::Set),
        value => LogicalType { item: item_type(value), collection: None },
    };
    let logical = values.iter().map(of_value).reduce(LogicalType::meet)?;
    Some(if several { LogicalType { collection: None, ..logical } } else { logical })
}

fn collection(items: &[Value], collection: CollectionType) -> LogicalType {
    let mut types = items.iter().filter(|item| !matches!(item, Value::Null)).map(item_type);
    let first = types.next().flatten();
    let item = if types.all(|item| item == first) { first } else { None };
    LogicalType { item, collection: Some(collection) }
}

fn item_type(value: &Value) -> Option<ItemType> {
    match value {
        Value::Number(Number::Byte(_)) => Some(ItemType::Int8),
        Value::Number(Number::Short(_)) => Some(ItemType::Int16),
        Value::Number(Number::Int(_)) => Some(ItemType::Int32),
        Value::Number(Number::Float(_)) => Some(ItemType::Float32),
        Value::Uuid(_) => Some(ItemType::Uuid),
        _ => None,
    }
}

/// A value as it is stored.
pub(crate) fn to_stored(name: &str, value: &Value) -> Done<change::Value> {
    let cannot = |what: &str| {
        QueryError::wrong_type(format!(
            "Property value [{what}] for the property {name:?} is of a type that is not supported"
        ))
    };
    Ok(match value {
        Value::Null => change::Value::Null,
        Value::Boolean(boolean) => change::Value::Bool(*boolean),
        Value::Number(number) => match number {
            Number::Byte(_) | Number::Short(_) | Number::Int(_) | Number::Long(_) => {
                change::Value::Int64(crate::value::to_i64(number))
            }
            Number::Float(float) => change::Value::Float64(float::of_single(*float)),
            Number::Double(double) => change::Value::Float64(*double),
            Number::BigInteger(big) => match i64::try_from(big) {
                Ok(number) => change::Value::Int64(number),
                Err(_) => return Err(cannot("an integer of more than 64 bits")),
            },
            Number::BigDecimal(_) => change::Value::Float64(crate::value::to_f64(number)),
        },
        Value::Text(text) => change::Value::String(text.to_string()),
        Value::Char(character) => change::Value::String(character.to_string()),
        Value::Uuid(uuid) => change::Value::String(uuid.to_string()),
        Value::DateTime(moment) => change::Value::Timestamp(moment.micros()),
        Value::List(items) | Value::Set(items) => {
            change::Value::List(items.iter().map(|item| to_stored(name, item)).collect::<Done<_>>()?)
        }
        other => return Err(cannot(kind_of(other))),
    })
}

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
                let (name, owner) = (field.name(), owner(row));
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
            let (vertex, logical) = (VertexId::new(LabelId(0), 0).unwrap(), LogicalType::default());
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

    #[test]
    fn values_are_put_together_in_their_order() {
        let values: Vec<Value> = (0..4).map(Value::from).collect();
        let mut put = Put::default();
        put.add(&values[0]);
        put.add(&values[0]);
        put.add_once(&values[0]);
        put.add_once(&values[1]);
        put.add_once(&values[1]);
        put.add(&values[2]);
        put.add_once(&values[2]);
        assert_eq!(put.values, [&values[0], &values[0], &values[1], &values[2]]);
        put.replace(Some(&values[3]));
        put.add_once(&values[3]);
        put.add_once(&values[0]);
        assert_eq!(put.values, [&values[3], &values[0]]);
        assert!(put.several);
        put.replace(None);
        assert!(put.values.is_empty());
    }
}
