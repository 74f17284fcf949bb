//! Logical types: what writers say of their values, and whether others keep it.

use std::collections::{BTreeMap, BTreeSet};

use hoplake_format::{CollectionType, ItemType, LogicalType, Property, PropertyType};
use uuid::Uuid;

use super::{Name, Value};
use crate::float;

/// Logical types by the names of properties.
pub(super) type OfProperties = BTreeMap<Name, LogicalType>;

/// The logical types that a batch's values have, by label and property. Of one that is not named its values decide: they keep the
/// logical type of a property that is there if they can be of it, and a new property gets none.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LogicalTypes {
    vertices: BTreeMap<Name, OfProperties>,
    edges: BTreeMap<Name, OfProperties>,
}

impl LogicalTypes {
    /// Adds what a value of a property of vertices is. Of several values only what they have in common is kept.
    pub fn of_vertices(&mut self, label: &Name, property: &Name, logical: LogicalType) {
        add(&mut self.vertices, label, property, logical);
    }

    /// The same for edges of an edge label.
    pub fn of_edges(&mut self, label: &Name, property: &Name, logical: LogicalType) {
        add(&mut self.edges, label, property, logical);
    }

    /// Adds those of another batch.
    pub fn extend(&mut self, other: &Self) {
        for (ours, theirs) in [(&mut self.vertices, &other.vertices), (&mut self.edges, &other.edges)] {
            for (label, property, logical) in theirs
                .iter()
                .flat_map(|(label, all)| all.iter().map(move |(property, logical)| (label, property, logical)))
            {
                add(ours, label, property, *logical);
            }
        }
    }

    pub(super) fn vertices(&self, label: &str) -> Option<&OfProperties> {
        self.vertices.get(label)
    }

    pub(super) fn edges(&self, label: &str) -> Option<&OfProperties> {
        self.edges.get(label)
    }
}

fn add(all: &mut BTreeMap<Name, OfProperties>, label: &Name, property: &Name, logical: LogicalType) {
    let of_label = all.entry(label.clone()).or_default();
    of_label.entry(property.clone()).and_modify(|known| *known = known.meet(logical)).or_insert(logical);
}

/// What a new property is.
pub(super) fn of_new(declared: Option<&OfProperties>, name: &Name, kind: PropertyType) -> LogicalType {
    let logical = declared.and_then(|declared| declared.get(name)).copied().unwrap_or_default();
    if logical.suits(kind) { logical } else { LogicalType::default() }
}

/// Takes away what is not true of a property any more once it has a value.
pub(super) fn keep(property: &mut Property, declared: Option<&OfProperties>, name: &Name, value: &Value) {
    if property.logical == LogicalType::default() || *value == Value::Null {
        return;
    }
    if let Some(declared) = declared.and_then(|declared| declared.get(name)) {
        property.logical = property.logical.meet(*declared);
    }
    property.logical.item = property.logical.item.filter(|item| is(value, *item));
    property.logical.collection = property.logical.collection.filter(|it| *it != CollectionType::Set || is_set(value));
}

/// Whether a list has no item twice.
fn is_set(value: &Value) -> bool {
    let Value::List(items) = value else { return true };
    let mut distinct = BTreeSet::new();
    items.iter().all(|item| distinct.insert(item.to_string()))
}

/// Whether a value, or each item of a list, is of a logical type.
fn is(value: &Value, item: ItemType) -> bool {
    match (value, item) {
        (Value::Null, _) => true,
        (Value::List(items), item) => items.iter().all(|value| is(value, item)),
        (Value::Int64(number), ItemType::Int8) => i8::try_from(*number).is_ok(),
        (Value::Int64(number), ItemType::Int16) => i16::try_from(*number).is_ok(),
        (Value::Int64(number), ItemType::Int32) => i32::try_from(*number).is_ok(),
        (Value::Float64(number), ItemType::Float32) => {
            number.is_nan() || float::of_single(*number as f32).to_bits() == number.to_bits()
        }
        (Value::String(text), ItemType::Uuid) => Uuid::try_parse(text).is_ok_and(|uuid| uuid.to_string() == *text),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use hoplake_format::ScalarType;

    use super::*;

    const INT32: LogicalType = LogicalType { item: Some(ItemType::Int32), collection: None };

    fn kept(item: ItemType, value: impl Into<Value>) -> bool {
        let mut property = Property::new("p", PropertyType::Scalar(ScalarType::Int64));
        property.logical.item = Some(item);
        keep(&mut property, None, &"p".into(), &value.into());
        property.logical.item.is_some()
    }

    #[test]
    fn values_keep_what_they_can_be() {
        let edges = [
            (ItemType::Int8, i64::from(i8::MIN), i64::from(i8::MAX)),
            (ItemType::Int16, i64::from(i16::MIN), i64::from(i16::MAX)),
            (ItemType::Int32, i64::from(i32::MIN), i64::from(i32::MAX)),
        ];
        for (item, low, high) in edges {
            assert_eq!([low, high, low - 1, high + 1].map(|number| kept(item, number)), [true, true, false, false]);
        }
        assert_eq!(
            [0.1, -0.0, f64::NAN, 1e300, 0.1_f32.into()].map(|it| kept(ItemType::Float32, it)),
            [true, true, true, false, false]
        );
        assert!(kept(ItemType::Uuid, "41d2e28a-20a4-4ab0-b379-d810dede3786"));
        assert!(!kept(ItemType::Uuid, "41D2E28A-20A4-4AB0-B379-D810DEDE3786"));
        assert!(!kept(ItemType::Uuid, "ann"));
        assert!(kept(ItemType::Int32, Value::Null) && !kept(ItemType::Int32, "7"));
        assert!(kept(ItemType::Int32, Value::List(vec![1.into(), Value::Null])));
        assert!(!kept(ItemType::Int32, Value::List(vec![1.into(), i64::MAX.into()])));
    }

    #[test]
    fn writers_of_different_kinds_leave_what_they_share() {
        let label = Name::from("A");
        let name = Name::from("p");
        let list = LogicalType { collection: Some(CollectionType::List), ..INT32 };
        let mut types = LogicalTypes::default();
        types.of_vertices(&label, &name, list);
        types.of_vertices(&label, &name, INT32);
        let kind = PropertyType::List(ScalarType::Int64);
        assert_eq!(of_new(types.vertices("A"), &name, kind), INT32);
        assert_eq!(of_new(types.edges("A"), &name, kind), LogicalType::default());
        // A type that its values do not have in the end, such as an integer that became a float64.
        assert_eq!(
            of_new(types.vertices("A"), &name, PropertyType::Scalar(ScalarType::Float64)),
            LogicalType::default()
        );

        let mut property = Property { logical: list, ..Property::new("p", kind) };
        keep(&mut property, types.vertices("A"), &name, &Value::List(vec![1.into()]));
        assert_eq!(property.logical, INT32);
        property.logical.collection = Some(CollectionType::Set);
        keep(&mut property, None, &name, &Value::List(vec![1.into(), 2.into()]));
        assert_eq!(property.logical.collection, Some(CollectionType::Set));
        keep(&mut property, None, &name, &Value::List(vec![2.into(), 2.into()]));
        assert_eq!(property.logical.collection, None);
        let mut longs = LogicalTypes::default();
        longs.of_vertices(&label, &name, LogicalType::default());
        keep(&mut property, longs.vertices("A"), &name, &Value::List(vec![1.into()]));
        assert_eq!(property.logical, LogicalType::default());
    }
}
