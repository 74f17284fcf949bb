//! The files that are read, and their blocks.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use hoplake_mapping::MappedFile;

/// Files whose blocks are numbered, those of the first file first.
#[derive(Debug)]
pub struct Files {
    files: Vec<Numbered>,
    block_bytes: u32,
    blocks: u64,
}

#[derive(Debug)]
struct Numbered {
    path: PathBuf,
    bytes: u64,
    /// The number of its first block.
    first_block: u64,
}

/// Where a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// The position of its file.
    pub file: u32,
    /// Its bytes. The last block of a file may have fewer than others.
    pub length: u32,
    /// Where it begins in its file.
    pub offset: u64,
}

/// The files of a graph in a folder, in the order of their names.
///
/// # Errors
/// If the folder cannot be read.
pub fn of_graph(folder: &Path) -> Result<Vec<PathBuf>> {
    let data = folder.join("data");
    let read = || {
        let mut paths = Vec::new();
        for entry in data.read_dir()? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                paths.push(entry.path());
            }
        }
        std::io::Result::Ok(paths)
    };
    let mut paths = read().with_context(|| format!("could not read the folder {}", data.display()))?;
    paths.sort();
    Ok(paths)
}

impl Files {
    /// Files with blocks of a length. What was written to them is on the disk afterwards: pages that are not cannot be evicted.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn open(paths: &[PathBuf], block_bytes: u32) -> Result<Self> {
        let mut files = Self { files: Vec::new(), block_bytes, blocks: 0 };
        for path in paths {
            let synced = || {
                let file = File::open(path)?;
                file.sync_all()?;
                file.metadata()
            };
            let bytes = synced().with_context(|| format!("could not open {}", path.display()))?.len();
            files.files.push(Numbered { path: path.clone(), bytes, first_block: files.blocks });
            files.blocks += bytes.div_ceil(block_bytes.into());
        }
        Ok(files)
    }

    /// How many blocks they have.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// How many bytes they have.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// The bytes of each block but the last of a file.
    pub fn block_bytes(&self) -> usize {
        self.block_bytes as usize
    }

    /// A block; its number must be below [`Self::blocks`].
    pub fn block(&self, number: u64) -> Block {
        assert!(number < self.blocks, "block {number} of {}", self.blocks);
        // Of files that begin with the same block, all but the last are empty.
        let file = self.files.partition_point(|file| file.first_block <= number) - 1;
        let offset = (number - self.files[file].first_block) * u64::from(self.block_bytes);
        let length = u64::from(self.block_bytes).min(self.files[file].bytes - offset);
        Block { file: file as u32, length: length as u32, offset }
    }

    /// Where they are.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| file.path.as_path())
    }

    /// Evicts their pages from the page cache. No process may have them mapped.
    ///
    /// # Errors
    /// If a file cannot be opened.
    pub fn evict(&self) -> Result<()> {
        for path in self.paths() {
            let mapped = MappedFile::open(path).with_context(|| format!("could not map {}", path.display()))?;
            mapped.will_not_need(0..mapped.len());
        }
        Ok(())
    }
}

/// The bytes that this process has read from disks; `None` if the system does not count them.
pub fn disk_bytes() -> Option<u64> {
    let counters = std::fs::read_to_string("/proc/self/io").ok()?;
    counters.lines().find_map(|line| line.strip_prefix("read_bytes: "))?.parse().ok()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Files of random bytes: an empty one, and others whose last block is short.
    pub fn random(block_bytes: u32) -> (tempfile::TempDir, Files, Vec<Vec<u8>>) {
        use rand::{Rng, SeedableRng, rngs::SmallRng};

        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        std::fs::create_dir(&data).expect("a folder");
        let mut random = SmallRng::seed_from_u64(1);
        let mut contents = Vec::new();
        for (file, length) in [500_001, 0, 300_000, 7].into_iter().enumerate() {
            let mut bytes = vec![0; length];
            random.fill_bytes(&mut bytes);
            std::fs::write(data.join(format!("{file}")), &bytes).expect("a file");
            contents.push(bytes);
        }
        let paths = of_graph(folder.path()).expect("a folder of files");
        let files = Files::open(&paths, block_bytes).expect("files");
        (folder, files, contents)
    }

    #[test]
    fn blocks_follow_each_other_and_have_all_bytes() {
        let (_folder, files, contents) = random(4096);
        assert_eq!(files.bytes(), 800_008);
        let blocks: Vec<Block> = (0..files.blocks()).map(|number| files.block(number)).collect();
        let expected = contents.iter().enumerate().flat_map(|(file, bytes)| {
            let block = move |(number, bytes): (usize, &[u8])| Block {
                file: file as u32,
                length: bytes.len() as u32,
                offset: number as u64 * 4096,
            };
            bytes.chunks(4096).enumerate().map(block)
        });
        assert_eq!(blocks, expected.collect::<Vec<_>>());
    }
}
