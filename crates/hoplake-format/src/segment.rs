//! Segments: immutable objects made of sections, which are made of sealed blocks.
//!
//! ```text
//! magic | blocks of section 0 | blocks of section 1 | … | filters | index | index length u32 | CRC-32C u32 | magic
//!       8                                               ^ filters_position
//!                                                                 ^ index_position
//! ```
//! The index says where every block begins and which source or key it begins with, so that "which
//! range?" is answered without I/O. The manifest knows both positions: opening a segment is one ranged
//! read of its end.

use prost::Message;

use crate::{
    Direction, EdgeTypeId, FormatError, KeyType, LabelId,
    adjacency::blocks_of,
    checksum::{ObjectSeed, seal_block},
    constants::{CHECKSUM_BYTES, SEGMENT_MAGIC, SEGMENT_TRAILER_BYTES},
    filter::{FILTER_KEYS_MAX, encode_filter},
    keys::Key,
};

/// What a section holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SectionKind {
    /// The keys of a vertex label.
    Keys(LabelId),
    /// The neighbour lists of an edge type in one direction.
    Adjacency(EdgeTypeId, Direction),
    /// The ends of pairs that have no edge of a type any more, as lists in one direction.
    Removed(EdgeTypeId, Direction),
    /// The keys of a label that are gone, with the ordinals they stood for.
    Gone(LabelId),
    /// The ordinals of a label whose rows were written anew, as keys, with the number of the row.
    Rows(LabelId),
}

impl SectionKind {
    /// Kind (1 keys, 2 adjacency out, 3 adjacency in, 4 removed out, 5 removed in, 6 gone, 7 rows) times 65,536 plus
    /// label or edge type.
    pub fn to_number(self) -> u32 {
        let (kind, owner) = match self {
            Self::Keys(label) => (1, label.0),
            Self::Adjacency(edge_type, Direction::Out) => (2, edge_type.0),
            Self::Adjacency(edge_type, Direction::In) => (3, edge_type.0),
            Self::Removed(edge_type, Direction::Out) => (4, edge_type.0),
            Self::Removed(edge_type, Direction::In) => (5, edge_type.0),
            Self::Gone(label) => (6, label.0),
            Self::Rows(label) => (7, label.0),
        };
        kind << 16 | u32::from(owner)
    }

    /// The kind with this number.
    pub fn from_number(number: u32) -> Option<Self> {
        let owner = (number & 0xffff) as u16;
        match number >> 16 {
            1 => Some(Self::Keys(LabelId(owner))),
            2 => Some(Self::Adjacency(EdgeTypeId(owner), Direction::Out)),
            3 => Some(Self::Adjacency(EdgeTypeId(owner), Direction::In)),
            4 => Some(Self::Removed(EdgeTypeId(owner), Direction::Out)),
            5 => Some(Self::Removed(EdgeTypeId(owner), Direction::In)),
            6 => Some(Self::Gone(LabelId(owner))),
            7 => Some(Self::Rows(LabelId(owner))),
            _ => None,
        }
    }
}

/// The first item of each block of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockFirsts {
    /// Source ordinals of an adjacency section, ascending; equal where a long list goes on.
    Sources(Vec<u64>),
    /// Integer keys, strictly ascending.
    Int64Keys(Vec<i64>),
    /// Separators of string keys, strictly ascending: at most the block's first key and more than the
    /// last key before it.
    StringKeys(Vec<String>),
}

/// A filter over the keys of consecutive blocks, as the index names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterEntry {
    /// The first block it covers; it ends where the next begins.
    pub first_block: u32,
    /// Where its sealed bytes begin.
    pub position: u64,
    /// How many they are, with checksum.
    pub length: u64,
}

impl FilterEntry {
    /// The range of its sealed bytes.
    pub fn range(&self) -> std::ops::Range<u64> {
        self.position..self.position + self.length
    }
}

/// The resident index of one section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionIndex {
    /// What the section holds.
    pub kind: SectionKind,
    /// Edges or keys in it.
    pub items: u64,
    /// Where each sealed block begins, and where the last ends: one more than there are blocks.
    pub positions: Vec<u64>,
    /// What each block begins with.
    pub firsts: BlockFirsts,
    /// Filters over its keys.
    pub filters: Vec<FilterEntry>,
}

impl SectionIndex {
    /// How many blocks there are.
    pub fn block_count(&self) -> usize {
        self.positions.len() - 1
    }

    /// The byte range of a sealed block.
    pub fn block_range(&self, block: usize) -> std::ops::Range<u64> {
        self.positions[block]..self.positions[block + 1]
    }

    /// The blocks that hold the list of an adjacency section's source, in order; empty if none can.
    pub fn blocks_of_source(&self, source: u64) -> std::ops::Range<usize> {
        match &self.firsts {
            BlockFirsts::Sources(firsts) => blocks_of(firsts, source),
            _ => 0..0,
        }
    }

    /// The block that holds `key`, if any can.
    pub fn block_of_key(&self, key: &Key) -> Option<usize> {
        let through = match (&self.firsts, key) {
            (BlockFirsts::Int64Keys(firsts), Key::Int64(key)) => firsts.partition_point(|first| first <= key),
            (BlockFirsts::StringKeys(firsts), Key::String(key)) => firsts.partition_point(|first| first <= key),
            _ => 0,
        };
        through.checked_sub(1)
    }

    /// The filter that covers a block.
    pub fn filter_of_block(&self, block: usize) -> Option<usize> {
        self.filters.partition_point(|filter| filter.first_block as usize <= block).checked_sub(1)
    }

    /// Resident bytes.
    pub fn bytes(&self) -> usize {
        let firsts = match &self.firsts {
            BlockFirsts::Sources(firsts) => firsts.len() * 8,
            BlockFirsts::Int64Keys(firsts) => firsts.len() * 8,
            BlockFirsts::StringKeys(firsts) => firsts.iter().map(|first| first.len() + size_of::<String>()).sum(),
        };
        size_of::<Self>() + firsts + self.positions.len() * 8 + self.filters.len() * size_of::<FilterEntry>()
    }
}

#[derive(Clone, PartialEq, Message)]
struct IndexMessage {
    #[prost(message, repeated, tag = "1")]
    sections: Vec<SectionMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct SectionMessage {
    /// See [`SectionKind::to_number`].
    #[prost(uint32, tag = "1")]
    kind: u32,
    #[prost(uint64, tag = "3")]
    items: u64,
    #[prost(uint64, tag = "4")]
    position: u64,
    #[prost(uint64, repeated, tag = "5")]
    block_lengths: Vec<u64>,
    /// Differences of sources; the first from 0.
    #[prost(uint64, repeated, tag = "6")]
    source_deltas: Vec<u64>,
    /// First keys themselves: differences may need more than 64 bits of sign.
    #[prost(sint64, repeated, tag = "7")]
    int64_keys: Vec<i64>,
    #[prost(string, repeated, tag = "8")]
    string_keys: Vec<String>,
    #[prost(uint32, repeated, tag = "9")]
    filter_first_blocks: Vec<u32>,
    #[prost(uint64, tag = "10")]
    filter_position: u64,
    #[prost(uint64, repeated, tag = "11")]
    filter_lengths: Vec<u64>,
    /// 1 int64, 2 string; of keys.
    #[prost(uint32, tag = "12")]
    key_type: u32,
}

/// What the manifest must know of a finished segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentEnd {
    /// Bytes of the object.
    pub length: u64,
    /// Where the filters begin.
    pub filters_position: u64,
    /// Where the index begins.
    pub index_position: u64,
}

/// Writes a segment, block by block, into a buffer that the caller empties as it likes.
///
/// A block or section that is added out of order is a mistake of the program and panics.
#[derive(Debug)]
pub struct SegmentBuilder {
    seed: ObjectSeed,
    out: Vec<u8>,
    drained: u64,
    sections: Vec<SectionIndex>,
    filters: Vec<(usize, u32, Vec<u8>)>,
    hashes: Vec<u64>,
    hashes_first_block: u32,
    last_key: Option<Key>,
}

impl SegmentBuilder {
    /// Begins the segment called `name`.
    pub fn new(name: &str) -> Self {
        Self {
            seed: ObjectSeed::of(name),
            out: SEGMENT_MAGIC.to_vec(),
            drained: 0,
            sections: Vec::new(),
            filters: Vec::new(),
            hashes: Vec::new(),
            hashes_first_block: 0,
            last_key: None,
        }
    }

    /// Bytes written so far, drained or not.
    pub fn position(&self) -> u64 {
        self.drained + self.out.len() as u64
    }

    /// Bytes written and not yet drained.
    pub fn buffered_bytes(&self) -> usize {
        self.out.len()
    }

    /// Takes what is buffered.
    pub fn drain(&mut self) -> Vec<u8> {
        self.drained += self.out.len() as u64;
        std::mem::take(&mut self.out)
    }

    fn begin(&mut self, kind: SectionKind, firsts: BlockFirsts) -> Result<(), FormatError> {
        self.end_filter()?;
        self.hashes_first_block = 0;
        self.last_key = None;
        let positions = vec![self.position()];
        self.sections.push(SectionIndex { kind, items: 0, positions, firsts, filters: Vec::new() });
        Ok(())
    }

    /// Begins a section of neighbour lists.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] if the filter of the section before cannot be built.
    pub fn begin_lists(&mut self, kind: SectionKind) -> Result<(), FormatError> {
        self.begin(kind, BlockFirsts::Sources(Vec::new()))
    }

    /// Begins a section of keys.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] if the filter of the section before cannot be built.
    pub fn begin_keys(&mut self, kind: SectionKind, key_type: KeyType) -> Result<(), FormatError> {
        let firsts = match key_type {
            KeyType::Int64 => BlockFirsts::Int64Keys(Vec::new()),
            KeyType::String => BlockFirsts::StringKeys(Vec::new()),
        };
        self.begin(kind, firsts)
    }

    fn push_block(&mut self, payload: &[u8], items: u64) -> &mut SectionIndex {
        let position = self.position();
        seal_block(self.seed, position, payload, &mut self.out);
        let end = self.position();
        let section = self.sections.last_mut().expect("a section has begun");
        section.positions.push(end);
        section.items += items;
        section
    }

    /// Adds sources to the filter of a section of lists, each before the block that it begins in. A section has no filter
    /// if none are added: most vertices of a graph are sources in the part that was loaded.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] if a filter cannot be built.
    pub fn filter_sources(&mut self, sources: &[u64]) -> Result<(), FormatError> {
        if self.hashes.len() + sources.len() > FILTER_KEYS_MAX {
            self.end_filter()?;
        }
        self.hashes.extend(sources.iter().map(|source| hash_of_source(*source)));
        Ok(())
    }

    /// Adds a block of neighbour lists that begins with `first_source`.
    pub fn adjacency_block(&mut self, first_source: u64, edges: u64, payload: &[u8]) {
        match &mut self.push_block(payload, edges).firsts {
            BlockFirsts::Sources(firsts) => {
                assert!(firsts.last().is_none_or(|last| *last <= first_source), "sources ascend");
                firsts.push(first_source);
            }
            _ => panic!("an adjacency section has begun"),
        }
    }

    /// Adds a block of keys, which [`encode_key_block`](crate::keys::encode_key_block) made of `entries`.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] if a filter cannot be built.
    pub fn key_block(&mut self, entries: &[(Key, u64)], payload: &[u8]) -> Result<(), FormatError> {
        let (Some((first, _)), Some((last, _))) = (entries.first(), entries.last()) else {
            return Err(FormatError::Invalid("a key block holds at least one key".into()));
        };
        if self.hashes.len() + entries.len() > FILTER_KEYS_MAX {
            self.end_filter()?;
        }
        let before = self.last_key.replace(last.clone());
        match (&mut self.push_block(payload, entries.len() as u64).firsts, first, before) {
            (BlockFirsts::Int64Keys(firsts), Key::Int64(first), _) => firsts.push(*first),
            (BlockFirsts::StringKeys(firsts), Key::String(first), Some(Key::String(before))) => {
                firsts.push(separator(&before, first));
            }
            (BlockFirsts::StringKeys(firsts), Key::String(first), _) => firsts.push(first.clone()),
            _ => return Err(FormatError::Invalid("a key block is not of its section's type".into())),
        }
        self.hashes.extend(entries.iter().map(|(key, _)| key.hash()));
        Ok(())
    }

    fn end_filter(&mut self) -> Result<(), FormatError> {
        if !self.hashes.is_empty() {
            // Two keys of one hash would make the construction fail; one of them is enough.
            self.hashes.sort_unstable();
            self.hashes.dedup();
            let filter = encode_filter(&self.hashes)?;
            let section = self.sections.len() - 1;
            self.filters.push((section, self.hashes_first_block, filter));
            self.hashes.clear();
        }
        if let Some(section) = self.sections.last() {
            self.hashes_first_block = section.block_count() as u32;
        }
        Ok(())
    }

    /// Ends the segment: the filters, the index and the trailer follow in the buffer.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] if a filter cannot be built.
    pub fn finish(&mut self) -> Result<SegmentEnd, FormatError> {
        self.end_filter()?;
        let filters_position = self.position();
        for (section, first_block, filter) in std::mem::take(&mut self.filters) {
            let position = self.position();
            seal_block(self.seed, position, &filter, &mut self.out);
            let length = self.position() - position;
            self.sections[section].filters.push(FilterEntry { first_block, position, length });
        }
        let index_position = self.position();
        let message = IndexMessage { sections: self.sections.iter().map(section_message).collect() };
        let encoded = message.encode_to_vec();
        self.out.extend_from_slice(&encoded);
        self.out.extend_from_slice(&(encoded.len() as u32).to_le_bytes());
        self.out.extend_from_slice(&crc32c::crc32c(&encoded).to_le_bytes());
        self.out.extend_from_slice(&SEGMENT_MAGIC);
        Ok(SegmentEnd { length: self.position(), filters_position, index_position })
    }

    /// The index of what was written so far.
    pub fn sections(&self) -> &[SectionIndex] {
        &self.sections
    }
}

/// The hash under which a source stands in a filter: that of the key of the same number.
pub fn hash_of_source(source: u64) -> u64 {
    Key::Int64(source as i64).hash()
}

/// The shortest prefix of `first` that is greater than `before`, cut at a character boundary.
fn separator(before: &str, first: &str) -> String {
    let shared = before.bytes().zip(first.bytes()).take_while(|(a, b)| a == b).count();
    let end = (shared + 1..first.len()).find(|end| first.is_char_boundary(*end)).unwrap_or(first.len());
    first[..end].to_owned()
}

fn section_message(section: &SectionIndex) -> SectionMessage {
    let mut message = SectionMessage {
        kind: section.kind.to_number(),
        items: section.items,
        position: section.positions[0],
        block_lengths: section.positions.windows(2).map(|pair| pair[1] - pair[0]).collect(),
        filter_first_blocks: section.filters.iter().map(|filter| filter.first_block).collect(),
        filter_position: section.filters.first().map_or(0, |filter| filter.position),
        filter_lengths: section.filters.iter().map(|filter| filter.length).collect(),
        ..SectionMessage::default()
    };
    match &section.firsts {
        BlockFirsts::Sources(firsts) => {
            let before = std::iter::once(&0).chain(firsts);
            message.source_deltas = firsts.iter().zip(before).map(|(first, before)| first - before).collect();
        }
        BlockFirsts::Int64Keys(firsts) => (message.key_type, message.int64_keys) = (1, firsts.clone()),
        BlockFirsts::StringKeys(firsts) => (message.key_type, message.string_keys) = (2, firsts.clone()),
    }
    message
}

/// Reads the end of a segment, from `index_position` or earlier, as the manifest names it.
///
/// # Errors
/// [`FormatError::Corrupt`] if anything in it contradicts itself or the manifest.
pub fn decode_segment_index(tail: &[u8], end: &SegmentEnd) -> Result<Vec<SectionIndex>, FormatError> {
    let index_bytes = end.length.checked_sub(end.index_position).and_then(|bytes| usize::try_from(bytes).ok());
    let index = index_bytes
        .and_then(|bytes| tail.len().checked_sub(bytes))
        .and_then(|start| tail[start..].split_last_chunk::<SEGMENT_TRAILER_BYTES>())
        .ok_or_else(|| corrupt(format!("{} bytes are too few for its end", tail.len())));
    let (encoded, trailer) = index?;
    let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| trailer[at + byte]));
    if trailer[8..] != SEGMENT_MAGIC {
        return Err(corrupt("its last bytes are not a segment's".into()));
    }
    if word(0) as usize != encoded.len() {
        return Err(corrupt(format!("its index is {} bytes and says {}", encoded.len(), word(0))));
    }
    if crc32c::crc32c(encoded) != word(4) {
        return Err(corrupt("its index fails its checksum".into()));
    }
    let message = IndexMessage::decode(encoded).map_err(|error| corrupt(error.to_string()))?;
    message.sections.into_iter().map(|section| decode_section(section, end)).collect()
}

fn decode_section(message: SectionMessage, end: &SegmentEnd) -> Result<SectionIndex, FormatError> {
    let unknown = || corrupt(format!("it has a section of kind {:x}", message.kind));
    let kind = SectionKind::from_number(message.kind).ok_or_else(unknown)?;
    let positions = running_positions(message.position, &message.block_lengths, end.filters_position)?;
    let firsts = match (kind, message.key_type) {
        (SectionKind::Keys(_) | SectionKind::Gone(_) | SectionKind::Rows(_), 1) => {
            BlockFirsts::Int64Keys(message.int64_keys)
        }
        (SectionKind::Keys(_) | SectionKind::Gone(_), 2) => BlockFirsts::StringKeys(message.string_keys),
        (SectionKind::Adjacency(..) | SectionKind::Removed(..), 0) => {
            BlockFirsts::Sources(running_sources(&message.source_deltas)?)
        }
        (_, other) => return Err(corrupt(format!("{kind:?} has keys of type {other}"))),
    };
    let (ascending, count) = match &firsts {
        BlockFirsts::Sources(firsts) => (true, firsts.len()),
        BlockFirsts::Int64Keys(firsts) => (firsts.is_sorted_by(|a, b| a < b), firsts.len()),
        BlockFirsts::StringKeys(firsts) => (firsts.is_sorted_by(|a, b| a < b), firsts.len()),
    };
    if !ascending || count != positions.len() - 1 {
        return Err(corrupt(format!("{kind:?} has {count} first items for {} blocks", positions.len() - 1)));
    }
    let ends = running_positions(message.filter_position, &message.filter_lengths, end.index_position)?;
    let blocks_ascend = message.filter_first_blocks.is_sorted_by(|a, b| a < b);
    if message.filter_first_blocks.len() != ends.len() - 1 || !blocks_ascend {
        return Err(corrupt(format!("{kind:?} has filters that do not fit its blocks")));
    }
    let filters = message.filter_first_blocks.iter().zip(ends.windows(2));
    let filters = filters.map(|(first_block, range)| FilterEntry {
        first_block: *first_block,
        position: range[0],
        length: range[1] - range[0],
    });
    Ok(SectionIndex { kind, items: message.items, positions, firsts, filters: filters.collect() })
}

/// Positions from a start and lengths, all at or below `limit`.
fn running_positions(start: u64, lengths: &[u64], limit: u64) -> Result<Vec<u64>, FormatError> {
    let mut positions = Vec::with_capacity(lengths.len() + 1);
    positions.push(start);
    let mut position = start;
    for length in lengths {
        let end = position.checked_add(*length).filter(|end| *end <= limit && *length > CHECKSUM_BYTES as u64);
        position = end.ok_or_else(|| corrupt(format!("a block of {length} bytes at {position} ends past {limit}")))?;
        positions.push(position);
    }
    Ok(positions)
}

fn running_sources(deltas: &[u64]) -> Result<Vec<u64>, FormatError> {
    let add = |sum: &mut u64, delta: &u64| {
        *sum = sum.checked_add(*delta)?;
        Some(*sum)
    };
    let sources: Vec<_> = deltas.iter().scan(0, add).collect();
    let fits = sources.last().is_none_or(|last| *last <= crate::VertexId::ORDINAL_MAX);
    if sources.len() != deltas.len() || !fits {
        return Err(corrupt("its sources need more than 48 bits".into()));
    }
    Ok(sources)
}

fn corrupt(why: String) -> FormatError {
    FormatError::corrupt("segment index", why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{checksum::open_block, filter::KeyFilter, keys::encode_key_block};

    fn sample() -> (Vec<u8>, SegmentEnd, Vec<SectionIndex>) {
        let mut builder = SegmentBuilder::new("data/x");
        builder.begin_keys(SectionKind::Keys(LabelId(0)), KeyType::String).unwrap();
        for names in [["ann", "annabel"], ["bob", "bobby"], ["carl", "zoë"]] {
            let entries: Vec<_> = names.iter().map(|name| (Key::String((*name).into()), 7)).collect();
            builder.key_block(&entries, &encode_key_block(&entries).unwrap()).unwrap();
        }
        builder.begin_lists(SectionKind::Adjacency(EdgeTypeId(3), Direction::In)).unwrap();
        for first in [0, 5, 5, 5, 9] {
            builder.adjacency_block(first, 10, b"some lists");
        }
        let mut bytes = builder.drain();
        let end = builder.finish().unwrap();
        bytes.extend(builder.drain());
        (bytes, end, builder.sections().to_vec())
    }

    #[test]
    fn a_segment_is_read_as_written() {
        let (bytes, end, sections) = sample();
        assert_eq!(end.length, bytes.len() as u64);
        let tail = &bytes[end.filters_position as usize..];
        assert_eq!(decode_segment_index(tail, &end).unwrap(), sections);
        let keys = &sections[0];
        assert_eq!(keys.firsts, BlockFirsts::StringKeys(["ann", "b", "c"].map(String::from).to_vec()));
        assert_eq!(keys.block_of_key(&Key::String("bz".into())), Some(1));
        assert_eq!(keys.block_of_key(&Key::String("aa".into())), None);
        assert_eq!(keys.filter_of_block(2), Some(0));
        let filter = &keys.filters[0];
        let sealed = &bytes[filter.position as usize..][..filter.length as usize];
        let filter = open_block(ObjectSeed::of("data/x"), filter.position, sealed).unwrap();
        assert!(KeyFilter::decode(filter).unwrap().may_contain(Key::String("bobby".into()).hash()));
    }

    #[test]
    fn a_source_is_in_the_blocks_that_begin_with_it_or_in_the_last_before() {
        let (_, _, sections) = sample();
        let blocks = |source| sections[1].blocks_of_source(source);
        assert_eq!((blocks(0), blocks(4), blocks(5), blocks(6)), (0..1, 0..1, 1..4, 3..4));
        assert_eq!((blocks(9), blocks(1000)), (4..5, 4..5));
    }

    #[test]
    fn every_flipped_bit_and_cut_of_the_index_is_found() {
        let (bytes, end, _) = sample();
        let mut tail = bytes[end.index_position as usize..].to_vec();
        for cut in 0..tail.len() {
            assert!(decode_segment_index(&tail[..cut], &end).is_err());
        }
        for byte in 0..tail.len() {
            for bit in 0..8 {
                tail[byte] ^= 1 << bit;
                assert!(decode_segment_index(&tail, &end).is_err(), "byte {byte} bit {bit}");
                tail[byte] ^= 1 << bit;
            }
        }
    }
}
