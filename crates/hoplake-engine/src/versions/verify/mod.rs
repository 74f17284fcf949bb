//! Reads everything and says whether it is intact: of one version ([`verify_version`]), or of a graph with all its versions
//! ([`verify_graph`]).
//!
//! Every object is read from end to end, once, against its checksum in the manifest, and has to end there (`lengths`). The blocks of segments are checked by
//! themselves as they come, to name those that are damaged; each is decoded, and what it says is held against the index, the
//! schema and the counts. Nothing comes from a cache: what counts is what the store has. Of one version, and of the newest of a graph,
//! property indexes are then held against the rows (`indexes`).

mod blocks;
mod findings;
mod graph;
mod indexes;
mod lengths;
mod segment;
pub(crate) mod stored;

use std::{collections::BTreeMap, sync::Arc};

use hoplake_format::{Direction, EdgeType, EdgeTypeId, FormatError, IndexId, LabelId, TableRef, segment::SectionKind};
use hoplake_storage::QueryContext;

use crate::{EngineError, Snapshot, read::scan::EXTENT_BYTES};

use findings::Findings;
pub use graph::{Damage, Verification, verify_graph};
use lengths::Lengths;
use stored::{StoredObject, extents};

/// What was read and found intact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Verified {
    /// Objects.
    pub objects: u64,
    /// Bytes.
    pub bytes: u64,
    /// Blocks of keys and adjacency.
    pub blocks: u64,
}

/// Reads everything of a version. `progress` is called with the bytes read so far.
///
/// # Errors
/// [`EngineError::Format`] that names the first damaged object, section and block; the store's.
pub async fn verify_version(snapshot: &Arc<Snapshot>, progress: impl Fn(u64)) -> Result<Verified, EngineError> {
    let check = VersionCheck { snapshot };
    let mut found = Findings::default();
    if check.verify_into(&mut found, &progress).await? {
        found.note(check.verify_indexes().await)?;
    }
    let mut lengths = Lengths::default();
    lengths.add(snapshot.manifest());
    lengths.check(snapshot.reader().store(), &mut found).await?;
    match found.damages.into_iter().next() {
        Some((_, damage)) => Err(damage),
        None => Ok(found.verified),
    }
}

/// Reads one version.
#[derive(Debug, Clone, Copy)]
struct VersionCheck<'a> {
    snapshot: &'a Arc<Snapshot>,
}

impl VersionCheck<'_> {
    /// Reads everything of this version that was not read before, and says whether all of it is intact.
    async fn verify_into(self, found: &mut Findings, progress: &impl Fn(u64)) -> Result<bool, EngineError> {
        let (mut segments_intact, mut tables_intact) = (true, true);
        for segment in &self.snapshot.manifest().segments {
            segments_intact &= match found.known(&segment.name, 0) {
                Some(intact) => intact,
                None => {
                    let intact = self.verify_segment(segment, found).await?;
                    found.learn(&segment.name, 0, intact);
                    intact
                }
            };
            progress(found.verified.bytes);
        }
        for table in &self.snapshot.manifest().tables {
            // Behind a segment, and so at no position that a segment has.
            let position = table.position + table.length;
            tables_intact &= match found.known(&table.name, position) {
                Some(intact) => intact,
                None => {
                    let verified = self.verify_table(table).await;
                    let intact = found.note(verified)?.is_some();
                    found.verified.bytes += if intact { table.length } else { 0 };
                    found.learn(&table.name, position, intact);
                    intact
                }
            };
            progress(found.verified.bytes);
        }
        // Without the indexes there is nothing to count.
        let counted = segments_intact && found.note(self.verify_counts().await)?.is_some();
        found.objects(self.snapshot.manifest().objects().into_keys());
        Ok(counted && tables_intact)
    }

    async fn verify_table(self, table: &TableRef) -> Result<(), EngineError> {
        let mut found = self.checksum_of(table).await?;
        if found != table.checksum {
            // Once more: the answer may have been damaged on its way.
            found = self.checksum_of(table).await?;
        }
        if found != table.checksum {
            let why = format!("it fails its checksum (expected {:08x}, found {found:08x})", table.checksum);
            let location = self.snapshot.reader().store().location(&table.name);
            return Err(EngineError::format(location)(FormatError::corrupt("table", why)));
        }
        Ok(())
    }

    async fn checksum_of(self, table: &TableRef) -> Result<u32, EngineError> {
        let within = table.position..table.position + table.length;
        let extents = extents(std::iter::empty(), within, EXTENT_BYTES);
        let mut stored = StoredObject::new(self.snapshot.reader().store(), &table.name, extents);
        let mut checksum = 0;
        while let Some((_, bytes)) = stored.next().await? {
            checksum = crc32c::crc32c_append(checksum, &bytes);
        }
        Ok(checksum)
    }

    /// The counts of the manifest against those of the sections.
    async fn verify_counts(self) -> Result<(), EngineError> {
        let manifest = self.snapshot.manifest();
        let mut items: BTreeMap<SectionKind, u64> = BTreeMap::new();
        for (_, section) in self.snapshot.section_roots(&mut QueryContext::new().branch()).await? {
            *items.entry(section.kind).or_default() += section.items;
        }
        let vertices = |label: LabelId| manifest.vertex_counts.get(usize::from(label.0)).copied().unwrap_or_default();
        for (kind, found) in items {
            let expected = match kind {
                // Where nothing was changed, a key for each vertex; else a key may be there again, or no more.
                SectionKind::Keys(label)
                    if self.snapshot.sections().runs(SectionKind::Tombstones(label)).is_empty() =>
                {
                    let live = vertices(label).live();
                    if self.snapshot.sections().runs(kind).len() == 1 {
                        live..=live
                    } else {
                        live..=vertices(label).ordinals
                    }
                }
                SectionKind::Keys(label) => vertices(label).live()..=vertices(label).ordinals,
                SectionKind::Tombstones(label) => 0..=vertices(label).gone,
                SectionKind::Adjacency(edge_type, _) => {
                    let edges = manifest.edge_counts.get(usize::from(edge_type.0)).copied().unwrap_or_default();
                    edges..=edges
                }
                SectionKind::Removed(..) | SectionKind::Rows(_) => continue,
                // What they say is held against the rows.
                SectionKind::Values(_) | SectionKind::RemovedValues(_) => continue,
            };
            if !expected.contains(&found) {
                let (kind, least, most) = (self.section_text(kind), expected.start(), expected.end());
                let why = format!("{kind} are {found}, and the manifest says {least} to {most}");
                return Err(EngineError::format(self.snapshot.reader().store().url())(FormatError::corrupt(
                    "manifest", why,
                )));
            }
        }
        Ok(())
    }
}

impl VersionCheck<'_> {
    /// An index as a user names it, such as `airport.code`.
    fn index_text(self, id: IndexId) -> String {
        let Some(index) = self.snapshot.manifest().index(id) else { return format!("number {id}") };
        let label = self.snapshot.schema().label(index.label).map_or("a label", |label| &label.name);
        format!("{label}.{}", index.property)
    }

    /// What a section holds, by the names of the schema.
    fn section_text(self, kind: SectionKind) -> String {
        let label =
            |label: LabelId| self.snapshot.schema().label(label).map_or("a label", |label| &label.name).to_owned();
        let edges = |edge_type: EdgeTypeId, direction: Direction| match self.snapshot.schema().edge_type(edge_type) {
            Some(EdgeType { label: edge, source, target, .. }) => {
                let way = if direction == Direction::Out { "out" } else { "in" };
                format!("edges {} -{edge}-> {}, {way}", label(*source), label(*target))
            }
            None => "edges of a type".to_owned(),
        };
        match kind {
            SectionKind::Keys(of) => format!("keys of {}", label(of)),
            SectionKind::Tombstones(of) => format!("removed vertices of {}", label(of)),
            SectionKind::Rows(of) => format!("changed rows of {}", label(of)),
            SectionKind::Adjacency(edge_type, direction) => edges(edge_type, direction),
            SectionKind::Removed(edge_type, direction) => format!("removed {}", edges(edge_type, direction)),
            SectionKind::Values(index) => format!("index {}", self.index_text(index)),
            SectionKind::RemovedValues(index) => format!("removed values of index {}", self.index_text(index)),
        }
    }
}
