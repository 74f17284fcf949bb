//! What a version is asked: keys, neighbours, properties, conditions, scans, traversals.
//!
//! ```text
//! traversal ──▶ adjacency ──▶ keys, edges, frontiers
//!     │             │
//!     └── condition ┴──▶ tables ──▶ snapshot::sections, storage
//! scan ─────────────────────▶
//! ```

pub(crate) mod adjacency;
pub(crate) mod condition;
pub(crate) mod edges;
pub(crate) mod frontier;
pub(crate) mod hop;
pub(crate) mod keys;
pub(crate) mod merge;
pub(crate) mod ordinals;
pub(crate) mod property_index;
pub(crate) mod scan;
pub(crate) mod tables;
pub mod traversal;
