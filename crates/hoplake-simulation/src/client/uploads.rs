//! The uploads in parts that the store knows: each until it is completed or given up.

use std::collections::BTreeMap;

use bytes::Bytes;
use object_store::Result;

use super::errors::{failed, unknown_upload};

/// The uploads that a store knows, by number.
#[derive(Debug, Default)]
pub struct Uploads {
    begun: u64,
    open: BTreeMap<u64, BTreeMap<usize, Bytes>>,
}

impl Uploads {
    pub(super) fn begin(&mut self) -> u64 {
        self.begun += 1;
        self.open.insert(self.begun, BTreeMap::new());
        self.begun
    }

    pub(super) fn part(&mut self, upload: u64, number: usize, bytes: Bytes) -> Result<()> {
        let parts = self.open.get_mut(&upload).ok_or_else(unknown_upload)?;
        parts.insert(number, bytes);
        Ok(())
    }

    /// The object, if all of its parts are there.
    pub(super) fn complete(&mut self, upload: u64, count: usize) -> Result<Bytes> {
        let parts = self.open.get(&upload).ok_or_else(unknown_upload)?;
        // A part whose request never arrived must not leave a hole in the object.
        if !parts.keys().copied().eq(0..count) {
            return Err(failed("400 Invalid Part"));
        }
        // Only now is there an object: nothing of an upload is visible before.
        let whole = parts.values().flatten().copied().collect();
        self.open.remove(&upload);
        Ok(whole)
    }

    /// It is given up, or the rules of the bucket remove it.
    pub fn forget(&mut self, upload: u64) {
        self.open.remove(&upload);
    }
}
