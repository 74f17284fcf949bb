//! S3-FIFO (Yang, Zhang, Qiu, Yue, Rashmi: FIFO Queues are All You Need for Cache Eviction, SOSP 2023).
//!
//! Most blocks are used once and never again. So a newcomer enters a *small* queue of a tenth of the budget, from which
//! it goes soon unless it was used more than once meanwhile; then it moves to the *main* queue. There, a block that was
//! used since it last reached the end is reinserted. A block that left the small queue is remembered by its hash in a
//! *ghost* queue, and enters the main queue at once when it returns. A hit counts to three and moves nothing.
//!
//! Sizes are taken as the paper's implementation does: queues are measured in bytes. The ghost remembers as
//! many bytes of blocks as the main queue holds. Retention costs are ignored: there is no score that they could scale.

use std::collections::VecDeque;

use foldhash::{HashMap, HashMapExt};

use super::{
    Eviction, Incoming, Slot,
    queue::{Links, Queue},
};

/// Uses are counted up to this; two bits in the paper.
const USES_MAX: u8 = 3;
/// A block that was used more often than this leaves the small queue for the main one.
const SMALL_USES: u8 = 1;

/// The policy.
#[derive(Debug)]
pub struct S3Fifo {
    links: Links<Note>,
    small: Queue,
    main: Queue,
    small_bytes: u64,
    small_bytes_max: u64,
    ghost: Ghost,
}

#[derive(Debug, Clone, Default)]
struct Note {
    hash: u64,
    weight: u64,
    uses: u8,
    in_main: bool,
}

impl S3Fifo {
    /// Tracks nothing yet; for a cache of `bytes_max`.
    pub fn new(bytes_max: u64) -> Self {
        let small_bytes_max = bytes_max / 10;
        Self {
            links: Links::new(),
            small: Queue::EMPTY,
            main: Queue::EMPTY,
            small_bytes: 0,
            small_bytes_max,
            ghost: Ghost::new(bytes_max - small_bytes_max),
        }
    }

    /// Lets the oldest of the small queue go, unless it was used: then it moves to the main queue.
    fn evict_small(&mut self, slot: Slot) -> Option<Slot> {
        self.links.take(&mut self.small, slot);
        let note = self.links.note(slot);
        self.small_bytes -= note.weight;
        if note.uses > SMALL_USES {
            note.uses = 0;
            note.in_main = true;
            self.links.push(&mut self.main, slot);
            return None;
        }
        // Only of the small queue: a block that leaves the main queue had its second chance.
        self.ghost.remember(note.hash, note.weight);
        Some(slot)
    }

    /// Lets the oldest of the main queue go, unless it was used: then it goes round again.
    fn evict_main(&mut self, slot: Slot) -> Option<Slot> {
        let note = self.links.note(slot);
        if note.uses > 0 {
            // One round for each use, up to three: a popular block survives as many turns of the queue.
            note.uses -= 1;
            self.links.renew(&mut self.main, slot);
            return None;
        }
        self.links.take(&mut self.main, slot);
        Some(slot)
    }
}

impl Eviction for S3Fifo {
    fn insert(&mut self, slot: Slot, block: Incoming) {
        let Incoming { hash, weight, .. } = block;
        let in_main = self.ghost.recall(hash);
        self.links.put(slot, Note { hash, weight, uses: 0, in_main });
        if in_main {
            self.links.push(&mut self.main, slot);
        } else {
            self.small_bytes += weight;
            self.links.push(&mut self.small, slot);
        }
    }

    #[inline]
    fn hit(&mut self, slot: Slot) {
        let note = self.links.note(slot);
        note.uses = (note.uses + 1).min(USES_MAX);
    }

    fn remove(&mut self, slot: Slot) {
        let note = self.links.note(slot);
        if note.in_main {
            self.links.take(&mut self.main, slot);
        } else {
            self.small_bytes -= note.weight;
            self.links.take(&mut self.small, slot);
        }
    }

    fn evict(&mut self) -> Option<Slot> {
        // Ends: each turn evicts, empties the small queue by one, or takes one use from the main queue.
        loop {
            // Below its share, the small queue keeps its blocks: newcomers need time to be used again.
            let from_small = self.small_bytes >= self.small_bytes_max;
            let gone = match (self.small.oldest(), self.main.oldest()) {
                (Some(slot), main) if from_small || main.is_none() => self.evict_small(slot),
                (_, Some(slot)) => self.evict_main(slot),
                (_, None) => return None,
            };
            if gone.is_some() {
                return gone;
            }
        }
    }

    fn clear(&mut self) {
        self.links.clear();
        self.small = Queue::EMPTY;
        self.main = Queue::EMPTY;
        self.small_bytes = 0;
        self.ghost.clear();
    }
}

/// The hashes of evicted blocks, oldest first, up to a sum of weights.
#[derive(Debug)]
struct Ghost {
    queue: VecDeque<Gone>,
    /// The number of the newest entry of each hash; older entries in the queue no longer count.
    latest: HashMap<u64, u64>,
    next: u64,
    bytes: u64,
    bytes_max: u64,
}

#[derive(Debug)]
struct Gone {
    hash: u64,
    number: u64,
    weight: u64,
}

impl Ghost {
    fn new(bytes_max: u64) -> Self {
        Self { queue: VecDeque::new(), latest: HashMap::new(), next: 0, bytes: 0, bytes_max }
    }

    fn remember(&mut self, hash: u64, weight: u64) {
        self.queue.push_back(Gone { hash, number: self.next, weight });
        self.latest.insert(hash, self.next);
        self.next += 1;
        self.bytes += weight;
        // A hash that returned keeps its place in the queue until here, so that forgetting one never searches the queue.
        while self.bytes > self.bytes_max
            && let Some(gone) = self.queue.pop_front()
        {
            self.bytes -= gone.weight;
            if self.latest.get(&gone.hash) == Some(&gone.number) {
                self.latest.remove(&gone.hash);
            }
        }
    }

    /// Whether the hash is remembered; it no longer is afterwards.
    fn recall(&mut self, hash: u64) -> bool {
        self.latest.remove(&hash).is_some()
    }

    fn clear(&mut self) {
        *self = Self::new(self.bytes_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(hash: u64) -> Incoming {
        Incoming { hash, weight: 10, retention_cost: 1.0 }
    }

    #[test]
    fn what_came_once_goes_first_and_is_remembered() {
        // Room for ten: one in the small queue.
        let mut policy = S3Fifo::new(100);
        for slot in 0..3 {
            policy.insert(slot, block(slot.into()));
        }
        policy.hit(0);
        policy.hit(0);
        policy.hit(1);
        // 0 was used twice and moves on; once is not enough.
        assert_eq!(policy.evict(), Some(1));
        assert_eq!(policy.evict(), Some(2));
        // 2 is remembered and enters the main queue, so that 3 is evicted before it.
        policy.insert(2, block(2));
        policy.insert(3, block(3));
        assert_eq!([policy.evict(), policy.evict(), policy.evict(), policy.evict()], [Some(3), Some(0), Some(2), None]);
    }

    #[test]
    fn the_ghost_forgets_the_oldest_first() {
        let mut ghost = Ghost::new(30);
        for hash in [1, 2, 3, 1, 4] {
            ghost.remember(hash, 10);
        }
        assert_eq!([1, 2, 3, 4, 1].map(|hash| ghost.recall(hash)), [true, false, true, true, false]);
    }
}
