//! Estimates how often a block was used lately, also before its insertion: a count-min sketch whose counts fade.
//!
//! Cormode, Muthukrishnan: An improved data stream summary, 2005; with the saturating counters and the periodic halving
//! of TinyLFU (Einziger, Friedman, Manes: TinyLFU: A Highly Efficient Cache Admission Policy, ACM TOS 13(4), 2017).

/// Counters for each block that the cache is expected to hold, rows together.
const COUNTERS_PER_BLOCK: usize = 16;
/// Rows, each with a hash of its own; the estimate is the lowest.
const ROWS: usize = 4;
/// A count goes no higher: TinyLFU's four bits. A byte holds it, for simplicity.
const COUNT_MAX: u8 = 15;
/// Uses for each expected block after which all counts are halved; the paper's W/C.
const SAMPLE_PER_BLOCK: usize = 10;

/// The sketch.
#[derive(Debug)]
pub struct Sketch {
    /// Rows one after the other, each of a power of two of counters.
    counts: Vec<u8>,
    uses: usize,
    uses_max: usize,
}

impl Sketch {
    /// An empty sketch for a cache that holds about `blocks`.
    pub fn new(blocks: usize) -> Self {
        let blocks = blocks.max(16);
        let row = (blocks * COUNTERS_PER_BLOCK / ROWS).next_power_of_two();
        Self { counts: vec![0; row * ROWS], uses: 0, uses_max: blocks * SAMPLE_PER_BLOCK }
    }

    /// Counts a use of what has this hash.
    #[inline]
    pub fn count(&mut self, hash: u64) {
        for cell in self.cells(hash) {
            let count = &mut self.counts[cell];
            *count = (*count + 1).min(COUNT_MAX);
        }
        self.uses += 1;
        // Amortised: after ten uses for each expected block the first time, and after five more each time from then on.
        if self.uses >= self.uses_max {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.uses /= 2;
        }
    }

    /// How often it was used lately, or more.
    pub fn estimate(&self, hash: u64) -> u8 {
        self.cells(hash).into_iter().map(|cell| self.counts[cell]).min().unwrap_or(0)
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        self.uses = 0;
    }

    #[inline]
    fn cells(&self, hash: u64) -> [usize; ROWS] {
        let row = self.counts.len() / ROWS;
        // Each row looks at the hash through another odd factor, and takes the high half, where all bits meet.
        const FACTORS: [u64; ROWS] =
            [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb, 0xff51_afd7_ed55_8ccd];
        let mut cells = [0; ROWS];
        for (index, cell) in cells.iter_mut().enumerate() {
            *cell = index * row + ((hash.wrapping_mul(FACTORS[index]) >> 32) as usize & (row - 1));
        }
        cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_never_low_and_fade() {
        let mut sketch = Sketch::new(100);
        for hash in 0..100u64 {
            (0..=hash % 4).for_each(|_| sketch.count(hash));
        }
        let low = (0..100u64).filter(|hash| u64::from(sketch.estimate(*hash)) <= hash % 4).count();
        let exact = (0..100u64).filter(|hash| u64::from(sketch.estimate(*hash)) == hash % 4 + 1).count();
        assert!(low == 0 && exact > 90, "{low} low, {exact} exact");
        (0..20).for_each(|_| sketch.count(1_000));
        assert_eq!(sketch.estimate(1_000), COUNT_MAX);
        // 1,000 uses are a sample of 100 blocks: 270 were seen.
        (0..730u64).for_each(|hash| sketch.count((1 << 20) | (hash % 7)));
        assert_eq!((sketch.estimate(1_000), sketch.uses), (COUNT_MAX / 2, 500));
    }
}
