//! From int64 to float64, without a change of any value: what a float64 cannot hold exactly stops it.
//!
//! Tables keep the type they were written with, and reading converts. So all tables of the property's owner are looked
//! at, by the least and greatest value of each row group in Parquet's footers: one wave for those whose ends were not
//! read before, whatever their size. All integers up to 2^53 either way are exact; a column that reaches beyond might
//! still be, but only reading all of it could show. Tables also have values that newer runs deleted, so it is read if nothing else
//! remains of the property.

use std::sync::Arc;

use hoplake_format::{Direction, EdgeTypeId, LabelId, PropertyType, ScalarType, Schema, TableOwner};
use hoplake_storage::Branch;

use super::{
    Name, Value,
    names::{At, Single},
    resolved::Resolved,
    retype::is_without_values,
    rows::widens,
};
use crate::{EngineError, Rejection, Snapshot, owner::Owner};

/// Up to here every integer is a float64.
const EXACT_MAX: i64 = 1 << 53;

/// A property that becomes float64.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Conversion {
    /// The label or the edge label.
    owner: String,
    /// Whose tables have it.
    tables: Vec<TableOwner>,
    property: String,
}

/// The properties that became float64 between two schemas, the second derived from the first.
pub(super) fn conversions(before: &Schema, after: &Schema) -> Vec<Conversion> {
    let mut found = Vec::new();
    // A schema only grows at its end, so positions agree. What is new has no tables that could hold an integer.
    for (id, (before, after)) in (0..).zip(before.vertex_labels.iter().zip(&after.vertex_labels)) {
        let tables = vec![TableOwner::Vertices(LabelId(id)), TableOwner::Changed(LabelId(id))];
        let of = |property| Conversion { owner: after.name.clone(), tables: tables.clone(), property };
        found.extend(changed(&before.properties, &after.properties).map(of));
    }
    for (id, (before, after)) in (0..).zip(before.edge_types.iter().zip(&after.edge_types)) {
        // Both directions have the same values.
        let tables = vec![TableOwner::Edges(EdgeTypeId(id), Direction::Out)];
        let of = |property| Conversion { owner: after.label.clone(), tables: tables.clone(), property };
        found.extend(changed(&before.properties, &after.properties).map(of));
    }
    found
}

fn changed<'a>(
    before: &'a [hoplake_format::Property],
    after: &'a [hoplake_format::Property],
) -> impl Iterator<Item = String> + 'a {
    let both = before.iter().zip(after);
    // One that took another type has no value that could be inexact.
    both.filter(|(before, after)| widens(before.kind, after.kind)).map(|(_, after)| after.name.clone())
}

/// Rejects a batch that would widen a property to float64 if its integers would not stay exact.
pub(super) async fn check_exact(
    resolved: &Resolved,
    converted: &[Conversion],
    snapshot: &Arc<Snapshot>,
    branch: &mut Branch,
) -> Result<(), EngineError> {
    let looks = branch.each(converted, |it, mut line| async move {
        let ranges = line.each(&it.tables, |owner, mut line| async move {
            Ok::<_, EngineError>((snapshot.tables().int64_range(*owner, &it.property, &mut line).await?, line))
        });
        let ranges = ranges.await?;
        Ok::<_, EngineError>(((it, ranges), line))
    });
    for (conversion, ranges) in looks.await? {
        let Conversion { owner, property, tables } = conversion;
        let beyond = |value: &i64| !(-EXACT_MAX..=EXACT_MAX).contains(value);
        let mut found = None;
        for (table, range) in tables.iter().zip(ranges) {
            let Some(value) = range.and_then(|range| [range.0, range.1].into_iter().find(beyond)) else { continue };
            // Tables also have values that newer runs replaced or deleted.
            let of_owner = (Owner::of_table(*table), Name::from(property.as_str()));
            if !is_without_values(&of_owner, resolved, snapshot, branch).await? {
                found = Some(value);
                break;
            }
        }
        let Some(value) = found else { continue };
        let why = format!(
            "property {property} of {owner} is int64 with values such as {value}, which float64 might not hold exactly"
        );
        let is_float = |value: &Value| {
            let float = value.property_type();
            matches!(float, Some(PropertyType::Scalar(it) | PropertyType::List(it)) if it == ScalarType::Float64)
        };
        let gives = |at: &At<'_>| match at.change {
            Single::One(one) => {
                one.owner() == owner.as_str()
                    && one.properties().and_then(|all| all.get(property)).is_some_and(is_float)
            }
            Single::Row(columns, row) => {
                columns.label() == owner.as_str() && columns.properties_at(row).get(property).is_some_and(is_float)
            }
        };
        return match resolved.names.all(&resolved.batch).map(|(_, at)| at).find(gives) {
            Some(at) => at.rejected(Rejection::Inexact, why),
            None => Err(EngineError::Invalid(why)),
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hoplake_format::{EdgeType, KeyType, Property, VertexLabel};

    use super::*;

    #[test]
    fn conversions_are_found_of_labels_and_edges() {
        let schema = |kind| {
            let properties = vec![Property::new("p", PropertyType::Scalar(kind))];
            let label = VertexLabel { name: "A".into(), key_type: KeyType::Int64, properties: properties.clone() };
            let edge = EdgeType { label: "e".into(), source: LabelId(0), target: LabelId(0), properties };
            Schema { vertex_labels: vec![label], edge_types: vec![edge] }
        };
        let found = conversions(&schema(ScalarType::Int64), &schema(ScalarType::Float64));
        let found: Vec<_> = found.iter().map(|it| (it.owner.as_str(), it.tables.len())).collect();
        assert_eq!(found, [("A", 2), ("e", 1)]);
        assert_eq!(conversions(&schema(ScalarType::Int64), &schema(ScalarType::Int64)), []);
    }
}
