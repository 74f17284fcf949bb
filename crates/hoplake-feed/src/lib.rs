//! Feeds a graph from the tables of an SQL database: a first copy, then every transaction, exactly once.
//!
//! ```text
//! settings ──┐
//! catalog ─┴▶ mapping ──▶ fold ──▶ commit
//! source ──▶ transactions ───┘ ▲
//!                           look-ups in the graph
//! ```
//!
//! [`Settings`] are what `feed.toml` says. A source ([`source`]) yields a [`Catalog`] of its tables, rows for the first copy, and from
//! there [`Transaction`]s. A [`Mapping`](mapping::Mapping) is made of settings and catalog, and says what a row becomes. The fold applies row changes to
//! an overlay of the graph, and asks for what only the graph knows; what comes of it is one batch of changes. A commit has the changes and
//! the position behind them, on the condition that the graph has the position before them: nothing else keeps a position. RFC 0011 has
//! the reasons.

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
    change::{Cell, Change, Changes, Columns, Images, Row, RowChange, Transaction},
    spill::SpillSettings,
};
