//! A batch of changes as bytes: one object for keys, lists and small tables, and one more for each large table.

use std::collections::BTreeMap;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, StringArray};
use arrow_schema::Field;
use bytes::Bytes;
use hoplake_format::{
    Direction, EdgeTypeId, FormatError, Key, KeyType, LabelId, Property, Schema, SectionRef, SegmentRef, TableOwner,
    TableRef, VersionRange,
    constants::{KEY_COLUMN, data_name},
    segment::{SectionKind, SegmentBuilder},
    table::{TableEnd, TableSettings, encode_table, table_schema},
};

use super::value::{Value, column};
use crate::{
    EngineError,
    sections::{KeyWriter, ListWriter},
};

/// Tables of at most this many bytes stand behind the segment, in its object.
pub(crate) const SMALL_TABLE_BYTES: usize = 1 << 20;

/// The values of a vertex's or an edge's properties, in the order of its schema.
pub(crate) type Row = Vec<Value>;

/// What changes of a label.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct LabelChanges {
    /// New vertices, and the ordinal of the first: they follow in the order of their keys.
    pub(crate) added: BTreeMap<Key, Row>,
    pub(crate) first_ordinal: u64,
    /// Vertices whose rows are written anew, by ordinal.
    pub(crate) changed: BTreeMap<u64, (Key, Row)>,
    /// Vertices that go, with their ordinals.
    pub(crate) gone: BTreeMap<Key, u64>,
}

/// What changes, all of it resolved to ordinals.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Changes {
    pub(crate) labels: BTreeMap<LabelId, LabelChanges>,
    pub(crate) groups: BTreeMap<EdgeTypeId, EdgeChanges>,
}

/// What changes of an edge type.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct EdgeChanges {
    /// Each pair of vertices once, in any order.
    pub(crate) pairs: Vec<PairRows>,
    /// The properties of all edges, one row after the other, in the order of their type.
    pub(crate) values: Vec<Value>,
    /// How many rows there are.
    pub(crate) rows: u64,
}

/// All edges between two vertices from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PairRows {
    /// Source and target.
    pub(crate) ends: (u64, u64),
    /// The row of the first.
    pub(crate) first_row: u64,
    /// How many there are; perhaps none.
    pub(crate) rows: u64,
}

/// A level that is to be written.
#[derive(Debug, Default)]
pub(crate) struct Level {
    /// Names and bytes.
    pub(crate) objects: Vec<(String, Bytes)>,
    pub(crate) segments: Vec<SegmentRef>,
    pub(crate) tables: Vec<TableRef>,
}

/// Whose objects, and which version they become part of.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    pub(crate) writer: String,
    pub(crate) version: u64,
}

impl Names {
    fn name(&self, number: usize, ending: &str) -> String {
        data_name(self.version - 1, &self.writer, number as u32, ending)
    }
}

/// Encodes changes.
pub(crate) fn build(changes: &Changes, schema: &Schema, names: &Names) -> Result<Level, EngineError> {
    let versions = VersionRange::of(names.version);
    let mut segment = SegmentBuilder::new(&names.name(0, "hls"));
    let mut tables = Vec::new();
    for (label, of_label) in &changes.labels {
        let Some(described) = schema.label(*label) else { continue };
        write_keys(&mut segment, *label, described.key_type, of_label).map_err(EngineError::format("a new segment"))?;
        let added = of_label.added.iter();
        tables.push((TableOwner::Vertices(*label), of_label.first_ordinal, vertex_rows(added, described)?));
        let changed = of_label.changed.values().map(|(key, row)| (key, row));
        tables.push((TableOwner::Changed(*label), 0, vertex_rows(changed, described)?));
    }
    for (edge_type, edges) in &changes.groups {
        let Some(described) = schema.edge_type(*edge_type) else { continue };
        for direction in Direction::ALL {
            let sorted = sorted(edges, direction);
            write_lists(&mut segment, *edge_type, direction, &sorted).map_err(EngineError::format("a new segment"))?;
            if !described.properties.is_empty() {
                let batch = edge_rows(&sorted, &edges.values, &described.properties)?;
                tables.push((TableOwner::Edges(*edge_type, direction), 0, batch));
            }
        }
    }
    let mut level = Level::default();
    finish_segment(segment, names, versions, &mut level)?;
    for (owner, first_row, batch) in tables {
        if batch.num_rows() > 0 {
            add_table(owner, first_row, &batch, names, versions, &mut level)?;
        }
    }
    level.objects.retain(|(_, bytes)| !bytes.is_empty());
    Ok(level)
}

/// Pairs as a direction has them: those at the near end first.
fn sorted(edges: &EdgeChanges, direction: Direction) -> Vec<PairRows> {
    let near = |pair: &PairRows| match direction {
        Direction::Out => *pair,
        Direction::In => PairRows { ends: (pair.ends.1, pair.ends.0), ..*pair },
    };
    let mut sorted: Vec<_> = edges.pairs.iter().map(near).collect();
    sorted.sort_unstable_by_key(|pair| pair.ends);
    sorted
}

fn write_keys(
    segment: &mut SegmentBuilder,
    label: LabelId,
    key_type: KeyType,
    changes: &LabelChanges,
) -> Result<(), FormatError> {
    let added = changes.added.keys().cloned().zip(changes.first_ordinal..);
    write_key_section(segment, SectionKind::Keys(label), key_type, added)?;
    let gone = changes.gone.iter().map(|(key, ordinal)| (key.clone(), *ordinal));
    write_key_section(segment, SectionKind::Gone(label), key_type, gone)?;
    let rows = changes.changed.keys().map(|ordinal| Key::Int64(*ordinal as i64)).zip(0..);
    write_key_section(segment, SectionKind::Rows(label), KeyType::Int64, rows)
}

fn write_key_section(
    segment: &mut SegmentBuilder,
    kind: SectionKind,
    key_type: KeyType,
    entries: impl Iterator<Item = (Key, u64)>,
) -> Result<(), FormatError> {
    let mut writer = KeyWriter::new(kind, key_type);
    for (key, number) in entries {
        writer.push(key, number, segment)?;
    }
    writer.finish(segment)
}

/// The lists of pairs that have edges, and of those that have none.
fn write_lists(
    segment: &mut SegmentBuilder,
    edge_type: EdgeTypeId,
    direction: Direction,
    sorted: &[PairRows],
) -> Result<(), FormatError> {
    let there = sorted.iter().flat_map(|pair| (0..pair.rows).map(|_| pair.ends));
    write_list_section(segment, SectionKind::Adjacency(edge_type, direction), there.collect())?;
    let removed = sorted.iter().filter(|pair| pair.rows == 0).map(|pair| pair.ends);
    write_list_section(segment, SectionKind::Removed(edge_type, direction), removed.collect())
}

fn write_list_section(
    segment: &mut SegmentBuilder,
    kind: SectionKind,
    pairs: Vec<(u64, u64)>,
) -> Result<(), FormatError> {
    let (mut writer, mut targets) = (ListWriter::new(kind, true)?, Vec::new());
    for list in pairs.chunk_by(|a, b| a.0 == b.0) {
        targets.clear();
        targets.extend(list.iter().map(|(_, target)| *target));
        writer.push(list[0].0, &targets, segment)?;
    }
    writer.finish(segment)
}

fn vertex_rows<'a>(
    rows: impl Iterator<Item = (&'a Key, &'a Row)>,
    label: &hoplake_format::VertexLabel,
) -> Result<RecordBatch, EngineError> {
    let (keys, rows): (Vec<_>, Vec<_>) = rows.unzip();
    let keys: ArrayRef = match label.key_type {
        KeyType::Int64 => {
            let number = |key: &&Key| if let Key::Int64(key) = key { *key } else { 0 };
            std::sync::Arc::new(keys.iter().map(number).map(Some).collect::<Int64Array>())
        }
        KeyType::String => {
            let text = |key: &&'a Key| if let Key::String(key) = key { key.as_str() } else { "" };
            std::sync::Arc::new(keys.iter().map(text).map(Some).collect::<StringArray>())
        }
    };
    let columns = label.properties.iter().enumerate();
    let columns = columns.map(|(at, property)| column(rows.iter().map(|row| &row[at]), property.kind));
    let key = Field::new(KEY_COLUMN, label.key_type.arrow(), false);
    batch(Some((key, keys)), columns.collect::<Result<_, _>>()?, rows.len(), &label.properties)
}

/// The rows of edges in the order of their lists.
fn edge_rows(sorted: &[PairRows], values: &[Value], properties: &[Property]) -> Result<RecordBatch, EngineError> {
    let rows = || sorted.iter().flat_map(|pair| pair.first_row..pair.first_row + pair.rows);
    let cell = |row: u64, at: usize| &values[row as usize * properties.len() + at];
    let columns = properties.iter().enumerate();
    let columns = columns.map(|(at, property)| column(rows().map(|row| cell(row, at)), property.kind));
    batch(None, columns.collect::<Result<_, _>>()?, rows().count(), properties)
}

fn batch(
    key: Option<(Field, ArrayRef)>,
    properties_of: Vec<ArrayRef>,
    rows: usize,
    properties: &[Property],
) -> Result<RecordBatch, EngineError> {
    let (field, keys) = key.unzip();
    let columns: Vec<ArrayRef> = keys.into_iter().chain(properties_of).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(table_schema(field, properties), columns, &options)?)
}

fn finish_segment(
    mut segment: SegmentBuilder,
    names: &Names,
    versions: VersionRange,
    level: &mut Level,
) -> Result<(), EngineError> {
    if segment.sections().is_empty() {
        // Nothing but rows: tables still share an object.
        level.objects.push((names.name(0, "hls"), Bytes::new()));
        return Ok(());
    }
    let end = segment.finish().map_err(EngineError::format("a new segment"))?;
    let bytes = segment.drain();
    let of = |kind| SectionRef { kind, versions: Some(versions) };
    let sections = segment.sections().iter().map(|section| of(section.kind)).collect();
    let checksum = crc32c::crc32c(&bytes);
    level.segments.push(SegmentRef { name: names.name(0, "hls"), end, sections, checksum });
    level.objects.push((names.name(0, "hls"), bytes.into()));
    Ok(())
}

fn add_table(
    owner: TableOwner,
    first_row: u64,
    batch: &RecordBatch,
    names: &Names,
    versions: VersionRange,
    level: &mut Level,
) -> Result<(), EngineError> {
    let (bytes, end) = encode_table(batch, TableSettings::default()).map_err(EngineError::table("a new table"))?;
    let (object, position) = if bytes.len() <= SMALL_TABLE_BYTES {
        let first = &mut level.objects[0];
        let position = first.1.len() as u64;
        first.1 = [&first.1[..], &bytes].concat().into();
        (first.0.clone(), position)
    } else {
        let name = names.name(level.objects.len(), "parquet");
        level.objects.push((name.clone(), bytes.into()));
        (name, 0)
    };
    let TableEnd { length, tail_position, tail_checksum, checksum } = end;
    let rows = batch.num_rows() as u64;
    level.tables.push(TableRef {
        name: object,
        position,
        owner,
        versions,
        first_row,
        rows,
        length,
        tail_position,
        tail_checksum,
        checksum,
    });
    Ok(())
}
