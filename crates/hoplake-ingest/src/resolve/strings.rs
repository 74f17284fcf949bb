//! String keys in memory: an arena of texts, and their places sorted by hash.
//!
//! ```text
//! arena  vertex : u64 | length : u32 | text …
//! entry  top 28 bits of the hash | position in the arena : 36 bits
//! ```
//!
//! A look-up verifies the text, so equal hashes cost time and never an answer.

use hoplake_format::LabelId;
use xxhash_rust::xxh3::xxh3_64;

use super::{DIRECTORY_BYTES_PER_KEY, Directory, GROUP_LEN, PROBE_LEN, UNKNOWN, reserve, with_label};

const POSITION_BITS: u32 = 36;
const HEADER_BYTES: usize = 12;
/// The largest arena, 64 GiB.
pub(super) const ARENA_BYTES_MAX: usize = 1 << POSITION_BITS;

/// The hash of a key; the low bits choose a partition, the high bits a bucket.
#[inline]
pub(super) fn hash(key: &str) -> u64 {
    xxh3_64(key.as_bytes())
}

/// Keys and vertices on their way into a table.
#[derive(Debug, Default)]
pub(super) struct StringRows {
    arena: Vec<u8>,
    entries: Vec<u64>,
}

impl StringRows {
    pub(super) fn push(&mut self, key: &str, vertex: u64) {
        reserve(&mut self.entries, 1);
        self.entries.push(hash(key) >> POSITION_BITS << POSITION_BITS | self.arena.len() as u64);
        reserve(&mut self.arena, HEADER_BYTES + key.len());
        self.arena.extend_from_slice(&vertex.to_le_bytes());
        self.arena.extend_from_slice(&(key.len() as u32).to_le_bytes());
        self.arena.extend_from_slice(key.as_bytes());
    }

    /// The size of the finished table.
    pub(super) fn bytes(&self) -> usize {
        self.arena.capacity() + self.entries.capacity() * size_of::<u64>() + self.entries.len() * DIRECTORY_BYTES_PER_KEY
    }

    pub(super) fn arena_bytes(&self) -> usize {
        self.arena.len()
    }

    /// Everything that was pushed, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        let mut position = 0;
        std::iter::from_fn(move || {
            (position < self.arena.len()).then(|| {
                let (vertex, text) = row(&self.arena, position);
                position += HEADER_BYTES + text.len();
                (std::str::from_utf8(text).expect("keys are pushed as text"), vertex)
            })
        })
    }

    pub(super) fn finish(mut self) -> StringTable {
        self.entries.sort_unstable();
        let directory = Directory::new(self.entries.iter().copied(), u64::BITS - POSITION_BITS);
        let len = self.entries.len();
        // A probe may look past the last entry.
        self.entries.reserve_exact(PROBE_LEN);
        self.entries.extend([u64::MAX; PROBE_LEN]);
        self.entries.shrink_to_fit();
        self.arena.shrink_to_fit();
        StringTable { arena: self.arena, entries: self.entries, len, directory }
    }
}

/// The vertex and text at a position of the arena.
#[inline]
fn row(arena: &[u8], position: usize) -> (u64, &[u8]) {
    let (header, rest) = arena[position..].split_at(HEADER_BYTES);
    let vertex = u64::from_le_bytes(header[..8].try_into().expect("eight bytes"));
    let length = u32::from_le_bytes(header[8..].try_into().expect("four bytes"));
    (vertex, &rest[..length as usize])
}

/// String keys and their vertices.
#[derive(Debug)]
pub(super) struct StringTable {
    arena: Vec<u8>,
    /// Places, and then as many that mean nothing as a probe takes.
    entries: Vec<u64>,
    len: usize,
    directory: Directory,
}

impl StringTable {
    pub(super) fn bytes(&self) -> usize {
        self.arena.capacity() + self.entries.capacity() * size_of::<u64>() + self.directory.bytes()
    }

    /// Looks keys up, in steps over groups for the reason that [`IntegerTable`](super::integers::IntegerTable) has.
    pub(super) fn resolve<'a>(
        &self,
        keys: impl Iterator<Item = &'a str>,
        label: Option<LabelId>,
        vertices: &mut Vec<u64>,
    ) {
        let mut keys = keys.fuse();
        let mut group = Vec::with_capacity(GROUP_LEN);
        loop {
            group.clear();
            group.extend(keys.by_ref().take(GROUP_LEN));
            if group.is_empty() {
                return;
            }
            self.resolve_group(&group, label, vertices);
        }
    }

    fn resolve_group(&self, keys: &[&str], label: Option<LabelId>, vertices: &mut Vec<u64>) {
        let mut probes = [(0, (0, 0)); GROUP_LEN];
        let mut candidates = [(0, 0); GROUP_LEN];
        for (probe, key) in probes.iter_mut().zip(keys) {
            let hash = hash(key);
            *probe = (hash, self.directory.bucket(hash));
        }
        for (candidate, &(hash, bucket)) in candidates.iter_mut().zip(&probes[..keys.len()]) {
            let position = self.candidate(hash, bucket);
            // The byte is of no use here; it brings the line of the arena on its way.
            *candidate = (position, self.touch(position));
        }
        vertices.extend(keys.iter().zip(&probes).zip(&candidates).map(|((key, &(hash, _)), &(position, touched))| {
            // The lowest byte of the length tells most wrong candidates apart.
            let first = if touched == key.len() as u8 { position } else { position + 1 };
            with_label(self.find(key.as_bytes(), hash, first), label)
        }));
    }

    /// The first entry of the bucket with the same top of the hash, or `len`.
    #[inline]
    fn candidate(&self, hash: u64, (start, end): (u32, u32)) -> usize {
        let (start, end) = (start as usize, end as usize);
        let (probe, _) = self.entries[start..].split_first_chunk::<PROBE_LEN>().expect("entries end with a probe");
        let choose = |found, offset: usize| if same_top(probe[offset], hash) { start + offset } else { found };
        let found = (0..PROBE_LEN).rev().fold(self.len, choose).min(self.len);
        if found < self.len || end - start <= PROBE_LEN {
            return found;
        }
        (start + PROBE_LEN..end).find(|&position| same_top(self.entries[position], hash)).unwrap_or(self.len)
    }

    #[inline]
    fn touch(&self, position: usize) -> u8 {
        self.entries[..self.len].get(position).map_or(0, |&entry| self.arena[position_of(entry) + 8])
    }

    /// The vertex of a key, whose entry is the first of those with the same top of the hash, or one after it.
    #[inline]
    fn find(&self, key: &[u8], hash: u64, first: usize) -> u64 {
        let entries = self.entries[..self.len].get(first..).unwrap_or_default();
        for &entry in entries.iter().take_while(|&&entry| same_top(entry, hash)) {
            let (vertex, text) = row(&self.arena, position_of(entry));
            if text == key {
                return vertex;
            }
        }
        UNKNOWN
    }
}

#[inline]
fn same_top(entry: u64, hash: u64) -> bool {
    (entry ^ hash) >> POSITION_BITS == 0
}

#[inline]
fn position_of(entry: u64) -> usize {
    (entry & ((1 << POSITION_BITS) - 1)) as usize
}
