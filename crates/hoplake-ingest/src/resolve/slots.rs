//! A hash table that is built in the allocation of its entries and read one cache line a look-up.
//!
//! Slots form lines of 64 bytes, the processor's cache line. The hash of an entry, scaled to the number
//! of lines, gives its line; a line fills from its end, and what does not fit goes to the
//! nearest line below with a slot to spare. To build it, sort the entries by hash and move them apart from
//! the last to the first: a table of n entries needs 1.2 n slots and never a second table. Of entries of
//! 16 bytes one in seven is not in its own line, of 8 bytes one in thirteen.
//!
//! ```text
//! line       0               1               2
//! slots  … | – – a b | – x c d | e f g h |       x belongs in line 2, which is full
//! ```

/// The content of a slot.
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
    pub(super) const LINE_LEN: usize = LINE_BYTES / size_of::<E>();

    /// The size of a table of `len` entries, in bytes.
    pub(super) fn bytes_for(len: usize) -> usize {
        (Self::lines_for(len) + 1) * LINE_BYTES
    }

    /// Enough lines that five slots of six are filled.
    fn lines_for(len: usize) -> usize {
        len * 6 / (5 * Self::LINE_LEN) + 1
    }

    /// A table of entries, in their own allocation.
    pub(super) fn new(mut entries: Vec<E>) -> Self {
        entries.sort_unstable();
        let len = entries.len();
        let lines = Self::lines_for(len);
        let line_start = |entry: E| line(entry.hash(), lines) * Self::LINE_LEN;
        // With a base this high no entry moves to a slot before its own, so none is overwritten that has yet
        // to move. With hashes that are spread well it is some dozens.
        let base =
            entries.iter().enumerate().map(|(position, &entry)| position.saturating_sub(line_start(entry))).max();
        let base = base.unwrap_or(0).next_multiple_of(Self::LINE_LEN);
        entries.reserve_exact(base + (lines + 1) * Self::LINE_LEN - len);
        // From here the allocation does not move, and lines can be cache lines.
        let base = base + entries.as_ptr().align_offset(LINE_BYTES).min(Self::LINE_LEN);
        entries.resize(base + lines * Self::LINE_LEN, E::EMPTY);
        let mut slots = Self { slots: entries, base, lines };
        let surplus = slots.spread(len);
        slots.place_below(&surplus);
        slots
    }

    /// Moves the first `len` entries to their lines, from the last to the first; those that find no room are
    /// taken out, in descending order.
    fn spread(&mut self, len: usize) -> Vec<E> {
        let mut surplus = Vec::new();
        // The line being filled, and the lowest of its slots that is.
        let mut start = usize::MAX;
        let mut filled = usize::MAX;
        for position in (0..len).rev() {
            let entry = std::mem::replace(&mut self.slots[position], E::EMPTY);
            let own = self.line_start(entry.hash());
            if own != start {
                start = own;
                filled = own + Self::LINE_LEN;
            }
            if filled > start {
                filled -= 1;
                self.slots[filled] = entry;
            } else {
                surplus.push(entry);
            }
        }
        surplus
    }

    /// Places entries, in descending order, in the nearest line below their own that is not full. There is
    /// one: below an entry's line are at least as many slots as there are entries before it.
    fn place_below(&mut self, surplus: &[E]) {
        let mut start = usize::MAX;
        for &entry in surplus {
            // All lines from an earlier entry's down to where it was placed are full, except perhaps the last.
            start = start.min(self.line_start(entry.hash()) - Self::LINE_LEN);
            while self.slots[start] != E::EMPTY {
                start -= Self::LINE_LEN;
            }
            let room = self.slots[start..start + Self::LINE_LEN].iter().rposition(|&slot| slot == E::EMPTY);
            self.slots[start + room.expect("the first slot is empty")] = entry;
        }
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
        self.slots[start..].first_chunk().expect("the slots end with a full line")
    }

    /// All entries with the hash in slots before `end`, the start or the end of its line.
    pub(super) fn candidates(&self, hash: u64, end: usize) -> impl Iterator<Item = E> {
        // A line with an empty slot has passed nothing on to the lines below.
        let down = self.slots[..end].iter().rev().copied().take_while(|&entry| entry != E::EMPTY);
        down.filter(move |entry| entry.hash() == hash)
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
                let end = slots.line_start(entry.hash()) + 8;
                prop_assert!(slots.candidates(entry.hash(), end).any(|candidate| candidate == entry));
            }
        }
    }
}
