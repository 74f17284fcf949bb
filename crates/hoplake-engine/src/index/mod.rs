//! The index of a version, as far as it is in memory: which block of which segment may hold a key or a list.
//!
//! ```text
//! manifest ── runs of a kind, newest first ──▶ pieces ──▶ root of a segment ──▶ index block, filter ──▶ block
//!             always there                               from its first use on   with the root, or a cache
//! ```
//! The ends of small segments come with the open, roots, index blocks and filters at once, and then everything here is a look
//! into memory. Of a large segment the root is read when it is first used, and stays; its index blocks are blocks like others,
//! and come through the caches ([`Snapshot::each_index_block`]).

mod run;
mod segment;
mod tail;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bytes::Bytes;
use hoplake_format::segment::IndexBlock;
use hoplake_storage::{BlockRequest, Branch, Check};

use crate::{EngineError, Snapshot};

pub(crate) use run::{Run, SectionLocation, runs};
pub(crate) use segment::{Section, Segment, SegmentIndex};
pub(crate) use tail::{Tails, at_first_use, begins_of_tails, read_tails};

/// Which index block of which section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IndexLocation {
    pub(crate) section: SectionLocation,
    pub(crate) number: usize,
}

impl Snapshot {
    /// Reads those roots of segments that are not in memory, all in one wave. Usually all are, and nothing waits.
    pub(crate) async fn make_resident(
        &self,
        locations: impl IntoIterator<Item = SectionLocation>,
        branch: &mut Branch,
    ) -> Result<(), EngineError> {
        self.read_absent(self.absent(locations), branch).await
    }

    /// The segments of some sections whose roots are not in memory.
    pub(crate) fn absent(&self, locations: impl IntoIterator<Item = SectionLocation>) -> BTreeSet<usize> {
        let segments = locations.into_iter().map(|location| location.segment);
        segments.filter(|segment| !self.segments[*segment].is_resident()).collect()
    }

    /// Reads the roots of some segments, all in one wave.
    pub(crate) async fn read_absent(&self, absent: BTreeSet<usize>, branch: &mut Branch) -> Result<(), EngineError> {
        if absent.is_empty() {
            return Ok(());
        }
        let absent = absent.into_iter().map(|segment| &self.segments[segment]);
        self.read_roots(absent.map(|segment| (segment, at_first_use(&segment.reference.end, &self.settings))), branch)
            .await
    }

    /// Reads the ends of segments, each from some position on.
    pub(crate) async fn read_roots<'a>(
        &self,
        segments: impl Iterator<Item = (&'a Arc<Segment>, u64)>,
        branch: &mut Branch,
    ) -> Result<(), EngineError> {
        let reads = branch.each(segments, |(segment, from), mut line| async move {
            // Another may be reading it: then its answer is waited for.
            let waited = line.wave().next();
            let read = async {
                let range = from..segment.reference.end.length;
                let tail = BlockRequest { object: &segment.object, range, check: Check::Later };
                let tail = self.reader().read(&[tail], &mut line).await?;
                SegmentIndex::decode(&segment.reference, &tail[0], self.reader().store().url())
            };
            segment.get_or_read(read).await?;
            line.reached(waited);
            Ok::<_, EngineError>(((), line))
        });
        reads.await.map(drop)
    }

    /// Gives `take` some index blocks, each with its number among `locations`: at once those that are in memory with their root,
    /// the others as they come, in one wave. An index block that is asked for several times is read once.
    pub(crate) async fn each_index_block(
        &self,
        locations: &[IndexLocation],
        branch: &mut Branch,
        mut take: impl FnMut(usize, &IndexBlock) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let mut absent: BTreeMap<IndexLocation, Vec<usize>> = BTreeMap::new();
        for (number, location) in locations.iter().enumerate() {
            match self.section(location.section)?.index_block(location.number) {
                Some(block) => take(number, block)?,
                None => absent.entry(*location).or_default().push(number),
            }
        }
        if absent.is_empty() {
            return Ok(());
        }
        let sections = absent.keys().map(|location| Ok((self.section(location.section)?, location.number)));
        let sections = sections.collect::<Result<Vec<_>, EngineError>>()?;
        let requests: Vec<_> = sections.iter().map(|(section, number)| section.index_request(*number)).collect();
        let askers: Vec<_> = absent.into_values().collect();
        let parse = |at: usize, payload: Bytes| {
            let (section, number) = sections[at];
            let failed = EngineError::format(self.reader().store().location(&section.object.name));
            let block = section.parse_index_block(number, payload).map_err(failed)?;
            askers[at].iter().try_for_each(|number| take(*number, &block))
        };
        self.reader().read_each(&requests, branch, parse).await
    }
}
