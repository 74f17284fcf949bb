//! A hash table in the order of its hashes, which grows in place and is read one cache line a look-up.
//!
//! Slots form lines of 64 bytes, the processor's cache line. The hash of an entry, scaled to the number
//! of lines, says in which line it belongs; a line fills from its end, and what does not fit goes to the
//! slots below. Entries thus ascend by hash over all slots, with gaps. To build it, sort the entries and
//! move them apart from the last to the first in the same allocation: a table of n entries needs 1.2 n
//! slots and never a second table.
//!
//! ```text
//! line       0               1               2
//! slots  … | – – a b | – c d e | f g h i |       f belongs in line 2; if a fifth did, it would be where e is
//! ```

/// What a slot holds.
pub(super) trait Slot: Copy + Ord {
    /// Not an entry.
    const EMPTY: Self;
    /// The hash, or its upper bits; entries order by it.
    fn hash(self) -> u64;
}

const LINE_BYTES: usize = 64;

/// The table. See the module.
#[derive(Debug)]
pub(super) struct Slots<E> {
    slots: Vec<E>,
    /// The first slot of the first line; slots before it take what the first lines cannot.
    base: usize,
    lines: usize,
}

impl<E: Slot> Slots<E> {
    const LINE_LEN: usize = LINE_BYTES / size_of::<E>();

    /// The size of a table of `len` entries, in bytes.
    pub(super) fn bytes_for(len: usize) -> usize {
        (Self::lines_for(len) + 1) * LINE_BYTES
    }

    /// Lines so many that five slots of six are filled.
    fn lines_for(len: usize) -> usize {
        len * 6 / (5 * Self::LINE_LEN) + 1
    }

    /// A table of entries, in the allocation they come in.
    pub(super) fn new(mut entries: Vec<E>) -> Self {
        entries.sort_unstable();
        let len = entries.len();
        let lines = Self::lines_for(len);
        let last_of_line = |entry: E| line(entry.hash(), lines) * Self::LINE_LEN + Self::LINE_LEN - 1;
        // With a base this high no entry moves to a slot before its own, so none is overwritten that has yet
        // to move. With hashes that are spread well it is some dozens.
        let base =
            entries.iter().enumerate().map(|(position, &entry)| position.saturating_sub(last_of_line(entry))).max();
        let base = base.unwrap_or(0);
        entries.reserve_exact(base + (lines + 1) * Self::LINE_LEN - len);
        // From here the allocation does not move, and lines can be cache lines.
        let aligned = entries.as_ptr().wrapping_add(base).align_offset(LINE_BYTES);
        let base = base + aligned.min(Self::LINE_LEN);
        entries.resize(base + lines * Self::LINE_LEN, E::EMPTY);
        let mut above = entries.len();
        for position in (0..len).rev() {
            let entry = std::mem::replace(&mut entries[position], E::EMPTY);
            above = (base + last_of_line(entry) + 1).min(above) - 1;
            entries[above] = entry;
        }
        Self { slots: entries, base, lines }
    }

    pub(super) fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<E>()
    }

    /// Where the line of a hash begins.
    #[inline]
    pub(super) fn line_start(&self, hash: u64) -> usize {
        self.base + line(hash, self.lines) * Self::LINE_LEN
    }

    /// The slots of the line that begins at `start`; `N` is the length of a line.
    #[inline]
    pub(super) fn line<const N: usize>(&self, start: usize) -> &[E; N] {
        debug_assert_eq!(N, Self::LINE_LEN);
        self.slots[start..].first_chunk().expect("the slots end with a whole line")
    }

    /// All entries that may have the hash, given the start of its line, from the highest slot down.
    pub(super) fn candidates(&self, hash: u64, start: usize) -> impl Iterator<Item = E> {
        let down = self.slots[..start + Self::LINE_LEN].iter().rev().copied();
        down.take_while(move |&entry| entry != E::EMPTY && entry.hash() >= hash)
            .filter(move |entry| entry.hash() == hash)
    }
}

#[inline]
fn line(hash: u64, lines: usize) -> usize {
    ((u128::from(hash) * lines as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Slot for u64 {
        const EMPTY: Self = Self::MAX;

        fn hash(self) -> u64 {
            self >> 8 << 8
        }
    }

    proptest! {
        // Hashes that crowd into the first or the last lines too.
        #[test]
        fn every_entry_is_a_candidate(
            mut entries in proptest::collection::vec(any::<u64>(), 0..3000),
            shift in prop_oneof![Just(0u32), 0u32..64],
            invert in any::<bool>(),
        ) {
            for entry in &mut entries {
                *entry = (*entry >> shift ^ if invert { u64::MAX } else { 0 }).min(u64::MAX - 1);
            }
            let slots = Slots::new(entries.clone());
            prop_assert_eq!(slots.slots.iter().filter(|slot| **slot != u64::EMPTY).count(), entries.len());
            for entry in entries {
                let start = slots.line_start(entry.hash());
                prop_assert!(slots.candidates(entry.hash(), start).any(|candidate| candidate == entry));
            }
        }
    }
}
