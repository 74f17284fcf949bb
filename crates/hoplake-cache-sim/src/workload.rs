//! A trace prepared for replays: blocks get numbers in the order of their location, and look-ups become indexing.

use std::ops::Range;

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use hoplake_storage::{
    Tier,
    cache::{BlockKey, hash_of, weight_of},
    trace::{ReadAccess, Recording},
};

/// The accesses of a trace.
#[derive(Debug, Clone)]
pub struct Workload {
    pub(crate) uses: Vec<Use>,
    /// By object and position, so that what follows a block is the next.
    pub(crate) blocks: Vec<Block>,
    summary: Summary,
}

/// An access.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Use {
    pub query: u64,
    pub wave: u32,
    pub block: u32,
    /// Whether its query asks nothing after it.
    pub last: bool,
}

/// A block that is accessed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    pub key: BlockKey,
    pub hash: u64,
    pub bytes: u64,
}

/// What is in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// Accesses.
    pub accesses: u64,
    /// Queries.
    pub queries: u64,
    /// Bytes of all accesses.
    pub bytes: u64,
    /// Blocks, each counted once.
    pub blocks: u64,
    /// What a cache that holds all of them takes, with its books, in bytes.
    pub cache_bytes: u64,
    /// Accesses by where the recorded run served them from, in the order of [`Tier::ALL`].
    pub served: [u64; 5],
}

impl Block {
    /// What it takes of the budget.
    pub fn weight(&self) -> u64 {
        weight_of(self.bytes)
    }

    /// Its bytes in the object.
    pub fn range(&self) -> Range<u64> {
        self.key.position..self.key.position.saturating_add(self.bytes)
    }
}

impl Workload {
    /// The accesses of a recording. A block that it gives several lengths has the largest.
    pub fn new(recording: &Recording) -> Self {
        let mut lengths: HashMap<BlockKey, u64> = HashMap::new();
        let key = |object, position| BlockKey { object, position };
        for access in &recording.accesses {
            let bytes = lengths.entry(key(access.object, access.position)).or_default();
            // One length for each block: with several, the same block would have several weights.
            *bytes = access.bytes.max(*bytes);
        }
        let block = |(key, bytes)| Block { key, hash: hash_of(key), bytes };
        let mut blocks: Vec<_> = lengths.into_iter().map(block).collect();
        blocks.sort_unstable_by_key(|block| block.key);
        let numbers: HashMap<_, _> = (0u32..).zip(&blocks).map(|(number, block)| (block.key, number)).collect();
        let number = |access: &ReadAccess| Use {
            query: access.query,
            wave: access.wave,
            block: numbers[&key(access.object, access.position)],
            last: false,
        };
        let mut uses: Vec<_> = recording.accesses.iter().map(number).collect();
        let mut ended = HashSet::new();
        // From the back: the first access of a query that is met is its last.
        uses.iter_mut().rev().for_each(|access| access.last = ended.insert(access.query));
        let count = |served| recording.accesses.iter().filter(|access| access.served == served).count() as u64;
        let summary = Summary {
            accesses: uses.len() as u64,
            queries: ended.len() as u64,
            bytes: uses.iter().map(|access| blocks[access.block as usize].bytes).sum(),
            blocks: blocks.len() as u64,
            cache_bytes: blocks.iter().map(Block::weight).sum(),
            served: Tier::ALL.map(count),
        };
        Self { uses, blocks, summary }
    }

    /// What is in it.
    pub fn summary(&self) -> Summary {
        self.summary
    }

    /// For each access, the number of the next one of the same block; their number if there is none.
    pub(crate) fn next_uses(&self) -> Vec<usize> {
        let mut later = vec![self.uses.len(); self.blocks.len()];
        let mut next: Vec<_> = (0..self.uses.len())
            .rev()
            .map(|number| std::mem::replace(&mut later[self.uses[number].block as usize], number))
            .collect();
        next.reverse();
        next
    }
}
