//! Reads everything and says whether it is whole: of one version ([`Snapshot::verify`]), or of a graph with all its versions
//! ([`verify_graph`]).
//!
//! Every object is read from end to end against its checksum in the manifest, then block by block, to name those that are
//! damaged; each is decoded, and what it says is held against the index, the schema and the counts.

mod findings;
mod graph;

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use hoplake_format::{
    Direction, EdgeType, EdgeTypeId, FormatError, Key, KeyType, LabelId, SegmentRef, TableRef,
    adjacency::{Block, Lists},
    checksum::{ObjectSeed, open_block},
    keys::decode_key_block,
    segment::{Firsts, IndexBlock, SectionKind, SectionRoot, decode_root},
};
use hoplake_storage::QueryContext;

use crate::{EngineError, Snapshot};

use findings::{BLOCKS_MAX, Findings};
pub use graph::{Damage, Verification, verify_graph};

/// What was read and found whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Verified {
    /// Objects.
    pub objects: u64,
    /// Bytes.
    pub bytes: u64,
    /// Blocks of keys and adjacency.
    pub blocks: u64,
}

/// Bytes that are read at a time.
const PIECE_BYTES: u64 = 8 << 20;

impl Snapshot {
    /// Reads everything of this version. `progress` is told the bytes read so far.
    ///
    /// # Errors
    /// [`EngineError::Format`] that names the first damaged object, section and block; the store's.
    pub async fn verify(self: &Arc<Self>, progress: impl Fn(u64)) -> Result<Verified, EngineError> {
        let mut found = Findings::default();
        self.verify_into(&mut found, &progress).await?;
        match found.damages.into_iter().next() {
            Some((_, damage)) => Err(damage),
            None => Ok(found.verified),
        }
    }

    /// Reads everything of this version that was not read before, and says whether all of it is whole.
    async fn verify_into(&self, found: &mut Findings, progress: &impl Fn(u64)) -> Result<bool, EngineError> {
        let (mut segments_intact, mut tables_intact) = (true, true);
        for segment in &self.manifest().segments {
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
        for table in &self.manifest().tables {
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
        found.objects(self.manifest().objects().into_keys());
        Ok(counted && tables_intact)
    }

    async fn checksum_of(&self, name: &str, range: Range<u64>) -> Result<u32, EngineError> {
        let mut checksum = 0;
        let mut position = range.start;
        while position < range.end {
            let end = range.end.min(position + PIECE_BYTES);
            let piece = self.reader().store().get_range(name, position..end).await?;
            checksum = crc32c::crc32c_append(checksum, &piece);
            position = end;
        }
        Ok(checksum)
    }

    /// Reads a segment, and says whether it is whole.
    async fn verify_segment(&self, segment: &SegmentRef, found: &mut Findings) -> Result<bool, EngineError> {
        let store = self.reader().store();
        let location = store.location(&segment.name);
        let checksum = self.checksum_of(&segment.name, 0..segment.end.length).await;
        let Some(checksum) = found.note(checksum)? else { return Ok(false) };
        let tail = store.get_range(&segment.name, segment.end.filters_position..segment.end.length).await?;
        let root = decode_root(&tail, &segment.end).map_err(EngineError::format(&location));
        let Some(root) = found.note(root)? else { return Ok(false) };
        let mut intact = true;
        for (section, named) in root.sections.iter().zip(&segment.sections) {
            let index =
                section.index_blocks(&segment.name, &segment.end, &tail).map_err(EngineError::format(&location));
            let Some(index) = found.note(index)? else { return Ok(false) };
            let checker = SectionChecker::new(self, section, named.continues.is_some());
            intact &= self.verify_section(segment, checker, &index, found).await?;
        }
        if intact && checksum != segment.checksum {
            let why = format!(
                "it fails its checksum outside its blocks (expected {:08x}, found {checksum:08x})",
                segment.checksum
            );
            found.note::<()>(Err(EngineError::format(location)(FormatError::corrupt("segment", why))))?;
            intact = false;
        }
        found.verified.bytes += if intact { segment.end.length } else { 0 };
        Ok(intact)
    }

    /// Reads the blocks of a section, and says whether all are whole. Behind one that is not, nobody knows how many items
    /// were before the next.
    async fn verify_section(
        &self,
        segment: &SegmentRef,
        mut checker: SectionChecker<'_>,
        index: &[IndexBlock],
        found: &mut Findings,
    ) -> Result<bool, EngineError> {
        let (section, store) = (checker.section, self.reader().store());
        let seed = ObjectSeed::of(&segment.name);
        let (mut items, mut number, mut damaged) = (Some(0), 0, 0);
        for index in index {
            let mut block = 0;
            while block < index.len() {
                let start = index.range(block).start;
                let until = index.partition_point(|block| index.range(block).end <= start + PIECE_BYTES);
                let blocks = block..until.max(block + 1);
                let end = index.range(blocks.end - 1).end;
                let piece = store.get_range(&segment.name, start..end).await;
                let Some(piece) = found.note(piece.map_err(EngineError::from))? else { return Ok(false) };
                for block in blocks.clone() {
                    let range = index.range(block);
                    let sealed = &piece[(range.start - start) as usize..(range.end - start) as usize];
                    let payload = open_block(seed, range.start, sealed);
                    let count = payload.and_then(|payload| checker.check(index.number(block), items, payload));
                    match count {
                        Ok(count) => items = items.map(|items| items + count),
                        Err(source) => {
                            (items, damaged) = (None, damaged + 1);
                            if damaged <= BLOCKS_MAX {
                                let (object, section) =
                                    (store.location(&segment.name), self.section_text(section.kind));
                                let location = format!("{object}, {section}, block {number}");
                                found.note::<()>(Err(EngineError::Format { location, source }))?;
                            }
                        }
                    }
                    found.verified.blocks += 1;
                    number += 1;
                }
                block = blocks.end;
            }
        }
        if number != section.block_count {
            let why = format!("it has {number} blocks and says {}", section.block_count);
            let location = format!("{}, {}", store.location(&segment.name), self.section_text(section.kind));
            found.note::<()>(Err(EngineError::format(location)(FormatError::corrupt("section", why))))?;
            return Ok(false);
        }
        if let Some(items) = items.filter(|items| *items != section.items) {
            let why = format!("it holds {items} items and says {}", section.items);
            let location = format!("{}, {}", store.location(&segment.name), self.section_text(section.kind));
            found.note::<()>(Err(EngineError::format(location)(FormatError::corrupt("section", why))))?;
            return Ok(false);
        }
        Ok(damaged == 0)
    }

    async fn verify_table(&self, table: &TableRef) -> Result<(), EngineError> {
        let location = self.reader().store().location(&table.name);
        let found = self.checksum_of(&table.name, table.position..table.position + table.length).await?;
        if found != table.checksum {
            let why = format!("it fails its checksum (expected {:08x}, found {found:08x})", table.checksum);
            return Err(EngineError::format(location)(FormatError::corrupt("table", why)));
        }
        Ok(())
    }

    /// The counts of the manifest against those of the sections.
    async fn verify_counts(&self) -> Result<(), EngineError> {
        let manifest = self.manifest();
        let mut items: BTreeMap<SectionKind, u64> = BTreeMap::new();
        for (_, section) in self.section_roots(&mut QueryContext::new().branch()).await? {
            *items.entry(section.kind).or_default() += section.items;
        }
        let vertices = |label: LabelId| manifest.vertex_counts.get(usize::from(label.0)).copied().unwrap_or_default();
        for (kind, found) in items {
            let expected = match kind {
                // Where nothing was changed, a key for each vertex; else a key may be there again, or no more.
                SectionKind::Keys(label) if self.runs(SectionKind::Tombstones(label)).is_empty() => {
                    let live = vertices(label).live();
                    if self.runs(kind).len() == 1 { live..=live } else { live..=vertices(label).ordinals }
                }
                SectionKind::Keys(label) => vertices(label).live()..=vertices(label).ordinals,
                SectionKind::Tombstones(label) => 0..=vertices(label).gone,
                SectionKind::Adjacency(edge_type, _) => {
                    let edges = manifest.edge_counts.get(usize::from(edge_type.0)).copied().unwrap_or_default();
                    edges..=edges
                }
                SectionKind::Removed(..) | SectionKind::Rows(_) => continue,
            };
            if !expected.contains(&found) {
                let (kind, least, most) = (self.section_text(kind), expected.start(), expected.end());
                let why = format!("{kind} are {found}, and the manifest says {least} to {most}");
                return Err(EngineError::format(self.reader().store().url())(FormatError::corrupt("manifest", why)));
            }
        }
        Ok(())
    }
}

impl Snapshot {
    /// What a section holds, by the names of the schema.
    fn section_text(&self, kind: SectionKind) -> String {
        let label = |label: LabelId| self.schema().label(label).map_or("a label", |label| &label.name).to_owned();
        let edges = |edge_type: EdgeTypeId, direction: Direction| match self.schema().edge_type(edge_type) {
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
        }
    }
}

/// Holds what a block says against its section, the schema and the blocks before it.
struct SectionChecker<'a> {
    snapshot: &'a Snapshot,
    section: &'a SectionRoot,
    /// The edges of the section in pieces before this one; unknown before the first block of one that goes on.
    edges_before: Option<u64>,
    lists: Lists,
}

impl<'a> SectionChecker<'a> {
    fn new(snapshot: &'a Snapshot, section: &'a SectionRoot, goes_on: bool) -> Self {
        Self { snapshot, section, edges_before: (!goes_on).then_some(0), lists: Lists::default() }
    }

    /// Checks a block that begins with `first_source` and at item `first_item` of the piece, if that is known, and returns how
    /// many items it has.
    fn check(&mut self, first_source: u64, first_item: Option<u64>, payload: &[u8]) -> Result<u64, FormatError> {
        let wrong = |why: String| Err(FormatError::corrupt("block", why));
        match (self.section.kind, &self.section.firsts) {
            (SectionKind::Keys(label) | SectionKind::Tombstones(label), Firsts::Numbers(_) | Firsts::Texts(_)) => {
                let key_type = self.snapshot.schema().label(label).map_or(KeyType::Int64, |label| label.key_type);
                let entries = decode_key_block(payload, key_type)?;
                let count = self.snapshot.ordinal_count(label);
                match entries.iter().find(|(_, ordinal)| *ordinal >= count) {
                    Some((key, ordinal)) => wrong(format!("key {key} stands for vertex {ordinal} of {count}")),
                    None => Ok(entries.len() as u64),
                }
            }
            (SectionKind::Rows(label), Firsts::Numbers(_)) => {
                let entries = decode_key_block(payload, KeyType::Int64)?;
                let count = self.snapshot.ordinal_count(label);
                let outside = |key: &Key| !matches!(key, Key::Int64(ordinal) if (0..count as i64).contains(ordinal));
                match entries.iter().find(|(key, _)| outside(key)) {
                    Some((key, row)) => wrong(format!("row {row} is of vertex {key} of {count}")),
                    None => Ok(entries.len() as u64),
                }
            }
            (
                SectionKind::Adjacency(edge_type, direction) | SectionKind::Removed(edge_type, direction),
                Firsts::Numbers(_),
            ) => {
                let block = Block::parse(payload)?;
                let edges_before = *self.edges_before.get_or_insert(block.first_edge());
                let first_item = first_item.map_or(block.first_edge(), |item| edges_before + item);
                if (block.first_source(), block.first_edge()) != (first_source, first_item) {
                    return wrong(format!("it begins at source {}, edge {}", block.first_source(), block.first_edge()));
                }
                block.decode_all(&mut self.lists)?;
                let far = self.snapshot.schema().edge_type(edge_type).map(|edge| edge.far(direction));
                let count = far.map_or(0, |far| self.snapshot.ordinal_count(far));
                match self.lists.targets.iter().find(|target| **target >= count) {
                    Some(target) => wrong(format!("it leads to vertex {target} of {count}")),
                    None => Ok(block.edges_len() as u64),
                }
            }
            (kind, _) => wrong(format!("{kind:?} is indexed as something else")),
        }
    }
}
