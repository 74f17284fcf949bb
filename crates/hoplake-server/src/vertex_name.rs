//! How a request names vertices.

use hoplake::{Condition, Key};

/// A vertex, by id or by label and key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum VertexName {
    /// The engine's 64 bits.
    Id(u64),
    /// A label and a key of the label's type.
    Key(String, Key),
    /// `Person:933`, to be read as the label's type: only the schema shows whether `933` is a number or text.
    Text(String),
    /// All vertices of a label that match a condition.
    Matching(String, Condition),
}
