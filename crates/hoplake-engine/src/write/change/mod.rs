//! Changes: batches, their resolution on a version of a graph, and the delta that stores them.
//!
//! ```text
//! Batch ── resolve: keys to ordinals, rows as they will be, constraints ──▶ Changes ── encode ──▶ Delta ── publish
//! ```
//! The unit is an item: a key, a vertex's row, all edges between two vertices. A delta's entry of an item says
//! all there is to know of it, so that reading needs the newest run with an entry for it, and nothing older
//! ([RFC 0005](https://github.com/hoplake/hoplake/blob/main/docs/rfcs/0005-changes.md)).

mod assemble;
mod batch;
mod before;
mod columns;
mod commit;
mod conflict;
mod delta;
mod fit;
mod group;
mod logical;
mod names;
mod pending;
pub(crate) mod positions;
mod properties;
mod requests;
mod resolve;
mod resolved;
mod retype;
mod rows;
mod strict;
#[cfg(test)]
mod tests;
mod widen;

pub use crate::value::{Value, column, date_text, timestamp_text};
pub use batch::{Batch, EdgeKey, MESSAGE_BYTES_MAX, Operation, POSITIONS_BYTES_MAX, VertexRef};
pub use columns::Columns;
pub use commit::{COMMIT_TIMEOUT_MS, Committed, Committer};
pub use logical::LogicalTypes;
pub use properties::{Name, Properties};
pub use requests::IDEMPOTENCY_KEYS_MAX;
