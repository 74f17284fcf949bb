//! What all forms of files have in common.

use arrow_array::RecordBatch;

/// Turns batches into the bytes of a file.
pub(crate) trait Encoder: Send {
    /// Takes rows of a table.
    fn write(&mut self, table: usize, batch: &RecordBatch) -> Result<(), String>;

    /// Takes away the bytes that are ready.
    fn take(&mut self) -> Result<Vec<u8>, String>;

    /// Ends the file; what is left is then taken away.
    fn end(&mut self) -> Result<(), String>;

    /// The bytes of memory of what it keeps.
    fn kept_bytes(&self) -> u64;
}
