//! Least recently used: one queue, in the order of the last use.
//!
//! Adapts at once and remembers nothing: one scan of more than the budget empties it of all that was useful, and
//! a loop over a little more than the budget never hits. Retention costs are ignored: the queue has no score that
//! it could scale.

use super::{
    Eviction, Incoming, Slot,
    queue::{Links, Queue},
};

/// The policy.
#[derive(Debug)]
pub struct Lru {
    links: Links<()>,
    queue: Queue,
}

impl Lru {
    /// Tracks nothing yet.
    pub fn new() -> Self {
        Self { links: Links::new(), queue: Queue::EMPTY }
    }
}

impl Default for Lru {
    fn default() -> Self {
        Self::new()
    }
}

impl Eviction for Lru {
    fn insert(&mut self, slot: Slot, _: Incoming) {
        self.links.put(slot, ());
        self.links.push(&mut self.queue, slot);
    }

    #[inline]
    fn hit(&mut self, slot: Slot) {
        self.links.renew(&mut self.queue, slot);
    }

    fn remove(&mut self, slot: Slot) {
        self.links.take(&mut self.queue, slot);
    }

    fn evict(&mut self) -> Option<Slot> {
        let slot = self.queue.oldest()?;
        self.links.take(&mut self.queue, slot);
        Some(slot)
    }

    fn clear(&mut self) {
        *self = Self::new();
    }
}
