//! The rows of a scan part, as they are decoded.

use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_buffer::BooleanBuffer;
use arrow_schema::Schema as ArrowSchema;
use arrow_select::filter::filter_record_batch;
use hoplake_storage::QueryContext;

use crate::{
    EngineError,
    read::tables::{Cells, Gathering},
};

/// Some columns of the vertices of a part, from [`Plan::rows`](super::plan::Plan::rows).
pub(super) enum PartRows<'a> {
    /// As a table has them. If not all of its rows are of the vertices, with those that are.
    OfTable { cells: Cells<'a>, chosen: Option<BooleanBuffer>, at: usize },
    /// Of several runs, in one batch.
    OfRuns { schema: Arc<ArrowSchema>, batch: Option<RecordBatch> },
}

impl PartRows<'_> {
    pub(super) fn schema(&self) -> &Arc<ArrowSchema> {
        match self {
            Self::OfTable { cells, .. } => cells.schema(),
            Self::OfRuns { schema, .. } => schema,
        }
    }

    /// The next rows, perhaps none; `None` behind the last.
    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>, EngineError> {
        match self {
            Self::OfRuns { batch, .. } => Ok(batch.take()),
            Self::OfTable { cells, chosen, at } => {
                let Some(batch) = cells.next().await? else { return Ok(None) };
                let Some(chosen) = chosen else { return Ok(Some(batch)) };
                let mask = chosen.slice(*at, batch.num_rows());
                *at += batch.num_rows();
                Ok(Some(filter_record_batch(&batch, &BooleanArray::new(mask, None))?))
            }
        }
    }

    /// All rows in one batch.
    pub(super) async fn whole(mut self, context: &QueryContext) -> Result<RecordBatch, EngineError> {
        let mut rows = Gathering::new(self.schema().clone(), context)?;
        while let Some(batch) = self.next().await? {
            rows.push(batch)?;
        }
        rows.finish()
    }
}
