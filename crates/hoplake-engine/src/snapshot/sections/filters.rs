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
    ops::Range,
};

use bytes::Bytes;
use hoplake_format::checksum::ObjectSeed;
use hoplake_storage::{BlockRequest, Branch, Check, QueryContext};

use super::{IndexLocation, Section, Sections};
use crate::EngineError;

impl Sections {
    /// Reads those filters first that are shorter than the blocks wanted below them. One wave, if there are any.
    pub(crate) async fn read_filters_that_pay<'a>(
        &self,
        wanted: impl IntoIterator<Item = (IndexLocation, &'a Range<u64>)>,
        branch: &mut Branch,
    ) -> Result<(), EngineError> {
        // Each block once, however many keys want it: it is read once.
        let mut below: BTreeMap<IndexLocation, BTreeSet<(u64, u64)>> = BTreeMap::new();
        for (location, block) in wanted {
            below.entry(location).or_default().insert((block.start, block.end));
        }
        let mut due = Vec::new();
        for (location, blocks) in below {
            let section = self.section(location.section)?;
            let Some(filter) = absent_filter(&section, location.number) else { continue };
            if blocks.into_iter().map(|(start, end)| end - start).sum::<u64>() > filter.end - filter.start {
                due.push((section, location.number, filter));
            }
        }
        if due.is_empty() {
            return Ok(());
        }
        let requests: Vec<_> = due.iter().map(|(section, _, filter)| request(section, filter)).collect();
        let sealed = self.reader.read(&requests, branch).await?;
        for ((section, number, filter), sealed) in due.iter().zip(sealed) {
            let failed = EngineError::format(self.reader.store().location(&section.object.name));
            let seed = ObjectSeed::of(&section.object.name);
            section.filter(*number).set(seed, filter.start, &sealed).map_err(failed)?;
        }
        Ok(())
    }

    /// Notes blocks that were read in vain, by the index blocks that named them, and begins to read filters that would have
    /// paid.
    pub(crate) fn read_in_vain(&self, locations: &[IndexLocation], context: &QueryContext) {
        // A query with a limit on requests, bytes or dollars does not pay for later queries.
        if self.reader.full_read_bytes_max(context) == 0 {
            return;
        }
        for location in locations {
            let Ok(section) = self.section(location.section) else { continue };
            let Some(range) = &section.entry(location.number).filter else { continue };
            if section.filter(location.number).is_due(range) {
                let segment = self.segment_of(location.section).clone();
                let location = *location;
                let seed = ObjectSeed::of(segment.name());
                let position = range.start;
                let take = move |landed: Vec<(u64, Bytes)>| {
                    if let (Some(section), Some((_, sealed))) =
                        (segment.section(location.section.section), landed.first())
                    {
                        // A damaged filter stays away: it decides nothing.
                        let _ = section.filter(location.number).set(seed, position, sealed);
                    }
                };
                self.reader.read_in_background(&[request(&section, range)], context, take);
            }
        }
    }
}

/// The filter of an index block that has one which is not in memory.
fn absent_filter<'a>(section: &Section<'a>, number: usize) -> Option<&'a Range<u64>> {
    section.entry(number).filter.as_ref().filter(|_| section.filter(number).get().is_none())
}

/// A filter is kept by its segment, not by a cache.
fn request<'a>(section: &Section<'a>, range: &Range<u64>) -> BlockRequest<'a> {
    BlockRequest { object: section.object, range: range.clone(), check: Check::Later }
}
