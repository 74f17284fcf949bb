//! Ways of reading blocks.

mod mapped;
mod pool;
mod ring;

use std::fmt;

use anyhow::Result;
use hoplake_mapping::AccessPattern;

use self::{
    mapped::{Advice, Mapped},
    pool::Pool,
    ring::Rings,
};
use crate::files::{Block, Files};

/// A way of reading blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Maps; the system reads ahead as it likes.
    MappedReadahead,
    /// Maps that are said to be read from one end to the other: the system reads further ahead.
    MappedSequential,
    /// Maps, of which the system reads the pages that are touched.
    MappedRandom,
    /// Maps, of which the system reads the blocks that it is advised of before they are touched. This is what Hoplake does.
    MappedAdvised,
    /// Plain reads: by the thread that needs a block, and by a pool of threads if several blocks are known.
    Plain,
    /// io_uring, one ring per thread.
    Ring,
}

/// What ways need to know of the work.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Blocks that a pass asks for before it needs them.
    pub ahead: usize,
    /// Blocks of a pass for which one call advises the system.
    pub together: usize,
    /// Threads of the pool for plain reads.
    pub pool_threads: usize,
    /// The most blocks that a thread asks for at once.
    pub in_flight_max: usize,
}

/// Files, open in a way. All threads share it.
pub trait Open: Sync {
    /// What one thread reads with. It is ready to read: buffers are allocated and touched.
    ///
    /// # Errors
    /// If the system rejects what the way needs.
    fn reader(&self) -> Result<Box<dyn Reader + '_>>;
}

/// Reads blocks, and returns sums of their words.
pub trait Reader {
    /// Reads a block after which nothing is known.
    ///
    /// # Errors
    /// If it cannot be read.
    fn block(&mut self, block: Block) -> Result<u64>;

    /// Reads blocks that are known together, in any order.
    ///
    /// # Errors
    /// If one cannot be read.
    fn wave(&mut self, blocks: &[Block]) -> Result<u64>;

    /// Reads blocks that follow each other, in their order.
    ///
    /// # Errors
    /// If one cannot be read.
    fn pass(&mut self, blocks: &[Block]) -> Result<u64>;
}

impl Way {
    const ALL: [Self; 6] = [
        Self::MappedReadahead,
        Self::MappedSequential,
        Self::MappedRandom,
        Self::MappedAdvised,
        Self::Plain,
        Self::Ring,
    ];

    /// Opens files.
    ///
    /// # Errors
    /// If one cannot be opened.
    pub fn open(self, files: &Files, settings: &Settings) -> Result<Box<dyn Open>> {
        Ok(match self {
            Self::MappedReadahead => Box::new(Mapped::open(files, AccessPattern::Any, None)?),
            Self::MappedSequential => Box::new(Mapped::open(files, AccessPattern::Sequential, None)?),
            Self::MappedRandom => Box::new(Mapped::open(files, AccessPattern::Random, None)?),
            Self::MappedAdvised => {
                let advice = Advice { ahead: settings.ahead, together: settings.together };
                Box::new(Mapped::open(files, AccessPattern::Random, Some(advice))?)
            }
            Self::Plain => Box::new(Pool::open(files, settings)?),
            Self::Ring => Box::new(Rings::new(files, settings)),
        })
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MappedReadahead => "mapped, the system's readahead",
            Self::MappedSequential => "mapped, sequential",
            Self::MappedRandom => "mapped, no readahead",
            Self::MappedAdvised => "mapped, blocks advised",
            Self::Plain => "plain reads, a pool",
            Self::Ring => "io_uring",
        })
    }
}

/// The ways that this system has. It says on standard error why another is left out.
pub fn available(files: &Files, settings: &Settings) -> Vec<Way> {
    let is_available = |way: &Way| {
        let tried = way.open(files, settings).and_then(|open| open.reader().map(drop));
        if let Err(error) = &tried {
            eprintln!("{way} is left out: {error:#}");
        }
        tried.is_ok()
    };
    Way::ALL.into_iter().filter(is_available).collect()
}

/// Buffers of a block each, which are used again and again. Their pages are there: no read waits for the system to clear one.
fn buffers(count: usize, bytes: usize) -> Vec<Vec<u8>> {
    (0..count).map(|_| vec![1; bytes]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        files,
        measure::run,
        work::{Share, Work, sum},
    };

    /// Reads blocks from the bytes in memory, as a reference for the ways.
    struct InMemoryBlocks(Vec<Vec<u8>>);

    impl Reader for InMemoryBlocks {
        fn block(&mut self, block: Block) -> Result<u64> {
            let bytes = &self.0[block.file as usize];
            Ok(sum(&bytes[block.offset as usize..block.offset as usize + block.length as usize]))
        }

        fn wave(&mut self, blocks: &[Block]) -> Result<u64> {
            blocks.iter().try_fold(0u64, |total, block| Ok(total.wrapping_add(self.block(*block)?)))
        }

        fn pass(&mut self, blocks: &[Block]) -> Result<u64> {
            self.wave(blocks)
        }
    }

    #[test]
    fn all_ways_read_the_bytes_that_were_written() {
        // Blocks of pages, and others that begin anywhere.
        for block_bytes in [4096, 1001] {
            let (_folder, files, contents) = files::tests::random(block_bytes);
            let settings = Settings { ahead: 4, together: 3, pool_threads: 3, in_flight_max: 20 };
            let works = [Work::OneByOne { blocks: 50 }, Work::Waves { waves: 3, blocks: 20 }, Work::Pass];
            for (work, threads) in works.into_iter().flat_map(|work| [(work, 1), (work, 3)]) {
                let shares = work.shares(&files, threads, 42);
                let mut written = InMemoryBlocks(contents.clone());
                let expected: Vec<u64> =
                    shares.iter().map(|share: &Share<'_>| share.read(&mut written).expect("it is there")).collect();
                for way in available(&files, &settings) {
                    files.evict().expect("the files are there");
                    let open = way.open(&files, &settings).expect("the files are there");
                    for _ in 0..2 {
                        let (_, sums) = run(&*open, &shares).expect("the files are there");
                        assert_eq!(sums, expected, "{way}: {work}, {threads} threads, blocks of {block_bytes}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_file_that_became_shorter_is_an_error_of_reads() {
        let (folder, files, _) = files::tests::random(4096);
        let file = std::fs::File::options().write(true).open(folder.path().join("data/0")).expect("it is there");
        file.set_len(1000).expect("it is cut");
        let settings = Settings { ahead: 4, together: 3, pool_threads: 3, in_flight_max: 20 };
        // A map is checked when it is opened.
        for way in available(&files, &settings) {
            let open = way.open(&files, &settings).expect("the files are there");
            let mut reader = open.reader().expect("the files are there");
            let blocks = [files.block(0), files.block(5)];
            assert!(reader.block(blocks[1]).is_err(), "{way}");
            assert!(reader.wave(&blocks).is_err(), "{way}");
            assert!(reader.pass(&blocks).is_err(), "{way}");
        }
    }
}
