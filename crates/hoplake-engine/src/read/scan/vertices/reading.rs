//! Reads a part: the columns of the condition, and then of the rows that match it the others.

use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::BooleanBufferBuilder;
use arrow_schema::Schema as ArrowSchema;
use arrow_select::filter::filter_record_batch;
use futures::future::BoxFuture;
use hoplake_storage::Branch;

use super::{
    part::{PartVertices, ScanPart},
    plan::Plan,
    query::FoundVertices,
    rows::PartRows,
    stretches::Vertices,
};
use crate::{EngineError, Held, memory::bytes_of, read::tables::Gathering};

/// The vertices of a part that match the condition.
pub(super) async fn read(
    plan: Arc<Plan>,
    part: ScanPart,
    mut branch: Branch,
) -> Result<(Held<FoundVertices>, Branch), EngineError> {
    let context = branch.context().clone();
    let count = match &part.vertices {
        PartVertices::Vertices(vertices) => vertices.len(),
        PartVertices::Changed(ordinals) => plan.changed_within(ordinals).len(),
    };
    // Ordinals twice and where their rows are; of a stretch, which of them are chosen.
    let _memory = context.hold(match &part.vertices {
        PartVertices::Vertices(Vertices::Stretch(_)) => count as u64,
        _ => bytes_of::<[u64; 5]>(count),
    })?;
    let vertices = match part.vertices {
        PartVertices::Vertices(vertices) => vertices,
        PartVertices::Changed(ordinals) => {
            Vertices::These(plan.changed_within(&ordinals).iter().map(|row| row.ordinal).collect())
        }
    };
    let mut vertices = plan.alive.among(vertices);
    let mut pace = context.pace();
    pace.rest(count as u64).await?;
    let mut tested = None;
    if let Some(test) = &plan.tested {
        let mut rows = rows(&plan, &vertices, &test.columns, &mut branch).await?;
        let returned: Vec<usize> = plan.columns.iter().filter_map(|name| rows.schema().index_of(name).ok()).collect();
        let mut kept = Gathering::new(Arc::new(rows.schema().project(&returned)?), &context)?;
        let mut mask = BooleanBufferBuilder::new(vertices.len());
        let ordinals: Vec<u64> = if test.has_ordinals() { vertices.ordinals().collect() } else { Vec::new() };
        let _memory = context.hold(bytes_of::<u64>(ordinals.len()))?;
        let mut ordinals = ordinals.as_slice();
        while let Some(batch) = rows.next().await? {
            let _memory = context.hold(test.verdict_bytes(batch.num_rows()))?;
            let of_batch = ordinals.split_off(..batch.num_rows().min(ordinals.len())).unwrap_or_default();
            let matching = test.matching(&batch, of_batch, &mut pace).await?;
            mask.append_buffer(&matching);
            kept.push(filter_record_batch(&batch.project(&returned)?, &BooleanArray::new(matching, None))?)?;
        }
        vertices = vertices.filtered(mask.finish());
        tested = Some(kept.finish()?);
    }
    // What the condition has read is not read again.
    let is_read = |name: &&String| tested.as_ref().is_some_and(|batch| batch.column_by_name(name).is_some());
    let missing: Vec<String> = plan.columns.iter().filter(|name| !is_read(name)).cloned().collect();
    let count = vertices.len();
    let others = match count == 0 || missing.is_empty() {
        true => None,
        false => Some(rows(&plan, &vertices, &missing, &mut branch).await?.whole(&context).await?),
    };
    let mut fields = Vec::with_capacity(plan.columns.len());
    let mut columns = Vec::with_capacity(plan.columns.len());
    if count > 0 {
        for name in &plan.columns {
            let found = [&tested, &others].into_iter().flatten().find_map(|batch| {
                let (at, field) = batch.schema_ref().column_with_name(name)?;
                Some((field.clone(), batch.column(at).clone()))
            });
            let (field, column) = found.ok_or_else(|| EngineError::Internal(format!("column {name} was not read")))?;
            fields.push(field);
            columns.push(column);
        }
    }
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    let batch = RecordBatch::try_new_with_options(Arc::new(ArrowSchema::new(fields)), columns, &options)?;
    let bytes = vertices.bytes() + batch.get_array_memory_size() as u64;
    let found = Held::counted(FoundVertices { vertices, batch }, bytes, &context)?;
    Ok((found, branch))
}

fn rows<'a>(
    plan: &'a Plan,
    vertices: &'a Vertices,
    columns: &'a [String],
    branch: &'a mut Branch,
) -> BoxFuture<'a, Result<PartRows<'a>, EngineError>> {
    Box::pin(async move { plan.rows(vertices, columns, branch).await })
}
