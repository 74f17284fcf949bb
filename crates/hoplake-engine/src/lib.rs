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
//! | word | meaning |
//! | --- | --- |
//! | sections | the index of a version: the segments, and the sorted runs whose sections they have |
//! | sorted run, entry, tombstone | what a range of versions says of one label or edge type; what it says of one item; that the item was removed |
//! | section piece | one of the sections that a run is cut into, in several segments |
//! | list | what one run has of a vertex, an edge type and a direction |
//! | layer | a run's lists, among those that a hop merges |
//! | stretch | consecutive rows, edges or entries that are handled at once |
//! | part | what a scan reads at once and returns together |
//! | formula, test, verdict | tests joined by `and`, `or`, `not`; a test of a property, a label or a vertex; what it says of a row |
//! | held | with a hold on the memory budget of a query, which ends when it is dropped ([`Held`]) |
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

pub use error::{EngineError, Rejection};
pub use memory::{Held, HeldIter};
pub use quoting::{label_text, split_label, split_vertex, vertex_text};
pub use read::{
    adjacency::{Adjacency, Degree},
    condition::{
        Comparison, Condition, Formula, Operand, PropertyName, PropertyOf, Requirement, ShownTest, Test, ThreeValued,
        Truth,
    },
    edges::{EdgeIter, EdgeList, EdgeSlice, Edges, Neighbour},
    frontier::Frontier,
    hop::EdgesOf,
    keys::Keys,
    ordinals::Ordinals,
    properties::{Expected, Properties, RowsOfEdges},
    scan::{
        DenseIds, EdgeQuery, EdgeScan, FoundVertices, KeyScan, ListBlock, ListRange, ListScan, SOURCE_COLUMN, SortedBy,
        TARGET_COLUMN, VertexQuery, VertexScan, first_rows,
    },
    traversal::{self, Walk, path, weighted_path},
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
