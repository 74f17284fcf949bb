//! Gremlin, the query language of Apache TinkerPop.
//!
//! | room | what it does |
//! | --- | --- |
//! | [`text`] | reads the language as text |
//! | [`bytecode`] | the language as drivers send it: instructions that a codec has read |
//! | [`prepared`] | texts that a graph keeps, called by name |
//! | [`script`] | what comes of both: calls by name, with their arguments |
//! | [`moment`] | points in time, in all of the range that a graph stores |
//! | [`value`] | what a query returns: types, comparison, arithmetic |
//! | [`message`] | requests and responses |
//! | [`graphbinary`] | their binary form, GraphBinary 1; results in GraphBinary 4 |
//! | [`graphson`] | their JSON form, GraphSON 3 and 2 |
//!
//! `docs/rfcs/0009-gremlin.md` says what becomes of a script.

pub mod bytecode;
mod deep;
pub mod error;
pub mod graphbinary;
pub mod graphson;
pub mod literal;
pub mod message;
pub mod moment;
pub mod plan;
pub mod prepared;
pub mod run;
pub mod script;
pub mod text;
pub mod tokens;
pub mod value;

pub use deep::{block_in_place_if, mark_worker_thread};
