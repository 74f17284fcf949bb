//! Property indexes: from values of a property to the vertices that have them.
//!
//! ```text
//! condition ── tests that all rows match ──▶ ranges of items ── index blocks, in memory ──▶ blocks of every run, one wave
//!     ──▶ of each item the newest run's entry ──▶ ordinals, ascending ──▶ rows, for what the index does not decide
//! ```
//! An index is sections of text keys ([`hoplake_format::property_index`]): a sorted run has the items that its versions added and those
//! that they removed, and of each item the newest run with an entry decides. So runs are merged, scanned and compacted as those of keys
//! are. What differs is the look-up, which takes ranges.
//!
//! **When an index is used.** A look-up costs a page for most vertices that it finds, and a scan reads the column from one end to the
//! other. So an index is used if it leads to at most one vertex in `SHARE` of the label's, by the number of whole blocks within the
//! ranges; the index blocks tell before anything is read. Of several indexes the one with the fewest items is used. None is used that
//! takes too much of the query's memory, or that lists many where a few are wanted that a scan meets soon.

mod entries;
mod lookup;
mod plan;

use std::collections::BTreeSet;

use futures::future::BoxFuture;
use hoplake_format::{IndexId, PropertyIndex, segment::SectionKind};
use hoplake_storage::Branch;

use crate::{EngineError, Snapshot, snapshot::sections::Run};

pub(crate) use entries::Items;
pub(crate) use lookup::Candidates;

/// An index is not used where it leads to more than one vertex in this many.
const SHARE: u64 = 8;

/// How large a property index is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexSize {
    /// The index.
    pub index: PropertyIndex,
    /// Its entries in all sorted runs, those included that say that a vertex does not have a value any more.
    pub entries: u64,
    /// Bytes of its blocks.
    pub bytes: u64,
    /// Its sorted runs.
    pub runs: u64,
}

/// The property indexes of a version.
#[derive(Debug, Clone, Copy)]
pub struct PropertyIndexes<'a> {
    snapshot: &'a Snapshot,
}

impl<'a> PropertyIndexes<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot) -> Self {
        Self { snapshot }
    }

    /// The property indexes of this version, with their sizes. No request, if the roots of segments are in memory.
    ///
    /// # Errors
    /// The store's.
    pub fn sizes(self, branch: &'a mut Branch) -> BoxFuture<'a, Result<Vec<IndexSize>, EngineError>> {
        Box::pin(async move {
            let indexes = &self.snapshot.manifest().indexes;
            let all = indexes.iter().flat_map(|index| self.runs_of(index.id));
            self.snapshot
                .sections()
                .make_resident(all.flat_map(|run| run.locations().collect::<Vec<_>>()), branch)
                .await?;
            let mut sizes = Vec::with_capacity(indexes.len());
            for index in indexes {
                let mut size = IndexSize { index: index.clone(), entries: 0, bytes: 0, runs: 0 };
                let mut versions = BTreeSet::new();
                for run in self.runs_of(index.id) {
                    versions.insert(run.versions);
                    for location in run.locations() {
                        let section = self.snapshot.sections().section(location)?;
                        size.entries += section.root().items;
                        size.bytes += section.bytes();
                    }
                }
                size.runs = versions.len() as u64;
                sizes.push(size);
            }
            Ok(sizes)
        })
    }

    /// The runs of an index, with what they have and with what they removed.
    fn runs_of(self, id: IndexId) -> Vec<&'a Run> {
        let kinds = [SectionKind::Values(id), SectionKind::RemovedValues(id)];
        kinds.iter().flat_map(|kind| self.snapshot.sections().runs(*kind)).collect()
    }
}
