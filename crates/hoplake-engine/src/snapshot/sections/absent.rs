//! Roots and index blocks that are not in memory, read when they are needed.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use hoplake_format::{
    VersionRange,
    segment::{IndexBlock, SectionRoot},
};
use hoplake_storage::Branch;

use super::{IndexLocation, SectionLocation, Sections, Segment, at_first_use, read_roots};
use crate::EngineError;

impl Sections {
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
        let from = |segment: &Segment| at_first_use(&segment.reference.end, &self.settings);
        read_roots(absent.map(|segment| (segment, from(segment))), &self.reader, branch).await
    }

    /// Gives `take` some index blocks, each with its number among `locations`: at once those that are in memory with their root,
    /// the others as they come, in one wave. An index block that is asked for several times is read once.
    pub(crate) async fn each_index_block(
        &self,
        locations: &[IndexLocation],
        branch: &mut Branch,
        mut take: impl FnMut(usize, &IndexBlock) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        // By location: several askers of one index block share its request and its check.
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
            let failed = EngineError::format(self.reader.store().location(&section.object.name));
            let block = section.parse_index_block(number, payload).map_err(failed)?;
            askers[at].iter().try_for_each(|number| take(*number, &block))
        };
        self.reader.read_each(&requests, branch, parse).await
    }

    /// What the segments say of all sections, or pieces of them, with the versions whose changes they hold.
    pub(crate) async fn roots(&self, branch: &mut Branch) -> Result<Vec<(VersionRange, &SectionRoot)>, EngineError> {
        self.make_resident(self.all_locations(), branch).await?;
        let locations = self.all_runs().flat_map(|run| run.locations().map(|location| (run.versions, location)));
        locations.map(|(versions, location)| Ok((versions, self.section(location)?.root()))).collect()
    }
}
