//! Hoplake: a graph engine whose graphs live in object storage.
//!
//! A property graph is loaded once into a bucket or folder; any process then opens it in two round
//! trips and runs look-ups and multi-hop traversals straight from it.
//!
//! ```
//! # async fn example() -> Result<(), hoplake::Error> {
//! use hoplake::{Graph, LoadOptions};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let csv = folder.path().join("knows.csv");
//! # std::fs::write(&csv, "# who knows whom\n1,2\n2,3\n").unwrap();
//! hoplake::load("memory://docs/people", LoadOptions::from_paths([csv])).await?;
//!
//! let graph = Graph::open("memory://docs/people").await?;
//! let mut query = graph.query();
//! let rows = query.from("vertex:1")?.out("edge").out("edge").rows::<&str>([]).await?; // keys and no properties
//! assert_eq!(rows[0].batch.num_rows(), 1);
//! assert_eq!(query.cost().waves, 3); // the key, a hop, and the key of the result: the second hop is in memory
//! # Ok(())
//! # }
//! # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
//! ```
//!
//! # Features
//! None is on by default: graphs are in folders (`file://`) and in memory (`memory://`).
//!
//! | feature | adds |
//! | --- | --- |
//! | `s3` | `s3://`: Amazon S3 and what speaks like it |
//! | `gcs` | `gs://`: Google Cloud Storage |
//! | `azure` | `az://`: Azure Blob Storage |
//! | `http` | `https://` and `http://` as inputs of a load; each of the above has it, too |
//!
//! They bring HTTP and TLS, 37 to 48 packages. Without one, a URL of its scheme fails with
//! [`ErrorKind::Invalid`] and a sentence that names the feature.
//!
//! The same without async is in [`blocking`]; what memory to give it, in [`caching`];
//! how to read a graph through a source other than a store, in [`access`].

/// The crates of Arrow whose types are in signatures, in their versions here.
pub mod arrow {
    pub use arrow_array as array;
    pub use arrow_schema as schema;
}

pub mod access;
pub mod blocking;
pub mod caching;
pub mod changes;
mod commit;
pub mod compute;
mod diff;
mod edge_batch;
mod error;
mod export;
mod graph;
pub mod gremlin;
mod info;
mod load;
pub mod load_steps;
mod log;
mod prepared;
mod query;
mod results;
pub mod sampling;
mod scan;
mod starts;
mod steps;
pub mod tables;
mod walks;

pub use commit::Commit;
pub use diff::Diff;
pub use error::{Error, ErrorKind, Reason};
pub use graph::{DISK_CACHE_BYTES, Graph};
pub use hoplake_engine::{
    Comparison, Condition, Degree, EdgeIter, EdgeList, EdgeSlice, Edges, Formula, Frontier, Held, HeldIter, Neighbour,
    OpenSettings, Operand, Ordinals, PropertyName, PropertyOf, Requirement, Test, ThreeValued, Truth, Walk,
    change::{
        Batch, COMMIT_TIMEOUT_MS, Columns, Committed, EdgeKey, IDEMPOTENCY_KEYS_MAX, LogicalTypes, MESSAGE_BYTES_MAX,
        Name, Operation, POSITIONS_BYTES_MAX, Properties, Value, VertexRef,
    },
    compaction::{Compacted, CompactionSettings, MEMORY_BYTES_MIN as COMPACTION_MEMORY_BYTES_MIN, Owner, RunsOf},
    diff::{Difference, same_value},
    log::LogEntry,
    mirror::Mirrored,
    path::{FoundPath, PathQuery},
    property_index::{IndexBuilt, IndexSettings, IndexSize, MEMORY_BYTES_MIN as INDEX_MEMORY_BYTES_MIN},
    traversal::{
        DepthProfile, Hop, HopDirection, Limits, Paths, Prefetch, Reached, Strategy, Traversal, VisitPolicy, WalkCount,
    },
    vacuum::{VacuumSettings, Vacuumed},
    verify::{Damage, Verification, Verified},
    vertex_text,
    weighted_path::{WeightedPath, WeightedPathQuery},
};
pub use hoplake_export::{ExportFormat, ExportOptions, Exported};
pub use hoplake_format::{
    Change, ChangeCounts, ChangeKind, CollectionType, DegreeSummary, Direction, EdgeId, EdgeType, EdgeTypeId, IndexId,
    ItemType, Key, KeyType, LabelId, LogicalType, Manifest, PreparedQueries, PreparedQuery, Property, PropertyIndex,
    PropertyType, QueryEdition, QueryParameter, ScalarType, Schema, TableOwner, VersionRange, VertexCount, VertexId,
    VertexLabel, WriterLease,
    constants::KEY_COLUMN,
    segment::{SectionKind, SegmentSettings},
};
pub use hoplake_storage::{
    Background, Cost, DiskSettings, HedgeSettings, MemoryBudget, MemoryFull, MemoryHold, PerProcess, PriceList,
    ProfileError, Profiles, QueryContext, ReadPool, ReadSettings, Reader, RetrySettings, Served, Store, StoreProfile,
    system_text,
};
pub use info::{GraphInfo, SectionSize};
pub use load::{
    BadRowPolicy, LoadOptions, LoadPhase, LoadProgress, LoadReport, ReadLimits, StagedEnd, StagedTables, VertexOrder,
    load, load_until, load_with,
};
pub use log::{Log, parse_time};
pub use prepared::SavedQuery;
pub use query::{EdgeRows, Query, Rows, StepCost, TraversalAnswer, TraversalRequest};
pub use results::Described;
pub use scan::{EdgeScan, Scan, ScanRequest, SortBy};
pub use starts::StartKey;
pub use steps::Steps;
pub use walks::{DescribedWalks, PropertyRow, WalkEdge, WalkVertex};
