//! Properties as they are stored.
//!
//! Types that are not stored as such, such as integers of 32 bits, UUIDs and sets, are kept as the logical type of the property.

use std::collections::{BTreeMap, HashMap, HashSet};

use hoplake_engine::{
    change::{self, LogicalTypes, Name as EngineName, Properties},
    float,
};
use hoplake_format::{CollectionType, ItemType, LogicalType, PropertyType};

use super::{
    Run,
    change::{NewValues, check_name},
};
use crate::{
    error::{Done, QueryError},
    literal::Number,
    plan::Name,
    tokens::Cardinality,
    value::{Key as ValueKey, Value, kind_of},
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

#[cfg(test)]
mod tests {
    use super::*;

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
