//! Gremlin, the query language of Apache TinkerPop.
//!
//! | room | what it does |
//! | --- | --- |
//! | [`text`] | reads the language as text |
//! | [`bytecode`] | the language as drivers send it: instructions that a codec has read |
//! | [`prepared`] | texts that a graph keeps, called by name |
//! | [`script`] | what comes of both: calls by name, with their arguments |
//! | [`lower`] | a plan of `hoplake-query`, from a script |
//! | [`message`] | requests and responses |
//! | [`graphbinary`] | their binary form, GraphBinary 1; results in GraphBinary 4 |
//! | [`graphson`] | their JSON form, GraphSON 3 and 2 |
//!
//! `docs/rfcs/0009-gremlin.md` says what becomes of a script.

pub mod bytecode;
pub mod graphbinary;
pub mod graphson;
pub mod lower;
pub mod message;
pub mod prepared;
pub mod script;
pub mod text;
