//! Where things are in a block: the constants that must never change, and the header.

use super::pack::CHUNK;
use crate::{FormatError, VertexId};

/// The first byte of a block: this layout.
pub(super) const CODEC: u8 = 1;

/// The first list goes on from the block before.
pub(super) const FLAG_CONTINUED: u8 = 1;

/// The last list goes on in the block after.
pub(super) const FLAG_CONTINUES: u8 = 2;

/// The length of a header in bytes.
pub(super) const HEADER: usize = 32;

/// How many lists share a group, an entry of the directory.
pub(super) const GROUP: usize = 64;

/// The length of a directory entry in bytes.
pub(super) const ENTRY: usize = 10;

/// How many chunks share a checkpoint.
pub(super) const STRIDE: usize = 32;

/// The most edges of a block: positions within it are 16 bits.
pub(super) const EDGES_MAX: usize = u16::MAX as usize;

/// The header, checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub flags: u8,
    pub lists: usize,
    pub edges: usize,
    pub first_source: u64,
    /// Last source − first source + 1.
    pub span: u32,
    pub first_edge: u64,
    /// The base of the first slot of each list.
    pub base: u64,
    pub targets_len: usize,
}

/// The five parts of a block after its header.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts<'a> {
    /// The packed targets. It includes what follows them, so that loads of full words stay within it.
    pub targets: &'a [u8],
    pub widths: &'a [u8],
    /// The packed sources and degrees. It runs on, likewise, over the directory.
    pub groups: &'a [u8],
    pub directory: &'a [u8],
    pub checkpoints: &'a [u8],
}

/// The numbers of chunks, directory entries and checkpoints for these edges and lists.
pub(super) fn counts(edges: usize, lists: usize) -> (usize, usize, usize) {
    let chunks = edges.div_ceil(CHUNK);
    (chunks, lists.div_ceil(GROUP), chunks.div_ceil(STRIDE))
}

impl Header {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend([CODEC, self.flags]);
        out.extend((self.lists as u16).to_le_bytes());
        out.extend((self.edges as u16).to_le_bytes());
        out.extend(self.span.to_le_bytes());
        for ordinal in [self.first_source, self.first_edge, self.base] {
            out.extend(&ordinal.to_le_bytes()[..6]);
        }
        out.extend((self.targets_len as u32).to_le_bytes());
    }

    /// Reads and checks the header, and cuts the rest into parts. O(1).
    pub(super) fn parse(bytes: &[u8]) -> Result<(Self, Parts<'_>), FormatError> {
        let Some((head, body)) = bytes.split_first_chunk::<HEADER>() else {
            return Err(corrupt(format!("it has {} bytes, fewer than a header's {HEADER}", bytes.len())));
        };
        if head[0] != CODEC {
            return Err(FormatError::Unsupported {
                what: "adjacency block",
                found: format!("codec {}", head[0]),
                supported: format!("codec {CODEC}"),
            });
        }
        let header = Self {
            flags: head[1],
            lists: usize::from(u16_at(head, 2)),
            edges: usize::from(u16_at(head, 4)),
            span: u32_at(head, 6),
            first_source: u48_at(head, 10),
            first_edge: u48_at(head, 16),
            base: u48_at(head, 22),
            targets_len: u32_at(head, 28) as usize,
        };
        header.check()?;
        let parts = header.cut(body).ok_or_else(|| {
            corrupt(format!("{} bytes are too few for {} lists and {} edges", bytes.len(), header.lists, header.edges))
        })?;
        Ok((header, parts))
    }

    fn check(&self) -> Result<(), FormatError> {
        if self.flags & !(FLAG_CONTINUED | FLAG_CONTINUES) != 0 {
            return Err(corrupt(format!("its flags are {:#04x}", self.flags)));
        }
        // No list is empty and each has a source of its own.
        if self.lists == 0 || self.edges < self.lists || (self.span as usize) < self.lists {
            let Self { lists, edges, span, .. } = self;
            return Err(corrupt(format!("{lists} lists cannot have {edges} edges over {span} sources")));
        }
        if self.first_source + u64::from(self.span) - 1 > VertexId::ORDINAL_MAX {
            return Err(corrupt(format!("{} sources from {} on pass 2^48", self.span, self.first_source)));
        }
        Ok(())
    }

    /// The parts, or `None` if there are too few bytes for them.
    fn cut<'a>(&self, body: &'a [u8]) -> Option<Parts<'a>> {
        let (chunks, groups, checkpoints) = counts(self.edges, self.lists);
        // From the back: directory and checkpoints end the block, and only the length of the targets is stored.
        let (front, checkpoints) = body.split_at(body.len().checked_sub(2 * checkpoints)?);
        let groups_end = front.len().checked_sub(ENTRY * groups)?;
        let widths_end = self.targets_len.checked_add(chunks)?;
        Some(Parts {
            targets: front,
            widths: front.get(self.targets_len..widths_end)?,
            groups: front.get(widths_end..).filter(|_| widths_end <= groups_end)?,
            directory: &front[groups_end..],
            checkpoints,
        })
    }
}

/// An entry of the directory: the state at the first list of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GroupEntry {
    /// Its source, from the block's first on.
    pub source: u32,
    /// Its first edge, from the block's first on.
    pub edge: usize,
    /// Where its packed numbers start in [`Parts::groups`].
    pub position: usize,
    /// The width of the gaps between sources.
    pub gap_width: u8,
    /// The width of the degrees.
    pub degree_width: u8,
}

impl GroupEntry {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.source.to_le_bytes());
        out.extend((self.edge as u16).to_le_bytes());
        out.extend((self.position as u16).to_le_bytes());
        out.extend([self.gap_width, self.degree_width]);
    }

    /// The entry of group `group`, which must be within `directory`.
    pub(super) fn read(directory: &[u8], group: usize) -> Self {
        let entry = &directory[group * ENTRY..][..ENTRY];
        Self {
            source: u32_at(entry, 0),
            edge: usize::from(u16_at(entry, 4)),
            position: usize::from(u16_at(entry, 6)),
            gap_width: entry[8],
            degree_width: entry[9],
        }
    }
}

pub(super) fn corrupt(why: impl Into<String>) -> FormatError {
    FormatError::corrupt("adjacency block", why)
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("the slice has 2 bytes"))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("the slice has 4 bytes"))
}

fn u48_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u16_at(bytes, at + 4)) << 32
}
