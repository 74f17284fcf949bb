//! Integer keys in memory: entries of (hash, vertex) in a table of [`Slots`].
//!
//! The hash is a bijection, so it stands for the key and is never wrong. Slots take 19–20 bytes a key;
//! a line holds four entries, which are compared without a branch: a wrong guess of the processor would
//! cost more than the comparisons.

use std::hint::select_unpredictable;

use hoplake_format::LabelId;

use super::{
    GROUP_LEN, UNKNOWN, reserve,
    slots::{Slot, Slots},
    with_label,
};

/// A bijection under which every bit depends on every other (the finalizer of MurmurHash3).
#[inline]
pub(super) fn mix(key: i64) -> u64 {
    let mut hash = key as u64;
    hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}

/// The inverse of [`mix`]: a shift by more than half is its own inverse, and odd factors have inverses.
fn unmix(mut hash: u64) -> i64 {
    hash = (hash ^ hash >> 33).wrapping_mul(0x9cb4_b2f8_1293_37db);
    hash = (hash ^ hash >> 33).wrapping_mul(0x4f74_430c_22a5_4005);
    (hash ^ hash >> 33) as i64
}

/// `mix(key) << 64 | vertex`.
impl Slot for u128 {
    const EMPTY: Self = Self::MAX;

    #[inline]
    fn hash(self) -> u64 {
        (self >> 64) as u64
    }
}

/// Keys and vertices on their way into a table.
#[derive(Debug, Default)]
pub(super) struct IntegerRows {
    entries: Vec<u128>,
}

impl IntegerRows {
    pub(super) fn push(&mut self, key: i64, vertex: u64) {
        reserve(&mut self.entries, 1);
        self.entries.push(u128::from(mix(key)) << 64 | u128::from(vertex));
    }

    /// The size of the finished table.
    pub(super) fn bytes(&self) -> usize {
        (self.entries.capacity() * size_of::<u128>()).max(Slots::<u128>::bytes_for(self.entries.len()))
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Everything that was pushed, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (i64, u64)> {
        self.entries.iter().map(|&entry| (unmix(entry.hash()), entry as u64))
    }

    pub(super) fn finish(self) -> IntegerTable {
        IntegerTable(Slots::new(self.entries))
    }
}

/// Integer keys and their vertices.
#[derive(Debug)]
pub(super) struct IntegerTable(Slots<u128>);

impl IntegerTable {
    pub(super) fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// Looks keys up, a group at a time: first a load from the line of every key, then the comparisons. The
    /// processor waits for all lines of a group at once, as no load hangs on a branch that it guessed.
    pub(super) fn resolve(&self, keys: &[i64], label: Option<LabelId>, vertices: &mut Vec<u64>) {
        let mut probes = [Probe::default(); GROUP_LEN];
        for keys in keys.chunks(GROUP_LEN) {
            for (probe, &key) in probes.iter_mut().zip(keys) {
                let hash = mix(key);
                let start = self.0.line_start(hash);
                *probe = Probe { hash, start, is_full: self.0.line::<4>(start)[0] != u128::EMPTY };
            }
            vertices.extend(probes[..keys.len()].iter().map(|probe| with_label(self.find(probe), label)));
        }
    }

    #[inline]
    fn find(&self, &Probe { hash, start, is_full }: &Probe) -> u64 {
        // An empty slot may have the hash too, but its vertex is none.
        let vertex = self.0.line::<4>(start).iter().fold(UNKNOWN, |vertex, &entry| {
            select_unpredictable(entry.hash() == hash, vertex.min(entry as u64), vertex)
        });
        if vertex != UNKNOWN || !is_full {
            return vertex;
        }
        self.0.candidates(hash, start).next().map_or(UNKNOWN, |entry| entry as u64)
    }
}

/// A key on its way: its hash, its line, and whether the line is full, so that an entry may be below it.
#[derive(Debug, Clone, Copy, Default)]
struct Probe {
    hash: u64,
    start: usize,
    is_full: bool,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn unmix_is_the_inverse(key in any::<i64>()) {
            prop_assert_eq!(unmix(mix(key)), key);
        }
    }
}
