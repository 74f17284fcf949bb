//! One version: its segments, its tables, and the counts of its manifest.

use std::{collections::BTreeMap, sync::Arc};

use hoplake_format::{Direction, EdgeType, EdgeTypeId, FormatError, IndexId, LabelId, TableRef, segment::SectionKind};
use hoplake_storage::QueryContext;

use super::{
    findings::Findings,
    stored::{StoredObject, extents},
};
use crate::{EngineError, Snapshot, read::tables::EXTENT_BYTES};

/// Reads one version.
#[derive(Debug, Clone, Copy)]
pub(super) struct VersionCheck<'a> {
    pub(super) snapshot: &'a Arc<Snapshot>,
}

impl VersionCheck<'_> {
    /// Reads everything of this version that was not read before, and says whether all of it is intact.
    pub(super) async fn verify_into(self, found: &mut Findings, progress: &impl Fn(u64)) -> Result<bool, EngineError> {
        let mut segments_intact = true;
        let mut tables_intact = true;
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
                let kind = self.section_text(kind);
                let least = expected.start();
                let most = expected.end();
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
    pub(super) fn index_text(self, id: IndexId) -> String {
        let Some(index) = self.snapshot.manifest().index(id) else { return format!("number {id}") };
        let label = self.snapshot.schema().label(index.label).map_or("a label", |label| &label.name);
        format!("{label}.{}", index.property)
    }

    /// What a section holds, by the names of the schema.
    pub(super) fn section_text(self, kind: SectionKind) -> String {
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
