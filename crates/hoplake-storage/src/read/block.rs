//! Blocks, the objects that contain them, and how a block's integrity is checked.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use hoplake_format::{
    FormatError,
    checksum::{ObjectSeed, open_block, seal_block},
    constants::CHECKSUM_BYTES,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// An immutable object with the numbers by which a reader identifies it.
#[derive(Debug, Clone)]
pub struct Object {
    /// Its name below the prefix.
    pub name: Arc<str>,
    /// Identifies the object in memory caches; unique within a pool.
    pub(crate) number: u32,
    /// Identifies the object in disk caches; the same in every process.
    pub(crate) identity: u64,
    pub(crate) seed: ObjectSeed,
}

impl Object {
    pub(crate) fn new(store_url: &str, name: &str, number: u32) -> Self {
        let identity = xxh3_64_with_seed(name.as_bytes(), xxh3_64_with_seed(store_url.as_bytes(), 0));
        Self { name: name.into(), number, identity, seed: ObjectSeed::of(name) }
    }
}

/// How a block's integrity is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// By the checksum at its end, which is not part of the payload.
    Sealed,
    /// By this CRC-32C, which the caller knows.
    Known(u32),
    /// Not by the reader: the caller checks the bytes, and they are not cached.
    Later,
}

impl Check {
    /// The stored block without its checksum, if it ends with one.
    pub(crate) fn payload(self, stored: &Bytes) -> Bytes {
        match self {
            Self::Sealed => stored.slice(..stored.len().saturating_sub(CHECKSUM_BYTES)),
            Self::Known(_) | Self::Later => stored.clone(),
        }
    }
}

/// A block to read.
#[derive(Debug, Clone)]
pub struct BlockRequest<'a> {
    /// The object that contains it.
    pub object: &'a Object,
    /// Its position in the object, including its checksum if it is sealed.
    pub range: Range<u64>,
    /// How it is checked.
    pub check: Check,
}

/// A block's payload, if it is intact.
pub(crate) fn verified_payload(
    object: &Object,
    position: u64,
    check: Check,
    block: &Bytes,
) -> Result<Bytes, FormatError> {
    match check {
        Check::Sealed => {
            open_block(object.seed, position, block)?;
        }
        Check::Known(expected) => {
            let found = crc32c::crc32c(block);
            if found != expected {
                let why = format!("fails its checksum (expected {expected:08x}, found {found:08x})");
                return Err(FormatError::corrupt("page", why));
            }
        }
        Check::Later => {}
    }
    Ok(check.payload(block))
}

/// The stored form of a block: its payload, and its checksum if it is sealed.
pub(crate) fn stored_form(request: &BlockRequest<'_>, payload: Bytes) -> Bytes {
    match request.check {
        Check::Sealed => {
            let mut stored = Vec::with_capacity(payload.len() + CHECKSUM_BYTES);
            seal_block(request.object.seed, request.range.start, &payload, &mut stored);
            stored.into()
        }
        Check::Known(_) | Check::Later => payload,
    }
}
