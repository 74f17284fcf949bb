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
    sort::{BatchSorter, PackedSorter, Record, SortedBatches, SortedRecords},
};

/// Columns before a table's own: near, far, input, line.
const OWN_COLUMNS: usize = 4;

/// How many bits the ordinals below `count` need.
fn bits(count: u64) -> u32 {
    // Ordinals are dense from 0: the largest is count - 1. A label of one vertex needs no bit.
    64 - count.saturating_sub(1).leading_zeros()
}

/// One thread's sorter of the edges of one type in one direction.
pub(crate) enum DirectionSorter {
    Packed(Packed<u64>),
    Wide(Packed<u128>),
    Rows(BatchSorter),
}

/// A sorter of edges that are numbers.
pub(crate) struct Packed<T> {
    far_bits: u32,
    sorter: PackedSorter<T>,
    scratch: Vec<T>,
}

impl DirectionSorter {
    /// A sorter of edges from vertices of a label of this size to those of another, with these properties.
    pub(crate) fn new(
        near: u64,
        far: u64,
        properties: &[Property],
        budget_bytes: usize,
        spill_dir: &Path,
    ) -> Result<Self, IngestError> {
        if !properties.is_empty() {
            // Near and far fill the sixteen bytes by which the sorter compares rows first; only parallel edges get to input and line.
            return Ok(Self::Rows(BatchSorter::new(row_schema(properties), &[0, 1, 2, 3], budget_bytes, spill_dir)?));
        }
        let far_bits = bits(far);
        // A record of 8 bytes takes half the memory of one of 16. Two labels of up to 2^32 vertices each always fit.
        if bits(near) + far_bits <= 64 {
            let sorter = PackedSorter::new(budget_bytes, spill_dir);
            return Ok(Self::Packed(Packed { far_bits, sorter, scratch: Vec::new() }));
        }
        let sorter = PackedSorter::new(budget_bytes, spill_dir);
        Ok(Self::Wide(Packed { far_bits, sorter, scratch: Vec::new() }))
    }

    /// Takes edges: the ordinals of their ends, and a batch whose columns from the third on are input, line and the properties.
    pub(crate) fn push(&mut self, near: &[u64], far: &[u64], batch: &RecordBatch) -> Result<(), IngestError> {
        match self {
            // A shift by all 64 bits can only be of 0: then the label has one vertex at most.
            Self::Packed(packed) => packed.push(near, far, |near, far, bits| near.checked_shl(bits).unwrap_or(0) | far),
            Self::Wide(packed) => packed.push(near, far, |near, far, bits| u128::from(near) << bits | u128::from(far)),
            Self::Rows(sorter) => sorter.push(row_batch(batch, near, far)?),
        }
    }
}

impl<T: Record> Packed<T> {
    fn push(&mut self, near: &[u64], far: &[u64], pack: impl Fn(u64, u64, u32) -> T) -> Result<(), IngestError> {
        let Self { far_bits, sorter, scratch } = self;
        scratch.clear();
        scratch.extend(near.iter().zip(far).map(|(near, far)| pack(*near, *far, *far_bits)));
        sorter.push(scratch)
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

/// Sorted edges of one type in one direction, piece by piece.
pub(crate) enum SortedEdges {
    /// There is none.
    Empty,
    Packed {
        records: SortedRecords<u64>,
        piece: Vec<u64>,
        far_bits: u32,
    },
    Wide {
        records: SortedRecords<u128>,
        piece: Vec<u128>,
        far_bits: u32,
    },
    Rows {
        batches: SortedBatches,
        schema: SchemaRef,
    },
}

/// Some edges, sorted.
#[derive(Default)]
pub(crate) struct EdgePiece {
    pub(crate) near: Vec<u64>,
    pub(crate) far: Vec<u64>,
    /// Their properties, if the type has any.
    pub(crate) rows: Option<RecordBatch>,
}

impl SortedEdges {
    /// The edges of the sorters of all threads, which all have one form: it follows from the sizes of the labels and from the properties.
    pub(crate) fn of(sorters: Vec<DirectionSorter>, properties: &[Property]) -> Result<Self, IngestError> {
        let mut packed = Vec::new();
        let mut wide = Vec::new();
        let mut rows = Vec::new();
        let mut bits = 0;
        for sorter in sorters {
            match sorter {
                DirectionSorter::Packed(Packed { far_bits, sorter, .. }) => {
                    bits = far_bits;
                    packed.push(sorter);
                }
                DirectionSorter::Wide(Packed { far_bits, sorter, .. }) => {
                    bits = far_bits;
                    wide.push(sorter);
                }
                DirectionSorter::Rows(sorter) => rows.push(sorter),
            }
        }
        Ok(match (packed.is_empty(), wide.is_empty(), rows.is_empty()) {
            (false, ..) => {
                let records = PackedSorter::finish_all(packed)?;
                Self::Packed { records, piece: Vec::new(), far_bits: bits }
            }
            (_, false, _) => {
                let records = PackedSorter::finish_all(wide)?;
                Self::Wide { records, piece: Vec::new(), far_bits: bits }
            }
            (.., false) => {
                Self::Rows { batches: BatchSorter::finish_all(rows)?, schema: table_schema(None, properties) }
            }
            _ => Self::Empty,
        })
    }

    /// Replaces `edges` with the next ones; false at the end.
    pub(crate) fn next_into(&mut self, edges: &mut EdgePiece) -> Result<bool, IngestError> {
        edges.near.clear();
        edges.far.clear();
        match self {
            Self::Empty => Ok(false),
            Self::Packed { records, piece, far_bits } => {
                // The inverse of `DirectionSorter::push`, shifts by all 64 bits included.
                let far_mask = 1u64.checked_shl(*far_bits).map_or(u64::MAX, |bit| bit - 1);
                let more = records.next_into(piece)?;
                edges.near.extend(piece.iter().map(|edge| edge.checked_shr(*far_bits).unwrap_or(0)));
                edges.far.extend(piece.iter().map(|edge| edge & far_mask));
                Ok(more)
            }
            Self::Wide { records, piece, far_bits } => {
                let more = records.next_into(piece)?;
                edges.near.extend(piece.iter().map(|edge| (edge >> *far_bits) as u64));
                edges.far.extend(piece.iter().map(|edge| (edge & ((1 << *far_bits) - 1)) as u64));
                Ok(more)
            }
            Self::Rows { batches, schema } => {
                let Some(batch) = batches.next().transpose()? else { return Ok(false) };
                edges.near.extend(batch.column(0).as_primitive::<UInt64Type>().values());
                edges.far.extend(batch.column(1).as_primitive::<UInt64Type>().values());
                edges.rows = Some(RecordBatch::try_new(schema.clone(), batch.columns()[OWN_COLUMNS..].to_vec())?);
                Ok(true)
            }
        }
    }
}

/// Writes the section of a type in one direction, and the table of properties if there are any.
pub(crate) struct DirectionWriter<'a, 'b> {
    adjacency: AdjacencyWriter<'a, 'b>,
    table: Option<TableUpload<'b>>,
}

/// Which edges are written.
pub(crate) struct DirectionRows<'a> {
    pub(crate) edge_type: EdgeTypeId,
    pub(crate) direction: Direction,
    pub(crate) properties: &'a [Property],
    /// How many there are before the first.
    pub(crate) first: u64,
}

/// The written objects of a direction.
#[derive(Default)]
pub(crate) struct WrittenDirection {
    pub(crate) edges: u64,
    pub(crate) degrees: DegreeSummary,
    pub(crate) tables: Vec<TableRef>,
}

impl<'a, 'b> DirectionWriter<'a, 'b> {
    pub(crate) fn new(
        segments: &'a mut SegmentUpload<'b>,
        spill_dir: &Path,
        table: TableSettings,
        rows: &DirectionRows<'_>,
    ) -> Result<Self, IngestError> {
        let DirectionRows { edge_type, direction, properties, first } = *rows;
        let objects = segments.objects;
        let owner = TableOwner::Edges(edge_type, direction);
        let table = || TableUpload::new(objects, spill_dir, owner, first, table);
        let table = (!properties.is_empty()).then(table);
        Ok(Self { adjacency: AdjacencyWriter::new(segments, edge_type, direction, first)?, table })
    }

    /// Writes the next edges.
    pub(crate) fn write(&mut self, edges: &EdgePiece) -> Result<(), IngestError> {
        let Self { adjacency, table } = self;
        let ends = edges.near.iter().zip(&edges.far);
        let Some((table, rows)) = table.as_mut().zip(edges.rows.as_ref()) else {
            for (near, far) in ends {
                if adjacency.ends_span(*near)? {
                    adjacency.begin_span()?;
                }
                adjacency.push(*far);
            }
            return Ok(());
        };
        // One pass feeds the section and the table, so the row of an edge is its position in the section.
        let mut written = 0;
        for (row, (near, far)) in ends.enumerate() {
            if adjacency.ends_span(*near)? {
                table.write(rows.slice(written, row - written))?;
                table.end_table()?;
                adjacency.begin_span()?;
                written = row;
            }
            adjacency.push(*far);
        }
        table.write(rows.slice(written, rows.num_rows() - written))
    }

    pub(crate) fn finish(mut self) -> Result<WrittenDirection, IngestError> {
        // As where a span ends: each object is named when it begins.
        self.adjacency.end_list()?;
        let tables = self.table.map(TableUpload::finish).transpose()?.unwrap_or_default();
        let (edges, degrees) = self.adjacency.finish()?;
        Ok(WrittenDirection { edges, degrees, tables })
    }
}
