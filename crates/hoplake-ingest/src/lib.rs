//! Getting data in: readers of CSV, Parquet, LDBC and edge lists, the external sort, and the
//! builder that turns rows into a graph.
//!
//! ```text
//! inputs   objects, web pages and standard input -> files; names with wildcards
//! source/  files -> Dataset: tables, and inputs that yield typed batches
//! resolve/ user keys -> (label, ordinal), within a memory budget
//! sort/    external sorts: Arrow rows by columns, packed edges by number
//! order/   the ordinals: key order or a locality order
//! changes/ files and texts -> operations of a batch
//! build/   sorted rows -> segments and property tables in the store
//! ```

pub mod bad_rows;
pub mod build;
pub mod changes;
pub mod dataset;
mod error;
pub mod inputs;
pub mod order;
pub mod resolve;
pub mod sort;
pub mod source;
pub mod staged;

pub use bad_rows::{BadRow, BadRows, RowTexts};
pub use dataset::{Chunk, Dataset, EdgeTable, Endpoint, Feed, Input, Phase, VertexTable};
pub use error::IngestError;
