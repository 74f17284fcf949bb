//! A part of the cache, for one thread at a time: an index by key, the blocks in slots, and a policy for the slots.
//!
//! A hit touches three structures: the index, which holds four bytes a block and is small enough for the processor's
//! own cache; the block's entry, which is one cache line; and the policy's books. Slots are used again, so that a full
//! shard allocates nothing but what its index and policy need.

use hashbrown::HashTable;

use super::{
    BlockKey, CacheCounts, FetchCost,
    eviction::{Eviction, Incoming, Slot},
};

/// What a block takes of the budget in addition to its bytes: 64 for its entry, 40 for the policy, 10 for
/// the index, and 40 for the counter behind the [`Bytes`](bytes::Bytes), rounded up.
pub const ENTRY_BYTES: u64 = 160;

/// The size of a block of `bytes` in the budget: with its [`ENTRY_BYTES`].
pub fn weight_of(bytes: u64) -> u64 {
    bytes.saturating_add(ENTRY_BYTES)
}

/// Up to `bytes_max` of blocks, each with a value: its bytes, or `()` where only hits are counted, as in
/// `hoplake-cache-sim`.
///
/// ```
/// use hoplake_storage::cache::{Arrival, BlockKey, Policy, Shard, hash_of, weight_of};
///
/// // Room for one block of 1,000 bytes.
/// let bytes_max = weight_of(1_000);
/// let mut shard = Shard::new(bytes_max, Policy::Lru.build(bytes_max, 1));
/// let [first, second] = [0, 1_000].map(|position| BlockKey { object: 0, position });
/// for key in [first, second] {
///     shard.insert(Arrival::new(key, hash_of(key), 1_000, None), ());
/// }
/// assert!(!shard.contains(hash_of(first), first) && shard.contains(hash_of(second), second));
/// assert_eq!(shard.counts().evictions, 1);
/// ```
#[derive(Debug)]
pub struct Shard<V> {
    index: HashTable<Slot>,
    entries: Vec<Entry<V>>,
    free: Vec<Slot>,
    eviction: Box<dyn Eviction>,
    bytes: u64,
    bytes_max: u64,
    counts: CacheCounts,
}

#[derive(Debug)]
struct Entry<V> {
    key: BlockKey,
    hash: u64,
    weight: u64,
    /// `None` in a free slot.
    value: Option<V>,
}

/// A block on its way in.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// Its key.
    pub key: BlockKey,
    /// The hash of its key.
    pub hash: u64,
    /// The bytes it takes of the budget.
    pub weight: u64,
    /// Its retention cost.
    pub retention_cost: f32,
}

impl Arrival {
    /// A block of `bytes` whose key has this hash ([`hash_of`](super::hash_of)), with its weight, and its retention
    /// cost by what it costs to fetch it again; `None` if all blocks are alike.
    pub fn new(key: BlockKey, hash: u64, bytes: u64, fetch_cost: Option<&FetchCost>) -> Self {
        let weight = weight_of(bytes);
        let retention_cost = fetch_cost.map_or(1.0, |cost| cost.retention_cost(bytes, weight));
        Self { key, hash, weight, retention_cost }
    }
}

impl<V> Shard<V> {
    /// Holds nothing yet.
    pub fn new(bytes_max: u64, eviction: Box<dyn Eviction>) -> Self {
        Self {
            index: HashTable::new(),
            entries: Vec::new(),
            free: Vec::new(),
            eviction,
            bytes: 0,
            bytes_max,
            counts: CacheCounts::default(),
        }
    }

    /// The bytes of the budget that are taken.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The counters so far.
    pub fn counts(&self) -> CacheCounts {
        CacheCounts { blocks: self.index.len() as u64, bytes: self.bytes, ..self.counts }
    }

    /// The block's value, which counts as a use.
    #[inline]
    pub fn get(&mut self, hash: u64, key: BlockKey) -> Option<&V> {
        let Some(slot) = self.find(hash, key) else {
            self.counts.misses += 1;
            return None;
        };
        self.counts.hits += 1;
        self.eviction.hit(slot);
        self.entries[slot as usize].value.as_ref()
    }

    /// Whether the block is here; not a use.
    pub fn contains(&self, hash: u64, key: BlockKey) -> bool {
        self.find(hash, key).is_some()
    }

    /// Keeps a block, and returns what had to go for it or was there before: the caller drops it outside its lock.
    /// A block larger than the shard is itself evicted.
    pub fn insert(&mut self, block: Arrival, value: V) -> Vec<V> {
        let mut gone = Vec::new();
        if let Some(slot) = self.find(block.hash, block.key) {
            let entry = &mut self.entries[slot as usize];
            if entry.weight == block.weight {
                // Two queries fetched it at the same time: that is a use. The bytes are the same.
                self.eviction.hit(slot);
                gone.extend(entry.value.replace(value));
                return gone;
            }
            gone.extend(self.remove(block.hash, block.key));
        }
        // Evicting all others would not make room for it.
        if block.weight > self.bytes_max {
            self.counts.refusals += 1;
            gone.push(value);
            return gone;
        }
        // Room first, then the block: the budget holds at every moment, and the newcomer is not weighed against the others.
        while self.bytes + block.weight > self.bytes_max {
            let slot =
                self.eviction.evict().expect("a block that fits an empty shard fits once all others are evicted");
            self.counts.evictions += 1;
            gone.extend(self.release(slot));
        }
        self.insert_new(block, value);
        gone
    }

    /// Takes a block out.
    pub fn remove(&mut self, hash: u64, key: BlockKey) -> Option<V> {
        let slot = self.find(hash, key)?;
        self.eviction.remove(slot);
        self.release(slot)
    }

    /// Takes all blocks out that `chosen` chooses.
    pub fn remove_if(&mut self, chosen: impl Fn(BlockKey) -> bool) -> Vec<V> {
        // Collected first: releasing a slot changes the index that is walked.
        let slots = self.index.iter().copied().filter(|slot| chosen(self.entries[*slot as usize].key));
        let mut gone = Vec::new();
        for slot in slots.collect::<Vec<_>>() {
            self.eviction.remove(slot);
            gone.extend(self.release(slot));
        }
        gone
    }

    /// Takes all blocks out, and forgets what the policy remembers. Counters go on.
    pub fn clear(&mut self) -> Vec<V> {
        self.index.clear();
        self.free.clear();
        self.eviction.clear();
        self.bytes = 0;
        self.entries.drain(..).filter_map(|entry| entry.value).collect()
    }

    #[inline]
    fn find(&self, hash: u64, key: BlockKey) -> Option<Slot> {
        self.index.find(hash, |slot| self.entries[*slot as usize].key == key).copied()
    }

    fn insert_new(&mut self, block: Arrival, value: V) {
        let Arrival { key, hash, weight, retention_cost } = block;
        let entry = Entry { key, hash, weight, value: Some(value) };
        // Slots stay dense, as the policies require: their arrays grow with the largest slot.
        let slot = match self.free.pop() {
            Some(slot) => {
                self.entries[slot as usize] = entry;
                slot
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as Slot
            }
        };
        let entries = &self.entries;
        // The index has slots alone and asks the entries for their hashes when it grows: four bytes a block.
        self.index.insert_unique(hash, slot, |slot| entries[*slot as usize].hash);
        self.eviction.insert(slot, Incoming { hash, weight, retention_cost });
        self.bytes += weight;
        self.counts.insertions += 1;
    }

    /// Takes a slot that the policy no longer tracks out of the books.
    fn release(&mut self, slot: Slot) -> Option<V> {
        let entry = &mut self.entries[slot as usize];
        let value = entry.value.take();
        self.bytes -= entry.weight;
        self.index.find_entry(entry.hash, |other| *other == slot).expect("a tracked slot is in the index").remove();
        self.free.push(slot);
        value
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::read::cache::Policy;

    #[test]
    fn slots_are_used_again() {
        let mut shard = Shard::new(10, Policy::Lru.build(10, 1));
        for hash in 0..1_000 {
            shard.insert(Arrival { key: (0, hash).into(), hash, weight: 1, retention_cost: 1.0 }, ());
            if hash % 7 == 0 {
                shard.remove(hash, (0, hash).into());
            }
        }
        assert!(shard.entries.len() <= 10 && shard.free.len() <= 1);
    }

    #[test]
    fn the_books_of_an_entry_are_in_its_weight() {
        // In addition to the entry: four bytes and a tag for the index at half its load, the policy's 40, and what
        // `Bytes` allocates.
        assert!(size_of::<Entry<Bytes>>() <= 64);
        assert!((size_of::<Entry<Bytes>>() + 10 + 40 + 40) as u64 <= ENTRY_BYTES);
    }
}
