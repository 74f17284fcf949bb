//! The root of a segment: its sections, and where the index blocks of each are.

use std::ops::Range;

use bytes::Bytes;
use prost::Message;

use super::{Firsts, IndexBlock, SectionKind, SegmentEnd, index_block::ordered};
use crate::{
    FormatError, Key, VertexId,
    checksum::{ObjectSeed, open_block},
    constants::{CHECKSUM_BYTES, SEGMENT_MAGIC, SEGMENT_TRAILER_BYTES},
    manifest::First,
};

/// The sections of a segment, as its end lists them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SegmentRoot {
    /// In the order of their blocks.
    pub sections: Vec<SectionRoot>,
}

/// A section, or the piece of one that is in a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionRoot {
    /// Its content.
    pub kind: SectionKind,
    /// Edges or keys in it.
    pub items: u64,
    /// How many blocks it has.
    pub block_count: u64,
    /// The first item of each index block's first block.
    pub firsts: Firsts,
    /// Its index blocks.
    pub index: Vec<IndexEntry>,
}

/// An index block, as the root names it. Ranges are of sealed bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexEntry {
    /// Where the index block is.
    pub range: Range<u64>,
    /// Where the blocks are whose entries it has.
    pub blocks: Range<u64>,
    /// The filter over what begins in these blocks.
    pub filter: Option<Range<u64>>,
}

#[derive(Clone, PartialEq, Message)]
struct RootMessage {
    #[prost(message, repeated, tag = "1")]
    sections: Vec<SectionMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct SectionMessage {
    /// See [`SectionKind::to_number`].
    #[prost(uint32, tag = "1")]
    kind: u32,
    #[prost(uint64, tag = "2")]
    items: u64,
    /// 1 int64, 2 string; of keys.
    #[prost(uint32, tag = "3")]
    key_type: u32,
    #[prost(uint64, tag = "4")]
    position: u64,
    /// Of the blocks of each index block.
    #[prost(uint64, repeated, tag = "5")]
    lengths: Vec<u64>,
    /// Differences of first numbers; the first from 0.
    #[prost(uint64, repeated, tag = "6")]
    number_deltas: Vec<u64>,
    #[prost(string, repeated, tag = "7")]
    texts: Vec<String>,
    #[prost(uint64, tag = "8")]
    index_position: u64,
    #[prost(uint64, repeated, tag = "9")]
    index_lengths: Vec<u64>,
    #[prost(uint64, tag = "10")]
    filter_position: u64,
    /// 0 for an index block without; none at all if none has one.
    #[prost(uint64, repeated, tag = "11")]
    filter_lengths: Vec<u64>,
    #[prost(uint64, tag = "12")]
    block_count: u64,
}

impl SectionRoot {
    /// Where its blocks are.
    pub fn blocks(&self) -> Range<u64> {
        match (self.index.first(), self.index.last()) {
            (Some(first), Some(last)) => first.blocks.start..last.blocks.end,
            _ => 0..0,
        }
    }

    /// All of its index blocks, from the last bytes of the segment called `name`.
    ///
    /// # Errors
    /// [`FormatError::Corrupt`] if one is damaged or outside of these bytes.
    pub fn index_blocks(&self, name: &str, end: &SegmentEnd, tail: &Bytes) -> Result<Vec<IndexBlock>, FormatError> {
        let seed = ObjectSeed::of(name);
        let tail_position = end.length.saturating_sub(tail.len() as u64);
        let read = |entry: &IndexEntry| {
            let range = entry.range.start.checked_sub(tail_position).and_then(|start| {
                let end = start + (entry.range.end - entry.range.start);
                (end <= tail.len() as u64).then_some(start as usize..end as usize)
            });
            let sealed = tail.slice(range.ok_or_else(|| corrupt("an index block is outside of its end".into()))?);
            let payload = open_block(seed, entry.range.start, &sealed)?;
            IndexBlock::parse(sealed.slice_ref(payload), &entry.blocks)
        };
        self.index.iter().map(read).collect()
    }

    /// The first item of an index block's first block.
    pub fn first(&self, index_block: usize) -> Option<First> {
        match &self.firsts {
            Firsts::Numbers(firsts) => firsts.get(index_block).map(|first| First::Number(*first)),
            Firsts::Texts(firsts) => firsts.get(index_block).map(|first| First::Text(first.clone())),
        }
    }

    /// The source that an index block's first block begins with.
    pub fn first_source(&self, index_block: usize) -> Option<u64> {
        match &self.firsts {
            Firsts::Numbers(firsts) => firsts.get(index_block).copied(),
            Firsts::Texts(_) => None,
        }
    }

    /// The index blocks that may name the list of a source: as of blocks, the last that begins with less, if none
    /// begins with it, else that one and all that begin with it. Empty if all begin with more.
    pub fn index_of_source(&self, source: u64) -> Range<usize> {
        let Firsts::Numbers(firsts) = &self.firsts else { return 0..0 };
        // A hub's list may fill whole index blocks, all of which begin with its source.
        let end = firsts.partition_point(|first| *first <= source);
        // A list that goes on from the index block before begins there.
        let start = firsts.partition_point(|first| *first < source);
        start.saturating_sub(1).min(end)..end
    }

    /// The index block that names the block of a key, if any can.
    pub fn index_of_key(&self, key: &Key) -> Option<usize> {
        let through = match (&self.firsts, key) {
            (Firsts::Numbers(firsts), Key::Int64(key)) => firsts.partition_point(|first| *first <= ordered(*key)),
            (Firsts::Texts(firsts), Key::String(key)) => firsts.partition_point(|first| first <= key),
            _ => 0,
        };
        through.checked_sub(1)
    }
}

impl SegmentRoot {
    /// Its bytes, with length, checksum and magic: the end of the segment.
    pub fn encode(&self) -> Vec<u8> {
        let message = RootMessage { sections: self.sections.iter().map(SectionMessage::of).collect() };
        let mut out = message.encode_to_vec();
        let length = out.len() as u32;
        let checksum = crc32c::crc32c(&out);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&checksum.to_le_bytes());
        out.extend_from_slice(&SEGMENT_MAGIC);
        out
    }
}

/// Reads the end of a segment, from its root or earlier, as the manifest names it.
///
/// # Errors
/// [`FormatError::Corrupt`] if anything in it contradicts itself or the manifest.
pub fn decode_root(tail: &[u8], end: &SegmentEnd) -> Result<SegmentRoot, FormatError> {
    // The manifest says where the root begins, so the trailer's length is compared with it and never believed.
    // Counted from the end: the tail may begin earlier than the root, with index blocks or filters.
    let root_bytes = end.length.checked_sub(end.root_position).and_then(|bytes| usize::try_from(bytes).ok());
    let root = root_bytes
        .and_then(|bytes| tail.len().checked_sub(bytes))
        .and_then(|start| tail[start..].split_last_chunk::<SEGMENT_TRAILER_BYTES>())
        .ok_or_else(|| corrupt(format!("{} bytes are too few for its end", tail.len())));
    let (encoded, trailer) = root?;
    let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| trailer[at + byte]));
    if trailer[8..] != SEGMENT_MAGIC {
        return Err(corrupt("its last bytes are not a segment's".into()));
    }
    if word(0) as usize != encoded.len() {
        return Err(corrupt(format!("its root is {} bytes, but claims {}", encoded.len(), word(0))));
    }
    if crc32c::crc32c(encoded) != word(4) {
        return Err(corrupt("its root fails its checksum".into()));
    }
    let message = RootMessage::decode(encoded).map_err(|error| corrupt(error.to_string()))?;
    let sections = message.sections.into_iter().map(|section| section.read(end)).collect::<Result<_, _>>()?;
    Ok(SegmentRoot { sections })
}

impl SectionMessage {
    fn of(section: &SectionRoot) -> Self {
        let length = |range: &Range<u64>| range.end - range.start;
        let filters = section.index.iter().map(|entry| entry.filter.as_ref());
        let first_filter = filters.clone().flatten().next();
        let mut message = Self {
            kind: section.kind.to_number(),
            items: section.items,
            block_count: section.block_count,
            position: section.blocks().start,
            lengths: section.index.iter().map(|entry| length(&entry.blocks)).collect(),
            index_position: section.index.first().map_or(0, |entry| entry.range.start),
            index_lengths: section.index.iter().map(|entry| length(&entry.range)).collect(),
            filter_position: first_filter.map_or(0, |filter| filter.start),
            ..Self::default()
        };
        if first_filter.is_some() {
            message.filter_lengths = filters.map(|filter| filter.map_or(0, length)).collect();
        }
        match &section.firsts {
            Firsts::Numbers(firsts) => {
                // Differences of first items are small and take one to three bytes as varints, where an item takes up to seven.
                let before = std::iter::once(&0).chain(firsts);
                message.number_deltas = firsts.iter().zip(before).map(|(first, before)| first - before).collect();
                message.key_type = u32::from(section.kind.has_keys());
            }
            Firsts::Texts(firsts) => (message.key_type, message.texts) = (2, firsts.clone()),
        }
        message
    }

    fn read(self, end: &SegmentEnd) -> Result<SectionRoot, FormatError> {
        let unknown = || corrupt(format!("it has a section of kind {:x}", self.kind));
        let kind = SectionKind::from_number(self.kind).ok_or_else(unknown)?;
        // No block is empty: each has a payload and its checksum, so ranges of fewer bytes are damage.
        let sealed = CHECKSUM_BYTES as u64 + 1;
        let blocks = ranges(self.position, &self.lengths, sealed, end.filters_position)?;
        let index = ranges(self.index_position, &self.index_lengths, sealed, end.root_position)?;
        // Without filters the field is left out: a section with none takes no bytes for them.
        let filters = match self.filter_lengths.is_empty() {
            true => vec![0..0; index.len()],
            false => ranges(self.filter_position, &self.filter_lengths, 0, end.index_position)?,
        };
        let firsts = match (kind.has_keys(), self.key_type) {
            (true, 1) if !kind.has_values() => Firsts::Numbers(running(&self.number_deltas, u64::MAX, true)?),
            (false, 0) => Firsts::Numbers(running(&self.number_deltas, VertexId::ORDINAL_MAX, false)?),
            (true, 2) if !matches!(kind, SectionKind::Rows(_)) => Firsts::Texts(self.texts),
            (_, other) => return Err(corrupt(format!("{kind:?} has keys of type {other}"))),
        };
        let (ascending, count) = match &firsts {
            Firsts::Numbers(firsts) => (true, firsts.len()),
            Firsts::Texts(firsts) => (firsts.is_sorted_by(|a, b| a < b), firsts.len()),
        };
        if !ascending || [index.len(), blocks.len(), filters.len()] != [count; 3] {
            return Err(corrupt(format!("{kind:?} has {count} first items for {} index blocks", index.len())));
        }
        let entry = |((range, blocks), filter): ((Range<u64>, Range<u64>), Range<u64>)| IndexEntry {
            range,
            blocks,
            filter: (!filter.is_empty()).then_some(filter),
        };
        let index = index.into_iter().zip(blocks).zip(filters).map(entry).collect();
        Ok(SectionRoot { kind, items: self.items, block_count: self.block_count, firsts, index })
    }
}

/// Ranges that follow each other from a start, each of at least `least` bytes, that end at or before `limit`.
fn ranges(start: u64, lengths: &[u64], least: u64, limit: u64) -> Result<Vec<Range<u64>>, FormatError> {
    let mut position = start;
    let mut ranges = Vec::with_capacity(lengths.len());
    for length in lengths {
        let end = position.checked_add(*length).filter(|end| *end <= limit && *length >= least);
        let end = end.ok_or_else(|| corrupt(format!("{length} bytes at {position} end past {limit}")))?;
        ranges.push(position..end);
        position = end;
    }
    Ok(ranges)
}

/// Numbers from their differences.
fn running(deltas: &[u64], most: u64, strictly: bool) -> Result<Vec<u64>, FormatError> {
    let mut sum = 0u64;
    let mut numbers = Vec::with_capacity(deltas.len());
    for (at, delta) in deltas.iter().enumerate() {
        let next = sum.checked_add(*delta).filter(|next| *next <= most && !(strictly && at > 0 && *delta == 0));
        sum = next.ok_or_else(|| corrupt("its first items do not ascend, or are too large".into()))?;
        numbers.push(sum);
    }
    Ok(numbers)
}

fn corrupt(why: String) -> FormatError {
    FormatError::corrupt("segment root", why)
}
