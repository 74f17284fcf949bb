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

use crate::{compact::Compact, settings::TimeSettings};

/// The time of what has none: every seed sees it.
pub(crate) const ALWAYS: i64 = i64::MIN;

const MICROS_A_DAY: i64 = 86_400_000_000;

/// The times of edges, in their order. One wave, and one before it if the tables were not read before.
///
/// # Errors
/// [`EngineError::Invalid`] if the property is not a time, or if an edge or vertex does not have a value; [`EngineError::NotFound`] if no
/// type of the edges, or no label, has the property; the store's.
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
        if !has_time(snapshot, label, settings) {
            continue;
        }
        ordinals.sort_unstable();
        ordinals.dedup();
        let found = micros_of_vertices(snapshot, label, &ordinals, settings, branch).await?;
        if let Some(at) = found.iter().position(Option::is_none) {
            return Err(without_time(snapshot, label, ordinals[at], settings, branch).await);
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

/// Vertices whose times are kept together, and are read together if there is memory for no more.
const TOGETHER: u64 = 1 << 16;

/// What a vertex takes at most while its time is read.
const READ_BYTES: u64 = 64;

/// The vertices of a label that have no time: a bit for each, or nothing if all have one. They may be such as were deleted.
pub(crate) type Timeless = Held<Vec<u64>>;

/// Whether a vertex is one of these.
#[inline]
pub(crate) fn is_timeless(timeless: &[u64], ordinal: u64) -> bool {
    timeless.get((ordinal / 64) as usize).is_some_and(|bits| bits >> (ordinal % 64) & 1 == 1)
}

/// The times of all vertices of a label, none if the label does not have the property; and the vertices without one. As fast as the store
/// delivers.
///
/// # Errors
/// As [`times`], but for vertices without a value.
pub(crate) async fn of_vertices(
    snapshot: &Snapshot,
    label: LabelId,
    settings: &TimeSettings,
    branch: &mut Branch,
) -> Result<(Held<Vec<Compact>>, Timeless), EngineError> {
    let mut memory = branch.context().hold(0)?;
    let mut all = Vec::new();
    let mut timeless = Timeless::default();
    let count = if has_time(snapshot, label, settings) { snapshot.ordinal_count(label) } else { 0 };
    let mut next = 0;
    while next < count {
        let together = (snapshot.ahead_bytes(branch.context()) / READ_BYTES / TOGETHER).max(1) * TOGETHER;
        let ordinals: Vec<u64> = (next..count.min(next + together)).collect();
        next += ordinals.len() as u64;
        let _read = branch.context().hold(ordinals.len() as u64 * 40)?;
        let found = micros_of_vertices(snapshot, label, &ordinals, settings, branch).await?;
        for (ordinal, _) in ordinals.iter().zip(&found).filter(|(_, time)| time.is_none()) {
            if timeless.is_empty() {
                let words = count.div_ceil(64);
                timeless = Held::counted(vec![0; words as usize], words * 8, branch.context())?;
            }
            timeless[(ordinal / 64) as usize] |= 1 << (ordinal % 64);
        }
        let times: Vec<i64> = found.into_iter().map(|time| time.unwrap_or(ALWAYS)).collect();
        for times in times.chunks(TOGETHER as usize) {
            let compact = Compact::new(times);
            let bytes = memory.bytes() + compact.bytes();
            branch.context().resize(&mut memory, bytes)?;
            all.push(compact);
        }
    }
    Ok((Held::new(all, memory), timeless))
}

/// The time of a vertex among those of its label.
#[inline]
pub(crate) fn time_of(times: &[Compact], ordinal: u64) -> i64 {
    times.get((ordinal / TOGETHER) as usize).map_or(ALWAYS, |times| times.get((ordinal % TOGETHER) as usize))
}

fn has_time(snapshot: &Snapshot, label: LabelId, settings: &TimeSettings) -> bool {
    let properties = snapshot.schema().label(label).map(|label| &label.properties);
    properties.is_some_and(|all| all.iter().any(|property| property.name == settings.property))
}

async fn micros_of_vertices(
    snapshot: &Snapshot,
    label: LabelId,
    ordinals: &[u64],
    settings: &TimeSettings,
    branch: &mut Branch,
) -> Result<Vec<Option<i64>>, EngineError> {
    let names = [settings.property.clone()];
    let rows = snapshot.properties().without_keys(label, ordinals, &names, branch).await?;
    match rows.column_by_name(&settings.property) {
        Some(column) => micros(column, &settings.property),
        None => Ok(vec![None; ordinals.len()]),
    }
}

/// The error of a vertex that has no time.
pub(crate) async fn without_time(
    snapshot: &Snapshot,
    label: LabelId,
    ordinal: u64,
    settings: &TimeSettings,
    branch: &mut Branch,
) -> EngineError {
    let vertex = VertexId::new(label, ordinal);
    let keys = match snapshot.keys().of(vertex.as_slice(), branch).await {
        Ok(keys) => keys,
        Err(error) => return error,
    };
    let name = snapshot.schema().label(label).map_or("", |label| label.name.as_str());
    let vertex = keys.first().map_or_else(String::new, |key| vertex_text(name, key));
    EngineError::Invalid(format!("{vertex} has no {}, which is its time", settings.property))
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
