//! Blocks to lists.
//!
//! Nothing is trusted: a block that was cut, flipped or made up yields an error or wrong lists of
//! at most 65,535 edges, never a panic. (Wrong lists are for the checksum of the layer above.)

use std::ops::Range;

use super::Lists;
use super::group::{Group, ListLocation, Numbers};
use super::layout::{ENTRY, FLAG_CONTINUED, FLAG_CONTINUES, Header, Parts, STRIDE, corrupt, u16_at, u32_at};
use super::pack::{CHUNK, unpack};
use crate::{FormatError, VertexId};

/// From this many sources of a group on, unpacking the entire group is faster.
const GROUP_LOAD_MIN: usize = 4;

/// A block whose header was checked. It borrows the bytes and holds nothing else.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    pub(super) header: Header,
    pub(super) parts: Parts<'a>,
}

impl<'a> Block<'a> {
    /// Reads the header of a block. O(1), without allocation.
    ///
    /// # Errors
    /// [`FormatError::Corrupt`] if the header contradicts itself or the number of bytes,
    /// [`FormatError::Unsupported`] if the block is of another codec.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let (header, parts) = Header::parse(bytes)?;
        Ok(Self { header, parts })
    }

    /// The source of the first list.
    pub fn first_source(&self) -> u64 {
        self.header.first_source
    }

    /// The source of the last list.
    pub fn last_source(&self) -> u64 {
        self.header.first_source + u64::from(self.header.span) - 1
    }

    /// The number of lists, none of which is empty.
    pub fn lists_len(&self) -> usize {
        self.header.lists
    }

    /// The number of edges, from 1 to 65,535.
    pub fn edges_len(&self) -> usize {
        self.header.edges
    }

    /// The position of the first edge in the section.
    pub fn first_edge(&self) -> u64 {
        self.header.first_edge
    }

    /// Whether the first list goes on from the block before.
    pub fn is_continued(&self) -> bool {
        self.header.flags & FLAG_CONTINUED != 0
    }

    /// Whether the last list goes on in the block after.
    pub fn continues(&self) -> bool {
        self.header.flags & FLAG_CONTINUES != 0
    }

    /// How many edges `source` has in this block; 0 if it is not there. A hub has more elsewhere.
    ///
    /// # Errors
    /// [`FormatError::Corrupt`] if the group of `source` is damaged.
    pub fn degree(&self, source: u64) -> Result<usize, FormatError> {
        Ok(self.find(source)?.map_or(0, |list| list.degree))
    }

    /// Appends the targets that `source` has in this block, and returns the position in the section
    /// of the first; `None` if there is none. O(log lists + 64 + degree).
    ///
    /// # Errors
    /// [`FormatError::Corrupt`] if a group or chunk on the way is damaged; `targets` is then as before.
    pub fn list(&self, source: u64, targets: &mut Vec<u64>) -> Result<Option<u64>, FormatError> {
        let Some(list) = self.find(source)? else { return Ok(None) };
        self.read(list, targets)?;
        Ok(Some(self.header.first_edge + list.edge as u64))
    }

    /// Appends the lists of those of `sources`, which ascend, that have edges in this block.
    /// As [`Self::list`] for each, but a group is unpacked once for all its sources.
    ///
    /// # Errors
    /// As for [`Self::list`]; the lists before the damage stay.
    pub fn lists(&self, sources: &[u64], into: &mut Lists) -> Result<(), FormatError> {
        debug_assert!(sources.is_sorted(), "a batch is sorted");
        let first = sources.partition_point(|&source| source < self.first_source());
        let end = sources.partition_point(|&source| source <= self.last_source());
        // An unsorted batch could give an inverted range, which ends here instead of in a panic.
        let Some(mut wanted) = sources.get(first..end) else { return Ok(()) };
        let mut group = Group::default();
        while let Some(&source) = wanted.first() {
            let index = self.group_of(source);
            let next_group = (index + 1 < self.groups_len()).then(|| self.group_source(index + 1));
            let here = wanted.partition_point(|&source| next_group.is_none_or(|next| source < next));
            // A damaged directory may not ascend; a source must be used up all the same.
            let (now, later) = wanted.split_at(here.max(1));
            wanted = later;
            if now.len() < GROUP_LOAD_MIN {
                for &source in now {
                    self.append(source, self.find(source)?, into)?;
                }
                continue;
            }
            group.load(self, index)?;
            group.join(now, |source, list| self.append(source, Some(list), into))?;
        }
        Ok(())
    }

    fn append(&self, source: u64, list: Option<ListLocation>, into: &mut Lists) -> Result<(), FormatError> {
        let Some(list) = list else { return Ok(()) };
        self.read(list, &mut into.targets)?;
        into.sources.push(source);
        into.first_edges.push(self.header.first_edge + list.edge as u64);
        into.offsets.push(into.targets.len());
        Ok(())
    }

    /// What the first slot of each list counts from.
    pub fn base(&self) -> u64 {
        self.header.base
    }

    /// Replaces the contents of `into` by the slots of all edges, in one pass: of each list the first target less [`Self::base`], then the
    /// gaps to its next ones. What follows the last edge means nothing.
    ///
    /// # Errors
    /// [`FormatError::Corrupt`] if a chunk is damaged.
    pub fn slots(&self, into: &mut Vec<u64>) -> Result<(), FormatError> {
        into.resize(self.header.edges.next_multiple_of(CHUNK), 0);
        Unpacked { block: self, chunk: 0, position: 0 }.up_to(self.header.edges, into)
    }

    /// Replaces the contents of `into` by all lists of the block. O(edges), in one pass.
    ///
    /// # Errors
    /// [`FormatError::Corrupt`] if a group or a chunk is damaged; `into` is then empty.
    pub fn decode_all(&self, into: &mut Lists) -> Result<(), FormatError> {
        let result = self.decode_into(into);
        if result.is_err() {
            into.clear();
        }
        result
    }

    fn decode_into(&self, into: &mut Lists) -> Result<(), FormatError> {
        let edges = self.header.edges;
        into.sources.clear();
        into.first_edges.clear();
        // The first offset, 0, stays.
        into.offsets.truncate(1);
        // Not cleared first: what is overwritten below need not be set to zero.
        into.targets.resize(edges.next_multiple_of(CHUNK), 0);
        let mut unpacked = Unpacked { block: self, chunk: 0, position: 0 };
        let mut group = Group::default();
        let mut start = 0;
        for index in 0..self.groups_len() {
            group.load(self, index)?;
            let ends = &group.ends[..group.len];
            let end = ends.last().copied().unwrap_or(start);
            // Groups must follow each other without gaps: the slices of targets below rely on it.
            if group.start != start || end > edges {
                return Err(corrupt(format!("group {index} has edges {} to {end}, not from {start} on", group.start)));
            }
            let first = group.sources[0];
            let last = group.sources[group.len - 1];
            if into.sources.last().is_some_and(|before| first <= *before) || last > self.last_source() {
                return Err(corrupt(format!("group {index} has sources {first} to {last}, which are not its own")));
            }
            into.sources.extend_from_slice(&group.sources[..group.len]);
            into.first_edges.push(self.header.first_edge + start as u64);
            into.first_edges.extend(ends[..group.len - 1].iter().map(|&edge| self.header.first_edge + edge as u64));
            into.offsets.extend_from_slice(ends);
            unpacked.up_to(end, &mut into.targets)?;
            // Targets ascend, so the last of each list is its largest, and one check is enough for the group.
            check_target(sum_lists(self.header.base, &mut into.targets[start..end], start, ends))?;
            start = end;
        }
        if start != edges {
            return Err(corrupt(format!("its lists have {start} of {edges} edges")));
        }
        into.targets.truncate(edges);
        Ok(())
    }

    fn groups_len(&self) -> usize {
        self.parts.directory.len() / ENTRY
    }

    fn group_source(&self, group: usize) -> u64 {
        self.header.first_source + u64::from(u32_at(self.parts.directory, group * ENTRY))
    }

    /// The last group that starts at or before `source`, or the first.
    fn group_of(&self, source: u64) -> usize {
        let mut low = 0;
        let mut high = self.groups_len();
        while high - low > 1 {
            let middle = low.midpoint(high);
            if self.group_source(middle) <= source { low = middle } else { high = middle }
        }
        low
    }

    /// Where the list of `source` is. O(log lists + 64).
    fn find(&self, source: u64) -> Result<Option<ListLocation>, FormatError> {
        if source < self.first_source() || source > self.last_source() {
            return Ok(None);
        }
        let index = self.group_of(source);
        let numbers = Numbers::of(self, index)?;
        match source.checked_sub(numbers.first_source) {
            Some(reach) => numbers.find(reach),
            None => Ok(None),
        }
    }

    /// Appends the targets of a list. O(degree), plus at most 31 widths to reach its first chunk.
    fn read(&self, list: ListLocation, targets: &mut Vec<u64>) -> Result<(), FormatError> {
        let end = list.edge + list.degree;
        if end > self.header.edges {
            return Err(corrupt(format!("a list has edges {} to {end} of {}", list.edge, self.header.edges)));
        }
        // A list begins anywhere in a chunk: the slots before it belong to other lists and are skipped.
        let mut chunk = list.edge / CHUNK;
        let mut position = self.chunk_position(chunk);
        let before = targets.len();
        let mut target = self.header.base;
        let mut slots = [0; CHUNK];
        let mut skipped = list.edge % CHUNK;
        let mut left = list.degree;
        while left > 0 {
            // In range: `end` is at most the number of edges, and there is a width for each 16 of them.
            let width = self.parts.widths[chunk];
            if unpack(self.parts.targets, position, width, &mut slots).is_none() {
                targets.truncate(before);
                return Err(bad_chunk(chunk, width));
            }
            let here = left.min(CHUNK - skipped);
            targets.extend(slots[skipped..skipped + here].iter().map(|slot| {
                target += slot;
                target
            }));
            position += 2 * usize::from(width);
            chunk += 1;
            left -= here;
            skipped = 0;
        }
        check_target(target).inspect_err(|_| targets.truncate(before))
    }

    /// Where a chunk starts, from its checkpoint on.
    fn chunk_position(&self, chunk: usize) -> usize {
        let checkpoint = chunk / STRIDE;
        let widths = &self.parts.widths[checkpoint * STRIDE..chunk];
        let skipped: usize = widths.iter().map(|&width| usize::from(width)).sum();
        2 * (usize::from(u16_at(self.parts.checkpoints, 2 * checkpoint)) + skipped)
    }
}

/// Turns the slots of lists, which start at `start` and end at each of `ends`, into targets, in
/// place. Returns a number that passes 2^48 if a target does. No sum overflows: 65,536 numbers
/// below 2^48 stay below 2^64. O(slots).
fn sum_lists(base: u64, mut slots: &mut [u64], mut start: usize, ends: &[usize]) -> u64 {
    let mut all = 0;
    // Many-to-one edges: every list has one target, and the loop has no list in it.
    if slots.len() == ends.len() {
        for slot in slots {
            *slot += base;
            all |= *slot;
        }
        return all;
    }
    for &end in ends {
        let (list, rest) = slots.split_at_mut(end - start);
        let mut target = base;
        for slot in list {
            target += *slot;
            *slot = target;
        }
        all |= target;
        slots = rest;
        start = end;
    }
    all
}

/// Reads lists of a block by the positions of their edges, for those who keep these: no source is looked for. Fastest in order,
/// where each chunk is found from the one before.
#[derive(Debug, Clone)]
pub struct ListReader<'a> {
    block: Block<'a>,
    /// The chunk that was found last, and where it starts.
    chunk: usize,
    position: usize,
}

impl<'a> ListReader<'a> {
    /// Reads lists of a block.
    pub fn new(block: Block<'a>) -> Self {
        Self { block, chunk: 0, position: 0 }
    }

    /// The block.
    pub fn block(&self) -> &Block<'a> {
        &self.block
    }

    /// Appends the targets of the list that has some edges of the block, counted from its first, each as `map` has it. The edges must
    /// be all that the list has in the block. O(edges), plus at most 31 widths to reach the first of them.
    ///
    /// # Errors
    /// [`FormatError::Corrupt`] if the block has no such edges, or if a chunk on the way is damaged; `into` then has those before it.
    #[inline]
    pub fn read<T>(
        &mut self,
        edges: Range<usize>,
        map: impl Fn(u64) -> T,
        into: &mut Vec<T>,
    ) -> Result<(), FormatError> {
        let mut target = self.block.header.base;
        self.each_chunk(edges, |slots| {
            into.extend(slots.iter().map(|slot| {
                target += slot;
                map(target)
            }));
            true
        })
    }

    /// Whether a list has a target that `is_wanted`. As [`Self::read`], but no further than the chunk that has it.
    ///
    /// # Errors
    /// As [`Self::read`].
    #[inline]
    pub fn any(&mut self, edges: Range<usize>, mut is_wanted: impl FnMut(u64) -> bool) -> Result<bool, FormatError> {
        let mut target = self.block.header.base;
        let mut found = false;
        self.each_chunk(edges, |slots| {
            found = slots.iter().any(|slot| {
                target += slot;
                is_wanted(target)
            });
            !found
        })?;
        Ok(found)
    }

    /// Calls `each` with the slots of a list, chunk by chunk, until it returns `false`.
    #[inline]
    fn each_chunk(&mut self, edges: Range<usize>, mut each: impl FnMut(&[u64]) -> bool) -> Result<(), FormatError> {
        if edges.end > self.block.header.edges {
            return Err(corrupt(format!("a list has edges {edges:?} of {}", self.block.header.edges)));
        }
        let mut left = edges.len();
        if left == 0 {
            return Ok(());
        }
        self.seek(edges.start / CHUNK);
        let mut skipped = edges.start % CHUNK;
        let mut slots = [0; CHUNK];
        loop {
            let width = self.block.parts.widths[self.chunk];
            let unpacked = unpack(self.block.parts.targets, self.position, width, &mut slots);
            unpacked.ok_or_else(|| bad_chunk(self.chunk, width))?;
            let here = left.min(CHUNK - skipped);
            left -= here;
            if !each(&slots[skipped..skipped + here]) || left == 0 {
                return Ok(());
            }
            // The next list may begin in the last chunk of this one, which is therefore not passed.
            (self.chunk, self.position, skipped) = (self.chunk + 1, self.position + 2 * usize::from(width), 0);
        }
    }

    /// Finds where a chunk starts.
    #[inline]
    fn seek(&mut self, chunk: usize) {
        // From the one before, if that is no further away than a checkpoint.
        self.position = match chunk.checked_sub(self.chunk) {
            Some(further) if further < STRIDE => {
                let widths = &self.block.parts.widths[self.chunk..chunk];
                self.position + 2 * widths.iter().map(|width| usize::from(*width)).sum::<usize>()
            }
            _ => self.block.chunk_position(chunk),
        };
        self.chunk = chunk;
    }
}

fn check_target(largest: u64) -> Result<(), FormatError> {
    if largest > VertexId::ORDINAL_MAX {
        return Err(corrupt(format!("target {largest} needs more than 48 bits")));
    }
    Ok(())
}

fn bad_chunk(chunk: usize, width: u8) -> FormatError {
    corrupt(format!("chunk {chunk} of width {width} is not in it"))
}

/// The chunks of a block, unpacked in order as far as they are needed.
struct Unpacked<'a> {
    block: &'a Block<'a>,
    chunk: usize,
    position: usize,
}

impl Unpacked<'_> {
    /// Unpacks the chunks of the edges before `end`, which must be within the block.
    #[inline]
    fn up_to(&mut self, end: usize, slots: &mut [u64]) -> Result<(), FormatError> {
        let parts = &self.block.parts;
        let first = self.chunk;
        let last = end.div_ceil(CHUNK);
        if first >= last {
            return Ok(());
        }
        let (outs, _) = slots.as_chunks_mut::<CHUNK>();
        for (&width, out) in parts.widths[first..last].iter().zip(&mut outs[first..last]) {
            if unpack(parts.targets, self.position, width, out).is_none() {
                return Err(bad_chunk(self.chunk, width));
            }
            self.position += 2 * usize::from(width);
            self.chunk += 1;
        }
        Ok(())
    }
}
