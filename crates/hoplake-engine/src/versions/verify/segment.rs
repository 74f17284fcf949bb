//! A segment: one pass over its bytes, for its checksum and for its blocks.
//!
//! The end comes first, as it says where blocks are; then the rest from the beginning on ([`super::stored`]). A checksum of the
//! whole says that something is damaged, and those of blocks say what. What fails a check is read once more: an answer may have
//! been damaged on its way, and only what the store itself has is damage.

use std::ops::Range;

use bytes::Bytes;
use hoplake_format::{
    FormatError, KeyType, LabelId, SegmentRef, VertexId,
    checksum::{ObjectSeed, open_block},
    segment::{IndexBlock, SectionKind, SectionRoot, decode_root},
};

use super::{
    blocks::{Allowed, BlockChecker},
    findings::{BLOCKS_MAX, Findings},
    stored::{Extent, StoredObject, extents},
    version::VersionCheck,
};
use crate::{EngineError, read::tables::EXTENT_BYTES};

/// Where the blocks of a segment are, as its end says.
struct Layout {
    sections: Vec<(SectionRoot, Vec<IndexBlock>)>,
}

/// A block, as the index has it.
#[derive(Clone)]
struct Indexed {
    section: usize,
    /// The source or the number that it begins with; nothing, of a block of texts.
    first: u64,
    range: Range<u64>,
}

impl Layout {
    /// Reads the end of a segment.
    fn read(segment: &SegmentRef, tail: &Bytes) -> Result<Self, FormatError> {
        let mut sections = Vec::new();
        let mut position = 0;
        for section in decode_root(tail, &segment.end)?.sections {
            let blocks = section.blocks();
            // `extents` relies on blocks that ascend and do not overlap.
            if blocks.start < position {
                let why = format!("the blocks of {:?} begin before those of the section before it end", section.kind);
                return Err(FormatError::corrupt("segment root", why));
            }
            position = blocks.end;
            let index = section.index_blocks(&segment.name, &segment.end, tail)?;
            sections.push((section, index));
        }
        Ok(Self { sections })
    }

    /// All blocks, in the order of their bytes.
    fn blocks(&self) -> impl Iterator<Item = Indexed> + Clone + '_ {
        let indexes = self.sections.iter().enumerate();
        let indexes = indexes.flat_map(|(section, (_, indexes))| indexes.iter().map(move |index| (section, index)));
        indexes.flat_map(|(section, index)| {
            let block = move |block| Indexed { section, first: index.number(block), range: index.range(block) };
            (0..index.len()).map(block)
        })
    }
}

impl VersionCheck<'_> {
    /// Reads a segment, and says whether it is intact.
    pub(super) async fn verify_segment(self, segment: &SegmentRef, found: &mut Findings) -> Result<bool, EngineError> {
        let store = self.snapshot.reader().store();
        let location = store.location(&segment.name);
        let end = segment.end.filters_position;
        let read = match self.read_end(segment).await {
            Err(EngineError::Format { .. }) => self.read_end(segment).await,
            read => read,
        };
        let Some((tail, layout)) = found.note(read)? else { return Ok(false) };
        let named = layout.sections.iter().zip(&segment.sections);
        let check = |((section, _), named): (&(SectionRoot, _), &hoplake_format::SectionRef)| {
            let location = format!("{location}, {}", self.section_text(section.kind));
            SectionCheck::new(location, section, self.allowed(section.kind), named.continues.is_some())
        };
        let mut sections: Vec<_> = named.map(check).collect();
        let mut checksum = 0;
        let mut blocks = layout.blocks();
        let ranges = layout.blocks().map(|block| block.range);
        let mut stored = StoredObject::new(store, &segment.name, extents(ranges, 0..end, EXTENT_BYTES));
        loop {
            let Some(next) = found.note(stored.next().await)? else { return Ok(false) };
            let Some((extent, bytes)) = next else { break };
            let within: Vec<_> = blocks.by_ref().take(extent.blocks).collect();
            let opened = self.open_all(segment, &extent, bytes, &within).await;
            let Some((bytes, payloads)) = found.note(opened)? else { return Ok(false) };
            checksum = crc32c::crc32c_append(checksum, &bytes);
            for (block, payload) in within.iter().zip(payloads) {
                if let Some(section) = sections.get_mut(block.section) {
                    section.check(block.first, payload, found)?;
                }
            }
        }
        let mut intact = true;
        for section in sections {
            intact &= section.end(found)?;
        }
        // A damaged block explains a wrong checksum, which is then not a second damage.
        intact = intact && self.verify_checksum(segment, checksum, &tail, found).await?;
        found.verified.bytes += if intact { segment.end.length } else { 0 };
        Ok(intact)
    }

    /// The end of a segment, and where its blocks are.
    async fn read_end(self, segment: &SegmentRef) -> Result<(Bytes, Layout), EngineError> {
        let store = self.snapshot.reader().store();
        let tail = store.get_range(&segment.name, segment.end.filters_position..segment.end.length).await?;
        let layout = Layout::read(segment, &tail).map_err(EngineError::format(store.location(&segment.name)))?;
        Ok((tail, layout))
    }

    /// Whether a segment has the checksum that the manifest names, by that of its blocks and by its end.
    async fn verify_checksum(
        self,
        segment: &SegmentRef,
        of_blocks: u32,
        tail: &Bytes,
        found: &mut Findings,
    ) -> Result<bool, EngineError> {
        let expected = segment.checksum;
        let store = self.snapshot.reader().store();
        let mut checksum = crc32c::crc32c_append(of_blocks, tail);
        if checksum != expected {
            // Filters have checksums of their own, but nothing here has looked at those.
            let again = store.get_range(&segment.name, segment.end.filters_position..segment.end.length).await;
            let Some(again) = found.note(again.map_err(EngineError::from))? else { return Ok(false) };
            checksum = crc32c::crc32c_append(of_blocks, &again);
        }
        if checksum == expected {
            return Ok(true);
        }
        let why = format!("it fails its checksum outside its blocks (expected {expected:08x}, found {checksum:08x})");
        let location = store.location(&segment.name);
        found.note::<()>(Err(EngineError::format(location)(FormatError::corrupt("segment", why))))?;
        Ok(false)
    }

    /// The bytes of an extent and the payloads of its blocks, from a second answer if a block of the first is damaged.
    async fn open_all(
        self,
        segment: &SegmentRef,
        extent: &Extent,
        bytes: Bytes,
        blocks: &[Indexed],
    ) -> Result<(Bytes, Vec<Result<Bytes, FormatError>>), EngineError> {
        let seed = ObjectSeed::of(&segment.name);
        let open = |bytes: &Bytes| -> Vec<_> {
            let of_block = |range: &Range<u64>| {
                let start = extent.range.start;
                let sealed = bytes.slice((range.start - start) as usize..(range.end - start) as usize);
                open_block(seed, range.start, &sealed).map(|payload| sealed.slice_ref(payload))
            };
            blocks.iter().map(|block| of_block(&block.range)).collect()
        };
        let payloads = open(&bytes);
        if payloads.iter().all(Result::is_ok) {
            return Ok((bytes, payloads));
        }
        // Whatever is damaged now is damaged in the store.
        let again = self.snapshot.reader().store().get_range(&segment.name, extent.range.clone()).await?;
        let payloads = open(&again);
        Ok((again, payloads))
    }

    /// What the blocks of a section may hold, by the schema and the counts of the manifest.
    fn allowed(self, kind: SectionKind) -> Allowed {
        let key_type =
            |label: LabelId| self.snapshot.schema().label(label).map_or(KeyType::Int64, |label| label.key_type);
        let (key_type, ordinals) = match kind {
            SectionKind::Keys(label) | SectionKind::Tombstones(label) | SectionKind::Rows(label) => {
                (key_type(label), self.snapshot.ordinal_count(label))
            }
            SectionKind::Adjacency(edge_type, direction) | SectionKind::Removed(edge_type, direction) => {
                // Sources ascend as the index says; targets are what a reader follows, and they are of the far label.
                let far = self.snapshot.schema().edge_type(edge_type).map(|edge| edge.far(direction));
                (KeyType::Int64, far.map_or(0, |far| self.snapshot.ordinal_count(far)))
            }
            SectionKind::Values(index) | SectionKind::RemovedValues(index) => {
                let label = self.snapshot.manifest().index(index).map(|index| index.label);
                (KeyType::String, label.map_or(VertexId::ORDINAL_MAX, |label| self.snapshot.ordinal_count(label)))
            }
        };
        Allowed { kind, key_type, ordinals }
    }
}

/// A section of a segment, as far as it was checked.
struct SectionCheck {
    /// Where it is, for messages.
    location: String,
    blocks_expected: u64,
    items_expected: u64,
    checker: BlockChecker,
    blocks: u64,
    damaged: u64,
}

impl SectionCheck {
    fn new(location: String, section: &SectionRoot, allowed: Allowed, goes_on: bool) -> Self {
        let checker = BlockChecker::new(allowed, goes_on);
        let blocks_expected = section.block_count;
        let items_expected = section.items;
        Self { location, blocks_expected, items_expected, checker, blocks: 0, damaged: 0 }
    }

    /// Takes its next block, and notes what is wrong with it.
    fn check(
        &mut self,
        first: u64,
        payload: Result<Bytes, FormatError>,
        found: &mut Findings,
    ) -> Result<(), EngineError> {
        let payload = payload.as_deref().map_err(Clone::clone);
        if let Err(source) = self.checker.check(first, payload) {
            self.damaged += 1;
            // Where all is damaged, a few blocks say as much as all.
            if self.damaged <= BLOCKS_MAX {
                let location = format!("{}, block {}", self.location, self.blocks);
                found.note::<()>(Err(EngineError::Format { location, source }))?;
            }
        }
        found.verified.blocks += 1;
        self.blocks += 1;
        Ok(())
    }

    /// Whether it is intact: it has no damaged block, and as much as its root says.
    fn end(self, found: &mut Findings) -> Result<bool, EngineError> {
        let Self { blocks, blocks_expected, items_expected, .. } = self;
        let why = match self.checker.items() {
            _ if blocks != blocks_expected => format!("it has {blocks} blocks and says {blocks_expected}"),
            Some(items) if items != items_expected => format!("it holds {items} items and says {items_expected}"),
            _ => return Ok(self.damaged == 0),
        };
        found.note::<()>(Err(EngineError::format(self.location)(FormatError::corrupt("section", why))))?;
        Ok(false)
    }
}
