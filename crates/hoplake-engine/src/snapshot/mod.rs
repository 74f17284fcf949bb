//! An open snapshot: the manifest, the resident indexes and the way to the blocks.
//!
//! Opening takes two waves. The first reads the hint, a copy of some manifest, usually the newest. The
//! second asks whether a newer version exists and, in parallel, reads the ends of the segments that the
//! hint names. Only if the hint is stale or lost does it take more.

pub(crate) mod sections;
mod settings;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use bytes::Bytes;
use futures::future::{BoxFuture, join};
use hoplake_format::{Direction, EdgeTypeId, LabelId, Manifest, Schema, Slot, VersionRange, segment::SectionKind};
use hoplake_storage::{Branch, Cost, QueryContext, Reader};

use crate::{
    EngineError,
    owner::Owner,
    read::tables::Table,
    snapshot::sections::{
        Run, Section, SectionLocation, Segment, SegmentIndex, Tails, begins_of_tails, read_roots, read_tails, runs,
    },
    versions,
};

pub use settings::OpenSettings;

/// One version of a graph, open for reading.
#[derive(Debug)]
pub struct Snapshot {
    manifest: Manifest,
    reader: Reader,
    pub(crate) segments: Vec<Arc<Segment>>,
    /// The runs of each kind, the newest first.
    runs: HashMap<SectionKind, Vec<Run>>,
    pub(crate) tables: Vec<Arc<Table>>,
    pub(crate) settings: OpenSettings,
    open_cost: Cost,
}

impl Snapshot {
    /// Opens a graph.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] if there is no graph or no such version; the store's; [`EngineError::Format`] if
    /// a manifest or an index is damaged.
    pub fn open<'a>(reader: Reader, settings: &'a OpenSettings) -> BoxFuture<'a, Result<Self, EngineError>> {
        Box::pin(async move {
            let mut branch = QueryContext::new().branch();
            let (manifest, tails) = match settings.version {
                Some(version) => {
                    let manifest = versions::read(&reader, version, &mut branch).await?;
                    let tails = read_tails(&reader, &manifest, settings, &mut branch).await?;
                    (manifest, tails)
                }
                None => {
                    let mut opened = open_newest(&reader, settings, &mut branch).await;
                    let mut tried = 0;
                    // A vacuum may remove what was the newest version when this began, after others were published.
                    while opened.as_ref().is_err_and(EngineError::is_missing_object) {
                        let newest = versions::newest(&reader, &mut branch).await?;
                        let Some(newest) = newest.filter(|newest| newest.version > tried) else { break };
                        tried = newest.version;
                        opened = read_tails(&reader, &newest, settings, &mut branch).await.map(|it| (newest, it));
                    }
                    opened?
                }
            };
            let mut snapshot = Self::assemble(manifest, reader, settings.clone(), None)?;
            for (segment, tail) in snapshot.segments.iter().zip(tails) {
                if let Some(tail) = tail {
                    segment.set(SegmentIndex::decode(&segment.reference, &tail, snapshot.reader.store().url())?);
                }
            }
            snapshot.open_cost = branch.context().cost();
            Ok(snapshot)
        })
    }

    /// The newest version: itself, for one request, or a later one.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn newest<'a>(self: &'a Arc<Self>, branch: &'a mut Branch) -> BoxFuture<'a, Result<Arc<Self>, EngineError>> {
        Box::pin(async move {
            let later = versions::after(&self.reader, self.manifest.version, branch).await?;
            let Some(mut manifest) = later else { return Ok(self.clone()) };
            loop {
                let version = manifest.version;
                match self.at(manifest, branch).await {
                    // A vacuum may remove it while it is read, after others were published.
                    Err(error) if error.is_missing_object() => {
                        manifest = versions::after(&self.reader, version, branch).await?.ok_or(error)?;
                    }
                    snapshot => return snapshot,
                }
            }
        })
    }

    /// The snapshot of a later version, which another writer published.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn at(&self, manifest: Manifest, branch: &mut Branch) -> Result<Arc<Self>, EngineError> {
        Ok(Arc::new(self.advance(manifest, &BTreeMap::new(), branch).await?))
    }

    /// Whether its manifest is still where it was read. One request.
    ///
    /// # Errors
    /// The store's.
    pub fn is_there<'a>(&'a self, branch: &'a mut Branch) -> BoxFuture<'a, Result<bool, EngineError>> {
        Box::pin(async move {
            let slot = versions::slot(&self.reader, self.manifest.version, branch).await?;
            let same = |found: &Slot| matches!(found, Slot::Version(found) if found.change == self.manifest.change);
            Ok(slot.as_ref().is_some_and(same))
        })
    }

    /// A later version: what it shares with this one stays in memory, indexes and blocks alike. Objects that are at
    /// hand, by name, are taken from there; the ends of other new segments are read in one wave.
    pub(crate) async fn advance(
        &self,
        manifest: Manifest,
        at_hand: &BTreeMap<String, Bytes>,
        branch: &mut Branch,
    ) -> Result<Self, EngineError> {
        let next = Self::assemble(manifest, self.reader.clone(), self.settings.clone(), Some(self))?;
        for segment in &next.segments {
            if let Some(bytes) = at_hand.get(&segment.reference.name) {
                next.take_at_hand(segment, bytes)?;
            }
        }
        let begins = begins_of_tails(&next.manifest, &self.settings);
        let come = next.segments.iter().zip(begins).filter(|(segment, _)| !segment.is_resident());
        let come = come.filter_map(|(segment, from)| Some((segment, from?)));
        read_roots(come, &next.reader, branch).await?;
        Ok(next)
    }

    /// A version whose new objects are in memory alone.
    pub(crate) async fn with_objects(
        &self,
        manifest: Manifest,
        objects: BTreeMap<String, Bytes>,
        branch: &mut Branch,
    ) -> Result<Self, EngineError> {
        let reader = self.reader.with_objects(objects);
        let next = Self::assemble(manifest, reader, self.settings.clone(), Some(self))?;
        let begins = begins_of_tails(&next.manifest, &self.settings);
        let come = next.segments.iter().zip(begins).filter(|(segment, _)| !segment.is_resident());
        let come = come.filter_map(|(segment, from)| Some((segment, from?)));
        read_roots(come, &next.reader, branch).await?;
        Ok(next)
    }

    /// This version with those runs alone that `keep` chooses.
    pub(crate) fn only(&self, keep: impl Fn(Owner, VersionRange) -> bool) -> Result<Self, EngineError> {
        let mut manifest = self.manifest.clone();
        for section in manifest.segments.iter_mut().flat_map(|segment| &mut segment.sections) {
            let owner = Owner::of_section(section.kind);
            section.versions = section.versions.filter(|versions| keep(owner, *versions));
        }
        manifest.segments.retain(|segment| segment.sections.iter().any(|section| section.versions.is_some()));
        manifest.tables.retain(|table| keep(Owner::of_table(table.owner), table.versions));
        Self::assemble(manifest, self.reader.clone(), self.settings.clone(), Some(self))
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

    pub(crate) fn assemble(
        manifest: Manifest,
        reader: Reader,
        settings: OpenSettings,
        before: Option<&Self>,
    ) -> Result<Self, EngineError> {
        let runs = runs(&manifest).map_err(EngineError::format(reader.store().url()))?;
        // An object never changes, so what is known of it by its name holds in every version.
        let segments_before: HashMap<&str, &Arc<Segment>> =
            before.iter().flat_map(|before| &before.segments).map(|it| (&*it.reference.name, it)).collect();
        let segments = manifest.segments.iter().map(|reference| {
            let known = segments_before.get(&*reference.name).copied();
            known.cloned().unwrap_or_else(|| Arc::new(Segment::new(reference, &reader)))
        });
        let segments = segments.collect();
        let tables_before: HashMap<(&str, u64), &Arc<Table>> = before
            .iter()
            .flat_map(|before| &before.tables)
            .map(|it| ((&*it.reference.name, it.reference.position), it))
            .collect();
        let tables = manifest.tables.iter().map(|reference| {
            let known = tables_before.get(&(&*reference.name, reference.position)).copied();
            known.cloned().unwrap_or_else(|| Arc::new(Table::new(reference.clone(), reader.object(&reference.name))))
        });
        let tables = tables.collect();
        Ok(Self { manifest, reader, segments, runs, tables, settings, open_cost: Cost::default() })
    }

    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Labels, edge types and properties.
    pub fn schema(&self) -> &Schema {
        &self.manifest.schema
    }

    /// The way to its blocks.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// What opening it took.
    pub fn open_cost(&self) -> Cost {
        self.open_cost
    }

    /// How many ordinals of a label were given out: all its vertices have lower ones.
    pub fn ordinal_count(&self, label: LabelId) -> u64 {
        self.manifest.vertex_counts.get(usize::from(label.0)).map_or(0, |count| count.ordinals)
    }

    /// Whether the manifest's count of the edges of a type is exact. While several sorted runs have entries for it, or one deletes
    /// edges, the count includes edges that newer entries replace or delete: a commit does not read what it replaces.
    pub fn is_edge_count_exact(&self, edge_type: EdgeTypeId) -> bool {
        let runs = |kind| self.runs(kind).len();
        runs(SectionKind::Adjacency(edge_type, Direction::Out)) <= 1
            && runs(SectionKind::Removed(edge_type, Direction::Out)) == 0
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

async fn open_newest(
    reader: &Reader,
    settings: &OpenSettings,
    branch: &mut Branch,
) -> Result<(Manifest, Tails), EngineError> {
    let missing = || EngineError::no_graph(reader.store().url());
    let mut newest = versions::nearly_newest(reader, branch).await?.ok_or_else(missing)?;
    loop {
        let mut opening = branch.clone();
        let probe = versions::later(reader, newest.version, branch);
        // If it is the newest, as it usually is, its segments are open by the time that this is known.
        let tails = read_tails(reader, &newest, settings, &mut opening);
        let (newer, tails) = join(probe, tails).await;
        match newer? {
            Some(newer) => newest = newer,
            None => {
                branch.join([&opening]);
                return Ok((newest, tails?));
            }
        }
    }
}
