//! Values of PostgreSQL without a server, for the fuzz target.

use super::values::{Decoder, Scalar};
use crate::Cell;

/// What the text of a value becomes, in a column of a type by its name in `pg_type`, or of an array of that.
pub fn read_value(type_name: &str, is_array: bool, text: &[u8]) -> Cell {
    let scalar = Scalar::named(type_name);
    let decoder = if is_array { Decoder::Array(scalar) } else { Decoder::One(scalar) };
    decoder.decode(Some(text))
}
