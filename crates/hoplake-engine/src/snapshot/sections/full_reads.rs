//! Small sections are read whole, and small segments with all their sections.
//!
//! When a query has read a part of one from the store, the rest of it is read in the background, once, for a few requests
//! more, which are on that query's account. A small graph is then in memory after its first query, and so are the small
//! sections of a large one: classes, countries, tags. No query waits for it, and nothing is sent unless a query was.

use std::sync::atomic::Ordering::Relaxed;

use hoplake_storage::QueryContext;

use super::{SectionLocation, Sections, Segment};

impl Sections {
    /// Starts to read the rest of what a query has just read from, if it is small.
    pub(crate) fn read_in_full(&self, locations: impl IntoIterator<Item = SectionLocation>, context: &QueryContext) {
        let bytes_max = self.reader.full_read_bytes_max(context);
        for location in locations {
            let segment = self.segment_of(location);
            let Some(mut sections) = segment.sections() else { continue };
            if sections.clone().map(|section| section.bytes()).sum::<u64>() <= bytes_max {
                self.read_rest(segment, 0..segment.read_in_full.len(), context);
            } else if sections.nth(location.section).is_some_and(|section| section.bytes() <= bytes_max) {
                self.read_rest(segment, location.section..location.section + 1, context);
            }
        }
    }

    /// Starts to read those of a segment's sections that nobody has begun to read whole. Not those of a large segment whose
    /// index blocks are not in memory.
    fn read_rest(&self, segment: &Segment, sections: std::ops::Range<usize>, context: &QueryContext) {
        let known = sections.filter_map(|number| Some((number, segment.section(number)?)));
        let known = known.filter_map(|(number, section)| Some((number, section, section.blocks()?)));
        // The flag is set by the first query that gets here, so a section is read in the background once.
        let new = known.filter(|(number, ..)| !segment.read_in_full[*number].swap(true, Relaxed));
        let requests = new.flat_map(|(_, section, blocks)| blocks.map(move |range| section.request(range)));
        let requests: Vec<_> = requests.collect();
        // A single block is usually the one that was just read.
        if requests.len() >= 2 {
            self.reader.read_in_background(&requests, context, drop);
        }
    }
}
