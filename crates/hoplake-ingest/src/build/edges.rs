//! Edges of one type on their way from rows to adjacency: sorted by source for one direction and by
//! target for the other.
//!
//! Without properties an edge is one number, `near << far_bits | far`, and sorting is all there is to
//! do. With properties a row includes them, and its origin (input and line) breaks ties, so that
//! parallel edges stand in one order in both directions.

use std::{path::Path, sync::Arc};

use arrow_array::{ArrayRef, RecordBatch, UInt64Array, cast::AsArray, types::UInt64Type};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use hoplake_format::{
    DegreeSummary, Direction, EdgeTypeId, Property, TableOwner, TableRef,
    table::{TableSettings, table_schema},
};

use super::{adjacency::AdjacencyWriter, objects::SegmentUpload, table::TableUpload};
use crate::{
    IngestError,
    sort::{BatchSorter, PackedSorter},
};

/// Columns before a table's own: near, far, input, line.
const OWN_COLUMNS: usize = 4;

/// Edges of one type, both ends resolved.
pub(crate) struct ResolvedEdges<'a> {
    /// Ordinals of the sources.
    pub(crate) sources: Vec<u64>,
    /// Ordinals of the targets.
    pub(crate) targets: Vec<u64>,
    /// Columns from the third on are input, line and the properties.
    pub(crate) batch: &'a RecordBatch,
}

/// How many bits the ordinals below `count` need.
fn bits(count: u64) -> u32 {
    // Ordinals are dense from 0: the largest is count - 1. A label of one vertex needs no bit.
    64 - count.saturating_sub(1).leading_zeros()
}

/// One thread's sorters for one edge type.
pub(crate) enum EdgeSorter {
    Packed(Packed<u64>),
    Wide(Packed<u128>),
    Rows { out: BatchSorter, into: BatchSorter },
}

/// Sorters of edges that are numbers.
pub(crate) struct Packed<T> {
    source_bits: u32,
    target_bits: u32,
    out: PackedSorter<T>,
    into: PackedSorter<T>,
    scratch: Vec<T>,
}

impl EdgeSorter {
    /// A sorter of edges between labels of these sizes, with these properties, in `budget_bytes`.
    pub(crate) fn new(
        sources: u64,
        targets: u64,
        properties: &[Property],
        budget_bytes: usize,
        spill_dir: &Path,
    ) -> Result<Self, IngestError> {
        let half = budget_bytes / 2;
        if !properties.is_empty() {
            let schema = row_schema(properties);
            // Near and far fill the sixteen bytes by which the sorter compares rows first; only parallel edges get to input and line.
            let sorter = || BatchSorter::new(schema.clone(), &[0, 1, 2, 3], half, spill_dir);
            return Ok(Self::Rows { out: sorter()?, into: sorter()? });
        }
        let source_bits = bits(sources);
        let target_bits = bits(targets);
        // A record of 8 bytes takes half the memory of one of 16. Two labels of up to 2^32 vertices each always fit.
        if source_bits + target_bits <= 64 {
            let sorter = || PackedSorter::new(half, spill_dir);
            return Ok(Self::Packed(Packed {
                source_bits,
                target_bits,
                out: sorter(),
                into: sorter(),
                scratch: Vec::new(),
            }));
        }
        let sorter = || PackedSorter::new(half, spill_dir);
        Ok(Self::Wide(Packed { source_bits, target_bits, out: sorter(), into: sorter(), scratch: Vec::new() }))
    }

    /// Takes edges.
    pub(crate) fn push(&mut self, edges: &ResolvedEdges<'_>) -> Result<(), IngestError> {
        let ends = edges.sources.iter().zip(&edges.targets);
        match self {
            // A shift by all 64 bits can only be of 0: then the label has one vertex at most.
            Self::Packed(packed) => packed.push(ends, |near, far, bits| near.checked_shl(bits).unwrap_or(0) | far),
            Self::Wide(packed) => packed.push(ends, |near, far, bits| u128::from(near) << bits | u128::from(far)),
            Self::Rows { out, into } => {
                out.push(row_batch(edges.batch, &edges.sources, &edges.targets)?)?;
                into.push(row_batch(edges.batch, &edges.targets, &edges.sources)?)
            }
        }
    }
}

impl<T: crate::sort::Record> Packed<T> {
    fn push<'a>(
        &mut self,
        ends: impl Iterator<Item = (&'a u64, &'a u64)> + Clone,
        pack: impl Fn(u64, u64, u32) -> T,
    ) -> Result<(), IngestError> {
        let Self { source_bits, target_bits, out, into, scratch } = self;
        scratch.clear();
        scratch.extend(ends.clone().map(|(source, target)| pack(*source, *target, *target_bits)));
        out.push(scratch)?;
        scratch.clear();
        scratch.extend(ends.map(|(source, target)| pack(*target, *source, *source_bits)));
        into.push(scratch)
    }
}

fn row_schema(properties: &[Property]) -> SchemaRef {
    let mut fields = vec![
        Field::new("~near", DataType::UInt64, false),
        Field::new("~far", DataType::UInt64, false),
        Field::new("~input", DataType::UInt32, false),
        Field::new("~line", DataType::UInt64, false),
    ];
    fields.extend(properties.iter().map(Property::arrow));
    Arc::new(Schema::new(fields))
}

/// Replaces the ends of resolved edges by the ordinals of one direction.
fn row_batch(batch: &RecordBatch, near: &[u64], far: &[u64]) -> Result<RecordBatch, IngestError> {
    let numbers = |values: &[u64]| -> ArrayRef { Arc::new(UInt64Array::from(values.to_vec())) };
    let mut columns = vec![numbers(near), numbers(far)];
    columns.extend(batch.columns()[2..].iter().cloned());
    let schema = batch.schema();
    let mut fields = row_schema(&[]).fields()[..2].to_vec();
    fields.extend(schema.fields()[2..].iter().cloned());
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// The output of a direction.
pub(crate) struct DirectionWriter<'a, 'b> {
    pub(crate) spill_dir: &'a Path,
    pub(crate) segments: &'a mut SegmentUpload<'b>,
    pub(crate) edge_type: EdgeTypeId,
    pub(crate) direction: Direction,
    pub(crate) properties: &'a [Property],
    pub(crate) table: TableSettings,
}

/// The written objects of a direction.
pub(crate) struct WrittenDirection {
    pub(crate) edges: u64,
    pub(crate) degrees: DegreeSummary,
    pub(crate) tables: Vec<TableRef>,
}

/// The sorted edges of one direction, of all threads.
pub(crate) enum SortedEdges {
    Packed { sorters: Vec<PackedSorter<u64>>, far_bits: u32 },
    Wide { sorters: Vec<PackedSorter<u128>>, far_bits: u32 },
    Rows(Vec<BatchSorter>),
}

/// Parts the sorters of all threads for one type by direction: out, in.
pub(crate) fn by_direction(sorters: Vec<EdgeSorter>) -> [SortedEdges; 2] {
    let (mut packed, mut wide, mut rows) =
        ((Vec::new(), Vec::new()), (Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
    // All threads chose the same form: it follows from the type's vertex counts and properties. No sorter at all means a type
    // without edges, which is written as an empty packed section.
    let mut far_bits = (0, 0);
    for sorter in sorters {
        match sorter {
            EdgeSorter::Packed(sorter) => {
                far_bits = (sorter.target_bits, sorter.source_bits);
                packed.0.push(sorter.out);
                packed.1.push(sorter.into);
            }
            EdgeSorter::Wide(sorter) => {
                far_bits = (sorter.target_bits, sorter.source_bits);
                wide.0.push(sorter.out);
                wide.1.push(sorter.into);
            }
            EdgeSorter::Rows { out, into } => {
                rows.0.push(out);
                rows.1.push(into);
            }
        }
    }
    if !rows.0.is_empty() {
        [SortedEdges::Rows(rows.0), SortedEdges::Rows(rows.1)]
    } else if !wide.0.is_empty() {
        let direction = |sorters, far_bits| SortedEdges::Wide { sorters, far_bits };
        [direction(wide.0, far_bits.0), direction(wide.1, far_bits.1)]
    } else {
        let direction = |sorters, far_bits| SortedEdges::Packed { sorters, far_bits };
        [direction(packed.0, far_bits.0), direction(packed.1, far_bits.1)]
    }
}

impl SortedEdges {
    /// Writes the section, and the table of properties if there are any.
    pub(crate) fn write(self, writer: DirectionWriter<'_, '_>) -> Result<WrittenDirection, IngestError> {
        let DirectionWriter { segments, edge_type, direction, .. } = writer;
        let objects = segments.objects;
        let mut adjacency = AdjacencyWriter::new(segments, edge_type, direction)?;
        let mut tables = Vec::new();
        match self {
            Self::Packed { sorters, far_bits } => {
                // The inverse of `EdgeSorter::push`, shifts by all 64 bits included.
                let far_mask = 1u64.checked_shl(far_bits).map_or(u64::MAX, |bit| bit - 1);
                write_packed(sorters, &mut adjacency, |edge| {
                    (edge.checked_shr(far_bits).unwrap_or(0), edge & far_mask)
                })?;
            }
            Self::Wide { sorters, far_bits } => write_packed(sorters, &mut adjacency, |edge| {
                ((edge >> far_bits) as u64, (edge & ((1 << far_bits) - 1)) as u64)
            })?,
            Self::Rows(sorters) => {
                let schema = table_schema(None, writer.properties);
                let owner = TableOwner::Edges(edge_type, direction);
                let mut table = TableUpload::new(objects, writer.spill_dir, owner, writer.table);
                for batch in BatchSorter::finish_all(sorters)? {
                    let batch = batch?;
                    let near = batch.column(0).as_primitive::<UInt64Type>().values();
                    let far = batch.column(1).as_primitive::<UInt64Type>().values();
                    // One pass feeds the section and the table, so the row of an edge is its position in the section.
                    near.iter().zip(far).try_for_each(|(near, far)| adjacency.push(*near, *far))?;
                    table.write(&RecordBatch::try_new(schema.clone(), batch.columns()[OWN_COLUMNS..].to_vec())?)?;
                }
                tables = table.finish()?;
            }
        }
        let (edges, degrees) = adjacency.finish()?;
        Ok(WrittenDirection { edges, degrees, tables })
    }
}

fn write_packed<T: crate::sort::Record>(
    sorters: Vec<PackedSorter<T>>,
    adjacency: &mut AdjacencyWriter<'_, '_>,
    unpack: impl Fn(T) -> (u64, u64),
) -> Result<(), IngestError> {
    if sorters.is_empty() {
        return Ok(());
    }
    let mut sorted = PackedSorter::finish_all(sorters)?;
    let mut piece = Vec::new();
    while sorted.next_into(&mut piece)? {
        for edge in &piece {
            let (near, far) = unpack(*edge);
            adjacency.push(near, far)?;
        }
    }
    Ok(())
}
