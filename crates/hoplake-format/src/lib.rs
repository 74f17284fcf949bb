//! Bytes to types and back: the on-store format of Hoplake.
//!
//! Floor 0 of the house. Nothing here does I/O, reads a clock or is async: every function takes
//! slices and returns values or a [`FormatError`]. The normative text is `docs/format.md`.
//!
//! * [`ids`]: what a vertex and an edge are called inside.
//! * [`schema`]: labels, edge types and properties.
//! * [`adjacency`]: the block codec of neighbour lists.

pub mod adjacency;
mod error;
pub mod ids;
pub mod schema;

pub use error::FormatError;
pub use ids::{Direction, EdgeTypeId, LabelId, VertexId};
pub use schema::{EdgeType, KeyType, Property, PropertyType, ScalarType, Schema, VertexLabel};
