//! Small sections are read whole, and small segments with all their sections.
//!
//! When a query has read a part of one from the store, the rest of it is read in the background, once, for a few requests
//! more, which are on that query's account. A small graph is then in memory after its first query, and so are the small
//! sections of a large one: classes, countries, tags. No query waits for it, and nothing is sent unless a query was.

use std::{ops::Range, sync::atomic::Ordering::Relaxed};

use hoplake_format::segment::SectionIndex;
use hoplake_storage::{BlockRequest, Check, QueryContext};

use crate::{
    Snapshot,
    snapshot::{SectionPlace, Segment},
};

impl Snapshot {
    /// Starts to read the rest of what a query has just read from, if it is small.
    pub(crate) fn read_whole(&self, places: impl IntoIterator<Item = SectionPlace>, context: &QueryContext) {
        let bytes_max = self.reader().whole_bytes_max(context);
        for (segment, section) in places.into_iter().map(|place| self.segment_of(place)) {
            let Some(sections) = segment.sections() else { continue };
            if sections.iter().map(bytes).sum::<u64>() <= bytes_max {
                self.read_rest(segment, 0..sections.len(), context);
            } else if bytes(&sections[section]) <= bytes_max {
                self.read_rest(segment, section..section + 1, context);
            }
        }
    }

    /// Starts to read those of a segment's sections that nobody has begun to read whole.
    fn read_rest(&self, segment: &Segment, sections: Range<usize>, context: &QueryContext) {
        let Some(indexes) = segment.sections() else { return };
        let new = sections.filter(|section| !segment.whole[*section].swap(true, Relaxed));
        let ranges: Vec<_> = new.flat_map(|section| blocks(&indexes[section])).collect();
        if ranges.len() < 2 {
            return;
        }
        let request = |range| BlockRequest { object: &segment.object, range, check: Check::Sealed };
        let requests: Vec<_> = ranges.into_iter().map(request).collect();
        self.reader().read_in_background(&requests, context, drop);
    }
}

fn bytes(section: &SectionIndex) -> u64 {
    section.positions[section.positions.len() - 1] - section.positions[0]
}

fn blocks(section: &SectionIndex) -> impl Iterator<Item = Range<u64>> {
    (0..section.block_count()).map(|block| section.block_range(block))
}
