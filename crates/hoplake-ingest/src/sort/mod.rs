//! External sorts: more rows than memory, in a budget that is stated.
//!
//! ```text
//! packed   edges without properties, packed into one number each; ~10 ns a record in memory
//! batch    Arrow rows by key columns, stable
//! ```
//!
//! Both work in the same way. Rows gather in a buffer; a full buffer becomes a sorted *run* in a
//! temporary file; at the end the runs are merged in *rounds*. A round looks at the next few rows of
//! every run (its window), finds the key up to which all runs are known (the least last key of the
//! windows), takes everything up to it and sorts that. A heap or a loser tree would do log k
//! unpredictable comparisons for every row; a round does k binary searches and one sort of rows that
//! fit the processor's cache.
//!
//! A sorter belongs to one thread and knows no locks: each thread of a load fills its own, with its
//! share of the budget, and `finish_all` merges them.

pub mod batch;
pub(crate) mod batch_keys;
pub(crate) mod batch_rounds;
pub(crate) mod batch_runs;
pub mod packed;
mod radix;
mod record_runs;
mod rounds;
mod spill;

pub use batch::{BatchSorter, SortedBatches};
pub use packed::{PackedSorter, SortedRecords};
pub use radix::Record;
