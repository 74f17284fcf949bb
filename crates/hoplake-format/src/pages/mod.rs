//! Untrusted Parquet: footers and pages are checked before anything is allocated or decoded from them.
//!
//! Parquet's reader takes the numbers of a file at their word: it allocates what a page header claims, 2 GiB and more
//! for a file of a hundred bytes, and an allocation that fails ends the process. So the bytes go through these checks
//! first, and Parquet's decoders get only pages that passed:
//!
//! ```text
//! thrift      lists and texts of a footer fit into it; nesting is bounded
//! definition  its fields have the types that Parquet's reader takes them for
//! footer      groups have the columns they claim; column chunks are within the file; rows and values agree
//! header      a page is within its chunk; its decoded size is within the limits
//! values      lengths within a page fit into it, as do the values of a dictionary
//! int96       moments are within what their decoder can hold
//! chunk       pages, decompressed here: a `PageReader`
//! groups      row groups made of such pages
//! ```
//! The remaining case, a panic of a decoder, becomes an error through [`guarded`]. A checksum does not protect here:
//! a forged object can have the right one.

mod chunk;
mod definition;
mod footer;
mod groups;
mod header;
mod int96;
mod thrift;
mod values;

use std::panic::{AssertUnwindSafe, catch_unwind};

use parquet::errors::ParquetError;

pub use self::{
    footer::{check_offset_index, parse_footer, read_footer},
    groups::{PageGroups, Window, longest_of_dictionary},
};

/// Bounds on what pages may become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimits {
    /// The largest page, decompressed, and the most bytes its values may decode to.
    pub page_bytes_max: usize,
    /// How many times as large as on disk a page may become, beyond [`Self::FREE_BYTES`].
    pub ratio_max: usize,
}

impl PageLimits {
    /// The decoded size that a page of any size may have.
    pub const FREE_BYTES: usize = 16 << 20;

    /// Whether the decoded size is within the limits for these bytes.
    fn allows(&self, compressed: usize, decompressed: usize) -> bool {
        let by_ratio = Self::FREE_BYTES.saturating_add(compressed.saturating_mul(self.ratio_max));
        decompressed <= self.page_bytes_max.min(by_ratio)
    }
}

impl Default for PageLimits {
    fn default() -> Self {
        Self { page_bytes_max: 128 << 20, ratio_max: 500 }
    }
}

fn corrupt(why: impl Into<String>) -> ParquetError {
    ParquetError::General(why.into())
}

/// The message of a Parquet error, without the name of its kind.
pub fn reason(error: &ParquetError) -> String {
    let text = error.to_string();
    let mut why = &text[..];
    while let Some(rest) = KINDS.iter().find_map(|kind| why.strip_prefix(kind)) {
        why = rest;
    }
    why.to_owned()
}

/// How errors of Parquet and Arrow begin, one within the other.
const KINDS: [&str; 6] =
    ["Parquet error: ", "Parquet argument error: ", "External: ", "External error: ", "EOF: ", "Arrow: "];

/// Runs a decoder, and turns a panic of it into an error: its input is at fault, and the process goes on.
///
/// # Errors
/// Those of the decoder.
pub fn guarded<T>(decode: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    let decoded = catch_unwind(AssertUnwindSafe(decode));
    decoded.unwrap_or_else(|_| Err(corrupt("its pages hold values that cannot be decoded")))
}
