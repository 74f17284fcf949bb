//! A filter of a section that is read when it pays.

use std::{
    ops::Range,
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};

use hoplake_format::{
    FormatError,
    checksum::{ObjectSeed, open_block},
    filter::KeyFilter,
};

/// A request costs about as much as this many bytes.
const REQUEST_BYTES: u64 = 64 << 10;

/// A filter of a section, which may not have been read.
#[derive(Debug, Default)]
pub(crate) struct LazyFilter {
    filter: OnceLock<KeyFilter>,
    /// Blocks that were read in vain for want of it.
    in_vain: AtomicU32,
}

impl LazyFilter {
    /// The filter, if it was read.
    pub(crate) fn get(&self) -> Option<&KeyFilter> {
        self.filter.get()
    }

    /// Takes its bytes as they are stored.
    pub(crate) fn set(&self, seed: ObjectSeed, position: u64, sealed: &[u8]) -> Result<(), FormatError> {
        // If somebody was faster, theirs is the same.
        let _ = self.filter.set(KeyFilter::decode(open_block(seed, position, sealed)?)?);
        Ok(())
    }

    /// Notes that a block was read in vain, and says whether the filter is due now: exactly once.
    pub(crate) fn is_due(&self, range: &Range<u64>) -> bool {
        let before = u64::from(self.in_vain.fetch_add(1, Relaxed));
        // Each block read in vain has cost a request, the filter costs one and its bytes. Equality, as each count is returned to one
        // caller: the filter is requested once.
        self.filter.get().is_none() && before == 1 + (range.end - range.start) / REQUEST_BYTES
    }
}
