//! What a source takes in memory before a row is read: plans, types and buffers of each column of each table, in each file.
//!
//! A row is small next to it where there are thousands of labels with hundreds of columns, and none of it can be spilled. So it is counted
//! as soon as the headers are known, before it is made; what does not fit a quarter of the budget is rejected with the budget that it needs.
//! What sorting and writing take of each column besides, `build/footprint.rs` counts.

use super::limits::ReadLimits;
use crate::IngestError;

/// The part of the budget that it may take.
const PART: u64 = 4;

/// A column of a table in a file: its plan and parser, its field in three schemas, its property, and its buffer while the file is read.
/// Measured: 1,100 bytes for names of 8 letters.
const COLUMN_BYTES: u64 = 1_280;
/// A table in a file, and the entry of a mapping.
const TABLE_BYTES: u64 = 2_560;
/// A mapping's text becomes a tree of values first.
const TEXT_GROWTH: u64 = 24;

/// Tables with their columns, counted over all files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Footprint {
    tables: u64,
    columns: u64,
}

impl Footprint {
    /// Adds a table of a file.
    pub(crate) fn add(&mut self, columns: usize) {
        self.tables += 1;
        self.columns += columns as u64;
    }

    /// Rejects what does not fit.
    pub(crate) fn check(self, limits: &ReadLimits) -> Result<(), IngestError> {
        let Self { tables, columns } = self;
        let bytes = tables.saturating_mul(TABLE_BYTES).saturating_add(columns.saturating_mul(COLUMN_BYTES));
        let what = format!("{tables} tables with {columns} columns, counted in each file, take");
        check(&what, bytes, limits)
    }
}

/// Rejects a mapping that takes more memory than a part of the budget.
pub(crate) fn check_mapping(bytes: u64, limits: &ReadLimits) -> Result<(), IngestError> {
    check(&format!("a mapping of {bytes} bytes takes"), bytes.saturating_mul(TEXT_GROWTH), limits)
}

fn check(what: &str, bytes: u64, limits: &ReadLimits) -> Result<(), IngestError> {
    match limits.memory_bytes {
        Some(memory) if bytes > memory / PART => {
            let [needed, wanted] = [bytes, bytes.saturating_mul(PART)].map(|bytes| bytes.div_ceil(1 << 20));
            Err(IngestError::Invalid(format!(
                "{what} about {needed} MiB before a row is read; set a memory budget of {wanted} MiB or more, or load fewer at a time"
            )))
        }
        _ => Ok(()),
    }
}
