//! Groups of 64 lists: which sources they have, and where their edges are.

use super::Block;
use super::layout::{GROUP, GroupEntry, corrupt};
use super::pack::{CHUNK, packed_len, unpack};
use crate::FormatError;

/// Where a list is within a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListLocation {
    pub edge: usize,
    pub degree: usize,
}

/// The packed gaps and degrees of a group.
pub(super) struct Numbers<'a> {
    /// The group's packed numbers and what follows them.
    data: &'a [u8],
    pub first_source: u64,
    first_edge: usize,
    len: usize,
    gap_width: u8,
    degree_width: u8,
    degrees_at: usize,
}

impl<'a> Numbers<'a> {
    pub(super) fn of(block: &Block<'a>, group: usize) -> Result<Self, FormatError> {
        let entry = GroupEntry::read(block.parts.directory, group);
        let len = GROUP.min(block.header.lists - group * GROUP);
        let data = block.parts.groups.get(entry.position..);
        // Within these widths no sum of 64 gaps or degrees overflows.
        let data = data.filter(|_| entry.gap_width <= 32 && entry.degree_width <= 16);
        Ok(Self {
            data: data.ok_or_else(|| corrupt(format!("group {group} is not in it: {entry:?}")))?,
            first_source: block.header.first_source + u64::from(entry.source),
            first_edge: entry.edge,
            len,
            gap_width: entry.gap_width,
            degree_width: entry.degree_width,
            degrees_at: packed_len(len, entry.gap_width),
        })
    }

    /// The gaps of 16 lists from list 16 · `chunk` on.
    fn gaps(&self, chunk: usize, out: &mut [u64; CHUNK]) -> Result<(), FormatError> {
        let position = 2 * usize::from(self.gap_width) * chunk;
        unpack(self.data, position, self.gap_width, out).ok_or_else(|| corrupt("a group's sources are cut"))
    }

    /// The degrees, less one, of 16 lists from list 16 · `chunk` on.
    fn degrees(&self, chunk: usize, out: &mut [u64; CHUNK]) -> Result<(), FormatError> {
        let position = self.degrees_at + 2 * usize::from(self.degree_width) * chunk;
        unpack(self.data, position, self.degree_width, out).ok_or_else(|| corrupt("a group's degrees are cut"))
    }

    /// Where the list of the source that is `reach` after the group's first is.
    pub(super) fn find(&self, reach: u64) -> Result<Option<ListLocation>, FormatError> {
        let Some(index) = self.index_of(reach)? else { return Ok(None) };
        let mut numbers = [0; CHUNK];
        let mut edge = self.first_edge;
        for chunk in 0..index / CHUNK {
            self.degrees(chunk, &mut numbers)?;
            edge += CHUNK + numbers.iter().sum::<u64>() as usize;
        }
        self.degrees(index / CHUNK, &mut numbers)?;
        let before = &numbers[..index % CHUNK];
        edge += before.len() + before.iter().sum::<u64>() as usize;
        Ok(Some(ListLocation { edge, degree: numbers[index % CHUNK] as usize + 1 }))
    }

    /// Which list of the group it is that is `reach` sources after the first.
    fn index_of(&self, reach: u64) -> Result<Option<usize>, FormatError> {
        // All gaps are 0: sources are consecutive, and the reach is the index.
        if self.gap_width == 0 {
            return Ok(usize::try_from(reach).ok().filter(|&index| index < self.len));
        }
        let mut numbers = [0; CHUNK];
        // One more than the reach of the list before.
        let mut next = 0;
        for start in (0..self.len).step_by(CHUNK) {
            self.gaps(start / CHUNK, &mut numbers)?;
            let here = CHUNK.min(self.len - start);
            for (index, gap) in numbers[..here].iter().enumerate() {
                next += gap;
                // Sources ascend: past the reach, the source is not in the group.
                if next >= reach {
                    return Ok((next == reach).then_some(start + index));
                }
                next += 1;
            }
        }
        Ok(None)
    }
}

/// A group, unpacked.
pub(super) struct Group {
    pub len: usize,
    pub sources: [u64; GROUP],
    /// The first list's first edge.
    pub start: usize,
    /// The end of each list.
    pub ends: [usize; GROUP],
}

impl Default for Group {
    fn default() -> Self {
        Self { len: 0, sources: [0; GROUP], start: 0, ends: [0; GROUP] }
    }
}

impl Group {
    pub(super) fn load(&mut self, block: &Block<'_>, group: usize) -> Result<(), FormatError> {
        let numbers = Numbers::of(block, group)?;
        self.len = numbers.len;
        self.start = numbers.first_edge;
        let mut source = numbers.first_source;
        let mut edge = self.start;
        let mut gaps = [0; CHUNK];
        let mut degrees = [0; CHUNK];
        let (sources, _) = self.sources.as_chunks_mut::<CHUNK>();
        let (ends, _) = self.ends.as_chunks_mut::<CHUNK>();
        for (chunk, (sources, ends)) in sources.iter_mut().zip(ends).enumerate().take(numbers.len.div_ceil(CHUNK)) {
            numbers.gaps(chunk, &mut gaps)?;
            numbers.degrees(chunk, &mut degrees)?;
            // All sixteen, without a branch for a last chunk that has fewer: what follows `len` is never read.
            for index in 0..CHUNK {
                source += gaps[index];
                sources[index] = source;
                source += 1;
                edge += degrees[index] as usize + 1;
                ends[index] = edge;
            }
        }
        Ok(())
    }

    /// Calls `found` with each of `wanted`, which ascend, that is in the group.
    pub(super) fn join(
        &self,
        wanted: &[u64],
        mut found: impl FnMut(u64, ListLocation) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        let sources = &self.sources[..self.len];
        let mut index = 0;
        for &source in wanted {
            index += sources[index..].partition_point(|&here| here < source);
            if sources.get(index) == Some(&source) {
                let edge = if index == 0 { self.start } else { self.ends[index - 1] };
                found(source, ListLocation { edge, degree: self.ends[index] - edge })?;
            }
        }
        Ok(())
    }
}
