//! What a snapshot answers: keys, neighbours, properties, conditions, scans, traversals.
//!
//! ```text
//! traversal ──▶ adjacency ──▶ edges, frontiers
//!     │             │
//!     └── condition ┴──▶ properties ──▶ keys ──▶ tables ──▶ snapshot::sections, storage
//! scan, property_index ─────▶
//! ```
//! A [`Snapshot`] knows none of them: what it hands out is defined here, above it.

pub(crate) mod adjacency;
pub(crate) mod condition;
pub(crate) mod edges;
pub(crate) mod frontier;
pub(crate) mod hop;
pub(crate) mod keys;
pub(crate) mod merge;
pub(crate) mod ordinals;
pub(crate) mod properties;
pub(crate) mod property_index;
pub(crate) mod scan;
pub(crate) mod tables;
pub mod traversal;
pub(crate) mod weights;

use std::sync::Arc;

use crate::Snapshot;
use adjacency::Adjacency;
use keys::Keys;
use properties::{Properties, Rows};
use property_index::PropertyIndexes;

impl Snapshot {
    /// Look-ups from keys to vertices, and from vertices to keys.
    pub fn keys(&self) -> Keys<'_> {
        Keys::new(self)
    }

    /// Hops: the edges of sets of vertices, and their degrees.
    pub fn adjacency(self: &Arc<Self>) -> Adjacency<'_> {
        Adjacency::new(self)
    }

    /// Reads of properties, of vertices and of edges.
    pub fn properties(&self) -> Properties<'_> {
        Properties::new(self)
    }

    pub(crate) fn rows(&self) -> Rows<'_> {
        Rows::new(self)
    }

    /// Property indexes: from values to vertices, and their sizes.
    pub fn property_indexes(&self) -> PropertyIndexes<'_> {
        PropertyIndexes::new(self)
    }
}
