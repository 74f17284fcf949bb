//! A heap of slots by rank, in which a slot's rank can change: the lowest rank goes first.
//!
//! Four children for each node rather than two: a block that is used nearly always becomes the highest, so that
//! hits walk from the root's side to the leaves, and half as many levels mean half as many cache lines.
//!
//! Crates with such a queue (`priority-queue`, `keyed_priority_queue`) find an item by hashing it and keep it in an
//! `IndexMap`: some 60 bytes a slot, where this takes 28 and a policy may take 40, and a look-up more for each hit.
//! Here a slot is its own index.

use super::Slot;

const CHILDREN: usize = 4;

/// The order of slots: by score, and by the time of the last use if scores tie.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Rank {
    /// The higher, the longer it stays; not NaN.
    pub score: f64,
    /// When it was last used, in accesses.
    pub used: u64,
}

/// Slots by rank.
#[derive(Debug, Default)]
pub struct RankHeap {
    nodes: Vec<(Rank, Slot)>,
    /// Where a slot is in `nodes`.
    positions: Vec<u32>,
}

impl RankHeap {
    /// Adds a slot that is not there.
    pub fn push(&mut self, slot: Slot, rank: Rank) {
        if slot as usize >= self.positions.len() {
            self.positions.resize(slot as usize + 1, 0);
        }
        self.nodes.push((rank, slot));
        self.rise(self.nodes.len() - 1);
    }

    /// The score of a slot in the heap.
    #[inline]
    pub fn score(&self, slot: Slot) -> f64 {
        self.nodes[self.positions[slot as usize] as usize].0.score
    }

    /// Gives a slot in the heap a rank that is not lower than its current one.
    #[inline]
    pub fn raise(&mut self, slot: Slot, rank: Rank) {
        let position = self.positions[slot as usize] as usize;
        debug_assert!(self.nodes[position].0 <= rank, "a use never lowers a rank");
        self.nodes[position].0 = rank;
        self.sink(position);
    }

    /// Removes a slot of the heap.
    pub fn remove(&mut self, slot: Slot) {
        let position = self.positions[slot as usize] as usize;
        self.nodes.swap_remove(position);
        if position < self.nodes.len() {
            // The node from the end may belong above or below.
            self.sink(position);
            self.rise(position);
        }
    }

    /// Removes the slot of the lowest rank.
    pub fn pop(&mut self) -> Option<Slot> {
        let slot = self.nodes.first()?.1;
        self.remove(slot);
        Some(slot)
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.positions.clear();
    }

    fn rise(&mut self, mut position: usize) {
        let moved = self.nodes[position];
        // Parents move down one by one, and the slot is put once, at the end: half the writes of swapping.
        while position > 0 {
            let parent = (position - 1) / CHILDREN;
            if self.nodes[parent].0 <= moved.0 {
                break;
            }
            self.put(position, self.nodes[parent]);
            position = parent;
        }
        self.put(position, moved);
    }

    fn sink(&mut self, mut position: usize) {
        let moved = self.nodes[position];
        loop {
            let first = position * CHILDREN + 1;
            let Some(children) = self.nodes.get(first..self.nodes.len().min(first + CHILDREN)) else { break };
            let mut lowest = 0;
            for (child, node) in children.iter().enumerate().skip(1) {
                if node.0 < children[lowest].0 {
                    lowest = child;
                }
            }
            if children.is_empty() || moved.0 <= children[lowest].0 {
                break;
            }
            self.put(position, children[lowest]);
            position = first + lowest;
        }
        self.put(position, moved);
    }

    #[inline]
    fn put(&mut self, position: usize, node: (Rank, Slot)) {
        self.nodes[position] = node;
        self.positions[node.1 as usize] = position as u32;
    }
}

#[cfg(test)]
mod tests {
    use hoplake_testkit::generate::SplitMix64;

    use super::*;

    #[test]
    fn the_lowest_goes_first_whatever_was_raised_and_removed() {
        let mut random = SplitMix64::new(5);
        let mut heap = RankHeap::default();
        let mut naive = Vec::new();
        for used in 0..20_000 {
            let rank = Rank { score: random.below(1_000) as f64, used };
            let slot = random.below(200) as Slot;
            match naive.iter().position(|(_, other)| *other == slot) {
                None => {
                    heap.push(slot, rank);
                    naive.push((rank, slot));
                }
                Some(position) if used % 3 == 0 => {
                    heap.remove(slot);
                    naive.swap_remove(position);
                }
                Some(position) => {
                    let higher = Rank { score: naive[position].0.score + 10.0, used };
                    heap.raise(slot, higher);
                    naive[position].0 = higher;
                    assert_eq!(heap.score(slot), higher.score);
                }
            }
            if used % 100 == 99 {
                let lowest = (0..naive.len()).min_by(|a, b| naive[*a].0.partial_cmp(&naive[*b].0).unwrap());
                assert_eq!(heap.pop(), lowest.map(|position| naive.swap_remove(position).1));
            }
        }
        naive.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap());
        assert!(naive.len() > 50 && naive.into_iter().all(|(_, slot)| heap.pop() == Some(slot)));
        assert_eq!(heap.pop(), None);
    }
}
