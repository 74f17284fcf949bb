//! The bucket: objects, and when they were written.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;

/// Virtual time 0, in milliseconds since 1970: some day after the golden files were written.
pub const EPOCH_UNIX_MS: u64 = 1_790_000_000_000;

/// An object of the bucket.
#[derive(Debug, Clone)]
pub struct Stored {
    /// Its content.
    pub bytes: Bytes,
    /// When it was written.
    pub modified: Duration,
}

/// The objects of a bucket, as the store itself has them.
pub type Bucket = BTreeMap<String, Stored>;
