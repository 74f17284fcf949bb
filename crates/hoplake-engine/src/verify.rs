//! Reads everything of a version and says whether it is whole.
//!
//! Every object is read from end to end against its checksum in the manifest. Where that fails, the blocks
//! are checked one by one, to name the first that is damaged. Then every block is decoded, and what it
//! says is held against the index, the schema and the counts.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use crate::{EngineError, Snapshot};
use hoplake_format::{
    FormatError, Key, KeyType, LabelId, SegmentRef, TableRef,
    adjacency::{Block, Lists},
    checksum::{ObjectSeed, open_block},
    keys::decode_key_block,
    segment::{BlockFirsts, SectionIndex, SectionKind, decode_segment_index},
};
use hoplake_storage::QueryContext;

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
        let mut verified = Verified::default();
        for segment in &self.manifest().segments {
            self.verify_segment(segment, &mut verified).await?;
            progress(verified.bytes);
        }
        for table in &self.manifest().tables {
            self.verify_table(table, &mut verified).await?;
            progress(verified.bytes);
        }
        self.verify_counts().await?;
        verified.objects = self.manifest().objects().len() as u64;
        Ok(verified)
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

    async fn verify_segment(&self, segment: &SegmentRef, verified: &mut Verified) -> Result<(), EngineError> {
        let store = self.reader().store();
        let place = store.place(&segment.name);
        let found = self.checksum_of(&segment.name, 0..segment.end.length).await?;
        let tail = store.get_range(&segment.name, segment.end.filters_position..segment.end.length).await?;
        let sections = decode_segment_index(&tail, &segment.end).map_err(EngineError::format(&place))?;
        for section in &sections {
            self.verify_section(segment, section, verified).await?;
        }
        if found != segment.checksum {
            let why = format!(
                "it fails its checksum outside its blocks (expected {:08x}, found {found:08x})",
                segment.checksum
            );
            return Err(EngineError::format(place)(FormatError::corrupt("segment", why)));
        }
        verified.bytes += segment.end.length;
        Ok(())
    }

    async fn verify_section(
        &self,
        segment: &SegmentRef,
        section: &SectionIndex,
        verified: &mut Verified,
    ) -> Result<(), EngineError> {
        let store = self.reader().store();
        let seed = ObjectSeed::of(&segment.name);
        let (mut items, mut block) = (0, 0);
        let mut checker = SectionChecker::new(self, section);
        while block < section.block_count() {
            let start = section.positions[block];
            let until = section.positions.partition_point(|position| *position <= start + PIECE_BYTES);
            let end_block = (until - 1).max(block + 1);
            let piece = store.get_range(&segment.name, start..section.positions[end_block]).await?;
            for number in block..end_block {
                let range = section.block_range(number);
                let sealed = &piece[(range.start - start) as usize..(range.end - start) as usize];
                let payload = open_block(seed, range.start, sealed);
                let count = payload.and_then(|payload| checker.check(number, items, payload));
                let place = || format!("{}, {:?}, block {number}", store.place(&segment.name), section.kind);
                items += count.map_err(|source| EngineError::Format { place: place(), source })?;
                verified.blocks += 1;
            }
            block = end_block;
        }
        if items != section.items {
            let why = format!("it holds {items} items and says {}", section.items);
            let place = format!("{}, {:?}", store.place(&segment.name), section.kind);
            return Err(EngineError::format(place)(FormatError::corrupt("section", why)));
        }
        Ok(())
    }

    async fn verify_table(&self, table: &TableRef, verified: &mut Verified) -> Result<(), EngineError> {
        let place = self.reader().store().place(&table.name);
        let found = self.checksum_of(&table.name, table.position..table.position + table.length).await?;
        if found != table.checksum {
            let why = format!("it fails its checksum (expected {:08x}, found {found:08x})", table.checksum);
            return Err(EngineError::format(place)(FormatError::corrupt("table", why)));
        }
        verified.bytes += table.length;
        Ok(())
    }

    /// The counts of the manifest against those of the sections.
    async fn verify_counts(&self) -> Result<(), EngineError> {
        let manifest = self.manifest();
        let mut items: BTreeMap<SectionKind, u64> = BTreeMap::new();
        for (_, index) in self.section_indexes(&QueryContext::new()).await? {
            *items.entry(index.kind).or_default() += index.items;
        }
        let vertices = |label: LabelId| manifest.vertex_counts.get(usize::from(label.0)).copied().unwrap_or_default();
        for (kind, found) in items {
            let expected = match kind {
                // Where nothing was changed, a key for each vertex; else a key may be there again, or no more.
                SectionKind::Keys(label) if self.places(SectionKind::Gone(label)).is_empty() => {
                    let live = vertices(label).live();
                    if self.places(kind).len() == 1 { live..=live } else { live..=vertices(label).ordinals }
                }
                SectionKind::Keys(label) => vertices(label).live()..=vertices(label).ordinals,
                SectionKind::Gone(label) => 0..=vertices(label).gone,
                SectionKind::Adjacency(edge_type, _) => {
                    let edges = manifest.edge_counts.get(usize::from(edge_type.0)).copied().unwrap_or_default();
                    edges..=edges
                }
                SectionKind::Removed(..) | SectionKind::Rows(_) => continue,
            };
            if !expected.contains(&found) {
                let why = format!("{kind:?} holds {found} items and the manifest says {expected:?}");
                return Err(EngineError::format(self.reader().store().url())(FormatError::corrupt("manifest", why)));
            }
        }
        Ok(())
    }
}

/// Holds what a block says against its section, the schema and the blocks before it.
struct SectionChecker<'a> {
    snapshot: &'a Snapshot,
    section: &'a SectionIndex,
    lists: Lists,
}

impl<'a> SectionChecker<'a> {
    fn new(snapshot: &'a Snapshot, section: &'a SectionIndex) -> Self {
        Self { snapshot, section, lists: Lists::default() }
    }

    /// Checks a block that begins at item `first_item` and returns how many items it has.
    fn check(&mut self, number: usize, first_item: u64, payload: &[u8]) -> Result<u64, FormatError> {
        let wrong = |why: String| Err(FormatError::corrupt("block", why));
        match (self.section.kind, &self.section.firsts) {
            (
                SectionKind::Keys(label) | SectionKind::Gone(label),
                BlockFirsts::Int64Keys(_) | BlockFirsts::StringKeys(_),
            ) => {
                let key_type = self.snapshot.schema().label(label).map_or(KeyType::Int64, |label| label.key_type);
                let entries = decode_key_block(payload, key_type)?;
                let count = self.snapshot.ordinal_count(label);
                match entries.iter().find(|(_, ordinal)| *ordinal >= count) {
                    Some((key, ordinal)) => wrong(format!("key {key} stands for vertex {ordinal} of {count}")),
                    None => Ok(entries.len() as u64),
                }
            }
            (SectionKind::Rows(label), BlockFirsts::Int64Keys(_)) => {
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
                BlockFirsts::Sources(firsts),
            ) => {
                let block = Block::parse(payload)?;
                if (block.first_source(), block.first_edge()) != (firsts[number], first_item) {
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
