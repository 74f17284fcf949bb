//! Tables of properties: Parquet with small pages, no dictionaries and a checksum for each page.
//!
//! Parquet's writer does not write the page checksums that its format allows for, so they are kept in the footer's
//! metadata. They are known only when all pages are: [`TableWriter`] writes to some scratch first, a file or memory,
//! and the pages of an [`EncodedTable`] are then copied one by one, checksummed on the way, followed by the footer with
//! the checksums in it.

mod encoded;
mod writer;

use std::sync::Arc;

use arrow_schema::{Field, Schema as ArrowSchema, SchemaRef};

pub use self::{
    encoded::{EncodedTable, TableEnd},
    writer::{TableRows, TableWriter},
};
use crate::Property;

/// The most rows of one table, so that the end of it that a reader needs stays small.
pub const TABLE_ROWS_MAX: u64 = 4 << 20;

/// The maximum size of a table that follows a segment in its object: another object would cost a request to write
/// and another to read.
pub const SMALL_TABLE_BYTES: u64 = 1 << 20;

/// How tables are laid out.
#[derive(Debug, Clone, Copy)]
pub struct TableSettings {
    /// Rows of a page.
    pub page_rows: usize,
    /// Bytes of a page before compression, about.
    pub page_bytes: usize,
    /// Bytes of a row group, about; held in memory until it is full.
    pub group_bytes: usize,
}

impl Default for TableSettings {
    fn default() -> Self {
        Self { page_rows: 512, page_bytes: 16 << 10, group_bytes: 32 << 20 }
    }
}

/// The columns of a table: keys first for vertices, then the properties.
pub fn table_schema(key: Option<Field>, properties: &[Property]) -> SchemaRef {
    let fields = key.into_iter().chain(properties.iter().map(Property::arrow));
    Arc::new(ArrowSchema::new(fields.collect::<Vec<_>>()))
}
