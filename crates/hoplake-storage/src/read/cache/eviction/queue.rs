//! Queues of slots, linked through one array: any slot leaves in O(1), and nothing is allocated for a move.

use super::Slot;

const NONE: Slot = Slot::MAX;

/// The links of all slots of a policy, and what the policy notes for each. A slot is in one queue at a time.
#[derive(Debug)]
pub struct Links<T> {
    nodes: Vec<Node<T>>,
}

#[derive(Debug, Clone)]
struct Node<T> {
    newer: Slot,
    older: Slot,
    note: T,
}

/// The ends of one queue.
#[derive(Debug, Clone, Copy)]
pub struct Queue {
    newest: Slot,
    oldest: Slot,
}

impl Queue {
    /// A queue of nothing.
    pub const EMPTY: Self = Self { newest: NONE, oldest: NONE };

    /// The oldest slot.
    pub fn oldest(&self) -> Option<Slot> {
        (self.oldest != NONE).then_some(self.oldest)
    }
}

impl<T: Default + Clone> Links<T> {
    /// No slots.
    pub fn new() -> Self {
        Self { nodes: Vec::new() }
    }

    /// The policy's note for a slot in the queue.
    pub fn note(&mut self, slot: Slot) -> &mut T {
        &mut self.nodes[slot as usize].note
    }

    /// Makes room for a slot and notes something for it. It is in no queue yet.
    pub fn put(&mut self, slot: Slot, note: T) {
        if slot as usize >= self.nodes.len() {
            self.nodes.resize(slot as usize + 1, Node { newer: NONE, older: NONE, note: T::default() });
        }
        self.nodes[slot as usize].note = note;
    }

    /// Adds a slot, which was put and is in no queue, as the newest.
    #[inline]
    pub fn push(&mut self, queue: &mut Queue, slot: Slot) {
        let node = &mut self.nodes[slot as usize];
        node.newer = NONE;
        node.older = queue.newest;
        match queue.newest {
            // The first slot of an empty queue is both of its ends.
            NONE => queue.oldest = slot,
            newest => self.nodes[newest as usize].newer = slot,
        }
        queue.newest = slot;
    }

    /// Takes a slot out of the queue it is in.
    #[inline]
    pub fn take(&mut self, queue: &mut Queue, slot: Slot) {
        let Node { newer, older, .. } = self.nodes[slot as usize];
        match newer {
            NONE => queue.newest = older,
            newer => self.nodes[newer as usize].older = older,
        }
        match older {
            NONE => queue.oldest = newer,
            older => self.nodes[older as usize].newer = newer,
        }
    }

    /// Makes a slot the newest of the queue it is in.
    #[inline]
    pub fn renew(&mut self, queue: &mut Queue, slot: Slot) {
        // A block that is used again and again is the newest already: no link changes.
        if queue.newest != slot {
            self.take(queue, slot);
            self.push(queue, slot);
        }
    }

    /// Forgets all slots; queues into them must be emptied, too.
    pub fn clear(&mut self) {
        self.nodes.clear();
    }
}
