//! The index of a version, as far as it is in memory: which block of which segment may hold a key or a list.
//!
//! ```text
//! manifest ── runs of a kind, newest first ──▶ pieces ──▶ root of a segment ──▶ index block, filter ──▶ block
//!             always there                               from its first use on   with the root, or a cache
//! ```
//! The ends of small segments come with the open, roots, index blocks and filters at once, and then everything here is a look
//! into memory. Of a large segment the root is read when it is first used, and stays; its index blocks are blocks like others,
//! and come through the caches ([`Sections::each_index_block`]).

mod absent;
mod filters;
mod full_reads;
mod lazy_filter;
mod run;
mod segment;
mod tail;

pub(crate) use run::{Run, SectionLocation, runs, within};
pub(crate) use segment::{Section, Segment, SegmentIndex};
pub(crate) use tail::{Tails, at_first_use, begins_of_tails, read_roots, read_tails};

use std::{cmp::Reverse, collections::HashMap, sync::Arc};

use bytes::Bytes;
use hoplake_format::{Manifest, segment::SectionKind};
use hoplake_storage::{Branch, Reader};

use super::OpenSettings;
use crate::EngineError;

/// Which index block of which section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IndexLocation {
    pub(crate) section: SectionLocation,
    pub(crate) number: usize,
}

/// The index of a version: its segments, and which of their sections are runs of what.
#[derive(Debug)]
pub(crate) struct Sections {
    reader: Reader,
    settings: OpenSettings,
    pub(crate) segments: Vec<Arc<Segment>>,
    /// The runs of each kind, the newest first.
    runs: HashMap<SectionKind, Vec<Run>>,
}

impl Sections {
    /// Those that a manifest names. What is known of an object before holds in every version, because an object never changes.
    pub(super) fn new(
        manifest: &Manifest,
        reader: &Reader,
        settings: &OpenSettings,
        before: Option<&Self>,
    ) -> Result<Self, EngineError> {
        let runs = runs(manifest).map_err(EngineError::format(reader.store().url()))?;
        let by_name: HashMap<&str, &Arc<Segment>> =
            before.iter().flat_map(|before| &before.segments).map(|it| (&*it.reference.name, it)).collect();
        let segments = manifest.segments.iter().map(|reference| {
            let known = by_name.get(&*reference.name).copied();
            known.cloned().unwrap_or_else(|| Arc::new(Segment::new(reference, reader)))
        });
        Ok(Self { segments: segments.collect(), runs, reader: reader.clone(), settings: settings.clone() })
    }

    /// Reads the ends of segments that come with the open of a manifest and are not in memory, in one wave.
    pub(super) async fn read_new_ends(&self, manifest: &Manifest, branch: &mut Branch) -> Result<(), EngineError> {
        let begins = begins_of_tails(manifest, &self.settings);
        let absent = self.segments.iter().zip(begins).filter(|(segment, _)| !segment.is_resident());
        let absent = absent.filter_map(|(segment, from)| Some((segment, from?)));
        read_roots(absent, &self.reader, branch).await
    }

    /// Takes the index of a segment, and its blocks, from the object's bytes.
    pub(crate) fn take_at_hand(&self, segment: &Segment, bytes: &Bytes) -> Result<(), EngineError> {
        let whole = bytes.slice(..segment.reference.end.length as usize);
        segment.set(SegmentIndex::decode(&segment.reference, &whole, self.reader.store().url())?);
        for section in segment.sections().into_iter().flatten() {
            // All index blocks are in the object; another may have read its root alone.
            for range in section.blocks().into_iter().flatten() {
                let stored = whole.slice(range.start as usize..range.end as usize);
                self.reader.keep(&section.request(range), &stored)?;
            }
        }
        Ok(())
    }

    /// The runs of a kind, the newest first.
    pub(crate) fn runs(&self, kind: SectionKind) -> &[Run] {
        self.runs.get(&kind).map_or(&[], Vec::as_slice)
    }

    /// The runs of some kinds, the newest first. Of two sections of one run, that of the kind that is named first is before the other:
    /// a key that went and came back within one version is in both, and is there.
    pub(crate) fn runs_newest_first(&self, kinds: &[SectionKind]) -> Vec<(SectionKind, &Run)> {
        let of_kind = |kind: &SectionKind| {
            let kind = *kind;
            self.runs(kind).iter().map(move |run| (kind, run))
        };
        let mut runs: Vec<_> = kinds.iter().flat_map(of_kind).collect();
        // The sort is stable.
        runs.sort_by_key(|(_, run)| Reverse(run.versions.until));
        runs
    }

    /// All sections, of all kinds.
    pub(crate) fn all_locations(&self) -> impl Iterator<Item = SectionLocation> {
        self.all_runs().flat_map(Run::locations)
    }

    /// The runs of all kinds.
    pub(crate) fn all_runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.values().flatten()
    }

    /// The segment of a section.
    pub(crate) fn segment_of(&self, location: SectionLocation) -> &Arc<Segment> {
        &self.segments[location.segment]
    }

    /// A section of a segment whose root is in memory; see [`Self::make_resident`].
    pub(crate) fn section(&self, location: SectionLocation) -> Result<Section<'_>, EngineError> {
        let segment = &self.segments[location.segment];
        let missing = || EngineError::Internal(format!("the root of {} is not resident", segment.name()));
        segment.section(location.section).ok_or_else(missing)
    }
}
