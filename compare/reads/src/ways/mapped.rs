//! Maps: blocks are slices of them, and nothing is copied.

use anyhow::{Context, Result};
use bytes::Bytes;
use hoplake_mapping::{AccessPattern, MappedFile};

use super::{Open, Reader};
use crate::{
    files::{Block, Files},
    work::sum,
};

/// Files in maps that all threads share.
pub struct Mapped {
    maps: Vec<MappedFile>,
    /// How the system is advised of blocks, if it is.
    advice: Option<Advice>,
}

/// How a pass advises the system. Waves advise it of each block.
#[derive(Debug, Clone, Copy)]
pub struct Advice {
    /// Blocks that a pass is ahead.
    pub ahead: usize,
    /// The most blocks of one call.
    pub together: usize,
}

impl Mapped {
    /// Maps files, and says how they will be read.
    ///
    /// # Errors
    /// If one cannot be mapped.
    pub fn open(files: &Files, access: AccessPattern, advice: Option<Advice>) -> Result<Self> {
        let mut maps = Vec::new();
        for path in files.paths() {
            let map = MappedFile::open(path).with_context(|| format!("could not map {}", path.display()))?;
            map.expect(access);
            maps.push(map);
        }
        Ok(Self { maps, advice })
    }

    fn slice(&self, block: &Block) -> Result<Bytes> {
        let range = block.offset..block.offset + u64::from(block.length);
        self.maps[block.file as usize].slice(range).with_context(|| format!("the file has no {block:?}"))
    }

    fn advise(&self, blocks: &[Block]) -> Result<()> {
        blocks.iter().try_for_each(|block| {
            hoplake_mapping::will_need(&self.slice(block)?);
            Ok(())
        })
    }

    /// Advises the system of blocks that follow each other, with one call per file.
    fn advise_together(&self, blocks: &[Block]) {
        for of_file in blocks.chunk_by(|one, other| one.file == other.file) {
            let end = of_file.last().map_or(0, |block| block.offset + u64::from(block.length));
            self.maps[of_file[0].file as usize].will_need(of_file[0].offset..end);
        }
    }
}

impl Open for Mapped {
    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(self))
    }
}

impl Reader for &Mapped {
    fn block(&mut self, block: Block) -> Result<u64> {
        self.wave(&[block])
    }

    fn wave(&mut self, blocks: &[Block]) -> Result<u64> {
        if self.advice.is_some() {
            self.advise(blocks)?;
        }
        blocks.iter().try_fold(0u64, |total, block| Ok(total.wrapping_add(sum(&self.slice(block)?))))
    }

    fn pass(&mut self, blocks: &[Block]) -> Result<u64> {
        let mut total = 0u64;
        let mut advised = 0;
        for (position, block) in blocks.iter().enumerate() {
            if let Some(Advice { ahead, together }) = self.advice {
                let end = (position + ahead).min(blocks.len());
                if end - advised >= together || end == blocks.len() {
                    blocks[advised..end].chunks(together).for_each(|blocks| self.advise_together(blocks));
                    advised = end;
                }
            }
            total = total.wrapping_add(sum(&self.slice(block)?));
        }
        Ok(total)
    }
}
