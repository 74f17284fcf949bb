//! Requests and responses of the WebSocket protocol, whatever encodes them.

use hoplake_query::value::Value;
use uuid::Uuid;

use crate::script::Script;

/// What a driver asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Its id, which every response to it bears.
    pub id: Uuid,
    /// `eval` for text, `bytecode`, `close` or `authentication`.
    pub op: Box<str>,
    /// `traversal`, `session` or nothing.
    pub processor: Box<str>,
    /// The argument `gremlin`.
    pub query: Option<Query>,
    /// All other arguments: `aliases`, `bindings`, `batchSize`, `session` and so on.
    pub arguments: Vec<(Box<str>, Value)>,
}

impl Request {
    /// The argument of a name.
    pub fn argument(&self, name: &str) -> Option<&Value> {
        self.arguments.iter().find(|(other, _)| **other == *name).map(|(_, value)| value)
    }
}

/// A query as it was sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Query {
    /// Text, which has not been parsed.
    Text(Box<str>),
    /// Bytecode.
    Script(Script),
}

/// One of the answers to a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// The id of the request; `None` if it could not be read.
    pub request_id: Option<Uuid>,
    /// 206 if more follow, 200 for the last, 204 if there are no results, or an error.
    pub status: i32,
    /// What is wrong.
    pub message: Option<Box<str>>,
    /// Of the status, such as the names of exceptions.
    pub attributes: Vec<(Value, Value)>,
    /// The results: a list, or null.
    pub data: Value,
    /// Of the results.
    pub meta: Vec<(Value, Value)>,
}
