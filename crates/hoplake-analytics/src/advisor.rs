//! Reads lists of mapped files ahead of those who walk over them, by advice to the system (Wu, Ding: *Buffer management for LLAMA*,
//! 2014).
//!
//! ```text
//! cursor ── visits ──▶ ring ──▶ advisor's thread ── which lists come next? ──▶ madvise(WILLNEED) on their blocks
//! ```
//! A page that is not in the page cache stops the thread that touches it until the disk has answered. Advice does not wait: so the
//! thread that walks only says where it is, and another finds out what it will touch and asks for it. The ring between them has no
//! locks and overwrites what is oldest when it is full; visits carry their number, and those that lag too far behind are skipped,
//! since what they would ask for has been touched by then.
//!
//! Which lists come next depends on the walk, and the caller chooses by the cursor that it takes: [`Visiting`] for walks from
//! neighbour to neighbour, [`Passing`] for a pass over vertices in their order.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use crossbeam_queue::ArrayQueue;

use crate::{Adjacency, Cursor, Packed, PackedCursor};

/// How lists are read ahead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdvisorSettings {
    /// Visits that wait; when there are more, the oldest leaves. Default 64.
    pub ring: usize,
    /// A visit is skipped if more than this many came after it. Default 16.
    pub lag_max: u64,
    /// Lists that are read ahead for a visit, those of the greatest degree first. Default 256.
    pub lists_max: usize,
    /// Blocks of one list that are read ahead: a hub's list is long, and may not be read to its end. Default 4.
    pub blocks_max: usize,
    /// Bytes that are read ahead of a pass. Default 1 MiB.
    pub window_bytes: u64,
}

impl Default for AdvisorSettings {
    fn default() -> Self {
        Self { ring: 64, lag_max: 16, lists_max: 256, blocks_max: 4, window_bytes: 1 << 20 }
    }
}

/// What an advisor has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Advised {
    /// Visits that lists were read ahead for.
    pub visits: u64,
    /// Visits that were overwritten or lagged behind.
    pub skipped: u64,
    /// Blocks that the system was asked for.
    pub blocks: u64,
}

/// Where a walk is.
#[derive(Debug, Clone, Copy)]
struct Visit {
    number: u64,
    vertex: u32,
    /// Whether it goes on to the next vertex, rather than to a neighbour.
    passes: bool,
}

#[derive(Debug)]
struct Shared {
    lists: Arc<Packed>,
    settings: AdvisorSettings,
    ring: ArrayQueue<Visit>,
    /// Visits so far.
    visits: AtomicU64,
    is_asleep: AtomicBool,
    is_over: AtomicBool,
    advised: AtomicU64,
    skipped: AtomicU64,
    blocks: AtomicU64,
}

/// A thread that reads lists ahead. It ends when it is dropped.
#[derive(Debug)]
pub struct Advisor {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Advisor {
    /// Starts a thread for the walks over some lists. For lists that are not in mapped files its advice changes nothing.
    pub fn new(lists: &Arc<Packed>, settings: AdvisorSettings) -> Self {
        let shared = Arc::new(Shared {
            lists: lists.clone(),
            ring: ArrayQueue::new(settings.ring.max(1)),
            settings,
            visits: AtomicU64::new(0),
            is_asleep: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            advised: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            blocks: AtomicU64::new(0),
        });
        let own = shared.clone();
        Self { shared, thread: Some(thread::spawn(move || own.advise())) }
    }

    /// What it has done so far.
    pub fn advised(&self) -> Advised {
        let Shared { advised, skipped, blocks, .. } = &*self.shared;
        Advised { visits: advised.load(Relaxed), skipped: skipped.load(Relaxed), blocks: blocks.load(Relaxed) }
    }

    /// A cursor for walks from neighbour to neighbour.
    pub fn visiting(&self) -> Visiting<'_> {
        Visiting { advisor: self, cursor: self.shared.lists.cursor() }
    }

    /// A cursor for a pass over vertices in their order.
    pub fn passing(&self) -> Passing<'_> {
        Passing { advisor: self, cursor: self.shared.lists.cursor(), left_bytes: 0 }
    }

    fn visit(&self, vertex: u32, passes: bool) {
        let Shared { ring, visits, skipped, is_asleep, .. } = &*self.shared;
        let number = visits.fetch_add(1, Relaxed) + 1;
        if ring.force_push(Visit { number, vertex, passes }).is_some() {
            skipped.fetch_add(1, Relaxed);
        }
        if is_asleep.swap(false, Relaxed) {
            self.thread.iter().for_each(|thread| thread.thread().unpark());
        }
    }
}

impl Drop for Advisor {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic there has cost time, and no answer.
            let _ = thread.join();
        }
    }
}

/// A thread that has nothing to do looks again after this time, should it have missed that it was woken.
const SLEEP: Duration = Duration::from_millis(2);

impl Shared {
    fn advise(&self) {
        let mut lists = self.lists.cursor();
        let mut recent = Recent::default();
        let mut neighbours = Vec::new();
        while !self.is_over.load(Relaxed) {
            let Some(visit) = self.ring.pop() else {
                self.is_asleep.store(true, Relaxed);
                if self.ring.is_empty() {
                    thread::park_timeout(SLEEP);
                }
                continue;
            };
            if self.visits.load(Relaxed) - visit.number > self.settings.lag_max {
                self.skipped.fetch_add(1, Relaxed);
                continue;
            }
            self.advised.fetch_add(1, Relaxed);
            match visit.passes {
                true => self.ahead_of(visit.vertex, &mut recent),
                false => self.around(visit, &mut lists, &mut neighbours, &mut recent),
            }
        }
    }

    /// The lists of the neighbours of a vertex.
    fn around(&self, visit: Visit, lists: &mut PackedCursor<'_>, neighbours: &mut Vec<u32>, recent: &mut Recent) {
        // The visitor has read this list, so that its pages are there.
        neighbours.clear();
        neighbours.extend_from_slice(lists.neighbours(visit.vertex));
        neighbours.dedup();
        let degree = |vertex: &u32| std::cmp::Reverse(self.lists.degree(*vertex));
        if neighbours.len() > self.settings.lists_max {
            neighbours.select_nth_unstable_by_key(self.settings.lists_max, degree);
            neighbours.truncate(self.settings.lists_max);
        }
        neighbours.sort_unstable_by_key(degree);
        for neighbour in neighbours {
            // Meanwhile the visitor may have gone on.
            if self.visits.load(Relaxed) - visit.number > self.settings.lag_max {
                return;
            }
            for block in self.lists.blocks_of(*neighbour).take(self.settings.blocks_max) {
                self.need(block, recent);
            }
        }
    }

    /// The lists from a vertex on, as far as the window goes.
    fn ahead_of(&self, vertex: u32, recent: &mut Recent) {
        let mut left = self.settings.window_bytes;
        for block in self.lists.blocks_from(vertex) {
            self.need(block, recent);
            left = left.saturating_sub(block.len() as u64);
            if left == 0 {
                return;
            }
        }
    }

    fn need(&self, block: &[u8], recent: &mut Recent) {
        if recent.is_new(block) {
            hoplake_mapping::will_need(block);
            self.blocks.fetch_add(1, Relaxed);
        }
    }
}

/// The blocks that the system was asked for last: a call for each visit to the neighbours of a hub would cost more than it brings.
struct Recent(Vec<usize>);

impl Default for Recent {
    fn default() -> Self {
        Self(vec![0; 1 << 12])
    }
}

impl Recent {
    fn is_new(&mut self, block: &[u8]) -> bool {
        let address = block.as_ptr().addr();
        // Blocks are some KiB apart.
        let place = (address >> 10) % self.0.len();
        std::mem::replace(&mut self.0[place], address) != address
    }
}

/// Reads lists in the order of a walk from neighbour to neighbour: those of the neighbours of each vertex are read ahead.
#[derive(Debug)]
pub struct Visiting<'a> {
    advisor: &'a Advisor,
    cursor: PackedCursor<'a>,
}

impl Cursor for Visiting<'_> {
    fn neighbours(&mut self, vertex: u32) -> &[u32] {
        let list = self.cursor.neighbours(vertex);
        self.advisor.visit(vertex, false);
        list
    }
}

/// Reads lists in the order of vertices: those that come next are read ahead.
#[derive(Debug)]
pub struct Passing<'a> {
    advisor: &'a Advisor,
    cursor: PackedCursor<'a>,
    /// Bytes, of about 2 an edge, until the window is moved on.
    left_bytes: u64,
}

impl Cursor for Passing<'_> {
    fn neighbours(&mut self, vertex: u32) -> &[u32] {
        if self.left_bytes == 0 {
            self.advisor.visit(vertex, true);
            // Half of the window is there when the next is asked for.
            self.left_bytes = self.advisor.shared.settings.window_bytes / 2;
        }
        let list = self.cursor.neighbours(vertex);
        self.left_bytes = self.left_bytes.saturating_sub(list.len() as u64 * 2);
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_new_until_another_has_its_place() {
        let mut recent = Recent::default();
        let bytes = vec![0; (1 << 22) + 2048];
        assert!(recent.is_new(&bytes[..1]));
        assert!(!recent.is_new(&bytes[..1]));
        assert!(recent.is_new(&bytes[2047..]));
        assert!(recent.is_new(&bytes[1 << 22..]), "4,096 places of 1 KiB further");
        assert!(recent.is_new(&bytes[..1]));
    }
}
