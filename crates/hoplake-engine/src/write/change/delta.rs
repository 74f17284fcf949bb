//! A batch of changes as bytes: one object for keys, lists and small tables, and one more for each large table.

use std::{collections::BTreeMap, io::Cursor, panic::resume_unwind, sync::Arc, thread::ScopedJoinHandle};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::Field;
use bytes::Bytes;
use hoplake_format::{
    DataNames, Direction, EdgeTypeId, FormatError, Key, KeyType, LabelId, Property, PropertyIndex, Schema, SegmentRef,
    TableOwner, TableRef, VersionRange,
    constants::KEY_COLUMN,
    segment::{KeyWriter, ListWriter, SectionKind, SegmentBytes, SegmentSettings, SegmentWriter},
    table::{SMALL_TABLE_BYTES, TableEnd, TableRows, TableSettings, TableWriter},
};

use super::rows::{Row, Rows, in_order};
use crate::{EngineError, read::property_index::Items};

/// Rows of edges from which on both directions are sorted and encoded at the same time.
const BOTH_AT_ONCE_ROWS: usize = 1 << 12;

/// The changes of a label.
#[derive(Debug, Default)]
pub(crate) struct LabelChanges<'a> {
    /// New vertices, and the ordinal of the first: they follow in the order of their keys.
    pub(crate) added: BTreeMap<&'a Key, Row>,
    pub(crate) first_ordinal: u64,
    /// Vertices whose rows are written anew, by ordinal.
    pub(crate) changed: BTreeMap<u64, (&'a Key, Row)>,
    /// The rows of these, in order.
    pub(crate) rows: Rows<'a>,
    /// Vertices that go, with their ordinals.
    pub(crate) gone: BTreeMap<&'a Key, u64>,
}

/// The changes of a delta, resolved to ordinals.
#[derive(Debug, Default)]
pub(crate) struct DeltaChanges<'a> {
    pub(crate) labels: BTreeMap<LabelId, LabelChanges<'a>>,
    pub(crate) groups: BTreeMap<EdgeTypeId, EdgeChanges<'a>>,
    /// The items of property indexes that vertices had which are changed or go.
    pub(crate) items_before: Items,
}

/// The changes of an edge type.
#[derive(Debug, Default)]
pub(crate) struct EdgeChanges<'a> {
    /// Each pair of vertices once, in any order.
    pub(crate) pairs: Vec<PairRows>,
    /// The properties of each edge.
    pub(crate) rows: Rows<'a>,
}

/// All edges between two vertices from now on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PairRows {
    /// Source and target.
    pub(crate) ends: (u64, u64),
    /// The row of the first.
    pub(crate) first_row: Row,
    /// How many there are; perhaps none.
    pub(crate) rows: u64,
}

/// A delta that is to be written.
#[derive(Debug, Default)]
pub(crate) struct Delta {
    /// Names and bytes.
    pub(crate) objects: Vec<(String, Bytes)>,
    pub(crate) segments: Vec<SegmentRef>,
    pub(crate) tables: Vec<TableRef>,
}

/// Encodes changes.
pub(crate) fn build(
    changes: &DeltaChanges<'_>,
    schema: &Schema,
    indexes: &[PropertyIndex],
    writer: &str,
    version: u64,
) -> Result<Delta, EngineError> {
    // With its base in their names, the objects are garbage as soon as another writer publishes this version.
    let names = DataNames::new(version - 1, writer, 0);
    let versions = VersionRange::of(version);
    let mut segments = SegmentWriter::new(&names, versions, SegmentSettings::default())
        .map_err(EngineError::format("a new segment"))?;
    let of = |owner, first| TableRows { owner, versions, first };
    let mut tables = Vec::new();
    let mut items = Items::default();
    for (label, of_label) in &changes.labels {
        let Some(described) = schema.label(*label) else { continue };
        write_keys(&mut segments, *label, described.key_type, of_label)
            .map_err(EngineError::format("a new segment"))?;
        let rows = of_label.rows.record_batch(&described.properties)?;
        let vertex_rows = |keys, order: Vec<Row>| {
            let order = order.into_iter().map(|row| of_label.rows.number(row)).collect();
            in_order(Some(key_column(keys, described.key_type)), &rows, order, &described.properties)
        };
        let (keys, order) = of_label.added.iter().map(|(key, row)| (*key, *row)).unzip();
        let added = vertex_rows(keys, order)?;
        let of_indexes = || indexes.iter().filter(|index| index.label == *label);
        let new = of_label.first_ordinal..of_label.first_ordinal + of_label.added.len() as u64;
        let failed = EngineError::format("a new segment");
        items.add(of_indexes(), &added, &new.collect::<Vec<_>>()).map_err(failed)?;
        tables.extend(Table::encode(of(TableOwner::Vertices(*label), of_label.first_ordinal), &added)?);
        let (keys, order) = of_label.changed.values().copied().unzip();
        let changed = vertex_rows(keys, order)?;
        let failed = EngineError::format("a new segment");
        items.add(of_indexes(), &changed, &of_label.changed.keys().copied().collect::<Vec<_>>()).map_err(failed)?;
        tables.extend(Table::encode(of(TableOwner::Changed(*label), 0), &changed)?);
    }
    write_items(&mut segments, indexes, &changes.items_before, &items).map_err(EngineError::format("a new segment"))?;
    for (edge_type, edges) in &changes.groups {
        let Some(described) = schema.edge_type(*edge_type) else { continue };
        for side in sides(edges, *edge_type, &described.properties, versions)? {
            write_lists(&mut segments, *edge_type, &side).map_err(EngineError::format("a new segment"))?;
            tables.extend(side.tables);
        }
    }
    let mut delta = Delta::default();
    finish_segments(segments, &names, &mut delta)?;
    // Small tables follow the last segment: a small commit is one object and one manifest.
    let shared = delta.objects.len() - 1;
    tables.into_iter().for_each(|table| table.add(shared, &names, &mut delta));
    // Without segments and small tables, the shared object has stayed empty.
    delta.objects.retain(|(_, bytes)| !bytes.is_empty());
    Ok(delta)
}

/// Edges as one direction has them.
struct Side {
    direction: Direction,
    /// With those at the near end first.
    sorted: Vec<PairRows>,
    tables: Vec<Table>,
}

/// Both directions, in parallel if they are large enough for a second thread.
fn sides(
    edges: &EdgeChanges<'_>,
    edge_type: EdgeTypeId,
    properties: &[Property],
    versions: VersionRange,
) -> Result<[Side; 2], EngineError> {
    // Side by side in memory before they are put into two orders.
    let rows = edges.rows.record_batch(properties)?;
    let side = |direction| {
        let owner = TableOwner::Edges(edge_type, direction);
        Side::of(edges, &rows, properties, direction, TableRows { owner, versions, first: 0 })
    };
    let [out, into] = match rows.num_rows() >= BOTH_AT_ONCE_ROWS {
        true => std::thread::scope(|scope| {
            let other = std::thread::Builder::new().spawn_scoped(scope, || side(Direction::ALL[1]));
            let one = side(Direction::ALL[0]);
            let join = |other: ScopedJoinHandle<'_, _>| other.join().unwrap_or_else(|panic| resume_unwind(panic));
            // Without a second thread, this one does both.
            [one, other.map_or_else(|_| side(Direction::ALL[1]), join)]
        }),
        false => Direction::ALL.map(side),
    };
    Ok([out?, into?])
}

impl Side {
    fn of(
        edges: &EdgeChanges<'_>,
        rows: &RecordBatch,
        properties: &[Property],
        direction: Direction,
        table_rows: TableRows,
    ) -> Result<Self, EngineError> {
        let near = |pair: &PairRows| match direction {
            Direction::Out => *pair,
            Direction::In => PairRows { ends: (pair.ends.1, pair.ends.0), ..*pair },
        };
        let mut sorted: Vec<_> = edges.pairs.iter().map(near).collect();
        sorted.sort_unstable_by_key(|pair| pair.ends);
        let mut tables = Vec::new();
        if rows.num_columns() > 0 {
            let mut order = Vec::with_capacity(sorted.len());
            for pair in &sorted {
                let first = edges.rows.number(pair.first_row);
                order.extend(first..first + pair.rows);
            }
            let rows = in_order(None, rows, order, properties)?;
            tables = Table::encode(table_rows, &rows)?;
        }
        Ok(Self { direction, sorted, tables })
    }
}

fn write_keys(
    segments: &mut SegmentWriter,
    label: LabelId,
    key_type: KeyType,
    changes: &LabelChanges<'_>,
) -> Result<(), FormatError> {
    let added = changes.added.keys().map(|key| (*key).clone()).zip(changes.first_ordinal..);
    write_key_section(segments, SectionKind::Keys(label), key_type, added)?;
    let gone = changes.gone.iter().map(|(key, ordinal)| ((*key).clone(), *ordinal));
    write_key_section(segments, SectionKind::Tombstones(label), key_type, gone)?;
    // Ordinals have 48 bits, so keys made of them are not negative.
    let rows = changes.changed.keys().map(|ordinal| Key::Int64(*ordinal as i64)).zip(0..);
    write_key_section(segments, SectionKind::Rows(label), KeyType::Int64, rows)
}

fn write_key_section(
    segments: &mut SegmentWriter,
    kind: SectionKind,
    key_type: KeyType,
    entries: impl Iterator<Item = (Key, u64)>,
) -> Result<(), FormatError> {
    let mut writer = KeyWriter::new(kind, key_type);
    for (key, number) in entries {
        writer.push(key, number, segments)?;
    }
    writer.finish(segments)
}

/// What property indexes have from now on, and what they have no more. A value that stays is written by neither.
fn write_items(
    segments: &mut SegmentWriter,
    indexes: &[PropertyIndex],
    before: &Items,
    after: &Items,
) -> Result<(), FormatError> {
    for index in indexes {
        let mut values = KeyWriter::new(SectionKind::Values(index.id), KeyType::String);
        after.without(index.id, before).try_for_each(|item| values.push_item(item.clone(), segments))?;
        values.finish(segments)?;
        let mut removed = KeyWriter::new(SectionKind::RemovedValues(index.id), KeyType::String);
        before.without(index.id, after).try_for_each(|item| removed.push_item(item.clone(), segments))?;
        removed.finish(segments)?;
    }
    Ok(())
}

/// The lists of pairs that have edges, and of those that have none.
fn write_lists(segments: &mut SegmentWriter, edge_type: EdgeTypeId, side: &Side) -> Result<(), FormatError> {
    let Side { direction, sorted, .. } = side;
    let there = sorted.iter().flat_map(|pair| (0..pair.rows).map(|_| pair.ends));
    write_list_section(segments, SectionKind::Adjacency(edge_type, *direction), there.collect())?;
    let removed = sorted.iter().filter(|pair| pair.rows == 0).map(|pair| pair.ends);
    write_list_section(segments, SectionKind::Removed(edge_type, *direction), removed.collect())
}

fn write_list_section(
    segments: &mut SegmentWriter,
    kind: SectionKind,
    pairs: Vec<(u64, u64)>,
) -> Result<(), FormatError> {
    // With filters over the sources: a hop then skips the deltas that have nothing of its frontier.
    let mut writer = ListWriter::new(kind, true, segments)?;
    let mut targets = Vec::new();
    for list in pairs.chunk_by(|a, b| a.0 == b.0) {
        targets.clear();
        targets.extend(list.iter().map(|(_, target)| *target));
        writer.push(list[0].0, &targets, segments)?;
    }
    writer.finish(segments)
}

/// A column of keys, and its field.
fn key_column(keys: Vec<&Key>, key_type: KeyType) -> (Field, ArrayRef) {
    let column: ArrayRef = match key_type {
        KeyType::Int64 => {
            let number = |key: &&Key| if let Key::Int64(key) = key { *key } else { 0 };
            Arc::new(keys.iter().map(number).map(Some).collect::<Int64Array>())
        }
        KeyType::String => {
            let keys = keys.iter().map(|key| if let Key::String(key) = key { key.as_str() } else { "" });
            Arc::new(keys.map(Some).collect::<StringArray>())
        }
    };
    (Field::new(KEY_COLUMN, key_type.arrow(), false), column)
}

/// Adds the segments to a delta, and an object for small tables if there are none.
fn finish_segments(mut segments: SegmentWriter, names: &DataNames, delta: &mut Delta) -> Result<(), EngineError> {
    segments.finish().map_err(EngineError::format("a new segment"))?;
    // Nothing was taken before: each is complete.
    while let Some(SegmentBytes { name, bytes, ended }) = segments.take(1) {
        delta.objects.push((name, bytes.into()));
        delta.segments.extend(ended);
    }
    if delta.objects.is_empty() {
        delta.objects.push((names.next("hls"), Bytes::new()));
    }
    Ok(())
}

/// A table as bytes.
struct Table {
    bytes: Vec<u8>,
    end: TableEnd,
}

impl Table {
    /// Encodes rows, as many tables as they take.
    fn encode(rows: TableRows, batch: &RecordBatch) -> Result<Vec<Self>, EngineError> {
        let mut writer = TableWriter::new(rows, TableSettings::default(), || Ok(Cursor::new(Vec::new())));
        let mut encoded = || {
            writer.write(batch)?;
            writer.finish()?;
            let mut tables = Vec::new();
            while let Some(ended) = writer.take() {
                let mut bytes = Vec::new();
                let end = ended.write_to(&mut bytes)?;
                tables.push(Self { bytes, end });
            }
            Ok(tables)
        };
        encoded().map_err(EngineError::table("a new table"))
    }

    /// Adds it to a delta: at the end of the shared object, or if it is large as an object of its own.
    fn add(self, shared: usize, names: &DataNames, delta: &mut Delta) {
        let Self { bytes, end } = self;
        let reference = if end.length <= SMALL_TABLE_BYTES {
            let (name, before) = &mut delta.objects[shared];
            let reference = end.at(name.as_str(), before.len() as u64);
            *before = [&before[..], &bytes].concat().into();
            reference
        } else {
            let name = names.next("parquet");
            delta.objects.push((name.clone(), bytes.into()));
            end.at(name, 0)
        };
        delta.tables.push(reference);
    }
}
