//! GraphBinary 1.0, the binary encoding of TinkerPop 3.
//!
//! ```text
//! value       type code (1) · flag (1): 0 for a value, 1 for null · the value
//! text        length (4) · UTF-8
//! list, set   items (4) · values              map   entries (4) · keys and values in turn
//! bytecode    steps (4) · instructions · sources (4) · instructions
//! instruction name as text · arguments (4) · values
//! request     0x81 · id (16) · op as text · processor as text · arguments as a map
//! response    0x81 · flag · id (16) · status (4) · flag · message as text · attributes as a map · meta as a map · value
//! ```
//! All numbers are big-endian. Where the type is known, as of the op of a request, there is neither a code nor, for most, a flag.
//!
//! **Why not a library's.** Those in Rust belong to clients: they write requests and read responses.
//!
//! A reader takes bytes from anyone. Every length is compared with the bytes that are left before memory is taken for it, and an
//! item takes at least two bytes, so what is decoded is at most some fifty times the message. Nesting has a bound, [`DEPTH_MAX`].
//! Types that no traversal needs (a graph, a period, a custom type) are rejected by name.

mod reader;
#[cfg(test)]
mod tests;
mod types;
mod writer;

use hoplake_query::{literal::DIGITS_MAX, value::Value};

use self::writer::Version;
use crate::message::{Request, Response};

/// The media type that precedes a message.
pub const MEDIA_TYPE: &str = "application/vnd.graphbinary-v1.0";

/// How deep values and traversals may nest, as in text.
pub const DEPTH_MAX: usize = crate::text::DEPTH_MAX;

/// Bytes of a big number of [`DIGITS_MAX`] digits, rounded up.
const NUMBER_BYTES_MAX: usize = DIGITS_MAX * 5 / 12;

/// Reads a request, after its media type.
///
/// # Errors
/// [`DecodeError`] if it is not one.
pub fn read_request(bytes: &[u8]) -> Result<Request, DecodeError> {
    reader::Reader::new(bytes).request()
}

/// Reads a response.
///
/// # Errors
/// [`DecodeError`] if it is not one.
pub fn read_response(bytes: &[u8]) -> Result<Response, DecodeError> {
    reader::Reader::new(bytes).response()
}

/// Reads a value with its type.
///
/// ```
/// use hoplake_gremlin::graphbinary;
/// use hoplake_query::value::Value;
///
/// assert_eq!(graphbinary::read_value(&[0x01, 0x00, 0, 0, 0, 42]).unwrap(), Value::from(42));
/// let error = graphbinary::read_value(&[0x01, 0x00, 0]).unwrap_err();
/// assert_eq!(error.to_string(), "byte 2: 4 bytes are missing, and 1 is left");
/// ```
///
/// # Errors
/// [`DecodeError`] if it is not one.
pub fn read_value(bytes: &[u8]) -> Result<Value, DecodeError> {
    reader::Reader::new(bytes).single_value()
}

/// Writes a request.
///
/// # Errors
/// [`EncodeError`] if it holds what GraphBinary has no form for, and if its query is a script: drivers write those.
pub fn write_request(request: &Request, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
    writer::Writer(bytes, Version::First).request(request)
}

/// Writes a response.
///
/// # Errors
/// [`EncodeError`] if it holds what GraphBinary has no form for.
pub fn write_response(response: &Response, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
    writer::Writer(bytes, Version::First).response(response)
}

/// Writes a value with its type.
///
/// # Errors
/// [`EncodeError`] if it holds what GraphBinary has no form for.
pub fn write_value(value: &Value, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
    writer::Writer(bytes, Version::First).value(value)
}

/// GraphBinary 4, of TinkerPop 4, which is in beta: responses alone, since requests are JSON.
///
/// ```text
/// response    0x84 · flag: 1 if bulked · results · marker 0xfd 0 0 · status (4) · flag · message · flag · exception
/// result      a value with its type, and if bulked how many times it stands there, as a long with its type
/// ```
/// Values are those of version 1 but for labels, which are lists of one, for times, which have one type, and for bulk sets, which are lists.
pub mod fourth {
    use super::{
        EncodeError,
        types::{MARKER, VERSION_4},
        writer::{Version, Writer},
    };
    use hoplake_query::value::Value;

    /// The media type.
    pub const MEDIA_TYPE: &str = "application/vnd.graphbinary-v4.0";

    /// Begins a response.
    pub fn begin(is_bulked: bool, bytes: &mut Vec<u8>) {
        bytes.extend([VERSION_4, u8::from(is_bulked)]);
    }

    /// Writes a result, and how many times it stands there if the response is bulked.
    ///
    /// # Errors
    /// [`EncodeError`] if it holds what GraphBinary has no form for.
    pub fn write_result(value: &Value, bulk: Option<u64>, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        let mut writer = Writer(bytes, Version::Fourth);
        writer.value(value)?;
        match bulk {
            Some(bulk) => writer.value(&i64::try_from(bulk).unwrap_or(i64::MAX).into()),
            None => Ok(()),
        }
    }

    /// Ends a response with its status; an error has a message and the name of an exception.
    pub fn end(status: i32, error: Option<(&str, &str)>, bytes: &mut Vec<u8>) {
        bytes.extend([MARKER, 0, 0]);
        bytes.extend(status.to_be_bytes());
        for text in [error.map(|(message, _)| message), error.map(|(_, exception)| exception)] {
            match text {
                None => bytes.push(1),
                Some(text) => {
                    // A length has 31 bits.
                    let length = text.floor_char_boundary(i32::MAX as usize);
                    bytes.push(0);
                    bytes.extend((length as u32).to_be_bytes());
                    bytes.extend(&text.as_bytes()[..length]);
                }
            }
        }
    }
}

/// What is wrong with a message, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("byte {position}: {message}")]
pub struct DecodeError {
    /// The byte at which it is wrong, from 0.
    pub position: usize,
    /// What is wrong.
    pub message: String,
}

/// Why a value has no encoding.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// Lengths have 31 bits.
    #[error("{0} items or bytes are more than a length can say (2147483647)")]
    TooLong(usize),
    /// A number is beyond the range of its field.
    #[error("{what} is {number}, which its field cannot hold")]
    OutOfRange {
        /// What it is.
        what: &'static str,
        /// The number.
        number: String,
    },
    /// A request whose query is a script.
    #[error("a script cannot be written, only text")]
    Script,
    /// An element that was not read.
    #[error("an element has to be read before it is written")]
    Unread,
}
