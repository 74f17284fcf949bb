//! String keys in memory: an arena of texts, and an entry for each in a table of [`Slots`].
//!
//! ```text
//! arena  vertex : u64 | length : u32 | text …
//! entry  top 28 bits of the hash | position in the arena : 36 bits
//! ```
//!
//! A look-up verifies the text, so equal hashes cost time and never an answer.

use std::hint::select_unpredictable;

use hoplake_format::LabelId;
use xxhash_rust::xxh3::xxh3_64;

use super::{
    GROUP_LEN, UNKNOWN, reserve,
    slots::{Slot, Slots},
    with_label,
};

// 36 bits address 64 GiB of texts. The other 28 tell apart entries of one line, so that most wrong texts are never read.
const POSITION_BITS: u32 = 36;
const HEADER_BYTES: usize = 12;
/// The largest arena, 64 GiB.
pub(super) const ARENA_BYTES_MAX: usize = 1 << POSITION_BITS;

/// The hash of a key; the low bits choose a partition, the high bits a bucket.
#[inline]
pub(super) fn hash(key: &str) -> u64 {
    xxh3_64(key.as_bytes())
}

/// An entry of the table: see the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u64);

impl Entry {
    #[inline]
    fn new(hash: u64, position: usize) -> Self {
        Self(top(hash) | position as u64)
    }

    #[inline]
    fn position(self) -> usize {
        (self.0 & ((1 << POSITION_BITS) - 1)) as usize
    }
}

impl Slot for Entry {
    // The arena never gets to the last position.
    const EMPTY: Self = Self(u64::MAX);

    #[inline]
    fn hash(self) -> u64 {
        top(self.0)
    }
}

/// The bits of a hash that an entry keeps.
#[inline]
fn top(hash: u64) -> u64 {
    hash >> POSITION_BITS << POSITION_BITS
}

/// Keys and vertices on their way into a table.
#[derive(Debug, Default)]
pub(super) struct StringRows {
    arena: Vec<u8>,
    entries: Vec<Entry>,
}

impl StringRows {
    pub(super) fn push(&mut self, key: &str, vertex: u64) {
        // The position is where the header starts, so the entry comes before the bytes.
        reserve(&mut self.entries, 1);
        self.entries.push(Entry::new(hash(key), self.arena.len()));
        reserve(&mut self.arena, HEADER_BYTES + key.len());
        self.arena.extend_from_slice(&vertex.to_le_bytes());
        self.arena.extend_from_slice(&(key.len() as u32).to_le_bytes());
        self.arena.extend_from_slice(key.as_bytes());
    }

    /// The size of the finished table.
    pub(super) fn bytes(&self) -> usize {
        // The table is built in the allocation of the entries: whichever of the two is larger.
        let entries_bytes = self.entries.capacity() * size_of::<Entry>();
        self.arena.capacity() + entries_bytes.max(Slots::<Entry>::bytes_for(self.entries.len()))
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
        // The arena no longer grows; an eighth of it may be reserved and empty.
        self.arena.shrink_to_fit();
        StringTable { arena: self.arena, entries: Slots::new(self.entries) }
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
    entries: Slots<Entry>,
}

impl StringTable {
    pub(super) fn bytes(&self) -> usize {
        self.arena.capacity() + self.entries.bytes()
    }

    /// Looks keys up, a group at a time: first all hashes, then all entries, then all texts. The loads of one
    /// step do not depend on each other, so the processor waits for many at once.
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
        let mut hashes = [(0, 0); GROUP_LEN];
        let mut guesses = [(Entry::EMPTY, [0; 2]); GROUP_LEN];
        for (slot, key) in hashes.iter_mut().zip(keys) {
            // Only the bits that entries keep, so that a key and its entry agree on the line.
            let hash = top(hash(key));
            *slot = (hash, self.entries.line_start(hash));
        }
        for ((guess, &(hash, start)), key) in guesses.iter_mut().zip(&hashes).zip(keys) {
            let entry = self.guess(hash, start);
            *guess = (entry, self.touch(entry.position(), key.len()));
        }
        vertices.extend(
            keys.iter()
                .zip(&hashes)
                .zip(&guesses)
                .map(|((key, &hash), &guess)| with_label(self.find(key.as_bytes(), hash, guess), label)),
        );
    }

    /// The first byte of the length of a row and the last byte of its text, if it is the row of a key of this
    /// length. They are compared before the text; loading them early brings the row's lines on their way.
    #[inline]
    fn touch(&self, position: usize, length: usize) -> [u8; 2] {
        let byte = |at: usize| self.arena.get(position + at).copied().unwrap_or_default();
        [byte(8), byte(HEADER_BYTES + length.saturating_sub(1))]
    }

    /// An entry in the line with the same hash, without a branch; mostly the right one.
    #[inline]
    fn guess(&self, hash: u64, start: usize) -> Entry {
        let line: &[Entry; 8] = self.entries.line(start);
        line.iter().fold(Entry::EMPTY, |guess, &entry| select_unpredictable(entry.hash() == hash, entry, guess))
    }

    /// The vertex of a key, given a guessed entry and two bytes of its row.
    #[inline]
    fn find(&self, key: &[u8], (hash, start): (u64, usize), (guess, touched): (Entry, [u8; 2])) -> u64 {
        // An empty key has no last byte to compare; its length decides.
        let last = key.last().copied().unwrap_or(touched[1]);
        if guess != Entry::EMPTY && touched == [key.len() as u8, last] {
            let (vertex, text) = row(&self.arena, guess.position());
            if text == key {
                return vertex;
            }
        }
        let rows = self
            .entries
            // From the end of the own line down: another key of the same 28 bits may be in this line, or in the lines below.
            .candidates(hash, start + Slots::<Entry>::LINE_LEN)
            .map(|entry| row(&self.arena, entry.position()));
        rows.into_iter().find(|(_, text)| *text == key).map_or(UNKNOWN, |(vertex, _)| vertex)
    }
}
