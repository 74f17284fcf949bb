//! What makes a version: a load, a commit, a compaction, a new index or a new prepared query, each published with one create.

pub mod change;
pub mod compaction;
pub mod create;
pub(crate) mod index_build;
pub(crate) mod lease;
pub mod load;
pub mod prepared;
pub(crate) mod publish;
