//! Property indexes of a load: the items of one label's vertices, sorted within a part of the budget.
//!
//! Rows come in the order of ordinals, and an index is in the order of values: each index has a sorter of its own, which gathers the
//! items while the rows are written.

use std::{path::Path, sync::Arc};

use arrow_array::{ArrayRef, RecordBatch, StringArray, cast::AsArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use hoplake_format::{
    KeyType, LabelId, PropertyIndex,
    segment::{KeyWriter, SectionKind},
};

use super::objects::SegmentUpload;
use crate::{IngestError, sort::BatchSorter};

/// The least that a sorter does with.
const SORTER_BYTES_MIN: usize = 128 << 10;

/// The indexes of a label, as far as its rows were written.
pub(crate) struct IndexWriter {
    sorters: Vec<Sorter>,
    schema: SchemaRef,
    /// The ordinal of the next row.
    next: u64,
}

struct Sorter {
    index: PropertyIndex,
    items: BatchSorter,
}

impl IndexWriter {
    /// Sorts what the indexes of a label get, together within a budget.
    pub(crate) fn new(
        indexes: &[PropertyIndex],
        label: LabelId,
        budget_bytes: usize,
        spill_dir: &Path,
    ) -> Result<Self, IngestError> {
        let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("item", DataType::Utf8, false)]));
        let own: Vec<_> = indexes.iter().filter(|index| index.label == label).collect();
        let share = budget_bytes / own.len().max(1);
        if share < SORTER_BYTES_MIN && !own.is_empty() {
            let needed_bytes = (SORTER_BYTES_MIN * own.len()) as u64;
            let what = "sorting the values of the indexes of one label";
            return Err(IngestError::Memory { what, needed_bytes, left_bytes: budget_bytes as u64 });
        }
        let sorter = |index: &PropertyIndex| {
            let items = BatchSorter::new(schema.clone(), &[0], share, spill_dir)?;
            Ok(Sorter { index: index.clone(), items })
        };
        let sorters = own.into_iter().map(sorter).collect::<Result<_, IngestError>>()?;
        Ok(Self { sorters, schema, next: 0 })
    }

    /// Takes the next rows, in the order of their ordinals.
    pub(crate) fn rows(&mut self, rows: &RecordBatch) -> Result<(), IngestError> {
        for sorter in &mut self.sorters {
            let items = sorter.index.items(rows, self.next..self.next + rows.num_rows() as u64)?;
            let items: ArrayRef = Arc::new(StringArray::from_iter_values(items));
            sorter.items.push(RecordBatch::try_new(self.schema.clone(), vec![items])?)?;
        }
        self.next += rows.num_rows() as u64;
        Ok(())
    }

    /// Writes the sections.
    pub(crate) fn finish(self, segments: &mut SegmentUpload<'_>) -> Result<(), IngestError> {
        for sorter in self.sorters {
            let mut writer = KeyWriter::new(SectionKind::Values(sorter.index.id), KeyType::String);
            for batch in sorter.items.finish()? {
                let batch = batch?;
                for item in batch.column(0).as_string::<i32>().iter().flatten() {
                    if segments.is_span_over() {
                        writer.flush(&mut segments.writer)?;
                        segments.begin_span()?;
                    }
                    writer.push_item(item.to_owned(), &mut segments.writer)?;
                    segments.count(1);
                    segments.send()?;
                }
            }
            writer.finish(&mut segments.writer)?;
        }
        Ok(())
    }
}
