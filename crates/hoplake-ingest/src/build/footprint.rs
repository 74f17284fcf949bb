//! What a build takes in memory for each column, whatever the rows: the buffers of sorters, and the encoders of the table being written.
//!
//! Shares of the budget are divided among tables, and none of them can be less than what its columns take. So this is counted before the
//! first row is read, and a data set that is too wide for the budget is refused with the budget that it needs.

use hoplake_format::Property;

use crate::{Dataset, IngestError};

/// A column of a table in a sorter: its field, and its buffers in the batch that each thread has under way, in the one before it and in the sort's.
const SORTED_BYTES: u64 = 1_536;
/// A column of the table being written: the buffers of its encoder, and its pages on their way.
const WRITTEN_BYTES: u64 = 20 << 10;
/// The part of the budget that it may take.
const PART: u64 = 2;

/// Refuses a data set whose columns do not fit the budget.
pub(super) fn check(dataset: &Dataset, threads: usize, memory_bytes: u64) -> Result<(), IngestError> {
    let vertices = dataset.vertex_tables.iter().map(|table| (&table.label, &table.properties));
    let edges = dataset.edge_tables.iter().map(|table| (&table.label, &table.properties));
    // With the key, or those of both ends, and the input and line of the row.
    let columns = |properties: &Vec<Property>| properties.len() as u64 + 4;
    let all: u64 = vertices.clone().chain(edges.clone()).map(|(_, properties)| columns(properties)).sum();
    let widest = vertices.map(|it| (1, it)).chain(edges.map(|it| (2, it)));
    // Both directions of an edge type are written at once.
    let widest = widest.max_by_key(|(copies, (_, properties))| copies * columns(properties));
    let Some((copies, (label, properties))) = widest else { return Ok(()) };
    let written = copies * columns(properties) * WRITTEN_BYTES;
    let bytes = all.saturating_mul(SORTED_BYTES).saturating_mul(threads as u64).saturating_add(written);
    if bytes <= memory_bytes / PART {
        return Ok(());
    }
    let [needed, wanted] = [bytes, bytes.saturating_mul(PART)].map(|bytes| bytes.div_ceil(1 << 20));
    let tables = dataset.vertex_tables.len() + dataset.edge_tables.len();
    Err(IngestError::Invalid(format!(
        "{tables} tables with {all} columns, up to {} of {label:?}, take about {needed} MiB whatever their rows are; set --memory {wanted}MiB or \
         more, use fewer threads (--threads), or load fewer columns or labels at a time",
        columns(properties)
    )))
}
