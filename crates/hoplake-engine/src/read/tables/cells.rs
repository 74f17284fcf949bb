//! Reads cells of tables.

use std::{ops::Range, sync::Arc};

use arrow_array::{RecordBatch, RecordBatchOptions, UInt32Array, new_null_array};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, Field, Schema as ArrowSchema};
use arrow_select::{concat::concat_batches, take::take_record_batch};
use hoplake_format::{FormatError, LabelId, TableOwner, pages::guarded};
use hoplake_storage::{Branch, MemoryHold, Pace, QueryContext, Reader};

use super::{
    Layout, Table, Tables, Through,
    decode::{TableCells, TableRead},
    extents,
    stretches::clipped,
};
use crate::{EngineError, memory::bytes_of, pieces::sort_by_key};

impl Tables {
    /// Starts to read the ends of the tables of `owner`, in all runs, so that a later read of cells takes one wave.
    pub(crate) async fn load_table_metadata(&self, owner: TableOwner, branch: &mut Branch) -> Result<(), EngineError> {
        let tables = self.tables.iter().filter(|table| table.reference.owner == owner);
        self.layouts(tables.map(Arc::as_ref), branch).await.map(drop)
    }

    /// Starts to read what a later look at the properties of a label's vertices needs to know.
    pub(crate) async fn load_vertex_metadata(&self, label: LabelId, branch: &mut Branch) -> Result<(), EngineError> {
        let owners = [TableOwner::Vertices(label), TableOwner::Changed(label)];
        let loads = branch.each(owners, |owner, mut line| async move {
            self.load_table_metadata(owner, &mut line).await?;
            Ok::<_, EngineError>(((), line))
        });
        loads.await.map(drop)
    }

    /// The same of several labels.
    pub(crate) async fn load_metadata_of_labels(
        &self,
        labels: &[LabelId],
        branch: &mut Branch,
    ) -> Result<(), EngineError> {
        let loads = branch.each(labels, |label, mut line| async move {
            self.load_vertex_metadata(*label, &mut line).await?;
            Ok::<_, EngineError>(((), line))
        });
        loads.await.map(drop)
    }

    /// The ends of some tables, read side by side.
    pub(crate) async fn layouts<'a>(
        &self,
        tables: impl Iterator<Item = &'a Table>,
        branch: &mut Branch,
    ) -> Result<Vec<&'a Layout>, EngineError> {
        let layouts = branch.each(tables, |table, mut line| async move {
            Ok::<_, EngineError>((table.layout(&self.reader, &mut line).await?, line))
        });
        layouts.await
    }

    /// A range that has all integers of a property in the tables of `owner`, items of lists included; `None` if there are
    /// none, all integers if a table does not tell. One wave for ends of tables that were not read before.
    pub(crate) async fn int64_range(
        &self,
        owner: TableOwner,
        property: &str,
        branch: &mut Branch,
    ) -> Result<Option<(i64, i64)>, EngineError> {
        let tables = self.tables.iter().filter(|table| table.reference.owner == owner);
        let layouts = self.layouts(tables.map(Arc::as_ref), branch).await?;
        let ranges = layouts.iter().flat_map(|layout| layout.int64_ranges(property));
        Ok(ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))))
    }

    /// The cells of `rows` (any order, repeats allowed) of the tables `chosen` of one owner, in the order of the rows,
    /// with these fields: a column that a table does not have, since its run is older, is null, and one of an older
    /// type is converted.
    pub(crate) async fn cells(
        &self,
        chosen: &[&Table],
        rows: &[u64],
        fields: &[Field],
        through: Through,
        branch: &mut Branch,
    ) -> Result<RecordBatch, EngineError> {
        let context = branch.context().clone();
        // The rows in order, and the stretches that they are.
        let _memory = context.hold(bytes_of::<u64>(rows.len() * 3))?;
        let mut sorted = rows.to_vec();
        sort_by_key(&mut sorted, |row| *row, &context).await?;
        sorted.dedup();
        let stretches: Vec<_> =
            sorted.chunk_by(|a, b| a + 1 == *b).map(|run| run[0]..run[0] + run.len() as u64).collect();
        let cells = self.cells_of_stretches(chosen, &stretches, fields, through, branch).await?;
        Ok(arrange(cells.whole().await?, &sorted, rows)?)
    }

    /// The same of stretches of rows, ascending, to be decoded some at a time. All rows of a stretch cost no more than their cells:
    /// they are not listed.
    pub(crate) async fn cells_of_stretches<'a>(
        &self,
        chosen: &[&'a Table],
        stretches: &[Range<u64>],
        fields: &[Field],
        through: Through,
        branch: &mut Branch,
    ) -> Result<Cells<'a>, EngineError> {
        let context = branch.context().clone();
        // Those of each table.
        let mut memory = context.hold(bytes_of::<Range<u64>>(stretches.len()))?;
        let mut reads = Vec::new();
        let layouts = self.layouts(chosen.iter().copied(), branch).await?;
        for (table, layout) in chosen.iter().zip(layouts) {
            let bounds = table.rows();
            let of_table = clipped(stretches, &bounds).map(|rows| rows.start - bounds.start..rows.end - bounds.start);
            let of_table: Vec<_> = of_table.collect();
            if !of_table.is_empty() {
                reads.push((*table, TableRead::new(table, layout, of_table, fields)));
            }
        }
        // By row: tables may be in any order in the manifest.
        reads.sort_by_key(|(table, _)| table.reference.first_row);
        if through == Through::Caches {
            reads.iter_mut().for_each(|(_, read)| read.take_kept(&self.reader, &context));
        }
        let requests: Vec<_> = reads.iter().flat_map(|(_, read)| read.requests()).collect();
        let stored: u64 = requests.iter().map(|request| request.range.end - request.range.start).sum();
        let held = memory.bytes() + stored;
        context.resize(&mut memory, held)?;
        let pages = match through {
            Through::Caches => self.reader.read(&requests, branch).await?,
            Through::Extents => extents::read(&self.reader, &requests, branch).await?,
        };
        let rows: u64 = stretches.iter().map(|rows| rows.end - rows.start).sum();
        let found: u64 = reads.iter().map(|(_, read)| read.row_count as u64).sum();
        if found != rows {
            let owner = chosen.first().map(|table| table.reference.owner);
            let why = format!("the tables of {owner:?} have {found} of {rows} rows");
            return Err(EngineError::format(self.reader.store().url())(FormatError::corrupt("manifest", why)));
        }
        let mut pages = pages.into_iter();
        let of_tables = reads.into_iter().map(|(table, mut read)| {
            // Answers have the order of the requests: table by table.
            read.take_read(&mut pages);
            TablePages { location: self.reader.store().location(&table.reference.name), read }
        });
        Ok(Cells {
            schema: Arc::new(ArrowSchema::new(fields.to_vec())),
            tables: of_tables.collect::<Vec<_>>().into_iter(),
            current: None,
            reader: self.reader.clone(),
            pace: context.pace(),
            decoded: context.hold(0)?,
            context,
            _memory: memory,
        })
    }
}

/// Cells whose pages were read, from [`Tables::cells_of_stretches`].
pub(crate) struct Cells<'a> {
    schema: Arc<ArrowSchema>,
    tables: std::vec::IntoIter<TablePages<'a>>,
    /// The table that is decoded now, and where it is.
    current: Option<(TableCells<'a>, String)>,
    reader: Reader,
    context: QueryContext,
    pace: Pace,
    /// For the rows that were decoded last.
    decoded: MemoryHold,
    /// For the pages.
    _memory: MemoryHold,
}

/// The pages of a table that hold cells.
struct TablePages<'a> {
    location: String,
    read: TableRead<'a>,
}

impl Cells<'_> {
    pub(crate) fn schema(&self) -> &Arc<ArrowSchema> {
        &self.schema
    }

    /// The next rows, some thousands at most; `None` behind the last. They count until the next call.
    pub(crate) async fn next(&mut self) -> Result<Option<RecordBatch>, EngineError> {
        loop {
            // The decoder may panic on forged pages; `guarded` makes that an error of the table.
            if let Some((cells, location)) = &mut self.current
                && let Some(batch) = guarded(|| cells.next()).map_err(|error| EngineError::table(&*location)(error))?
            {
                let batch = conform(&batch, &self.schema)?;
                self.context.resize(&mut self.decoded, batch.get_array_memory_size() as u64)?;
                self.pace.rest(batch.num_rows() as u64 * batch.num_columns() as u64 * 8).await?;
                return Ok(Some(batch));
            }
            let Some(TablePages { location, mut read }) = self.tables.next() else { return Ok(None) };
            let cells = guarded(|| read.open(&self.reader)).map_err(EngineError::table(&location))?;
            self.current = Some((cells, location));
        }
    }

    /// All rows in one batch.
    pub(crate) async fn whole(mut self) -> Result<RecordBatch, EngineError> {
        let mut rows = Gathering::new(self.schema.clone(), &self.context)?;
        while let Some(batch) = self.next().await? {
            rows.push(batch)?;
        }
        rows.finish()
    }
}

/// Batches that become one.
pub(crate) struct Gathering {
    schema: Arc<ArrowSchema>,
    batches: Vec<RecordBatch>,
    memory: MemoryHold,
    context: QueryContext,
}

impl Gathering {
    pub(crate) fn new(schema: Arc<ArrowSchema>, context: &QueryContext) -> Result<Self, EngineError> {
        Ok(Self { schema, batches: Vec::new(), memory: context.hold(0)?, context: context.clone() })
    }

    pub(crate) fn push(&mut self, batch: RecordBatch) -> Result<(), EngineError> {
        if batch.num_rows() > 0 {
            // Twice: as it is, and in the one batch.
            let held = self.memory.bytes() + 2 * batch.get_array_memory_size() as u64;
            self.context.resize(&mut self.memory, held)?;
            self.batches.push(batch);
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<RecordBatch, EngineError> {
        Ok(concat_batches(&self.schema, &self.batches)?)
    }
}

/// The columns of a schema: those of the batch, converted if need be, or nulls. A column whose type cannot be converted belongs to a
/// property that took another type when it had no values: all values of the column are in rows that newer runs replaced or deleted.
fn conform(batch: &RecordBatch, schema: &Arc<ArrowSchema>) -> Result<RecordBatch, ArrowError> {
    let column = |field: &Arc<Field>| match batch.column_by_name(field.name()) {
        Some(column) if column.data_type() == field.data_type() => Ok(column.clone()),
        Some(column) if becomes(column.data_type(), field.data_type()) => cast(column, field.data_type()),
        _ => Ok(new_null_array(field.data_type(), batch.num_rows())),
    };
    let columns = schema.fields().iter().map(column).collect::<Result<_, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
}

/// Whether a column of one type is read as another: of the same kind, or an integer as a float.
fn becomes(from: &DataType, to: &DataType) -> bool {
    match (from, to) {
        (DataType::List(from), DataType::List(to)) => becomes(from.data_type(), to.data_type()),
        (from, DataType::Utf8) => matches!(from, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View),
        (DataType::Timestamp(..), DataType::Timestamp(..)) => true,
        (from, to) => from == to || (from, to) == (&DataType::Int64, &DataType::Float64),
    }
}

/// Puts rows back into the order they were asked in.
fn arrange(batch: RecordBatch, sorted: &[u64], rows: &[u64]) -> Result<RecordBatch, ArrowError> {
    if sorted == rows {
        return Ok(batch);
    }
    let position = |row: &u64| sorted.partition_point(|other| other < row) as u32;
    let indices: UInt32Array = rows.iter().map(|row| Some(position(row))).collect();
    // No columns were asked, so all that is left of the rows is their number.
    if batch.num_columns() == 0 {
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        return RecordBatch::try_new_with_options(batch.schema(), vec![], &options);
    }
    take_record_batch(&batch, &indices)
}
