//! GraphSON 3 and 2, the JSON encodings of TinkerPop 3.
//!
//! A value is JSON where its type is plain from it (text, booleans, null), and else `{"@type": "g:Int32", "@value": 1}`. Version 3 has
//! types for lists, sets and maps, whose keys may be anything; in version 2 they are arrays and objects, so that a set comes back as
//! a list and keys are text. One reader takes both, also mixed; a writer is of one [`Version`].
//!
//! JSON may nest 128 levels, of which a traversal within another takes four. A number without a type is an int, a long or a
//! double, whichever has it first. Big integers and decimals are read from their digits.

mod json;
mod reader;
#[cfg(test)]
mod tests;
mod version;
mod writer;

use hoplake_query::value::Value;

pub use self::version::{DecodeError, EncodeError, Version};
use crate::message::{Request, Response};

/// Reads a request of either version, after its media type.
///
/// # Errors
/// [`DecodeError`] if it is not one.
pub fn read_request(json: &[u8]) -> Result<Request, DecodeError> {
    reader::request(json::parse(json)?)
}

/// Reads a response of either version.
///
/// # Errors
/// [`DecodeError`] if it is not one.
pub fn read_response(json: &[u8]) -> Result<Response, DecodeError> {
    reader::response(json::parse(json)?)
}

/// Reads a value of either version.
///
/// ```
/// use hoplake_gremlin::graphson;
/// use hoplake_query::value::Value;
///
/// let json = br#"{"@type": "g:Int32", "@value": 42}"#;
/// assert_eq!(graphson::read_value(json).unwrap(), Value::from(42));
/// ```
///
/// # Errors
/// [`DecodeError`] if it is not one.
pub fn read_value(json: &[u8]) -> Result<Value, DecodeError> {
    reader::value(json::parse(json)?)
}

/// Writes a response.
///
/// # Errors
/// [`EncodeError`] if it holds what the version has no form for.
pub fn write_response(response: &Response, version: Version, json: &mut String) -> Result<(), EncodeError> {
    writer::Writer { json, version }.response(response)
}

/// Writes a value.
///
/// # Errors
/// [`EncodeError`] if it is or holds what the version has no form for.
pub fn write_value(value: &Value, version: Version, json: &mut String) -> Result<(), EncodeError> {
    writer::Writer { json, version }.value(value)
}
