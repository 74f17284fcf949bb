//! The language as text: `g.V().has("name", "marko").out("knows")`.
//!
//! ```text
//! text ── lexer ──▶ words, numbers, strings, signs ── parser ──▶ Script
//! ```
//! The grammar is that of TinkerPop 3.8 (`Gremlin.g4`). It has a rule for each step; here a call has a name and arguments, and
//! which steps there are is known where they get their meaning. So the parser needs no tables, and reads a typical query in
//! a few microseconds. It reads with one word of look-ahead, and calls itself for what is nested, up to [`DEPTH_MAX`].

mod lexer;
mod numbers;
mod parser;
mod strings;
#[cfg(test)]
mod tests;

use hoplake_query::error::QueryError;
use hoplake_storage::QueryContext;

use crate::script::Script;

/// How deep traversals, collections and predicates may nest.
pub const DEPTH_MAX: usize = 128;

/// Reads a text.
///
/// ```
/// let script = hoplake_gremlin::text::parse("g.V(1).out('knows').values('name')").unwrap();
/// assert_eq!(script.statements.len(), 1);
/// let error = hoplake_gremlin::text::parse("g.V(1").unwrap_err();
/// assert_eq!(error.to_string(), "line 1, column 6: `,` or `)` is missing; the text ends here");
/// ```
///
/// # Errors
/// [`QueryError::Syntax`] with the place, if it is not Gremlin, or nests deeper than [`DEPTH_MAX`].
pub fn parse(text: &str) -> Result<Script, QueryError> {
    parse_within(text, &QueryContext::new())
}

/// As [`parse`], as a part of a query's work: it ends at its deadline.
///
/// # Errors
/// As [`parse`], and the query's limit.
pub fn parse_within(text: &str, context: &QueryContext) -> Result<Script, QueryError> {
    parser::Parser::new(text, context)?.script()
}

/// What is wrong with a text, and where: its line and its column, in characters, both from 1.
fn syntax_error(text: &str, position: usize, message: &str) -> QueryError {
    let before = &text[..position.min(text.len())];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    QueryError::Syntax(format!("line {line}, column {column}: {message}"))
}
