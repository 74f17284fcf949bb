//! What is read, and what of it each thread reads.

use std::fmt;

use anyhow::Result;
use rand::{Rng, RngExt, SeedableRng, rngs::SmallRng};

use crate::{
    files::{Block, Files},
    ways::Reader,
};

/// Blocks in the order in which a query would need them.
#[derive(Debug, Clone, Copy)]
pub enum Work {
    /// Random blocks; which one is next is known once the one before was read.
    OneByOne {
        /// How many a thread reads.
        blocks: usize,
    },
    /// Random blocks, many of which are known at once.
    Waves {
        /// How many waves a thread reads.
        waves: usize,
        /// The blocks of a wave, all different. Files with fewer blocks are read as a whole.
        blocks: usize,
    },
    /// All blocks in order.
    Pass,
}

/// What one thread reads.
#[derive(Debug)]
pub enum Share<'a> {
    /// Blocks that are drawn on the way.
    OneByOne {
        /// The files.
        files: &'a Files,
        /// The seed of the first draw.
        seed: u64,
        /// How many blocks.
        blocks: usize,
    },
    /// The blocks of each wave.
    Waves(Vec<Vec<Block>>),
    /// Blocks in order.
    Pass(Vec<Block>),
}

impl Work {
    /// What each of some threads reads. It depends on the seed alone.
    pub fn shares<'a>(&self, files: &'a Files, threads: usize, seed: u64) -> Vec<Share<'a>> {
        let share = |thread: usize| {
            let seed = SmallRng::seed_from_u64(seed).next_u64().wrapping_add(thread as u64);
            match *self {
                Self::OneByOne { blocks } => Share::OneByOne { files, seed, blocks },
                Self::Waves { waves, blocks } => {
                    let mut random = SmallRng::seed_from_u64(seed);
                    Share::Waves((0..waves).map(|_| draw_wave(files, blocks, &mut random)).collect())
                }
                Self::Pass => {
                    let bound = |thread: usize| files.blocks() * thread as u64 / threads as u64;
                    Share::Pass((bound(thread)..bound(thread + 1)).map(|number| files.block(number)).collect())
                }
            }
        };
        (0..threads).map(share).collect()
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OneByOne { blocks } => write!(f, "{blocks} one after the other"),
            Self::Waves { waves, blocks } => write!(f, "{waves} waves of {blocks}"),
            Self::Pass => f.write_str("a pass"),
        }
    }
}

fn draw_wave(files: &Files, blocks: usize, random: &mut SmallRng) -> Vec<Block> {
    let all = files.blocks() as usize;
    rand::seq::index::sample(random, all, blocks.min(all)).iter().map(|number| files.block(number as u64)).collect()
}

impl Share<'_> {
    /// Reads it, and returns a number that depends on all bytes that were read.
    ///
    /// # Errors
    /// If a block cannot be read.
    pub fn read(&self, reader: &mut dyn Reader) -> Result<u64> {
        match self {
            Self::OneByOne { files, seed, blocks } => {
                let mut state = *seed;
                for _ in 0..*blocks {
                    let mut random = SmallRng::seed_from_u64(state);
                    let block = files.block(random.random_range(0..files.blocks()));
                    state = random.next_u64() ^ reader.block(block)?;
                }
                Ok(state)
            }
            Self::Waves(waves) => {
                waves.iter().try_fold(0u64, |total, wave| Ok(total.rotate_left(1) ^ reader.wave(wave)?))
            }
            Self::Pass(blocks) => reader.pass(blocks),
        }
    }
}

/// The sum of the words of a block, whose last one may be short. It looks at all bytes and costs little next to reading them.
pub fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    words.iter().fold(u64::from_le_bytes(last), |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::files;

    #[test]
    fn a_sum_depends_on_each_byte() {
        let mut bytes: Vec<u8> = (0..29).collect();
        let whole = sum(&bytes);
        for position in 0..bytes.len() {
            bytes[position] ^= 0x80;
            assert_ne!(sum(&bytes), whole, "byte {position}");
            bytes[position] ^= 0x80;
        }
        assert_eq!(sum(&bytes), whole);
    }

    #[test]
    fn a_wave_has_different_blocks_and_each_thread_has_waves_of_its_own() {
        let (_folder, files, _) = files::tests::random(4096);
        let shares = Work::Waves { waves: 3, blocks: 50 }.shares(&files, 2, 42);
        let waves: Vec<&Vec<Block>> = shares
            .iter()
            .flat_map(|share| match share {
                Share::Waves(waves) => waves,
                _ => panic!("{share:?}"),
            })
            .collect();
        assert_eq!(waves.len(), 6);
        for (position, wave) in waves.iter().enumerate() {
            let different: HashSet<(u32, u64)> = wave.iter().map(|block| (block.file, block.offset)).collect();
            assert_eq!(different.len(), 50);
            assert!(waves[..position].iter().all(|other| other != wave));
        }
        // More blocks than there are.
        let shares = Work::Waves { waves: 1, blocks: 1000 }.shares(&files, 1, 42);
        let [Share::Waves(waves)] = shares.as_slice() else { panic!("{shares:?}") };
        assert_eq!(waves[0].len() as u64, files.blocks());
    }

    #[test]
    fn the_parts_of_a_pass_have_all_blocks_in_order() {
        let (_folder, files, _) = files::tests::random(4096);
        for threads in [1, 2, 3, 1000] {
            let passed: Vec<Block> = Work::Pass
                .shares(&files, threads, 42)
                .into_iter()
                .flat_map(|share| match share {
                    Share::Pass(blocks) => blocks,
                    _ => panic!("{share:?}"),
                })
                .collect();
            assert_eq!(passed, (0..files.blocks()).map(|number| files.block(number)).collect::<Vec<_>>());
        }
    }
}
