//! Small sections are read whole.
//!
//! When a query has read a part of a small section from the store, the rest of it is read beside, once, for a
//! few requests more. A small graph is then in memory after its first query of each kind, and so are the
//! small sections of a large one: classes, countries, tags. No query waits for it, and nothing is sent
//! unless a query was.

use std::sync::atomic::Ordering::Relaxed;

use hoplake_format::segment::SectionKind;
use hoplake_storage::{BlockRequest, Check};

use crate::Snapshot;

impl Snapshot {
    /// Starts to read the rest of sections that a query has just read from, if they are small.
    pub(crate) fn read_whole(&self, kinds: impl IntoIterator<Item = SectionKind>) {
        let bytes_max = self.reader().whole_section_bytes_max();
        for kind in kinds {
            let Some((section, begun)) = self.section_and_whole(kind) else { continue };
            let positions = &section.index.positions;
            let bytes = positions[positions.len() - 1] - positions[0];
            if bytes > bytes_max || section.index.block_count() < 2 || begun.swap(true, Relaxed) {
                continue;
            }
            let (reader, object) = (self.reader().clone(), section.object.clone());
            let ranges: Vec<_> =
                (0..section.index.block_count()).map(|block| section.index.block_range(block)).collect();
            tokio::spawn(async move {
                let request = |range| BlockRequest { object: &object, range, check: Check::Sealed };
                let requests: Vec<_> = ranges.into_iter().map(request).collect();
                // What fails here is asked for again by whoever needs it, and told to them.
                let _ = reader.warm(&requests).await;
            });
        }
    }
}
