//! Accesses to blocks as queries on a stored graph make them: few blocks popular, scans, and bursts.
//!
//! A query looks a key up, follows some hops, and reads properties of what it reached:
//!
//! | object | blocks | who asks for them |
//! | --- | --- | --- |
//! | 0, keys | 16 KiB | wave 0: one, by Zipf's law |
//! | 1, adjacency | 16 KiB | waves 1 to 3: a frontier that grows, by Zipf's law, some with the block after it |
//! | 2, properties | pages of 300 bytes to 300 KiB, log-normal | the last wave: one for each block of the frontier, of its own part of the table |
//!
//! Once in a while a query scans a run of adjacency blocks that nobody asked for lately, and once in a while the same
//! start is asked for several times in a row. Popularity drifts.

use super::{SplitMix64, Zipf};

/// Bytes of a block of keys or adjacency.
const BLOCK_BYTES: u64 = 16_380;

/// What is drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct AccessPattern {
    /// Adjacency blocks; there are a quarter as many key blocks, and as many pages of properties.
    pub blocks: usize,
    /// How popular the popular are; 0 is uniform.
    pub skew: f64,
    /// Queries.
    pub queries: u64,
    /// The share of queries that scan.
    pub scans: f64,
    /// Adjacency blocks of a scan.
    pub scan_blocks: usize,
    /// The share of queries that are asked again, up to five times.
    pub bursts: f64,
    /// The share of queries with which two blocks change places in popularity.
    pub drift: f64,
    /// Names the sequence for ever.
    pub seed: u64,
}

impl Default for AccessPattern {
    fn default() -> Self {
        Self {
            blocks: 20_000,
            skew: 0.9,
            queries: 20_000,
            scans: 0.005,
            scan_blocks: 500,
            bursts: 0.1,
            drift: 0.25,
            seed: 1,
        }
    }
}

/// One access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockAccess {
    /// The query, from 0.
    pub query: u64,
    /// Its batch of reads, from 0.
    pub wave: u32,
    /// The object: 0 to 2.
    pub object: u32,
    /// The block's first byte.
    pub position: u64,
    /// Its length.
    pub bytes: u64,
}

/// The accesses of a pattern, in order.
pub fn block_accesses(pattern: &AccessPattern) -> Vec<BlockAccess> {
    let mut drawn = Drawn::new(pattern);
    for query in 0..pattern.queries {
        drawn.query(query);
    }
    drawn.accesses
}

struct Drawn<'a> {
    pattern: &'a AccessPattern,
    random: SplitMix64,
    zipf: Zipf,
    /// Which block has which popularity: popular ones do not lie side by side.
    ranking: Vec<u32>,
    /// The first byte of each page, and the end of the last.
    pages: Vec<u64>,
    /// The seed of the query asked last, and how often it will be asked again.
    again: (u64, u64),
    accesses: Vec<BlockAccess>,
}

impl<'a> Drawn<'a> {
    fn new(pattern: &'a AccessPattern) -> Self {
        let mut random = SplitMix64::new(pattern.seed);
        let mut ranking: Vec<u32> = (0..pattern.blocks as u32).collect();
        for rank in (1..ranking.len()).rev() {
            ranking.swap(rank, random.below(rank as u64 + 1) as usize);
        }
        let mut pages = vec![0];
        for _ in 0..pattern.blocks {
            // 9 KiB in the middle; a tenth is above 42 KiB and a tenth below 2 KiB.
            let bytes = (9_216.0 * (1.2 * random.normal()).exp()).clamp(300.0, 300e3) as u64;
            pages.push(pages[pages.len() - 1] + bytes);
        }
        let zipf = Zipf::new(pattern.blocks, pattern.skew);
        Self { pattern, random, zipf, ranking, pages, again: (0, 0), accesses: Vec::new() }
    }

    fn query(&mut self, query: u64) {
        if self.random.unit() < self.pattern.drift {
            let [one, other] = [0; 2].map(|_: u8| self.random.below(self.pattern.blocks as u64) as usize);
            self.ranking.swap(one, other);
        }
        if self.random.unit() < self.pattern.scans {
            return self.scan(query);
        }
        if self.again.1 > 0 {
            self.again.1 -= 1;
        } else {
            let times = if self.random.unit() < self.pattern.bursts { 1 + self.random.below(5) } else { 0 };
            self.again = (self.random.next_u64(), times);
        }
        // The same seed asks for the same blocks.
        let mut of_query = SplitMix64::new(self.again.0);
        let start = self.zipf.draw(&mut of_query);
        let key = u64::from(self.ranking[start] / 4);
        self.push(query, 0, 0, key * BLOCK_BYTES, BLOCK_BYTES);
        let mut frontier = vec![self.ranking[start]];
        let hops = 1 + of_query.below(3) as u32;
        for wave in 1..=hops {
            for block in &frontier {
                self.push(query, wave, 1, u64::from(*block) * BLOCK_BYTES, BLOCK_BYTES);
            }
            if wave < hops {
                frontier = self.next_frontier(&mut of_query, wave);
            }
        }
        for page in frontier {
            let [start, end] = [page, page + 1].map(|page| self.pages[page as usize]);
            self.push(query, hops + 1, 2, start, end - start);
        }
    }

    fn next_frontier(&self, random: &mut SplitMix64, wave: u32) -> Vec<u32> {
        let blocks = 1 + random.below(4 * u64::from(wave)) as usize;
        let mut frontier: Vec<u32> = (0..blocks).map(|_| self.ranking[self.zipf.draw(random)]).collect();
        // A long list runs on into the next block.
        if random.below(4) == 0 && (frontier[0] as usize) < self.pattern.blocks - 1 {
            frontier.push(frontier[0] + 1);
        }
        frontier.sort_unstable();
        frontier.dedup();
        frontier
    }

    fn scan(&mut self, query: u64) {
        let first = self.random.below(self.pattern.blocks as u64);
        let blocks = first..(first + self.pattern.scan_blocks as u64).min(self.pattern.blocks as u64);
        for block in blocks {
            self.push(query, 0, 1, block * BLOCK_BYTES, BLOCK_BYTES);
        }
    }

    fn push(&mut self, query: u64, wave: u32, object: u32, position: u64, bytes: u64) {
        self.accesses.push(BlockAccess { query, wave, object, position, bytes });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn accesses_repeat_and_have_the_shape_described() {
        let pattern = AccessPattern { queries: 5_000, ..AccessPattern::default() };
        let accesses = block_accesses(&pattern);
        assert_eq!(accesses, block_accesses(&pattern));
        assert_ne!(accesses, block_accesses(&AccessPattern { seed: 2, ..pattern }));
        assert!(accesses.is_sorted_by_key(|access| (access.query, access.wave)));
        let mut blocks = HashMap::new();
        let mut counts = [0; 3];
        for access in &accesses {
            counts[access.object as usize] += 1;
            // One length and no overlap for each block.
            assert_eq!(*blocks.entry((access.object, access.position)).or_insert(access.bytes), access.bytes);
        }
        assert!(counts.iter().all(|count| *count > 4_000), "{counts:?}");
        let pages: Vec<_> = accesses.iter().filter(|access| access.object == 2).map(|access| access.bytes).collect();
        assert!(pages.iter().any(|bytes| *bytes < 1_000) && pages.iter().any(|bytes| *bytes > 100_000));
        let scans = accesses.chunk_by(|a, b| a.query == b.query).filter(|query| query.len() > 100);
        assert!((10..50).contains(&scans.count()));
    }
}
