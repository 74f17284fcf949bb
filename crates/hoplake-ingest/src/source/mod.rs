//! Readers of input layouts.
//!
//! [`open`] looks at the names of files and at their headers, determines the [`Layout`], and returns a
//! [`Dataset`](crate::Dataset): the tables, and an input for each file. A layout's file of this module understands
//! headers and writes a plan (which field of a file becomes which column of which table); two readers
//! execute plans, one for text and one for Parquet. So a new layout is a new way to write plans.
//!
//! ```text
//! ldbc_basic  ldbc_bi  neptune  neo4j  edge_list  mapping     headers -> plans
//!                       \  labelled  /
//! plan        tables and plans
//! text        parquet        plans -> chunks, bad rows
//! records     column         fields and lines; values
//! files       found, opened, decompressed (gzip), rejected if not UTF-8 (encoding)
//! footprint   what tables take before there is a row, counted before it is made
//! foreign     other formats of graphs, by name
//! plain       files as they are, for readers with a meaning of their own
//! values      text to single values and back
//! ```
//!
//! For all text: `.gz` and `.zst` are decompressed; a byte order mark at the start and carriage
//! returns at line ends are left out; an empty field is an absent value; a row with one bad field is bad
//! as a unit. `limits` bounds how much of a file is read at a time.

mod column;
mod edge_list;
mod encoding;
mod files;
mod first_look;
mod footprint;
mod foreign;
mod gzip;
mod labelled;
mod ldbc;
mod ldbc_basic;
mod ldbc_bi;
mod limits;
pub mod mapping;
mod neo4j;
mod neptune;
mod parquet;
pub mod plain;
mod plan;
mod recognise;
mod records;
mod text;
pub mod values;

use std::path::PathBuf;

use hoplake_format::KeyType;

pub use self::{
    files::{Copies, STANDARD_INPUT},
    limits::ReadLimits,
    recognise::open,
};

/// How the files of a source are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// LDBC SNB, a file for each vertex label and edge type: `person_0_0.csv`,
    /// `person_knows_person_0_0.csv`.
    LdbcBasic,
    /// LDBC SNB BI with foreign keys in vertex files: `initial_snapshot/dynamic/Person/part-….csv`.
    LdbcBi,
    /// Gremlin CSV: columns `~id`, `~label`, `~from`, `~to`.
    Neptune,
    /// CSV with columns `:ID`, `:LABEL`, `:START_ID`, `:END_ID`, `:TYPE`.
    Neo4j,
    /// Two columns of ids, as text or Parquet.
    EdgeList,
}

/// Options of [`open`], in addition to the files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceOptions {
    /// A TOML file that assigns columns of files to the graph; see [`mapping`].
    pub mapping: Option<PathBuf>,
    /// The layout; by default, it is recognised.
    pub layout: Option<Layout>,
    /// The type of the ids of an edge list; by default, a first look at all rows finds it.
    pub key_type: Option<KeyType>,
    /// How much of a file is read at a time.
    pub limits: ReadLimits,
    /// Inputs that were copied to this machine: the mapping and files that are named may be among them.
    pub copies: Copies,
}
