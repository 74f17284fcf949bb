//! An open snapshot: the manifest, the resident indexes and the way to the blocks.
//!
//! Opening takes two waves. The first reads the hint, a copy of some manifest, usually the newest. The
//! second asks whether a newer version exists and, in parallel, reads the ends of the segments that the
//! hint names. Only if the hint is stale or lost does it take more.

pub(crate) mod sections;
mod settings;

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use futures::future::{BoxFuture, join};
use hoplake_format::{
    Direction, EdgeTypeId, LabelId, Manifest, Schema, Slot, VersionRange, VertexId,
    segment::{SectionKind, SectionRoot},
};
use hoplake_storage::{Branch, Cost, QueryContext, Reader};

use sections::{Sections, SegmentIndex, Tails, read_tails};

use crate::{EngineError, owner::Owner, read::tables::Tables, versions};

pub use settings::OpenSettings;

/// One version of a graph, open for reading.
#[derive(Debug)]
pub struct Snapshot {
    manifest: Manifest,
    reader: Reader,
    sections: Sections,
    tables: Tables,
    settings: OpenSettings,
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
            for (segment, tail) in snapshot.sections.segments.iter().zip(tails) {
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
        for segment in &next.sections.segments {
            if let Some(bytes) = at_hand.get(&segment.reference.name) {
                next.sections.take_at_hand(segment, bytes)?;
            }
        }
        next.sections.read_new_ends(&next.manifest, branch).await?;
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
        next.sections.read_new_ends(&next.manifest, branch).await?;
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

    pub(crate) fn assemble(
        manifest: Manifest,
        reader: Reader,
        settings: OpenSettings,
        before: Option<&Self>,
    ) -> Result<Self, EngineError> {
        let sections = Sections::new(&manifest, &reader, &settings, before.map(|before| &before.sections))?;
        let tables = Tables::new(&manifest, &reader, before.map(|before| &before.tables));
        Ok(Self { manifest, reader, sections, tables, settings, open_cost: Cost::default() })
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

    /// Whether a vertex exists, or did before it was deleted.
    pub fn has_vertex(&self, vertex: VertexId) -> bool {
        vertex.ordinal() < self.ordinal_count(vertex.label())
    }

    /// Whether the manifest's count of the edges of a type is exact. While several sorted runs have entries for it, or one deletes
    /// edges, the count includes edges that newer entries replace or delete: a commit does not read what it replaces.
    pub fn is_edge_count_exact(&self, edge_type: EdgeTypeId) -> bool {
        let runs = |kind| self.sections.runs(kind).len();
        runs(SectionKind::Adjacency(edge_type, Direction::Out)) <= 1
            && runs(SectionKind::Removed(edge_type, Direction::Out)) == 0
    }

    /// Its index.
    pub(crate) fn sections(&self) -> &Sections {
        &self.sections
    }

    /// Its tables.
    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }

    /// What the segments say of all sections, or pieces of them, with the versions whose changes they hold.
    ///
    /// # Errors
    /// The store's, if some roots are not in memory.
    pub fn section_roots<'a>(
        &'a self,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Vec<(VersionRange, &'a SectionRoot)>, EngineError>> {
        Box::pin(self.sections.roots(branch))
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
