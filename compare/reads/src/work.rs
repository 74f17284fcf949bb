//! What is read.

use std::{
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use rand::{RngExt, SeedableRng, rngs::SmallRng};

/// A block of one of the files.
#[derive(Debug, Clone, Copy)]
pub struct Block {
    /// The file, by its number.
    pub file: usize,
    /// Where it begins.
    pub offset: u64,
}

/// Files of blocks.
#[derive(Debug, Clone)]
pub struct Files {
    /// Each with the number of its first block.
    files: Vec<(PathBuf, u64)>,
    blocks: u64,
    /// Bytes of a block.
    pub block_bytes: usize,
}

impl Files {
    /// The files below a folder. What is left behind the last whole block of a file is not read.
    pub fn below(folder: &Path, block_bytes: usize) -> Result<Self> {
        let mut files = Self { files: Vec::new(), blocks: 0, block_bytes };
        let mut paths = vec![folder.to_owned()];
        while let Some(path) = paths.pop() {
            let metadata = fs::metadata(&path).with_context(|| path.display().to_string())?;
            if metadata.is_dir() {
                let mut entries = fs::read_dir(&path)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
                entries.sort_unstable();
                paths.extend(entries.into_iter().rev());
            } else if metadata.len() >= block_bytes as u64 {
                files.files.push((path, files.blocks));
                files.blocks += metadata.len() / block_bytes as u64;
            }
        }
        Ok(files)
    }

    /// How many whole blocks they have.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Their paths, by their numbers.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|(path, _)| path.as_path())
    }

    /// A block by its number among those of all files.
    pub fn block(&self, number: u64) -> Block {
        let file = self.files.partition_point(|(_, first)| *first <= number) - 1;
        Block { file, offset: (number - self.files[file].1) * self.block_bytes as u64 }
    }
}

/// The blocks that a thread reads.
#[derive(Debug, Clone)]
pub enum Work {
    /// Groups of blocks, of which each is known when the one before was read.
    Waves(Vec<Vec<Block>>),
    /// Consecutive blocks, by their numbers, and how many may be read ahead.
    Pass(Range<u64>, usize),
}

impl Work {
    /// Waves of blocks that are drawn evenly.
    pub fn waves(files: &Files, waves: usize, blocks: usize, seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut wave = |_| (0..blocks).map(|_| files.block(random.random_range(0..files.blocks()))).collect();
        Self::Waves((0..waves).map(&mut wave).collect())
    }

    /// One of several parts of all blocks.
    pub fn pass(files: &Files, part: u64, parts: u64, ahead: usize) -> Self {
        Self::Pass(files.blocks() * part / parts..files.blocks() * (part + 1) / parts, ahead)
    }
}
