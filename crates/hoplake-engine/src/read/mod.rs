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

use std::sync::Arc;

use crate::Snapshot;
use adjacency::Adjacency;
use keys::Keys;
use property_index::PropertyIndexes;

impl Snapshot {
    /// Its keys.
    pub fn keys(&self) -> Keys<'_> {
        Keys::new(self)
    }

    /// Its edges.
    pub fn adjacency(self: &Arc<Self>) -> Adjacency<'_> {
        Adjacency::new(self)
    }

    /// Its property indexes.
    pub fn property_indexes(&self) -> PropertyIndexes<'_> {
        PropertyIndexes::new(self)
    }
}
