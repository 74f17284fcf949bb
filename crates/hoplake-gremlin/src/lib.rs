//! Gremlin, the query language of Apache TinkerPop.
//!
//! [`text::parse`] reads the language as text. What comes of it is a [`script::Script`]: calls by name, which bytecode is,
//! too. `docs/rfcs/0009-gremlin.md` says what becomes of it.

pub mod literal;
pub mod script;
pub mod text;
pub mod tokens;
