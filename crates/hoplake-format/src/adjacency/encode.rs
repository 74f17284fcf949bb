//! Lists to blocks.

use super::layout::{
    EDGES_MAX, ENTRY, FLAG_CONTINUED, FLAG_CONTINUES, GROUP, GroupEntry, HEADER, Header, STRIDE, counts,
};
use super::pack::{CHUNK, pack, packed_len, width_of};
use super::{BLOCK_BYTES, BlockEntry};
use crate::{FormatError, VertexId};

/// A finished block and its index entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedBlock {
    /// The bytes, without a checksum.
    pub bytes: Vec<u8>,
    /// The entry of the index.
    pub entry: BlockEntry,
}

/// Turns the lists of a section, by ascending source, into blocks.
///
/// A list that does not fit in the rest of a block starts the next one. One that is larger than a
/// block (a hub) is split over as many as it needs, and others may follow its last piece. Memory:
/// 8 bytes for each edge of the open block, of which there are at most 65,535.
#[derive(Debug)]
pub struct BlockEncoder {
    block_bytes: usize,
    /// Edges in finished blocks.
    edges_before: u64,
    last_source: Option<u64>,
    open: OpenBlock,
}

impl BlockEncoder {
    /// An encoder of blocks of at most `block_bytes`.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] if `block_bytes` is outside [`BLOCK_BYTES`].
    pub fn new(block_bytes: usize) -> Result<Self, FormatError> {
        if !BLOCK_BYTES.contains(&block_bytes) {
            let least = BLOCK_BYTES.start;
            let most = BLOCK_BYTES.end - 1;
            return Err(FormatError::Invalid(format!("a block has {least} to {most} bytes, not {block_bytes}")));
        }
        Ok(Self { block_bytes, edges_before: 0, last_source: None, open: OpenBlock::default() })
    }

    /// Adds the list of `source`; blocks that it finishes are appended to `finished`. An empty list
    /// adds nothing. O(list), and amortised O(log of the block's range of targets) per edge.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] if sources do not ascend, targets are not sorted, or an ordinal or
    /// the number of edges passes 2⁴⁸ − 1. The encoder is then as before.
    pub fn push(&mut self, source: u64, targets: &[u64], finished: &mut Vec<EncodedBlock>) -> Result<(), FormatError> {
        self.check(source, targets)?;
        let mut rest = targets;
        let mut continued = false;
        while !rest.is_empty() {
            let (fitting, size) = self.open.fit(source, rest, self.block_bytes);
            // Start a new block rather than split the list: a split list costs its readers a second block. Only a list
            // that is longer than an empty block is split.
            if fitting < rest.len() && !self.open.is_empty() {
                finished.push(self.close(false));
                continue;
            }
            assert!(fitting > 0, "an empty block of at least 64 bytes has room for an edge");
            self.open.continued |= continued;
            self.open.add(source, &rest[..fitting], size);
            rest = &rest[fitting..];
            if !rest.is_empty() {
                finished.push(self.close(true));
                continued = true;
            }
        }
        self.last_source = Some(source);
        Ok(())
    }

    /// Goes on with a section of which so many edges are in blocks that another encoder made.
    pub fn after(self, edges: u64) -> Self {
        Self { edges_before: edges, ..self }
    }

    /// Closes the block under way, unless it is empty.
    pub fn flush(&mut self) -> Option<EncodedBlock> {
        (!self.open.is_empty()).then(|| self.close(false))
    }

    /// Closes the last block and returns it, unless it is empty.
    pub fn finish(mut self) -> Option<EncodedBlock> {
        self.flush()
    }

    fn check(&self, source: u64, targets: &[u64]) -> Result<(), FormatError> {
        let invalid = |message: String| Err(FormatError::Invalid(message));
        if let Some(last) = self.last_source.filter(|&last| source <= last) {
            return invalid(format!("sources must ascend, and {source} follows {last}"));
        }
        let largest = targets.last().copied().unwrap_or(0).max(source);
        if largest > VertexId::ORDINAL_MAX {
            return invalid(format!("ordinal {largest} needs more than 48 bits"));
        }
        if !targets.is_sorted() {
            return invalid(format!("the targets of source {source} are not sorted"));
        }
        let edges = self.edges_before + (self.open.slots.len() + targets.len()) as u64;
        if edges > VertexId::ORDINAL_MAX {
            return invalid("a section has at most 2^48 - 1 edges".into());
        }
        Ok(())
    }

    fn close(&mut self, continues: bool) -> EncodedBlock {
        let block = self.open.encode(self.edges_before, continues);
        debug_assert!(block.bytes.len() <= self.block_bytes, "the size is never underestimated");
        self.edges_before += self.open.slots.len() as u64;
        self.open.clear();
        block
    }
}

/// The lists of the block that is being filled.
#[derive(Debug, Default)]
struct OpenBlock {
    continued: bool,
    sources: Vec<u64>,
    degrees: Vec<u32>,
    /// Of each list the first target, then the gaps.
    slots: Vec<u64>,
    /// The bounds of the first targets; the lower one may be less than the smallest.
    firsts: (u64, u64),
    size: Size,
}

impl OpenBlock {
    fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    fn clear(&mut self) {
        self.sources.clear();
        self.degrees.clear();
        self.slots.clear();
        self.continued = false;
        self.size = Size::default();
    }

    /// How many of `targets` can be added within `bytes_max`, and the size of the block with them.
    fn fit(&mut self, source: u64, targets: &[u64], bytes_max: usize) -> (usize, Size) {
        // First: the sizes below are measured against the lower bound of first targets.
        self.make_room_below(targets[0]);
        let reach = self.sources.first().map_or(0, |first| source - first);
        // The header has 32 bits for the span of sources.
        if reach >= u64::from(u32::MAX) {
            return (0, self.size);
        }
        let degree_max = targets.len().min(EDGES_MAX - self.slots.len());
        // The number of sources in between, so that sources without gaps have gaps of 0 bits.
        let gap = self.sources.last().map_or(0, |last| source - last - 1);
        let mut size = self.size;
        // The degree is that of the complete list, an upper bound if only a part of it fits.
        size.add_list(gap, degree_max.saturating_sub(1) as u64);
        // The first slot is relative to the bound, which may be lower than the base: the size is never underestimated.
        let mut previous = self.firsts.0;
        for (index, &target) in targets[..degree_max].iter().enumerate() {
            let before = size;
            size.add_slot(target - previous);
            if size.bytes() > bytes_max {
                return (index, before);
            }
            previous = target;
        }
        (degree_max, size)
    }

    /// Makes the lower bound of first targets at most `first`. The span is then at least doubled,
    /// so that a block is measured again at most 48 times.
    fn make_room_below(&mut self, first: u64) {
        if self.is_empty() {
            self.firsts = (first, first);
        }
        if first < self.firsts.0 {
            self.firsts.0 = first.saturating_sub(self.firsts.1 - first);
            self.size = self.measure();
        }
        self.firsts.1 = self.firsts.1.max(first);
    }

    fn measure(&self) -> Size {
        let mut size = Size::default();
        let mut slots = self.slots.iter();
        for (index, &degree) in self.degrees.iter().enumerate() {
            size.add_list(self.gap(index), u64::from(degree) - 1);
            for (position, &slot) in slots.by_ref().take(degree as usize).enumerate() {
                size.add_slot(if position == 0 { slot - self.firsts.0 } else { slot });
            }
        }
        size
    }

    /// The number of sources without a list before list `index`.
    fn gap(&self, index: usize) -> u64 {
        if index == 0 { 0 } else { self.sources[index] - self.sources[index - 1] - 1 }
    }

    fn add(&mut self, source: u64, targets: &[u64], size: Size) {
        self.sources.push(source);
        self.degrees.push(targets.len() as u32);
        self.slots.push(targets[0]);
        self.slots.extend(targets.windows(2).map(|pair| pair[1] - pair[0]));
        self.size = size;
    }

    fn encode(&mut self, first_edge: u64, continues: bool) -> EncodedBlock {
        // Only now is the smallest first target known.
        let base = self.rebase();
        let mut targets = Vec::new();
        let mut widths = Vec::new();
        let mut checkpoints = Vec::new();
        for (index, chunk) in self.slots.chunks(CHUNK).enumerate() {
            // A chunk of 16 numbers of w bits takes 2w bytes: always even, so half of the position fits 16 bits.
            if index % STRIDE == 0 {
                checkpoints.extend(((targets.len() / 2) as u16).to_le_bytes());
            }
            // The OR of all numbers is as wide as the widest.
            let width = width_of(chunk.iter().fold(0, |all, slot| all | slot));
            widths.push(width);
            pack(chunk.iter().copied(), width, &mut targets);
        }
        let first_source = self.sources[0];
        let last_source = self.sources[self.sources.len() - 1];
        let header = Header {
            flags: if self.continued { FLAG_CONTINUED } else { 0 } | if continues { FLAG_CONTINUES } else { 0 },
            lists: self.sources.len(),
            edges: self.slots.len(),
            first_source,
            span: (last_source - first_source + 1) as u32,
            first_edge,
            base,
            targets_len: targets.len(),
        };
        let mut bytes = Vec::with_capacity(self.size.bytes());
        header.write(&mut bytes);
        bytes.extend(targets);
        bytes.extend(widths);
        self.encode_groups(&mut bytes);
        bytes.extend(checkpoints);
        let entry = BlockEntry { first_source, first_edge, edges: self.slots.len() as u32 };
        EncodedBlock { bytes, entry }
    }

    /// Makes each list's first slot relative to the smallest of them, which is returned.
    fn rebase(&mut self) -> u64 {
        let mut starts = Vec::with_capacity(self.degrees.len());
        let mut start = 0;
        for &degree in &self.degrees {
            starts.push(start);
            start += degree as usize;
        }
        let base = starts.iter().map(|&start| self.slots[start]).min().unwrap_or(0);
        starts.iter().for_each(|&start| self.slots[start] -= base);
        base
    }

    /// Appends the groups and then their directory.
    fn encode_groups(&self, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        let mut directory = Vec::new();
        let mut edge = 0;
        for group in (0..self.sources.len()).step_by(GROUP) {
            let lists = group..(group + GROUP).min(self.sources.len());
            let gaps = lists.clone().map(|index| if index == group { 0 } else { self.gap(index) });
            let degrees = self.degrees[lists].iter().map(|&degree| u64::from(degree) - 1);
            let entry = GroupEntry {
                source: (self.sources[group] - self.sources[0]) as u32,
                edge,
                position: bytes.len() - start,
                gap_width: width_of(gaps.clone().fold(0, |all, gap| all | gap)),
                degree_width: width_of(degrees.clone().fold(0, |all, degree| all | degree)),
            };
            entry.write(&mut directory);
            // Each list has an edge, so degrees are stored less 1: lists of one edge take 0 bits.
            edge += degrees.clone().map(|degree| degree as usize + 1).sum::<usize>();
            pack(gaps, entry.gap_width, bytes);
            pack(degrees, entry.degree_width, bytes);
        }
        bytes.extend(directory);
    }
}

/// The size of a block, kept while it grows.
#[derive(Debug, Default, Clone, Copy)]
struct Size {
    slots: usize,
    lists: usize,
    /// Bytes of full chunks and full groups.
    full: usize,
    /// All numbers of the open chunk or group, or-ed.
    open_slots: u64,
    open_gaps: u64,
    open_degrees: u64,
}

impl Size {
    fn add_slot(&mut self, slot: u64) {
        self.slots += 1;
        self.open_slots |= slot;
        if self.slots.is_multiple_of(CHUNK) {
            self.full += packed_len(CHUNK, width_of(self.open_slots));
            self.open_slots = 0;
        }
    }

    fn add_list(&mut self, gap: u64, degree: u64) {
        self.lists += 1;
        self.open_gaps |= gap;
        self.open_degrees |= degree;
        if self.lists.is_multiple_of(GROUP) {
            self.full += self.open_group(GROUP);
            self.open_gaps = 0;
            self.open_degrees = 0;
        }
    }

    fn open_group(&self, lists: usize) -> usize {
        packed_len(lists, width_of(self.open_gaps)) + packed_len(lists, width_of(self.open_degrees))
    }

    fn bytes(&self) -> usize {
        let (chunks, groups, checkpoints) = counts(self.slots, self.lists);
        let open = packed_len(self.slots % CHUNK, width_of(self.open_slots)) + self.open_group(self.lists % GROUP);
        HEADER + self.full + open + chunks + ENTRY * groups + 2 * checkpoints
    }
}
