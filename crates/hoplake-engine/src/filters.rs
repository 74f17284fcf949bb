//! Filters that did not come with the open.
//!
//! A filter over 262,144 keys takes 288 KiB, as many bytes as some 70 blocks of keys: read when it is first asked, it would
//! cost a look-up in a large graph more than it could ever spare it. So without its filter a block is just read, which takes
//! no wave more, and the filter is read when it pays:
//!
//! * at once, before the blocks, if it is shorter than all of those that one look-up wants below it (as a batch of
//!   changes may want thousands);
//! * in the background, once some blocks were read in vain that it would have ruled out: what was wasted until then is about
//!   what it costs, so that no sequence of look-ups pays much more than twice of what would have been best.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};

use bytes::Bytes;
use hoplake_format::{
    FormatError,
    checksum::{ObjectSeed, open_block},
    filter::KeyFilter,
    segment::FilterEntry,
};
use hoplake_storage::{BlockRequest, Branch, Check, QueryContext};

use crate::{
    EngineError, Snapshot,
    snapshot::{SectionPlace, Segment},
};

/// A request costs about as much as so many bytes.
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
    fn is_due(&self, entry: &FilterEntry) -> bool {
        let before = u64::from(self.in_vain.fetch_add(1, Relaxed));
        self.filter.get().is_none() && before == 1 + entry.length / REQUEST_BYTES
    }
}

/// Which filter of which section.
type FilterPlace = (SectionPlace, usize);

impl Snapshot {
    /// Reads those filters first that are shorter than the blocks wanted below them. One wave, if there are any.
    pub(crate) async fn read_filters_that_pay(
        &self,
        wanted: impl IntoIterator<Item = (SectionPlace, usize)>,
        branch: &mut Branch,
    ) -> Result<(), EngineError> {
        let mut below: BTreeMap<FilterPlace, BTreeSet<usize>> = BTreeMap::new();
        for (place, block) in wanted {
            let section = self.section(place)?;
            if let Some(filter) = section.index.filter_of_block(block).filter(|it| section.filters[*it].get().is_none())
            {
                below.entry((place, filter)).or_default().insert(block);
            }
        }
        let mut due = Vec::new();
        for ((place, filter), blocks) in below {
            let section = self.section(place)?;
            let bytes = |block: usize| section.index.positions[block + 1] - section.index.positions[block];
            if blocks.into_iter().map(bytes).sum::<u64>() > section.index.filters[filter].length {
                due.push((place, filter));
            }
        }
        if due.is_empty() {
            return Ok(());
        }
        let segments: Vec<_> = due.iter().map(|(place, _)| self.segment_of(*place).0).collect();
        let ranges = due.iter().map(|(place, filter)| Ok(self.section(*place)?.index.filters[*filter].range()));
        let ranges = ranges.collect::<Result<Vec<_>, EngineError>>()?;
        let segments = segments.iter().map(|segment| segment.as_ref());
        let requests: Vec<_> = segments.zip(ranges).map(|(segment, range)| filter_request(segment, range)).collect();
        let sealed = self.reader().read(&requests, branch).await?;
        for (((place, filter), request), sealed) in due.iter().zip(&requests).zip(sealed) {
            let failed = EngineError::format(self.reader().store().place(&request.object.name));
            let seed = ObjectSeed::of(&request.object.name);
            self.section(*place)?.filters[*filter].set(seed, request.range.start, &sealed).map_err(failed)?;
        }
        Ok(())
    }

    /// Notes blocks that were read in vain, and begins to read filters that would have paid.
    pub(crate) fn read_in_vain(&self, blocks: &[(SectionPlace, usize)], context: &QueryContext) {
        if self.reader().whole_bytes_max(context) == 0 {
            return;
        }
        for (place, block) in blocks {
            let Ok(section) = self.section(*place) else { continue };
            let Some(filter) = section.index.filter_of_block(*block) else { continue };
            let entry = &section.index.filters[filter];
            if section.filters[filter].is_due(entry) {
                let (segment, number) = self.segment_of(*place);
                let (segment, request) = (segment.clone(), filter_request(segment, entry.range()));
                let (seed, position) = (ObjectSeed::of(segment.name()), entry.position);
                let take = move |landed: Vec<(u64, Bytes)>| {
                    let known = segment.filters(number).and_then(|filters| filters.get(filter));
                    if let (Some(filter), Some((_, sealed))) = (known, landed.first()) {
                        // A damaged filter stays away: it decides nothing.
                        let _ = filter.set(seed, position, sealed);
                    }
                };
                self.reader().read_in_background(&[request], context, take);
            }
        }
    }
}

/// A filter is kept by its segment, not by a cache.
fn filter_request(segment: &Segment, range: std::ops::Range<u64>) -> BlockRequest<'_> {
    BlockRequest { object: &segment.object, range, check: Check::Later }
}
