//! W-TinyLFU (Einziger, Friedman, Manes: TinyLFU: A Highly Efficient Cache Admission Policy, ACM TOS 13(4), 2017).
//!
//! A newcomer enters a *window* of 1 % of the budget, which is an LRU queue, so that bursts are served. What leaves the
//! window is a *candidate* for the main part. It is let in if it was used more often lately than the block that would
//! have to go for it; a sketch (`sketch.rs`) remembers how often, also of blocks that are not in the cache. The main
//! part is a segmented LRU: a block starts on *probation*, and moves to the *protected* 80 % when it is used there.
//!
//! The retention cost multiplies the counts that are compared. Queues are measured in bytes.

use super::{
    Eviction, Incoming, Slot,
    queue::{Links, Queue},
    sketch::Sketch,
};

/// The bytes of a block of the usual size, by which the number of blocks is guessed.
const USUAL_BYTES: u64 = 16 << 10;

/// The policy.
#[derive(Debug)]
pub struct WTinyLfu {
    links: Links<Note>,
    window: WeightedQueue,
    probation: WeightedQueue,
    protected: WeightedQueue,
    main_bytes_max: u64,
    sketch: Sketch,
}

/// A queue and the bytes in it.
#[derive(Debug)]
struct WeightedQueue {
    queue: Queue,
    bytes: u64,
    bytes_max: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Region {
    #[default]
    Window,
    Probation,
    Protected,
}

#[derive(Debug, Clone, Copy, Default)]
struct Note {
    hash: u64,
    weight: u64,
    retention_cost: f32,
    region: Region,
}

impl WeightedQueue {
    fn new(bytes_max: u64) -> Self {
        Self { queue: Queue::EMPTY, bytes: 0, bytes_max }
    }
}

impl WTinyLfu {
    /// Tracks nothing yet; for a cache of `bytes_max`.
    pub fn new(bytes_max: u64) -> Self {
        // At least one block of the usual size, or a burst would find no window at all in a small cache.
        let window = (bytes_max / 100).max(USUAL_BYTES * 5 / 4).min(bytes_max / 4);
        Self {
            links: Links::new(),
            window: WeightedQueue::new(window),
            // Probation is what the others leave.
            probation: WeightedQueue::new(bytes_max),
            protected: WeightedQueue::new((bytes_max - window) / 5 * 4),
            main_bytes_max: bytes_max - window,
            sketch: Sketch::new((bytes_max / USUAL_BYTES) as usize),
        }
    }

    fn part(&mut self, region: Region) -> &mut WeightedQueue {
        match region {
            Region::Window => &mut self.window,
            Region::Probation => &mut self.probation,
            Region::Protected => &mut self.protected,
        }
    }

    fn enter(&mut self, slot: Slot, region: Region) {
        let note = self.links.note(slot);
        note.region = region;
        let weight = note.weight;
        let part = self.part(region);
        part.bytes += weight;
        // A copy of two numbers, since links and queue are both borrowed from `self`.
        let mut queue = part.queue;
        self.links.push(&mut queue, slot);
        self.part(region).queue = queue;
    }

    fn leave(&mut self, slot: Slot) {
        let Note { region, weight, .. } = *self.links.note(slot);
        let part = self.part(region);
        part.bytes -= weight;
        let mut queue = part.queue;
        self.links.take(&mut queue, slot);
        self.part(region).queue = queue;
    }

    /// Lets blocks into the main part without a judgement while it has room: the window holds
    /// everything until the cache is full for the first time.
    fn fill_main(&mut self) {
        while self.window.bytes > self.window.bytes_max
            && let Some(oldest) = self.window.queue.oldest()
            && self.probation.bytes + self.protected.bytes + self.links.note(oldest).weight <= self.main_bytes_max
        {
            self.leave(oldest);
            self.enter(oldest, Region::Probation);
        }
    }

    /// How much a block is wanted.
    fn appeal(&mut self, slot: Slot) -> f32 {
        let Note { hash, retention_cost, .. } = *self.links.note(slot);
        // GDSF's frequency · cost / size: the retention cost is cost / size.
        f32::from(self.sketch.estimate(hash)) * retention_cost
    }
}

impl Eviction for WTinyLfu {
    fn insert(&mut self, slot: Slot, block: Incoming) {
        let Incoming { hash, weight, retention_cost } = block;
        self.sketch.count(hash);
        self.links.put(slot, Note { hash, weight, retention_cost, region: Region::Window });
        self.enter(slot, Region::Window);
    }

    #[inline]
    fn hit(&mut self, slot: Slot) {
        let Note { hash, region, .. } = *self.links.note(slot);
        self.sketch.count(hash);
        match region {
            Region::Window => self.links.renew(&mut self.window.queue, slot),
            Region::Protected => self.links.renew(&mut self.protected.queue, slot),
            Region::Probation => {
                self.leave(slot);
                self.enter(slot, Region::Protected);
                // What no longer fits goes back to probation as its newest, and can be used once more before it is evicted.
                while self.protected.bytes > self.protected.bytes_max
                    && let Some(oldest) = self.protected.queue.oldest()
                {
                    self.leave(oldest);
                    self.enter(oldest, Region::Probation);
                }
            }
        }
    }

    fn remove(&mut self, slot: Slot) {
        self.leave(slot);
    }

    fn evict(&mut self) -> Option<Slot> {
        self.fill_main();
        // A cache whose hits have moved all blocks to the protected part must still be able to evict one.
        let victim = self.probation.queue.oldest().or_else(|| self.protected.queue.oldest());
        // The window is judged only when it is full, or when there is nothing else.
        let candidate = self.window.queue.oldest().filter(|_| self.window.bytes > self.window.bytes_max);
        let gone = match (candidate, victim) {
            (Some(candidate), Some(victim)) => {
                // A tie keeps the older block, so that a scan does not drain the main region.
                let admitted = self.appeal(candidate) > self.appeal(victim);
                if admitted {
                    self.leave(candidate);
                    self.enter(candidate, Region::Probation);
                }
                if admitted { victim } else { candidate }
            }
            (candidate, victim) => candidate.or(victim).or_else(|| self.window.queue.oldest())?,
        };
        self.leave(gone);
        Some(gone)
    }

    fn clear(&mut self) {
        self.links.clear();
        for region in [Region::Window, Region::Probation, Region::Protected] {
            let part = self.part(region);
            part.queue = Queue::EMPTY;
            part.bytes = 0;
        }
        self.sketch.clear();
    }
}
