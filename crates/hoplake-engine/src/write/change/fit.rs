//! Values against the types of properties: which may be new, and when an integer property becomes float64.

use std::collections::HashMap;

use arrow_array::Array;
use foldhash::fast::RandomState;
use hoplake_format::{LogicalType, PROPERTIES_MAX, Property, PropertyType, ScalarType};

use super::{
    Columns, EdgeKey, Name, Operation, Properties, Value,
    logical::{OfProperties, keep, of_new},
    names::{At, Single},
    resolved::{Pair, Resolved, Vertex},
    retype::Free,
};
use crate::{EngineError, Rejection};

/// A value that a property cannot hold.
#[derive(Debug)]
pub(super) struct Misfit {
    pub(super) property: Name,
    value: Value,
    rejection: Rejection,
    why: String,
}

/// Where the properties of a label or an edge type are, by name: a batch may have a million values of a thousand properties.
#[derive(Debug, Default)]
pub(super) struct PropertyPositions(HashMap<String, usize, RandomState>);

impl PropertyPositions {
    /// The position of a property among those that are known, which only ever become more.
    fn of(&mut self, known: &[Property], name: &str) -> Option<usize> {
        // Names are unique and only ever appended, so the number of entries is the position of the first unknown one.
        for (position, property) in known.iter().enumerate().skip(self.0.len()) {
            self.0.insert(property.name.clone(), position);
        }
        self.0.get(name).copied()
    }
}

/// Extends properties for values: adds new ones, widens int64 to float64, and gives another type to those that are free. Returns whether
/// all values have to be looked at again, because a type has changed, or because a list that is empty waits for another value to show the
/// type of its property. In the last pass such a list is rejected.
pub(super) fn fit(
    owner: &str,
    known: &mut Vec<Property>,
    positions: &mut PropertyPositions,
    values: &Properties,
    declared: Option<&OfProperties>,
    free: &mut Free<'_>,
    is_last: bool,
) -> Result<bool, Misfit> {
    let mut again = false;
    for (name, value) in values {
        let position = positions.of(known, name);
        let shows_no_type = position.is_none() && *value != Value::Null && value.property_type().is_none();
        again |= (shows_no_type && !is_last) || fit_value(owner, known, position, (name, value), declared, free)?;
    }
    Ok(again)
}

/// The same for some rows of columns; the error has the row. Only where types differ is a value looked at.
pub(super) fn fit_columns(
    owner: &str,
    known: &mut Vec<Property>,
    columns: &Columns,
    declared: Option<&OfProperties>,
    free: &mut Free<'_>,
    rows: &[usize],
) -> Result<bool, (usize, Misfit)> {
    let mut converted = false;
    for column in columns.properties() {
        let name = &column.name;
        let values = &column.values;
        let is_there = || values.null_count() == 0 || rows.iter().any(|row| values.is_valid(*row));
        let position = known.iter().position(|property| *name == property.name);
        match position.map(|position| (known[position].kind, known[position].logical)) {
            // A column of nulls names nothing, so it adds no property.
            None if is_there() => {
                let first = || rows.iter().copied().find(|row| values.is_valid(*row)).unwrap_or_default();
                check_count(owner, known, name, &Value::Null).map_err(|misfit| (first(), misfit))?;
                let logical = of_new(declared, name, column.kind);
                known.push(Property { logical, ..Property::new(name.as_str(), column.kind) });
            }
            Some((kind, logical)) if kind != column.kind || logical != LogicalType::default() => {
                for row in rows {
                    let value = Value::at(values, *row);
                    let fitted = fit_value(owner, known, position, (name, &value), declared, free);
                    converted |= fitted.map_err(|misfit| (*row, misfit))?;
                }
            }
            _ => {}
        }
    }
    Ok(converted)
}

/// The same for a value of the property at a position, or of a new one.
fn fit_value(
    owner: &str,
    known: &mut Vec<Property>,
    position: Option<usize>,
    (name, value): (&Name, &Value),
    declared: Option<&OfProperties>,
    free: &mut Free<'_>,
) -> Result<bool, Misfit> {
    let misfit = |rejection, why| Misfit { property: name.clone(), value: value.clone(), rejection, why };
    let Some(property) = position.map(|position| &mut known[position]) else {
        match value.property_type() {
            Some(kind) => {
                check_count(owner, known, name, value)?;
                let logical = of_new(declared, name, kind);
                known.push(Property { logical, ..Property::new(name.as_str(), kind) });
            }
            // A property that no row has is equivalent to null.
            None if *value == Value::Null => {}
            None => {
                let why = format!("{owner} has no property {name}, and {value} does not show its type");
                return Err(misfit(Rejection::Other, why));
            }
        }
        return Ok(false);
    };
    keep(property, declared, name, value);
    // Most values have the type already; only the others are cloned to be converted.
    if value.is_of(property.kind) || value.clone().conform(property.kind).is_some() {
        return Ok(false);
    }
    property.kind = match (wider(property.kind, value), value.property_type()) {
        (Ok(kind), _) => kind,
        (Err(_), Some(kind)) if free.take(name) => {
            property.logical = of_new(declared, name, kind);
            kind
        }
        (Err(_), None) if free.waits(name) => return Ok(true),
        (Err(rejection), _) => {
            let why = match rejection {
                Rejection::Inexact => format!("which cannot hold {value} exactly"),
                _ => format!("which {value} is not"),
            };
            return Err(misfit(rejection, format!("property {name} of {owner} is {}, {why}", property.kind)));
        }
    };
    Ok(true)
}

/// A property more than an owner may have is rejected where it comes up: a batch could name a million.
fn check_count(owner: &str, known: &[Property], name: &Name, value: &Value) -> Result<(), Misfit> {
    if known.len() < PROPERTIES_MAX {
        return Ok(());
    }
    let why = format!("{owner} has {PROPERTIES_MAX} properties, and there are no more; {name} would be another one");
    Err(Misfit { property: name.clone(), value: value.clone(), rejection: Rejection::Other, why })
}

/// The type that a property gets for a value that it does not hold.
fn wider(kind: PropertyType, value: &Value) -> Result<PropertyType, Rejection> {
    use {PropertyType::List, PropertyType::Scalar, ScalarType::Float64, ScalarType::Int64};
    match (kind, value.property_type()) {
        (Scalar(Int64), Some(wider @ Scalar(Float64))) | (List(Int64), Some(wider @ List(Float64))) => Ok(wider),
        (Scalar(Float64), Some(Scalar(Int64))) | (List(Float64), Some(List(Int64))) => Err(Rejection::Inexact),
        _ => Err(Rejection::Other),
    }
}

impl Resolved {
    /// The error for a value that does not fit, with the change that has it among those of its item.
    pub(super) fn misfits(&self, misfit: Misfit, of_item: impl Fn(u32, At<'_>) -> bool) -> EngineError {
        let Misfit { property, value, rejection, why } = misfit;
        let is_key = |key: &Option<EdgeKey>| {
            key.as_ref().is_some_and(|key| key.property == property && key.value.is_same(&value))
        };
        let has = |at: &At<'_>| match at.single() {
            Operation::UpsertEdge { key, .. } if is_key(&key) => true,
            single => single.properties().and_then(|all| all.get(&property)).is_some_and(|it| it.is_same(&value)),
        };
        let of_item = || self.names.all(&self.batch).filter(|(number, at)| of_item(*number, *at)).map(|(_, at)| at);
        // The value may stem from the row before, which a change of this item kept; then the first change is named.
        match of_item().find(has).or_else(|| of_item().next()) {
            Some(at) => at.rejection(rejection, why),
            None => EngineError::Invalid(why),
        }
    }

    /// The error for a value of columns that does not fit.
    pub(super) fn misfits_in(
        &self,
        operation: usize,
        columns: &Columns,
        (row, misfit): (usize, Misfit),
    ) -> EngineError {
        let at = At { operation, change: Single::Row(columns, row) };
        at.rejection(misfit.rejection, misfit.why)
    }

    /// Whether a change is an upsert of edges between these two vertices.
    pub(super) fn is_of(&self, number: u32, at: At<'_>, pair: &Pair) -> bool {
        let named = self.names.changes[number as usize];
        let vertex = |end: u32| self.known[end as usize].map_or(Vertex::New(end), Vertex::Known);
        let is_upsert = match at.change {
            Single::One(one) => matches!(one, Operation::UpsertEdge { .. } | Operation::EditEdge { .. }),
            Single::Row(columns, _) => columns.ends().is_some(),
        };
        is_upsert && named.edge_label == pair.label && named.ends.map(vertex) == [pair.source, pair.target]
    }
}

#[cfg(test)]
mod tests {
    use hoplake_format::LabelId;

    use super::{super::retype::OfOwners, *};
    use crate::owner::Owner;

    /// All properties have values.
    fn fit(
        owner: &str,
        known: &mut Vec<Property>,
        positions: &mut PropertyPositions,
        values: &Properties,
        declared: Option<&OfProperties>,
        is_last: bool,
    ) -> Result<bool, Misfit> {
        let mut none = OfOwners::new();
        let mut free = Free { owner: Owner::Label(LabelId(0)), of_owners: &mut none, is_last };
        super::fit(owner, known, positions, values, declared, &mut free, is_last)
    }

    fn fitted(kind: PropertyType, value: Value) -> Result<PropertyType, String> {
        let mut known = vec![Property::new("p", kind)];
        fit("Person", &mut known, &mut Default::default(), &[("p", value)].into(), None, true)
            .map_err(|misfit| misfit.why)?;
        Ok(known[0].kind)
    }

    #[test]
    fn integers_widen_and_nothing_else_does() {
        let int = PropertyType::Scalar(ScalarType::Int64);
        let float = PropertyType::Scalar(ScalarType::Float64);
        assert_eq!(fitted(int, Value::Float64(0.5)), Ok(float));
        assert_eq!(fitted(float, Value::Int64(3)), Ok(float));
        assert_eq!(fitted(int, Value::Null), Ok(int));
        let rejected = fitted(int, Value::String("x".into())).unwrap_err();
        assert_eq!(rejected, "property p of Person is int64, which \"x\" is not");
        let list = Value::List(vec![Value::Int64(1), Value::Float64(2.0)]);
        assert!(fitted(PropertyType::List(ScalarType::Float64), list.clone()).is_ok());
        assert!(fitted(PropertyType::List(ScalarType::Int64), list).is_err());
        let ints = PropertyType::List(ScalarType::Int64);
        assert_eq!(fitted(ints, Value::List(vec![Value::Float64(2.0)])), Ok(PropertyType::List(ScalarType::Float64)));
    }

    #[test]
    fn an_integer_that_float64_lacks_is_rejected() {
        let float = PropertyType::Scalar(ScalarType::Float64);
        for exact in [0, -1, 1 << 53, -(1 << 53), i64::MIN, (1 << 53) + 2] {
            assert_eq!(fitted(float, Value::Int64(exact)), Ok(float), "{exact}");
        }
        for inexact in [(1 << 53) + 1, -(1 << 53) - 1, i64::MAX] {
            let why = fitted(float, Value::Int64(inexact)).unwrap_err();
            assert_eq!(why, format!("property p of Person is float64, which cannot hold {inexact} exactly"));
        }
    }

    #[test]
    fn a_new_property_needs_a_type() {
        let mut known = Vec::new();
        fit(
            "Person",
            &mut known,
            &mut Default::default(),
            &[("a", Value::Bool(true)), ("b", Value::Null)].into(),
            None,
            true,
        )
        .unwrap();
        assert_eq!(known.len(), 1);
        let misfit =
            fit("Person", &mut known, &mut Default::default(), &[("c", Value::List(vec![]))].into(), None, true)
                .unwrap_err();
        assert!(misfit.why.contains("[] does not show its type"), "{}", misfit.why);
    }

    #[test]
    fn an_empty_list_waits_for_the_type() {
        let mut known = Vec::new();
        let mut positions = PropertyPositions::default();
        let mut passes = |is_last| {
            let mut pass =
                |value| fit("Person", &mut known, &mut positions, &[("l", value)].into(), None, is_last).unwrap();
            [pass(Value::List(vec![])), pass(Value::List(vec![Value::Int64(1)]))]
        };
        assert_eq!([passes(false), passes(true)], [[true, false], [false, false]]);
    }

    #[test]
    fn an_owner_has_room_for_so_many_properties() {
        let kind = PropertyType::Scalar(ScalarType::Int64);
        let mut known: Vec<_> = (1..PROPERTIES_MAX).map(|number| Property::new(format!("p{number}"), kind)).collect();
        fit("Person", &mut known, &mut Default::default(), &[("last", 1)].into(), None, true).unwrap();
        let misfit = fit("Person", &mut known, &mut Default::default(), &[("more", 1)].into(), None, true).unwrap_err();
        assert!(misfit.why.contains("10000 properties"), "{}", misfit.why);
        fit("Person", &mut known, &mut Default::default(), &[("p1", 2)].into(), None, true).unwrap();
    }
}
