//! Snapshots, look-ups, adjacency, properties and traversals.
//!
//! Floor 2 of the house. It knows neither the formats that data comes in nor the protocols in which it is
//! asked for.
//!
//! * [`Snapshot`]: an open version of a graph, with key look-up, neighbours and properties.
//! * [`traversal`]: multi-hop traversals, breadth-first and depth-first, and their profile.
//! * [`path`]: shortest paths.
//! * [`float`]: the order and the text of floating-point numbers.
//! * `publish`, [`versions`], [`vacuum`], [`verify`]: how a version appears and is found, how leftovers go, and whether
//!   all is whole.
//!
//! What reads or writes and is public returns a boxed future. An `async fn` is compiled by the crate that polls it, with all that it
//! awaits: the facade, the server, the command line and the simulation would each compile the whole engine again.

mod adjacency;
pub mod change;
pub mod compaction;
mod condition;
pub mod create;
mod dense_ids;
pub mod diff;
mod edge_scan;
mod edges;
mod error;
mod expected;
mod filters;
pub mod float;
mod frontier;
mod full_reads;
pub mod history;
mod hop;
mod index;
mod lease;
pub mod load;
pub mod log;
mod lookup;
mod memory;
mod merge;
pub mod mirror;
mod open_settings;
mod ordinals;
mod owner;
pub mod path;
mod pieces;
pub mod prepared;
mod properties;
pub mod property_index;
mod publish;
mod quoting;
mod rows;
mod scan;
mod snapshot;
mod table;
pub mod traversal;
pub mod vacuum;
pub mod verify;
pub mod versions;
mod vertex_scan;
mod walk;

pub use adjacency::Degree;
pub use condition::{
    Comparison, Condition, Formula, Operand, PropertyName, PropertyOf, Requirement, Test, ThreeValued, Truth,
};
pub use dense_ids::DenseIds;
pub use edge_scan::{EdgeQuery, EdgeScan, SOURCE_COLUMN, TARGET_COLUMN};
pub use edges::{EdgeIter, EdgeList, EdgeSlice, Edges, Neighbour};
pub use error::{EngineError, Refusal};
pub use expected::Expected;
pub use frontier::Frontier;
pub use hop::EdgesOf;
pub use memory::{Held, HeldIter};
pub use open_settings::OpenSettings;
pub use ordinals::Ordinals;
pub use properties::RowsOfEdges;
pub use quoting::{label_text, split_label, split_vertex, vertex_text};
pub use scan::{KeyScan, ListBlock, ListRange, ListScan};
pub use snapshot::Snapshot;
pub use vertex_scan::{FoundVertices, SortedBy, VertexQuery, VertexScan, first_rows};
pub use walk::Walk;
