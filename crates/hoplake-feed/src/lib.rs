//! Feeds a graph from the tables of an SQL database: a first copy, then every transaction, exactly once.
//!
//! ```text
//! operate     a feed that runs, what its operator does, what is reported over HTTP
//!   reconcile   rows and graph compared, differences repaired
//!   copy        the first copy: all rows, loaded in bulk
//!     apply       transactions ──▶ fold ──▶ commit, with what a feed remembers
//!       mapping     settings + catalog ──▶ what a row becomes
//!         source      catalog, snapshot and transactions of a database or a change log
//! ```
//! Arrows go down only: no room imports one above it. Events of all rooms go to a [`Progress`] that the caller hands in.
//!
//! [`Settings`] are the content of `feed.toml`. A source ([`source`]) yields a [`Catalog`] of its tables, rows for the first copy, and
//! then [`Transaction`]s. A [`Mapping`](mapping::Mapping) is compiled from settings and catalog, and says what a row becomes. The fold
//! ([`fold`]) applies row changes to an overlay of the graph and asks for what only the graph knows; the overlay becomes one batch of changes. A
//! commit contains the changes and the position after them, on the condition that the graph has the position before them: the position is kept
//! nowhere else. RFC 0011 has the reasons.
//!
//! # Glossary
//!
//! | term | meaning |
//! | --- | --- |
//! | *position* | up to where a source was read: a GTID set, an LSN, offsets of a log; in the graph with what belongs to the same commit ([`Position`]) |
//! | *catalog* | the tables of a database with columns, keys and foreign keys ([`Catalog`]) |
//! | *shape* | a table at a position, as a source describes it; two shapes are compared to detect changes of the schema ([`followed::TableShape`]) |
//! | *stream* | the transactions after a position, in the order of their commits ([`source::TransactionStream`]) |
//! | *entry* | one part of the mapping: rows of a table become vertices, or edges ([`mapping::Entry`]) |
//! | *image* | the vertex or edge that a row is by its entry, before or after a change ([`mapping::Image`]) |
//! | *fold* | row changes of a batch, applied in order to an overlay of the graph ([`fold::fold`]) |
//! | *origin* | the row change that an operation of a commit comes from ([`fold::Origin`]) |
//! | *look-up* | a read of the graph that a fold needs; all look-ups of a fold take one wave per kind ([`lookups`]) |
//! | *waiting edge* | an edge whose row is there and whose vertex at one end is not, yet ([`fold::WaitingEdges`]) |
//! | *dead letter* | a row change that could not be applied and was set aside, in an object of its own ([`letters`]) |
//! | *held name* | a vertex or edge with a dead letter: its later changes are set aside, too |
//! | *state* | what a feed remembers with a position: waiting edges, held names, shapes, a stop ([`state::FeedState`]) |
//! | *stop* | a change that cannot be followed; it lasts until an operator decides ([`followed::StopNote`]) |
//! | *ends* | the source and the store of the graph ([`Ends`]) |
//! | *resnapshot* | all rows compared with the graph, after which the feed goes on from the snapshot's position |

// What all databases share is there in a build without any, which has logs in files.
#![cfg_attr(not(any(feature = "mariadb", feature = "postgres")), allow(dead_code))]

mod apply;
mod backoff;
pub mod copy;
mod error;
pub mod mapping;
mod operate;
pub mod reconcile;
mod scratch;
mod settings;
pub mod source;
mod value;

pub use apply::{
    element::Element,
    ends::Ends,
    fold, letters, lookups,
    position::Position,
    progress::{Applied, At, Cause, Copied, Event, Progress, Reconciled},
    state,
};
pub use error::{FeedError, FeedErrorKind};
pub use mapping::{
    condition::{RowCondition, Verdict},
    followed,
};
#[cfg(feature = "http")]
pub use operate::monitor::{Listening, Monitor};
pub use operate::{
    check::{Checked, check},
    feed::{Feed, RunOptions},
    housekeeping::{RemovedObjects, copy_objects, remove_orphans},
    retrying::{Retried, Selection, discard, discard_on, retry, retry_on},
    verifying::{VerifiedObjects, verify_objects},
};
pub use reconcile::{Difference, DifferenceKind, ReconcileOptions, reconcile, reconcile_on};
pub use settings::{
    Cascades, CopySettings, DecimalHandling, EdgeEntry, EndEntry, ForeignKeyEntry, HttpSettings, LogFormat, Missing,
    OnError, OneOrMore, ReconcileSettings, Settings, SourceSettings, StreamSettings, TableEntry, TimePrecision,
    VertexEntry,
};
pub use source::{
    catalog::{BeforeImages, Catalog, Column, ForeignKey, Rule, Table, TableName},
    change::{Cell, Change, ChangeList, Columns, Images, Row, RowChange, Transaction},
    spill::SpillSettings,
};
