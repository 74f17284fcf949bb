//! Resolving both ends of edges.

use std::{path::Path, sync::Arc};

use arrow_array::{Array, BooleanArray, RecordBatch, UInt64Array, cast::AsArray, types};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use hoplake_format::LabelId;

use super::{
    KeyTable, UNKNOWN,
    partitions::{PARTITIONS, PartitionWriter},
    table::MemoryTable,
};
use crate::{IngestError, sort::batch_runs::BatchFile};

/// An end of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// Where it starts.
    Source,
    /// Where it ends.
    Target,
}

/// Where the keys of one end are looked up.
#[derive(Debug, Clone)]
pub struct JoinSide {
    /// The table of the end's id space.
    pub table: Arc<KeyTable>,
    /// The label the vertex must have; `None` takes any.
    pub label: Option<LabelId>,
}

/// An edge that names a vertex that does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKey {
    /// The file of the edge, as the caller numbers files.
    pub file: u32,
    /// Its line.
    pub line: u64,
    /// The end whose key is unknown. An edge with two unknown keys is reported for its source only.
    pub end: End,
    /// The key.
    pub key: String,
}

/// The consumer of the results of a [`ResolveJoin`].
pub trait ResolvedRows {
    /// Takes resolved edges: columns are the source and the target (UInt64, see [`pack`](super::pack)), the file,
    /// the line, then the properties.
    ///
    /// # Errors
    /// Any error ends the join.
    fn rows(&mut self, batch: RecordBatch) -> Result<(), IngestError>;

    /// Takes an edge that is left out.
    ///
    /// # Errors
    /// Any error ends the join.
    fn unknown(&mut self, unknown: UnknownKey) -> Result<(), IngestError>;
}

const FILE_COLUMN: usize = 2;
const LINE_COLUMN: usize = 3;

/// Resolves the keys of edges, in memory or through partitions.
///
/// Batches have the columns source key, target key, file (UInt32), line (UInt64), then properties. If both tables are
/// in memory, [`push`](Self::push) yields rows in their order. Otherwise [`finish`](Self::finish) yields them, by
/// partition and then in their order.
pub struct ResolveJoin {
    sides: [JoinSide; 2],
    /// Rows before the source is resolved, and before the target is, where the table is partitioned.
    writers: [Option<PartitionWriter>; 2],
}

impl ResolveJoin {
    /// A join of batches of `schema`. The tables keep their own budgets; `budget_bytes` is for the rows on
    /// their way to files in `spill_dir`.
    ///
    /// # Errors
    /// [`IngestError::Invalid`] if the schema lacks the columns.
    pub fn new(
        schema: &SchemaRef,
        source: JoinSide,
        target: JoinSide,
        budget_bytes: usize,
        spill_dir: &Path,
    ) -> Result<Self, IngestError> {
        let numbers = schema.fields().iter().map(|field| field.data_type()).skip(FILE_COLUMN).take(2);
        if !numbers.eq([&DataType::UInt32, &DataType::UInt64]) {
            return Err(IngestError::Invalid(
                "edges to be resolved have the columns source, target, file, line".into(),
            ));
        }
        let schemas = [Arc::clone(schema), with_vertices(schema, 0)];
        let sides = [source, target];
        let writer = |end: usize| {
            let partitioned = sides[end].table.is_partitioned();
            partitioned.then(|| PartitionWriter::new(Arc::clone(&schemas[end]), end, budget_bytes / 4, spill_dir))
        };
        let writers = [writer(0), writer(1)];
        Ok(Self { sides, writers })
    }

    /// Takes a batch of edges.
    ///
    /// # Errors
    /// [`IngestError::Spill`] if rows cannot be written, or what `sink` returns.
    pub fn push(&mut self, batch: RecordBatch, sink: &mut impl ResolvedRows) -> Result<(), IngestError> {
        self.enter(0, batch, sink)
    }

    /// Ends the join.
    ///
    /// # Errors
    /// [`IngestError::Memory`] if a partition of a table does not fit the table's budget,
    /// [`IngestError::Spill`] if rows cannot be read or written, or what `sink` returns.
    pub fn finish(self, sink: &mut impl ResolvedRows) -> Result<(), IngestError> {
        Self::finish_all(vec![self], sink)
    }

    /// Ends the joins that several threads have filled, which must agree in tables and labels: every
    /// partition of a table is loaded once for all.
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    pub fn finish_all(mut joins: Vec<Self>, sink: &mut impl ResolvedRows) -> Result<(), IngestError> {
        // Sources first: rows whose target is partitioned, too, wait in the second writer until all of them are there.
        for end in 0..2 {
            let writers = joins.iter_mut().filter_map(|join| join.writers[end].take());
            let files = writers.map(PartitionWriter::finish).collect::<Result<Vec<_>, _>>()?;
            if let Some(join) = joins.first_mut() {
                join.join_partitions(end, files, sink)?;
            }
        }
        Ok(())
    }

    fn join_partitions(
        &mut self,
        end: usize,
        mut files: Vec<Vec<Option<BatchFile>>>,
        sink: &mut impl ResolvedRows,
    ) -> Result<(), IngestError> {
        for partition in 0..PARTITIONS {
            let files: Vec<_> = files.iter_mut().filter_map(|files| files[partition].take()).collect();
            // No edge has a key of this partition, so it is never read.
            if files.is_empty() {
                continue;
            }
            // One partition is in memory at a time, and all rows that need it come now.
            let table = self.sides[end].table.load(partition)?;
            for file in files {
                for batch in file.read()? {
                    let resolved = resolve(&table, self.sides[end].label, end, batch?, sink)?;
                    // In the first join, for all: its writer of the other end takes these rows next to its own.
                    self.enter(end + 1, resolved, sink)?;
                }
            }
        }
        Ok(())
    }

    /// Takes rows whose ends before `end` are resolved as far as they go without a partitioned table.
    fn enter(&mut self, end: usize, mut batch: RecordBatch, sink: &mut impl ResolvedRows) -> Result<(), IngestError> {
        // From the first end that is not resolved; a row leaves this loop for a file, or with both ends resolved.
        for end in end..2 {
            if batch.num_rows() == 0 {
                return Ok(());
            }
            if let Some(writer) = &mut self.writers[end] {
                return writer.push(batch);
            }
            let JoinSide { table, label } = &self.sides[end];
            let table = table.memory().expect("a partitioned table has a writer until it is joined");
            batch = resolve(table, *label, end, batch, sink)?;
        }
        if batch.num_rows() == 0 {
            return Ok(());
        }
        sink.rows(batch)
    }
}

/// The schema after the column `end` is resolved.
fn with_vertices(schema: &Schema, end: usize) -> SchemaRef {
    let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
    fields[end] = Arc::new(Field::new(fields[end].name(), DataType::UInt64, false));
    Arc::new(Schema::new(fields))
}

/// Replaces the keys of one end by vertices; rows with unknown keys go to the sink.
fn resolve(
    table: &MemoryTable,
    label: Option<LabelId>,
    end: usize,
    batch: RecordBatch,
    sink: &mut impl ResolvedRows,
) -> Result<RecordBatch, IngestError> {
    let mut vertices = Vec::new();
    table.resolve(batch.column(end), label, &mut vertices)?;
    // Reported here and dropped, so that an edge with two unknown keys is one bad row.
    let known = report_unknown(&vertices, end, &batch, sink)?;
    // The keys themselves are no longer needed: from here a row has 8 bytes for each end.
    let (schema, mut columns, _) = batch.into_parts();
    columns[end] = Arc::new(UInt64Array::from(vertices));
    let batch = RecordBatch::try_new(with_vertices(&schema, end), columns)?;
    match known {
        Some(known) => Ok(filter_record_batch(&batch, &known)?),
        None => Ok(batch),
    }
}

/// Reports unknown keys; which rows are known, unless all are.
fn report_unknown(
    vertices: &[u64],
    end: usize,
    batch: &RecordBatch,
    sink: &mut impl ResolvedRows,
) -> Result<Option<BooleanArray>, IngestError> {
    // The usual case copies nothing: no mask is built, and no row is filtered.
    if !vertices.contains(&UNKNOWN) {
        return Ok(None);
    }
    let keys = batch.column(end);
    let files = batch.column(FILE_COLUMN).as_primitive::<types::UInt32Type>();
    let lines = batch.column(LINE_COLUMN).as_primitive::<types::UInt64Type>();
    for row in (0..vertices.len()).filter(|&row| vertices[row] == UNKNOWN) {
        let key = match keys.data_type() {
            DataType::Int64 => keys.as_primitive::<types::Int64Type>().value(row).to_string(),
            _ => keys.as_string::<i32>().value(row).to_owned(),
        };
        let end = [End::Source, End::Target][end];
        sink.unknown(UnknownKey { file: files.value(row), line: lines.value(row), end, key })?;
    }
    Ok(Some(vertices.iter().map(|&vertex| Some(vertex != UNKNOWN)).collect()))
}
