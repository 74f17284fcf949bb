//! Times of edges: a property of theirs, or of the vertices that they lead to.

use std::collections::BTreeMap;

use arrow_array::{
    Array, ArrayRef,
    cast::AsArray,
    types::{Date32Type, Int64Type, TimestampMicrosecondType},
};
use arrow_schema::{DataType, TimeUnit};
use hoplake_engine::{Edges, EngineError, Held, Snapshot, vertex_text};
use hoplake_format::{LabelId, PropertyType, ScalarType, VertexId};
use hoplake_storage::Branch;

use crate::settings::TimeSettings;

/// The time of what has none: every seed sees it.
const ALWAYS: i64 = i64::MIN;

const MICROS_A_DAY: i64 = 86_400_000_000;

/// The times of edges, in their order. One wave, and one before it if the tables were not read before.
///
/// # Errors
/// [`EngineError::Invalid`] if the property is not a time, or if an edge or vertex does not have a value; [`EngineError::NotFound`] if no type
/// of the edges, or no label, has the property; the store's.
pub(crate) async fn times(
    snapshot: &Snapshot,
    edges: &Edges,
    settings: &TimeSettings,
    branch: &mut Branch,
) -> Result<Held<Vec<i64>>, EngineError> {
    let memory = branch.context().hold(edges.len() as u64 * 8)?;
    let mut times = vec![ALWAYS; edges.len()];
    let names = [settings.property.clone()];
    let mut pace = branch.context().pace();
    if !settings.of_vertices {
        for (positions, rows) in snapshot.properties().of_edges(edges, &names, branch).await? {
            // A type without the property has no column of it.
            let Some(column) = rows.column_by_name(&settings.property) else { continue };
            let found = micros(column, &settings.property)?;
            for (at, time) in positions.iter().zip(&found) {
                let missing = || {
                    let from = edges.get(*at).map(|edge| format!(" from {} to {}", edge.from, edge.to));
                    let from = from.unwrap_or_default();
                    EngineError::Invalid(format!("an edge{from} has no {}, which is its time", settings.property))
                };
                times[*at] = time.ok_or_else(missing)?;
            }
            pace.rest(found.len() as u64).await?;
        }
        return Ok(Held::new(times, memory));
    }
    let mut by_label: BTreeMap<LabelId, Vec<u64>> = BTreeMap::new();
    let _targets = branch.context().hold(edges.len() as u64 * 32)?;
    for target in edges.targets() {
        by_label.entry(target.label()).or_default().push(target.ordinal());
    }
    let mut of_labels = BTreeMap::new();
    for (label, mut ordinals) in by_label {
        let properties = snapshot.schema().label(label).map(|label| &label.properties);
        if !properties.is_some_and(|all| all.iter().any(|property| property.name == settings.property)) {
            continue;
        }
        ordinals.sort_unstable();
        ordinals.dedup();
        let rows = snapshot.properties().without_keys(label, &ordinals, &names, branch).await?;
        let found = match rows.column_by_name(&settings.property) {
            Some(column) => micros(column, &settings.property)?,
            None => vec![None; ordinals.len()],
        };
        if let Some(at) = found.iter().position(Option::is_none) {
            let vertex = VertexId::new(label, ordinals[at]);
            let keys = snapshot.keys().of(vertex.as_slice(), branch).await?;
            let name = snapshot.schema().label(label).map_or("", |label| label.name.as_str());
            let vertex = keys.first().map_or_else(String::new, |key| vertex_text(name, key));
            return Err(EngineError::Invalid(format!("{vertex} has no {}, which is its time", settings.property)));
        }
        of_labels.insert(label, (ordinals, found));
    }
    for (time, target) in times.iter_mut().zip(edges.targets()) {
        let Some((ordinals, found)) = of_labels.get(&target.label()) else { continue };
        let known = ordinals.binary_search(&target.ordinal()).ok().and_then(|at| found[at]);
        *time = known.unwrap_or(ALWAYS);
    }
    pace.rest(times.len() as u64 * 8).await?;
    Ok(Held::new(times, memory))
}

/// Rejects a property that no edge type, or no label, has as a time.
pub(crate) fn check(snapshot: &Snapshot, settings: &TimeSettings) -> Result<(), EngineError> {
    let TimeSettings { property, of_vertices, .. } = settings;
    let schema = snapshot.schema();
    let of_labels = schema.vertex_labels.iter().flat_map(|label| &label.properties);
    let of_edges = schema.edge_types.iter().flat_map(|edges| &edges.properties);
    let all: Vec<_> = if *of_vertices { of_labels.collect() } else { of_edges.collect() };
    let mut found = all.iter().filter(|it| it.name == *property).map(|it| it.kind).peekable();
    let what = if *of_vertices { "vertices" } else { "edges" };
    if found.peek().is_none() {
        return Err(EngineError::NotFound(format!("no {what} have a property {property:?} that could be their time")));
    }
    let is_time = |kind: &PropertyType| {
        matches!(kind, PropertyType::Scalar(ScalarType::Int64 | ScalarType::Date | ScalarType::Timestamp))
    };
    match found.find(|kind| !is_time(kind)) {
        Some(kind) => Err(EngineError::Invalid(format!(
            "{property} of {what} is of type {kind}; a time is an int64, a date or a timestamp"
        ))),
        None => Ok(()),
    }
}

fn micros(column: &ArrayRef, property: &str) -> Result<Vec<Option<i64>>, EngineError> {
    match column.data_type() {
        DataType::Int64 => Ok(column.as_primitive::<Int64Type>().iter().collect()),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            Ok(column.as_primitive::<TimestampMicrosecondType>().iter().collect())
        }
        DataType::Date32 => {
            let days = column.as_primitive::<Date32Type>().iter();
            Ok(days.map(|day| day.map(|day| i64::from(day) * MICROS_A_DAY)).collect())
        }
        other => Err(EngineError::Invalid(format!("{property} is of type {other}, which is not a time"))),
    }
}
