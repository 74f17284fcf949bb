//! What a build takes in memory for each column, whatever the rows: the buffers of sorters, and the encoders of the table being written.
//!
//! Shares of the budget are divided among tables, and none of them can be less than what its columns take. So this is counted before the
//! first row is read, and a data set that is too wide for the budget is rejected with the budget that it needs.

use hoplake_format::Property;

use crate::{Dataset, IngestError};

/// A column of a table in a sorter: its field, and its buffers in the batch that each thread has under way, in the one before it and in the sort's.
/// Measured: 1,400 bytes with two threads, at a row for each table; more rows fill a batch for each thread.
const SORTED_BYTES: u64 = 1_536;
/// A column of the table being written: the buffers of its encoder, and its pages on their way.
/// Measured: 20,600 bytes of a table with 8,000 columns, those of the sorter included.
const WRITTEN_BYTES: u64 = 20 << 10;
/// A table whatever its columns: its sorter, its sections and their index, its entries in the schema and in the manifest.
/// Measured: 26 to 39 KB of a table with a key and a property, of which columns and the plans of a source are 20.
const TABLE_BYTES: u64 = 12 << 10;
/// The part of the budget that it may take.
const PART: u64 = 2;

/// Rejects a data set whose columns do not fit the budget.
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
    let tables = (dataset.vertex_tables.len() + dataset.edge_tables.len()) as u64;
    let sorted = all.saturating_mul(SORTED_BYTES).saturating_mul(threads as u64);
    let bytes = sorted.saturating_add(written).saturating_add(tables.saturating_mul(TABLE_BYTES));
    if bytes <= memory_bytes / PART {
        return Ok(());
    }
    let [needed, wanted] = [bytes, bytes.saturating_mul(PART)].map(|bytes| bytes.div_ceil(1 << 20));
    Err(IngestError::Invalid(format!(
        "{all} columns of all tables ({tables}), up to {} of {label:?}, take about {needed} MiB whatever their rows are; set a memory budget of {wanted} MiB or \
         more, use fewer threads, or load fewer columns or labels at a time",
        columns(properties)
    )))
}
