//! The keys of one id space and the vertices they name.

use std::{path::Path, path::PathBuf, sync::Arc};

use arrow_array::{
    Array, ArrayRef, Int64Array, RecordBatch, StringArray, UInt64Array, cast::AsArray, types::Int64Type,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use hoplake_format::{KeyType, LabelId, VertexId};

use super::{
    integers::{IntegerRows, IntegerTable},
    partitions::PartitionWriter,
    spans::{self, SPANS_MAX, Span},
    strings::{ARENA_BYTES_MAX, StringRows, StringTable},
};
use crate::{IngestError, sort::batch_runs::BatchFile};

/// The keys of one id space and the vertices they name. Shared by all threads of a load.
#[derive(Debug)]
pub struct KeyTable {
    key_type: KeyType,
    form: KeyTableStorage,
}

/// Where the keys of a table are: in memory, or in partitions on disk.
#[derive(Debug)]
enum KeyTableStorage {
    Memory(MemoryTable),
    Partitioned { files: Vec<Option<BatchFile>>, budget_bytes: usize },
}

/// A table, or a partition of one, in memory.
#[derive(Debug)]
pub(super) enum MemoryTable {
    Spans(Vec<Span>),
    Integers(IntegerTable),
    Strings(StringTable),
}

impl MemoryTable {
    /// Appends the packed vertex of each key, or [`UNKNOWN`](super::UNKNOWN).
    pub(super) fn resolve(
        &self,
        keys: &dyn Array,
        label: Option<LabelId>,
        vertices: &mut Vec<u64>,
    ) -> Result<(), IngestError> {
        vertices.reserve(keys.len());
        match (self, keys.data_type()) {
            (Self::Spans(table), DataType::Int64) => {
                spans::resolve(table, keys.as_primitive::<Int64Type>().values(), label, vertices);
            }
            (Self::Integers(table), DataType::Int64) => {
                table.resolve(keys.as_primitive::<Int64Type>().values(), label, vertices);
            }
            (Self::Strings(table), DataType::Utf8) => {
                table.resolve(keys.as_string::<i32>().iter().map(Option::unwrap_or_default), label, vertices);
            }
            (_, other) => return Err(wrong_type(other)),
        }
        Ok(())
    }
}

fn wrong_type(found: &DataType) -> IngestError {
    IngestError::Invalid(format!("keys of the type {found} are looked up in an id space whose keys have another type"))
}

impl KeyTable {
    /// Appends, for each key, the packed vertex (see [`pack`](super::pack)), or [`UNKNOWN`](super::UNKNOWN) if no
    /// vertex has the key or the one that has it is not of `label`. Keys hold no nulls.
    ///
    /// # Errors
    /// [`IngestError::Invalid`] if the keys have another type, or the table is partitioned.
    pub fn resolve(
        &self,
        keys: &dyn Array,
        label: Option<LabelId>,
        vertices: &mut Vec<u64>,
    ) -> Result<(), IngestError> {
        match self.memory() {
            Some(table) => table.resolve(keys, label, vertices),
            None => Err(IngestError::Invalid("a partitioned key table is joined, not looked up in".into())),
        }
    }

    /// Whether the table is in files, so that only a [`ResolveJoin`](super::ResolveJoin) can use it.
    pub fn is_partitioned(&self) -> bool {
        self.memory().is_none()
    }

    /// The memory the table holds, in bytes; for a partitioned one, what a join takes at most for it.
    pub fn memory_bytes(&self) -> usize {
        match &self.form {
            KeyTableStorage::Memory(MemoryTable::Spans(spans)) => spans.capacity() * size_of::<Span>(),
            KeyTableStorage::Memory(MemoryTable::Integers(table)) => table.bytes(),
            KeyTableStorage::Memory(MemoryTable::Strings(table)) => table.bytes(),
            KeyTableStorage::Partitioned { budget_bytes, .. } => *budget_bytes,
        }
    }

    pub(super) fn memory(&self) -> Option<&MemoryTable> {
        match &self.form {
            KeyTableStorage::Memory(table) => Some(table),
            KeyTableStorage::Partitioned { .. } => None,
        }
    }

    /// One partition of a partitioned table, in memory.
    pub(super) fn load(&self, partition: usize) -> Result<MemoryTable, IngestError> {
        let KeyTableStorage::Partitioned { files, budget_bytes } = &self.form else {
            unreachable!("a table in memory has no partitions")
        };
        let mut rows = Rows::new(self.key_type);
        for batch in files[partition].iter().map(BatchFile::read_again) {
            for batch in batch? {
                let batch = batch?;
                let vertices = batch.column(1).as_primitive::<arrow_array::types::UInt64Type>().values();
                // In ascending order, as they were pushed: a partition of integers may again be spans, if it is small.
                rows.extend(batch.column(0), vertices)?;
                // Partitions are by hash and so about equal: the limit is a table of 64 times the budget.
                if rows.bytes() > *budget_bytes {
                    return Err(IngestError::Memory {
                        what: "the key table, of which one part in 64 must fit,",
                        needed_bytes: rows.bytes() as u64,
                        left_bytes: *budget_bytes as u64,
                    });
                }
            }
        }
        Ok(rows.finish())
    }
}

/// Keys and vertices gathered in memory, in the form they will have.
#[derive(Debug)]
enum Rows {
    Spans(Vec<Span>),
    Integers(IntegerRows),
    Strings(StringRows),
}

impl Rows {
    fn new(key_type: KeyType) -> Self {
        match key_type {
            KeyType::Int64 => Self::Spans(Vec::new()),
            KeyType::String => Self::Strings(StringRows::default()),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            // At most `SPANS_MAX` spans of 24 bytes.
            Self::Spans(_) => 0,
            Self::Integers(rows) => rows.bytes(),
            Self::Strings(rows) => rows.bytes(),
        }
    }

    /// Whether positions in a table of this many rows still fit.
    fn is_addressable(&self) -> bool {
        match self {
            Self::Spans(_) => true,
            Self::Integers(rows) => rows.len() < u32::MAX as usize / 2,
            // Half: this is asked after a batch was added, and the next batch must still fit.
            Self::Strings(rows) => rows.arena_bytes() < ARENA_BYTES_MAX / 2,
        }
    }

    fn extend(&mut self, keys: &dyn Array, vertices: &[u64]) -> Result<(), IngestError> {
        match (&mut *self, keys.data_type()) {
            (Self::Strings(rows), DataType::Utf8) => {
                for (key, &vertex) in keys.as_string::<i32>().iter().zip(vertices) {
                    rows.push(key.unwrap_or_default(), vertex);
                }
            }
            (Self::Spans(_) | Self::Integers(_), DataType::Int64) => {
                for (&key, &vertex) in keys.as_primitive::<Int64Type>().values().iter().zip(vertices) {
                    self.push_integer(key, vertex);
                }
            }
            (_, other) => return Err(wrong_type(other)),
        }
        Ok(())
    }

    fn push_integer(&mut self, key: i64, vertex: u64) {
        match self {
            Self::Integers(rows) => rows.push(key, vertex),
            Self::Spans(spans) => {
                if spans.last_mut().is_some_and(|span| span.extend(key, vertex)) {
                    return;
                }
                spans.push(Span { key, vertex, len: 1 });
                // Keys with many gaps are not arithmetic: a hash table then takes less memory and time.
                if spans.len() > SPANS_MAX {
                    let mut rows = IntegerRows::default();
                    spans.iter().flat_map(|span| span.keys()).for_each(|(key, vertex)| rows.push(key, vertex));
                    *self = Self::Integers(rows);
                }
            }
            Self::Strings(_) => unreachable!("an integer is pushed to integers"),
        }
    }

    fn finish(self) -> MemoryTable {
        match self {
            Self::Spans(spans) => MemoryTable::Spans(spans),
            Self::Integers(rows) => MemoryTable::Integers(rows.finish()),
            Self::Strings(rows) => MemoryTable::Strings(rows.finish()),
        }
    }
}

/// Builds a [`KeyTable`] from the keys of all labels of an id space, in ascending order.
pub struct KeyTableBuilder {
    key_type: KeyType,
    budget_bytes: usize,
    spill_dir: PathBuf,
    rows: Rows,
    /// Where the rows go once they do not fit.
    writer: Option<PartitionWriter>,
    last: Option<ArrayRef>,
}

impl KeyTableBuilder {
    /// A builder of a table that takes at most `budget_bytes` of memory, and otherwise goes to `spill_dir`.
    pub fn new(key_type: KeyType, budget_bytes: usize, spill_dir: &Path) -> Self {
        Self {
            key_type,
            budget_bytes,
            spill_dir: spill_dir.to_owned(),
            rows: Rows::new(key_type),
            writer: None,
            last: None,
        }
    }

    /// Adds keys with the label and ordinal of their vertices. Keys ascend strictly, within a call and from
    /// one call to the next (strings by their bytes).
    ///
    /// # Errors
    /// [`IngestError::Invalid`] if a key occurs twice or out of order, has another type, or has an ordinal
    /// beyond 48 bits; [`IngestError::Spill`] if the table cannot be written.
    pub fn push(&mut self, keys: &ArrayRef, labels: &[u16], ordinals: &[u64]) -> Result<(), IngestError> {
        if keys.is_empty() {
            return Ok(());
        }
        self.check_order(keys)?;
        let vertices: Vec<u64> = labels
            .iter()
            .zip(ordinals)
            .map(|(&label, &ordinal)| {
                let vertex = VertexId::new(LabelId(label), ordinal).map(super::pack);
                vertex.ok_or_else(|| IngestError::Invalid(format!("ordinal {ordinal} needs more than 48 bits")))
            })
            .collect::<Result<_, _>>()?;
        if vertices.len() != keys.len() {
            let why = format!("{} keys have {} vertices", keys.len(), vertices.len());
            return Err(IngestError::Invalid(why));
        }
        if let Some(writer) = &mut self.writer {
            return writer.push(batch(Arc::clone(keys), vertices)?);
        }
        self.rows.extend(keys, &vertices)?;
        // The width of positions bounds a table in memory, whatever the budget.
        if self.rows.bytes() > self.budget_bytes || !self.rows.is_addressable() {
            self.partition()?;
        }
        Ok(())
    }

    fn check_order(&mut self, keys: &ArrayRef) -> Result<(), IngestError> {
        // A slice of the array, not a copy of the key; it keeps the keys of one batch alive.
        let last = self.last.replace(keys.slice(keys.len() - 1, 1));
        let disorder = |key: String| {
            IngestError::Invalid(format!("key {key} is duplicate or out of order in the table of its id space"))
        };
        match (self.key_type, keys.data_type()) {
            (KeyType::Int64, DataType::Int64) => {
                let last = last.as_ref().map(|last| last.as_primitive::<Int64Type>().value(0));
                let keys = last.into_iter().chain(keys.as_primitive::<Int64Type>().values().iter().copied());
                first_disorder(keys).map_or(Ok(()), |key| Err(disorder(key.to_string())))
            }
            (KeyType::String, DataType::Utf8) => {
                let last = last.as_ref().map(|last| last.as_string::<i32>().value(0));
                let keys = last.into_iter().chain(keys.as_string::<i32>().iter().map(Option::unwrap_or_default));
                first_disorder(keys).map_or(Ok(()), |key| Err(disorder(format!("{key:?}"))))
            }
            (_, other) => Err(wrong_type(other)),
        }
    }

    /// Moves what is in memory to partitions.
    fn partition(&mut self) -> Result<(), IngestError> {
        // From now on all keys go to the writer, so these rows stay empty.
        let rows = std::mem::replace(&mut self.rows, Rows::new(self.key_type));
        // Small against the rows that are in memory for a moment longer.
        let mut writer = PartitionWriter::new(schema(self.key_type), 0, self.budget_bytes / 8, &self.spill_dir);
        match &rows {
            Rows::Spans(_) => unreachable!("spans take no memory"),
            Rows::Integers(rows) => write(rows.iter(), &mut writer, |keys| Arc::new(Int64Array::from(keys)))?,
            Rows::Strings(rows) => write(rows.iter(), &mut writer, |keys| Arc::new(StringArray::from(keys)))?,
        }
        self.writer = Some(writer);
        Ok(())
    }

    /// The table.
    ///
    /// # Errors
    /// [`IngestError::Spill`] if the table cannot be written.
    pub fn finish(self) -> Result<KeyTable, IngestError> {
        let form = match self.writer {
            None => KeyTableStorage::Memory(self.rows.finish()),
            Some(writer) => KeyTableStorage::Partitioned { files: writer.finish()?, budget_bytes: self.budget_bytes },
        };
        Ok(KeyTable { key_type: self.key_type, form })
    }
}

/// The first key that is not greater than the one before it.
fn first_disorder<K: PartialOrd + Copy>(keys: impl Iterator<Item = K>) -> Option<K> {
    let mut last = None;
    keys.into_iter().find(|&key| last.replace(key).is_some_and(|last| key <= last))
}

fn schema(key_type: KeyType) -> SchemaRef {
    let fields = vec![Field::new("key", key_type.arrow(), false), Field::new("vertex", DataType::UInt64, false)];
    Arc::new(Schema::new(fields))
}

fn batch(keys: ArrayRef, vertices: Vec<u64>) -> Result<RecordBatch, IngestError> {
    let fields =
        vec![Field::new("key", keys.data_type().clone(), false), Field::new("vertex", DataType::UInt64, false)];
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![keys, Arc::new(UInt64Array::from(vertices))])?)
}

/// Writes rows in small batches.
fn write<K>(
    mut rows: impl Iterator<Item = (K, u64)>,
    writer: &mut PartitionWriter,
    array: impl Fn(Vec<K>) -> ArrayRef,
) -> Result<(), IngestError> {
    loop {
        let (keys, vertices): (Vec<K>, Vec<u64>) = rows.by_ref().take(1024).unzip();
        if keys.is_empty() {
            return Ok(());
        }
        writer.push(batch(array(keys), vertices)?)?;
    }
}
