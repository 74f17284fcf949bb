//! Integer keys in memory: entries of (hash, vertex) sorted by hash, and a directory by its top bits.
//!
//! The hash is a bijection, so it stands for the key and is never wrong. Sorted entries need no empty
//! slots: 16 bytes and 2–4 of directory a key, and no second table while it grows. A wrong guess of a branch
//! costs more than a comparison, so a look-up compares four entries whatever they are.

use hoplake_format::LabelId;

use super::{DIRECTORY_BYTES_PER_KEY, Directory, GROUP_LEN, PROBE_LEN, UNKNOWN, reserve, with_label};

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

/// Keys and vertices on their way into a table.
#[derive(Debug, Default)]
pub(super) struct IntegerRows {
    /// `mix(key) << 64 | vertex`.
    entries: Vec<u128>,
}

impl IntegerRows {
    pub(super) fn push(&mut self, key: i64, vertex: u64) {
        reserve(&mut self.entries, 1);
        self.entries.push(u128::from(mix(key)) << 64 | u128::from(vertex));
    }

    /// The size of the finished table.
    pub(super) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<u128>() + self.entries.len() * DIRECTORY_BYTES_PER_KEY
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Everything that was pushed, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (i64, u64)> {
        self.entries.iter().map(|&entry| (unmix((entry >> 64) as u64), entry as u64))
    }

    pub(super) fn finish(mut self) -> IntegerTable {
        self.entries.sort_unstable();
        let directory = Directory::new(self.entries.iter().map(|entry| (entry >> 64) as u64), 32);
        // A probe may look past the last entry; what it sees there resolves to no vertex.
        self.entries.reserve_exact(PROBE_LEN);
        self.entries.extend([u128::from(u64::MAX) << 64 | u128::from(UNKNOWN); PROBE_LEN]);
        self.entries.shrink_to_fit();
        IntegerTable { entries: self.entries, directory }
    }
}

/// Integer keys and their vertices.
#[derive(Debug)]
pub(super) struct IntegerTable {
    entries: Vec<u128>,
    directory: Directory,
}

impl IntegerTable {
    pub(super) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<u128>() + self.directory.bytes()
    }

    /// Looks keys up, a group at a time: first all buckets, then all entries. The loads within each loop do
    /// not depend on each other, so the processor waits for many at once.
    pub(super) fn resolve(&self, keys: &[i64], label: Option<LabelId>, vertices: &mut Vec<u64>) {
        let mut probes = [(0, (0, 0)); GROUP_LEN];
        for keys in keys.chunks(GROUP_LEN) {
            for (probe, &key) in probes.iter_mut().zip(keys) {
                let hash = mix(key);
                *probe = (hash, self.directory.bucket(hash));
            }
            let probes = &probes[..keys.len()];
            vertices.extend(probes.iter().map(|&(hash, bucket)| with_label(self.find(hash, bucket), label)));
        }
    }

    #[inline]
    fn find(&self, hash: u64, (start, end): (u32, u32)) -> u64 {
        let (start, end) = (start as usize, end as usize);
        let (probe, _) = self.entries[start..].split_first_chunk::<PROBE_LEN>().expect("entries end with a probe");
        let choose = |vertex, &entry: &u128| if (entry >> 64) as u64 == hash { entry as u64 } else { vertex };
        let vertex = probe.iter().fold(UNKNOWN, choose);
        if end - start <= PROBE_LEN { vertex } else { self.entries[start + PROBE_LEN..end].iter().fold(vertex, choose) }
    }
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
