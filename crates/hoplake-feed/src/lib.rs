//! Feeds a graph from the tables of an SQL database: a first copy, then every transaction, exactly once.
//!
//! ```text
//! settings ──┐
//! catalogue ─┴▶ mapping ──▶ fold ──▶ commit
//! source ──▶ transactions ───┘ ▲
//!                           look-ups in the graph
//! ```
//!
//! [`Settings`] are what `feed.toml` says. A source ([`source`]) yields a [`Catalogue`] of its tables, rows for the first copy, and from
//! there [`Transaction`]s. A [`Mapping`](mapping::Mapping) is made of settings and catalogue, and says what a row becomes. The fold applies row changes to
//! an overlay of the graph, and asks for what only the graph knows; what comes of it is one batch of changes. A commit has the changes and
//! the position behind them, on the condition that the graph has the position before them: nothing else keeps a position. RFC 0011 has
//! the reasons.

// What all databases share is there in a build without any, which has logs in files.
#![cfg_attr(not(any(feature = "mariadb", feature = "postgres")), allow(dead_code))]

mod applying;
mod catalogue;
mod change;
mod condition;
pub mod copy;
mod element;
mod ends;
mod error;
mod feed;
pub mod fold;
pub mod followed;
mod housekeeping;
pub mod letters;
pub mod lookups;
pub mod mapping;
#[cfg(feature = "http")]
mod monitor;
mod objects;
mod position;
mod progress;
mod reading;
pub mod reconcile;
mod retrying;
mod schedule;
mod scratch;
mod settings;
mod showing;
pub mod source;
mod spill;
pub mod state;
mod stopping;
mod value;
mod verifying;

pub use applying::Applied;
pub use catalogue::{BeforeImages, Catalogue, Column, ForeignKey, Rule, Table, TableName};
pub use change::{Cell, Change, Changes, Columns, Images, Row, RowChange, Transaction};
pub use condition::{RowCondition, Verdict};
pub use copy::Copied;
pub use element::Element;
pub use ends::Ends;
pub use error::{FeedError, FeedErrorKind};
pub use feed::{Checked, Feed, RunOptions, check};
pub use housekeeping::{RemovedObjects, copy_objects, remove_orphans};
#[cfg(feature = "http")]
pub use monitor::{Listening, Monitor};
pub use position::Position;
pub use progress::{At, Cause, Event, Progress};
pub use reconcile::{Difference, DifferenceKind, ReconcileOptions, Reconciled, reconcile, reconcile_on};
pub use retrying::{Retried, Selection, discard, discard_on, retry, retry_on};
pub use settings::{
    Cascades, CopySettings, DecimalHandling, EdgeEntry, EndEntry, ForeignKeyEntry, HttpSettings, LogFormat, Missing,
    OnError, OneOrMore, ReconcileSettings, Settings, SourceSettings, StreamSettings, TableEntry, TimePrecision,
    VertexEntry,
};
pub use spill::SpillSettings;
pub use verifying::{VerifiedObjects, verify_objects};
