//! Vertices: from rows in any order to keys, ordinals and tables.
//!
//! The rows of a label are sorted by key within the budget. Going through them in order finds
//! duplicates, joins the values of lists that stand in files of their own, and gives each vertex its rank
//! as ordinal.

use std::{collections::HashSet, path::Path, sync::Arc};

use arrow_array::{
    Array, ArrayRef, BooleanArray, ListArray, RecordBatch, UInt32Array, UInt64Array,
    cast::AsArray,
    new_empty_array,
    types::{Int64Type, UInt32Type, UInt64Type},
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::{concat::concat, filter::filter_record_batch};
use foldhash::fast::FixedState;
use hoplake_format::{Key, KeyType, PropertyType};

use super::scan::{ScanContext, Worker};
use crate::{
    Chunk, Feed, IngestError, Phase, VertexTable,
    dataset::Lines,
    sort::{BatchSorter, SortedBatches},
};

/// Columns before a table's own: key, input, line.
const OWN_COLUMNS: usize = 3;

/// The sorted rows of one label, and of its lists.
pub(crate) struct SortedVertices {
    rows: SortedBatches,
    lists: Vec<(usize, ListCursor)>,
    previous: Option<(Key, u32, u64)>,
    /// Rows (input, line) that were left out because another has their key, of inputs that have edges, too.
    pub(crate) left_out: Vec<(u32, u64)>,
}

/// One thread's sorters for the tables that share inputs.
pub(crate) struct TableSorters {
    tables: Vec<OfTable>,
}

/// The sorters of one table: one for its rows and one for each list property.
struct OfTable {
    table: usize,
    /// For vertices that edges imply: keys that need not be sorted again.
    known: Option<KnownKeys>,
    rows: BatchSorter,
    lists: Vec<(usize, BatchSorter)>,
}

impl Worker for TableSorters {
    fn take(&mut self, input: usize, chunk: Chunk) -> Result<(), IngestError> {
        let (Feed::Vertices { table } | Feed::ListValues { table, .. } | Feed::Edges { table }) = chunk.feed;
        if !self.tables.iter().any(|of_table| of_table.table == table) {
            return Ok(());
        }
        self.push(chunk.feed, with_origin(input, &chunk)?)
    }
}

impl TableSorters {
    /// Sorters of these tables, each with its list properties whose values are in files of their own, with a share of the budget for each.
    pub(crate) fn new(
        tables: &[VertexTable],
        wanted: &[usize],
        lists_of: &dyn Fn(usize) -> Vec<usize>,
        share: usize,
        spill_dir: &Path,
    ) -> Result<Self, IngestError> {
        let sorters = wanted.iter().map(|number| {
            let table = &tables[*number];
            let key = table.key_type.arrow();
            let schema = origin_schema(&key, table.properties.iter().map(|property| property.arrow()));
            let lists = lists_of(*number).into_iter().map(|property| {
                let value = Field::new("value", item_type(table.properties[property].kind), true);
                let schema = origin_schema(&key, std::iter::once(value));
                Ok((property, BatchSorter::new(schema, &[0, 1, 2], share, spill_dir)?))
            });
            let lists = lists.collect::<Result<Vec<_>, IngestError>>()?;
            // Only vertices that edges imply come again and again.
            let known = table.implied.then(|| KnownKeys::new(share / 2));
            let share = if table.implied { share / 2 } else { share };
            Ok(OfTable { table: *number, known, rows: BatchSorter::new(schema, &[0, 1, 2], share, spill_dir)?, lists })
        });
        Ok(Self { tables: sorters.collect::<Result<_, IngestError>>()? })
    }

    /// Takes rows with their origins.
    pub(crate) fn push(&mut self, feed: Feed, mut batch: RecordBatch) -> Result<(), IngestError> {
        let (Feed::Vertices { table } | Feed::ListValues { table, .. } | Feed::Edges { table }) = feed;
        let Some(of_table) = self.tables.iter_mut().find(|of_table| of_table.table == table) else { return Ok(()) };
        match feed {
            Feed::Vertices { .. } => {
                // Only implied vertices: a second row of a listed vertex has to reach the sort, which reports it.
                if let Some(known) = &mut of_table.known {
                    batch = filter_record_batch(&batch, &known.learn(batch.column(0)))?;
                }
                of_table.rows.push(batch)
            }
            Feed::ListValues { property, .. } => {
                let list = of_table.lists.iter_mut().find(|(number, _)| *number == property);
                list.map_or(Ok(()), |(_, sorter)| sorter.push(batch))
            }
            Feed::Edges { .. } => Ok(()),
        }
    }
}

/// Keys that a sorter already has. A graph names each vertex in many edges: without this, all ends of all
/// edges would be sorted to find few vertices. Forgetting costs time only: the sort merges what is left.
pub(crate) struct KnownKeys {
    integers: HashSet<i64, FixedState>,
    strings: HashSet<Box<str>, FixedState>,
    /// Bytes of the strings.
    text_bytes: usize,
    bytes_max: usize,
}

/// The approximate overhead of an allocation, in bytes.
const ALLOCATION_BYTES: usize = 16;

/// The bytes of a hash set with this many entries: a power of two of slots, 7 in 8 of them used, and a byte for each.
fn set_bytes(capacity: usize, entry_bytes: usize) -> usize {
    (capacity * 8 / 7).next_power_of_two() * (entry_bytes + 1)
}

impl KnownKeys {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { integers: HashSet::default(), strings: HashSet::default(), text_bytes: 0, bytes_max }
    }

    /// Which of these keys were not known.
    pub(crate) fn learn(&mut self, keys: &ArrayRef) -> BooleanArray {
        match keys.as_primitive_opt::<Int64Type>() {
            // Keys hold no nulls, so that the mask has an entry for every row.
            Some(keys) => keys.values().iter().map(|key| Some(self.learn_integer(*key))).collect(),
            None => keys.as_string::<i32>().iter().flatten().map(|key| Some(self.learn_string(key))).collect(),
        }
    }

    fn learn_integer(&mut self, key: i64) -> bool {
        // A set that is full has its old and its new slots for a moment.
        let len = self.integers.len();
        let capacity = self.integers.capacity();
        if len == capacity && set_bytes(capacity, 8) + set_bytes(2 * capacity + 1, 8) > self.bytes_max {
            self.integers.clear();
        }
        // Where not even the first slots fit.
        (self.integers.capacity() == 0 && set_bytes(4, 8) > self.bytes_max) || self.integers.insert(key)
    }

    fn learn_string(&mut self, key: &str) -> bool {
        if self.strings.contains(key) {
            return false;
        }
        let len = self.strings.len();
        let capacity = self.strings.capacity();
        let grown = if len == capacity { set_bytes(2 * capacity + 1, size_of::<Box<str>>()) } else { 0 };
        let of_key = key.len() + ALLOCATION_BYTES;
        if self.text_bytes + of_key + set_bytes(capacity, size_of::<Box<str>>()) + grown > self.bytes_max {
            // The slots stay, and the check above goes on counting them; only the texts are freed.
            self.strings.clear();
            self.text_bytes = 0;
        }
        if self.text_bytes + of_key <= self.bytes_max {
            self.text_bytes += of_key;
            self.strings.insert(key.into());
        }
        true
    }
}

/// Appends the input's number and the line of each row to the key.
pub(crate) fn with_origin(input: usize, chunk: &Chunk) -> Result<RecordBatch, IngestError> {
    let rows = chunk.batch.num_rows();
    let lines: UInt64Array = match &chunk.lines {
        Lines::Range(range) => UInt64Array::from_iter_values(range.clone().take(rows)),
        Lines::List(lines) => UInt64Array::from_iter_values(lines.iter().copied()),
    };
    let files: ArrayRef = Arc::new(UInt32Array::from_value(input as u32, rows));
    let mut columns = vec![chunk.batch.column(0).clone(), files, Arc::new(lines)];
    columns.extend(chunk.batch.columns()[1..].iter().cloned());
    let chunk_schema = chunk.batch.schema();
    let fields = chunk_schema.fields().iter().skip(1).map(|field| field.as_ref().clone());
    let schema = origin_schema(chunk.batch.column(0).data_type(), fields);
    Ok(RecordBatch::try_new(schema, columns)?)
}

fn origin_schema(key: &DataType, others: impl Iterator<Item = Field>) -> SchemaRef {
    let mut fields = vec![
        Field::new("~key", key.clone(), false),
        Field::new("~input", DataType::UInt32, false),
        Field::new("~line", DataType::UInt64, false),
    ];
    fields.extend(others);
    Arc::new(Schema::new(fields))
}

/// Reads and sorts the vertices of the tables with these numbers from the inputs with these numbers.
pub(crate) fn sort_vertices(
    context: &ScanContext<'_>,
    tables: &[VertexTable],
    wanted: &[usize],
    inputs: &[usize],
    threads: usize,
    budget_bytes: usize,
    spill_dir: &Path,
) -> Result<Vec<SortedVertices>, IngestError> {
    let is_list = |feed: &Feed| matches!(feed, Feed::ListValues { .. });
    let lists: Vec<Feed> = context.inputs.iter().flat_map(|input| input.feeds()).copied().filter(is_list).collect();
    let lists_of = |table: usize| {
        let mut properties: Vec<_> = lists
            .iter()
            .filter_map(|feed| match feed {
                Feed::ListValues { table: owner, property } if *owner == table => Some(*property),
                _ => None,
            })
            .collect();
        properties.sort_unstable();
        properties.dedup();
        properties
    };
    let threads = threads.min(inputs.len()).max(1);
    let sorters: usize = wanted.iter().map(|table| 1 + lists_of(*table).len()).sum();
    // Each thread fills sorters of its own, so nothing is locked for a row; their runs are merged together at the end.
    let share = budget_bytes / (sorters * threads).max(1);
    let worker = || TableSorters::new(tables, wanted, &lists_of, share, spill_dir);
    let workers = (0..threads).map(|_| worker()).collect::<Result<Vec<_>, _>>()?;
    let workers = context.run(inputs, Phase::Vertices, workers)?;
    merge(workers, wanted, tables)
}

/// Brings the sorters of all workers for one table together.
pub(crate) fn merge(
    workers: Vec<TableSorters>,
    wanted: &[usize],
    tables: &[VertexTable],
) -> Result<Vec<SortedVertices>, IngestError> {
    let mut workers: Vec<_> = workers.into_iter().map(|worker| worker.tables.into_iter()).collect();
    let mut merged = Vec::with_capacity(wanted.len());
    for table in wanted {
        let (mut rows, mut lists): (Vec<_>, Vec<(usize, Vec<_>)>) = (Vec::new(), Vec::new());
        for of_table in workers.iter_mut().filter_map(Iterator::next) {
            rows.push(of_table.rows);
            for (property, sorter) in of_table.lists {
                match lists.iter_mut().find(|(number, _)| *number == property) {
                    Some((_, sorters)) => sorters.push(sorter),
                    None => lists.push((property, vec![sorter])),
                }
            }
        }
        let cursor = |(property, sorters): (usize, _)| {
            let value_type = item_type(tables[*table].properties[property].kind);
            Ok((property, ListCursor::new(BatchSorter::finish_all(sorters)?, value_type)))
        };
        let lists = lists.into_iter().map(cursor).collect::<Result<Vec<_>, IngestError>>()?;
        merged.push(SortedVertices {
            rows: BatchSorter::finish_all(rows)?,
            lists,
            previous: None,
            left_out: Vec::new(),
        });
    }
    Ok(merged)
}

fn item_type(kind: PropertyType) -> DataType {
    match kind {
        PropertyType::Scalar(scalar) | PropertyType::List(scalar) => scalar.arrow(),
    }
}

impl SortedVertices {
    /// The next vertices in key order: their keys, and a batch of the key and the table's properties.
    pub(crate) fn next(
        &mut self,
        context: &ScanContext<'_>,
        table: &VertexTable,
    ) -> Result<Option<(Vec<Key>, RecordBatch)>, IngestError> {
        let Some(batch) = self.rows.next().transpose()? else {
            for (_, list) in &mut self.lists {
                // No vertex is left: all remaining values are of unknown keys.
                list.skip_below(None, context, table)?;
            }
            return Ok(None);
        };
        let keys = keys_of(table.key_type, batch.column(0));
        let keep = self.distinct(&batch, &keys, context, table)?;
        let batch = filter_record_batch(&batch, &BooleanArray::from(keep.clone()))?;
        // Keys of rows that go are dropped in step with the rows.
        let mut kept = keep.iter();
        let keys: Vec<_> = keys.into_iter().filter(|_| kept.next() == Some(&true)).collect();
        let mut columns = vec![batch.column(0).clone()];
        columns.extend(batch.columns()[OWN_COLUMNS..].iter().cloned());
        for (property, list) in &mut self.lists {
            // The rows have nulls in this column, as its values are in files of their own. Column 0 is the key.
            columns[1 + *property] = list.join(&keys, context, table)?;
        }
        let schema = hoplake_format::table::table_schema(
            Some(Field::new(hoplake_format::constants::KEY_COLUMN, table.key_type.arrow(), false)),
            &table.properties,
        );
        Ok(Some((keys, RecordBatch::try_new(schema, columns)?)))
    }

    /// Which rows are the first of their key. Further ones are bad, unless they are only implied.
    fn distinct(
        &mut self,
        batch: &RecordBatch,
        keys: &[Key],
        context: &ScanContext<'_>,
        table: &VertexTable,
    ) -> Result<Vec<bool>, IngestError> {
        let inputs = batch.column(1).as_primitive::<UInt32Type>().values();
        let lines = batch.column(2).as_primitive::<UInt64Type>().values();
        let mut keep = Vec::with_capacity(keys.len());
        for (row, key) in keys.iter().enumerate() {
            match &self.previous {
                Some((previous, input, line)) if previous == key => {
                    keep.push(false);
                    if !table.implied {
                        let first = context.inputs[*input as usize].path();
                        let why = format!("is the key of another {} in {}, line {line}", table.label, first.display());
                        let input = &context.inputs[inputs[row] as usize];
                        input.report(context.bad_rows, lines[row], "key", key.to_string(), why)?;
                        // A row that holds a vertex and its edges falls as one: its edges would be those of another vertex with this key.
                        if input.feeds().iter().any(|feed| matches!(feed, Feed::Edges { .. })) {
                            self.left_out.push((inputs[row], lines[row]));
                        }
                    }
                }
                // Rows of one key follow each other, in the order of input and line: the first is the one that a reader of the files sees first.
                _ => {
                    keep.push(true);
                    self.previous = Some((key.clone(), inputs[row], lines[row]));
                }
            }
        }
        Ok(keep)
    }
}

/// The keys in a column.
pub(crate) fn keys_of(key_type: KeyType, column: &ArrayRef) -> Vec<Key> {
    match key_type {
        KeyType::Int64 => column.as_primitive::<Int64Type>().values().iter().map(|key| Key::Int64(*key)).collect(),
        KeyType::String => {
            let column = column.as_string::<i32>();
            (0..column.len()).map(|row| Key::String(column.value(row).to_owned())).collect()
        }
    }
}

/// Goes through the sorted values of a list property.
struct ListCursor {
    rows: SortedBatches,
    value_type: DataType,
    batch: Option<(RecordBatch, Vec<Key>)>,
    row: usize,
}

impl ListCursor {
    fn new(rows: SortedBatches, value_type: DataType) -> Self {
        Self { rows, value_type, batch: None, row: 0 }
    }

    /// Makes sure that there is a current row, unless all are done.
    fn fill(&mut self, key_type: KeyType) -> Result<bool, IngestError> {
        while self.batch.as_ref().is_none_or(|(_, keys)| self.row >= keys.len()) {
            let Some(batch) = self.rows.next().transpose()? else { return Ok(false) };
            let keys = keys_of(key_type, batch.column(0));
            self.batch = Some((batch, keys));
            self.row = 0;
        }
        Ok(true)
    }

    /// Reports the values whose key is below `key` (or all): no vertex has them.
    fn skip_below(
        &mut self,
        key: Option<&Key>,
        context: &ScanContext<'_>,
        table: &VertexTable,
    ) -> Result<(), IngestError> {
        while self.fill(table.key_type)? {
            let Some((batch, keys)) = &self.batch else { break };
            if key.is_some_and(|key| keys[self.row] >= *key) {
                break;
            }
            let input = batch.column(1).as_primitive::<UInt32Type>().value(self.row);
            let line = batch.column(2).as_primitive::<UInt64Type>().value(self.row);
            let why = format!("is the key of no {}", table.label);
            let key = keys[self.row].to_string();
            context.inputs[input as usize].report(context.bad_rows, line, "key", key, why)?;
            self.row += 1;
        }
        Ok(())
    }

    /// The lists of these keys, which ascend; a key without values has none (null).
    fn join(&mut self, keys: &[Key], context: &ScanContext<'_>, table: &VertexTable) -> Result<ArrayRef, IngestError> {
        let mut pieces: Vec<ArrayRef> = Vec::new();
        let mut lengths = Vec::with_capacity(keys.len());
        for key in keys {
            self.skip_below(Some(key), context, table)?;
            let mut length = 0;
            while self.fill(table.key_type)? {
                let Some((batch, others)) = &self.batch else { break };
                // The values of one key may go on in the next batch, so this repeats until the key changes.
                let count = others[self.row..].iter().take_while(|other| *other == key).count();
                if count == 0 {
                    break;
                }
                pieces.push(batch.column(OWN_COLUMNS).slice(self.row, count));
                self.row += count;
                length += count;
            }
            lengths.push(length);
        }
        let values = if pieces.is_empty() {
            new_empty_array(&self.value_type)
        } else {
            let slices: Vec<&dyn Array> = pieces.iter().map(AsRef::as_ref).collect();
            concat(&slices)?
        };
        let nulls = NullBuffer::from_iter(lengths.iter().map(|length| *length > 0));
        let field = Arc::new(Field::new("item", self.value_type.clone(), true));
        Ok(Arc::new(ListArray::try_new(field, OffsetBuffer::from_lengths(lengths), values, Some(nulls))?))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int64Array, StringArray};

    use super::*;

    #[test]
    fn known_keys_keep_to_their_budget_while_they_grow() {
        for bytes_max in [0, 100, 10_000, 1 << 20] {
            let mut integers = KnownKeys::new(bytes_max);
            let mut strings = KnownKeys::new(bytes_max);
            let mut capacity = 0;
            let mut learnt = 0;
            for start in (0..100_000).step_by(500) {
                let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(start..start + 500));
                learnt += integers.learn(&numbers).true_count();
                if integers.integers.capacity() > capacity {
                    let both = if capacity > 0 { set_bytes(capacity, 8) } else { 0 };
                    capacity = integers.integers.capacity();
                    assert!(both + set_bytes(capacity, 8) <= bytes_max, "{capacity} in {bytes_max}");
                }
                let texts = (start..start + 500).map(|key| format!("a key {key}"));
                strings.learn(&(Arc::new(StringArray::from_iter_values(texts)) as ArrayRef));
                let slots = set_bytes(strings.strings.capacity(), size_of::<Box<str>>());
                assert!(
                    strings.strings.is_empty() || strings.text_bytes + slots <= bytes_max,
                    "{slots} in {bytes_max}"
                );
            }
            assert_eq!(learnt, 100_000);
            let again: ArrayRef = Arc::new(Int64Array::from(vec![99_999; 10]));
            let new = integers.learn(&again).true_count();
            assert_eq!(new, if bytes_max < 100 { 10 } else { 0 });
        }
    }
}
