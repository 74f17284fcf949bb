//! Snapshots, look-ups, adjacency, properties and traversals.
//!
//! Floor 2 of the house. It knows neither the formats that data comes in nor the protocols in which it is
//! asked for.
//!
//! * [`Snapshot`]: an open version of a graph: its manifest, and what is in memory of its segments and tables.
//! * `read`: what a snapshot answers: key look-up, neighbours, properties, conditions, scans, [`traversal`]s and shortest [`path`]s.
//! * `write`: what publishes a version: [`load`]s, [`change`]s, [`compaction`]s.
//! * [`versions`]: how a version is found and compared, how leftovers go ([`vacuum`]), and whether all is whole ([`verify`]).
//! * [`float`]: the order and the text of floating-point numbers.
//!
//! What reads or writes and is public returns a boxed future. An `async fn` is compiled by the crate that polls it, with all that it
//! awaits: the facade, the server, the command line and the simulation would each compile the whole engine again.

mod error;
pub mod float;
mod memory;
mod owner;
mod pieces;
mod quoting;
mod read;
mod snapshot;
mod value;
pub mod versions;
mod write;

pub use error::{EngineError, Refusal};
pub use memory::{Held, HeldIter};
pub use quoting::{label_text, split_label, split_vertex, vertex_text};
pub use read::{
    adjacency::{Adjacency, Degree},
    condition::{
        Comparison, Condition, Formula, Operand, PropertyName, PropertyOf, Requirement, Test, ThreeValued, Truth,
    },
    edges::{EdgeIter, EdgeList, EdgeSlice, Edges, Neighbour},
    frontier::Frontier,
    hop::EdgesOf,
    keys::Keys,
    ordinals::Ordinals,
    scan::{
        DenseIds, EdgeQuery, EdgeScan, FoundVertices, KeyScan, ListBlock, ListRange, ListScan, SOURCE_COLUMN, SortedBy,
        TARGET_COLUMN, VertexQuery, VertexScan, first_rows,
    },
    tables::{Expected, RowsOfEdges},
    traversal::{self, Walk, path},
};
pub use snapshot::{OpenSettings, Snapshot};
pub use versions::{diff, history, log, mirror, vacuum, verify};
pub use write::{change, compaction, create, load, prepared};

/// Indexes of properties.
pub mod property_index {
    pub use crate::{
        read::property_index::{IndexSize, PropertyIndexes},
        write::index_build::{IndexBuilt, IndexSettings, MEMORY_BYTES_MIN, create_index, drop_index},
    };
}
