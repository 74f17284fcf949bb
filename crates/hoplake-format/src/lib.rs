//! Bytes to types and back: the on-store format of Hoplake.
//!
//! Floor 0 of the house. Nothing here does I/O, reads a clock or is async: every function takes
//! slices and returns values or a [`FormatError`]. The normative text is `docs/format.md`.
//!
//! * [`ids`]: what a vertex and an edge are called inside.
//! * [`schema`]: labels, edge types and properties.
//! * [`manifest`]: the one object that names everything of a snapshot.
//! * [`segment`]: immutable objects made of sections of blocks, and their resident index.
//! * [`adjacency`], [`keys`]: the codecs of blocks; [`filter`]: "absent" without I/O.
//! * [`prepared`]: queries that a graph keeps under names.
//! * [`property_index`]: from a value to the vertices that have it.
//! * [`table`]: how tables of properties are written; [`pages`]: what is checked before Parquet is decoded.
//! * [`checksum`]: what every block ends with.

pub mod adjacency;
pub mod checksum;
pub mod constants;
mod error;
pub mod filter;
pub mod ids;
pub mod keys;
pub mod manifest;
mod names;
pub mod pages;
pub mod prepared;
pub mod property_index;
pub mod schema;
pub mod segment;
pub mod table;
pub mod text;

pub use error::FormatError;
pub use ids::{Direction, EdgeId, EdgeTypeId, LabelId, VertexId};
pub use keys::Key;
pub use manifest::{
    Applied, BuiltGraph, Change, ChangeCounts, ChangeKind, DegreeSummary, First, Manifest, RequestDigest, SectionRef,
    SegmentRef, Slot, TableOwner, TableRef, VersionRange, VertexCount, WriterLease, WrittenSpan,
};
pub use names::DataNames;
pub use prepared::{PreparedQueries, PreparedQuery, QueryEdition, QueryParameter};
pub use property_index::{IndexId, PropertyIndex};
pub use schema::{
    CollectionType, EdgeType, ItemType, KeyType, LABELS_MAX, LogicalType, PROPERTIES_MAX, Property, PropertyType,
    ScalarType, Schema, TIMESTAMP_ZONE, VertexLabel,
};
