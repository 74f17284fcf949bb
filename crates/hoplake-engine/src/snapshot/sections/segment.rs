//! Segments, and what is in memory of their indexes.

use std::{
    ops::Range,
    sync::{OnceLock, atomic::AtomicBool},
};

use bytes::Bytes;
use hoplake_format::{
    FormatError, Key, SegmentRef,
    checksum::{ObjectSeed, open_block},
    segment::{IndexBlock, IndexEntry, SectionRoot, decode_root, hash_of_source},
};
use hoplake_storage::{BlockRequest, Check, Object, Reader};
use tokio::sync::OnceCell;

use super::lazy_filter::LazyFilter;
use crate::EngineError;

/// An object of sections.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) reference: SegmentRef,
    pub(crate) object: Object,
    index: OnceCell<SegmentIndex>,
    /// For each section, whether all of it is read, or being read, for its being small.
    pub(crate) read_in_full: Vec<AtomicBool>,
}

/// What is known of a segment's sections.
#[derive(Debug)]
pub(crate) struct SegmentIndex(Vec<SectionIndex>);

/// The root of a section, and which of its index blocks and filters are in memory.
#[derive(Debug)]
struct SectionIndex {
    root: SectionRoot,
    parts: Vec<IndexPart>,
}

#[derive(Debug, Default)]
struct IndexPart {
    block: OnceLock<IndexBlock>,
    filter: LazyFilter,
}

impl Segment {
    pub(crate) fn new(reference: &SegmentRef, reader: &Reader) -> Self {
        Self {
            reference: reference.clone(),
            object: reader.object(&reference.name),
            index: OnceCell::new(),
            read_in_full: reference.sections.iter().map(|_| AtomicBool::new(false)).collect(),
        }
    }

    /// The name that the manifest gives it.
    pub(crate) fn name(&self) -> &str {
        &self.reference.name
    }

    /// Whether its root is in memory.
    pub(crate) fn is_resident(&self) -> bool {
        self.index.initialized()
    }

    /// Takes its index; if it has one, that stays, as both are the same.
    pub(crate) fn set(&self, index: SegmentIndex) {
        let _ = self.index.set(index);
    }

    /// Its index, which `read` reads if nobody has.
    pub(super) async fn get_or_read(
        &self,
        read: impl Future<Output = Result<SegmentIndex, EngineError>>,
    ) -> Result<(), EngineError> {
        self.index.get_or_try_init(|| read).await.map(drop)
    }

    /// Its sections, if its root is in memory.
    pub(crate) fn sections(&self) -> Option<impl Iterator<Item = Section<'_>> + Clone> {
        let index = self.index.get()?;
        Some(index.0.iter().map(|index| Section { object: &self.object, index }))
    }

    /// One of its sections, if its root is in memory.
    pub(crate) fn section(&self, number: usize) -> Option<Section<'_>> {
        Some(Section { object: &self.object, index: self.index.get()?.0.get(number)? })
    }
}

impl SegmentIndex {
    /// Reads the end of a segment: the root, and those index blocks and filters that are in `tail`.
    pub(crate) fn decode(reference: &SegmentRef, tail: &Bytes, url: &str) -> Result<Self, EngineError> {
        let failed = || EngineError::format(format!("{url}/{}", reference.name));
        let root = decode_root(tail, &reference.end).map_err(failed())?;
        let named = reference.sections.iter().map(|section| (section.kind, &section.continues));
        let begins_as_named = |section: &SectionRoot, first: &Option<_>| first.is_none() || section.first(0) == *first;
        // Plans index sections by their number in the manifest, and find pieces by the first items there: if the segment disagreed,
        // look-ups would miss what exists.
        let as_named = root.sections.len() == named.len()
            && root.sections.iter().zip(named).all(|(section, (kind, first))| {
                section.kind == kind && !section.index.is_empty() && begins_as_named(section, first)
            });
        if !as_named {
            let why = "its sections are not those that the manifest names";
            return Err(failed()(FormatError::corrupt("segment root", why)));
        }
        let tail_position = reference.end.length - tail.len() as u64;
        let seed = ObjectSeed::of(&reference.name);
        let sealed = |range: &Range<u64>| {
            // Filters and index blocks before the part that was read stay absent until they are asked for.
            let start = range.start.checked_sub(tail_position)? as usize;
            tail.get(start..start + (range.end - range.start) as usize)
        };
        let mut sections = Vec::with_capacity(root.sections.len());
        for root in root.sections {
            let parts: Vec<_> = root.index.iter().map(|_| IndexPart::default()).collect();
            let index = SectionIndex { root, parts };
            for (number, (entry, part)) in index.root.index.iter().zip(&index.parts).enumerate() {
                if let Some(sealed) = sealed(&entry.range) {
                    // A copy: the slice would keep all of the end in memory.
                    let payload = open_block(seed, entry.range.start, sealed).map(Bytes::copy_from_slice);
                    let block = payload.and_then(|payload| index.parse(number, payload)).map_err(failed())?;
                    let _ = part.block.set(block);
                }
                if let Some((filter, sealed)) = entry.filter.as_ref().and_then(|it| Some((it, sealed(it)?))) {
                    part.filter.set(seed, filter.start, sealed).map_err(failed())?;
                }
            }
            sections.push(index);
        }
        Ok(Self(sections))
    }
}

impl SectionIndex {
    fn parse(&self, number: usize, payload: Bytes) -> Result<IndexBlock, FormatError> {
        let block = IndexBlock::parse(payload, &self.root.index[number].blocks)?;
        // The root has led here. If they disagree, an item is sought in the wrong index block.
        if self.root.first(number) != Some(block.first()) {
            let why = format!("index block {number} begins with something else than its root says");
            return Err(FormatError::corrupt("index block", why));
        }
        Ok(block)
    }
}

/// A section of a segment whose root is in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Section<'a> {
    pub(crate) object: &'a Object,
    index: &'a SectionIndex,
}

impl<'a> Section<'a> {
    /// What its segment says of it.
    pub(crate) fn root(&self) -> &'a SectionRoot {
        &self.index.root
    }

    /// The bytes of its blocks.
    pub(crate) fn bytes(&self) -> u64 {
        let blocks = self.root().blocks();
        blocks.end - blocks.start
    }

    /// The request for one of its blocks.
    pub(crate) fn request(&self, range: Range<u64>) -> BlockRequest<'a> {
        BlockRequest { object: self.object, range, check: Check::Sealed }
    }

    /// How many index blocks it has.
    pub(crate) fn index_len(&self) -> usize {
        self.index.parts.len()
    }

    /// What its root says of an index block.
    pub(crate) fn entry(&self, number: usize) -> &'a IndexEntry {
        &self.root().index[number]
    }

    /// An index block, if it is in memory with the root.
    pub(crate) fn index_block(&self, number: usize) -> Option<&'a IndexBlock> {
        self.index.parts[number].block.get()
    }

    /// The request for an index block.
    pub(crate) fn index_request(&self, number: usize) -> BlockRequest<'a> {
        self.request(self.entry(number).range.clone())
    }

    /// Reads the payload of an index block.
    pub(crate) fn parse_index_block(&self, number: usize, payload: Bytes) -> Result<IndexBlock, FormatError> {
        self.index.parse(number, payload)
    }

    /// All of its index blocks, if all are in memory with the root.
    fn index_blocks(self) -> Option<Vec<&'a IndexBlock>> {
        self.index.parts.iter().map(|part| part.block.get()).collect()
    }

    /// All of its blocks, if all of its index blocks are in memory with the root.
    pub(crate) fn blocks(self) -> Option<impl Iterator<Item = Range<u64>> + Clone + use<'a>> {
        let blocks = self.index_blocks()?.into_iter();
        Some(blocks.flat_map(|index| (0..index.len()).map(|block| index.range(block))))
    }

    /// The filter over what begins in the blocks of an index block.
    pub(crate) fn filter(&self, number: usize) -> &'a LazyFilter {
        &self.index.parts[number].filter
    }

    /// The index block of the key block that may hold `key`; `None` is certain.
    pub(crate) fn index_of_key(&self, key: &Key) -> Option<usize> {
        let number = self.root().index_of_key(key)?;
        self.may_hold(number, key).then_some(number)
    }

    /// Whether the blocks of an index block may hold `key`, by their filter; `false` is certain.
    pub(crate) fn may_hold(&self, number: usize, key: &Key) -> bool {
        self.filter(number).get().is_none_or(|filter| filter.may_contain(key.hash()))
    }

    /// Whether the section may have a list of `source`; `false` is certain.
    pub(crate) fn may_have_source(&self, source: u64) -> bool {
        let hash = hash_of_source(source);
        // A long list is in the filter of the index block in which it begins.
        let mut numbers = self.root().index_of_source(source);
        numbers.any(|number| self.filter(number).get().is_none_or(|filter| filter.may_contain(hash)))
    }
}
