//! io_uring: requests go to the system through a ring in shared memory, many with one call. Each thread has a ring of its own.

use std::{cell::RefCell, path::PathBuf};

use anyhow::{Context, Result, ensure};
use compio::{
    BufResult,
    buf::{IntoInner, IoBuf},
    driver::ProactorBuilder,
    fs::File,
    io::AsyncReadAt,
    runtime::{Runtime, RuntimeBuilder},
};
use futures_util::{StreamExt, TryStreamExt, stream};

use super::{Open, Reader, Settings, buffers};
use crate::{
    files::{Block, Files},
    work::sum,
};

/// What each thread opens by itself.
pub struct Rings {
    paths: Vec<PathBuf>,
    block_bytes: usize,
    settings: Settings,
}

impl Rings {
    /// Keeps where files are.
    pub fn new(files: &Files, settings: &Settings) -> Self {
        let paths = files.paths().map(Into::into).collect();
        Self { paths, block_bytes: files.block_bytes(), settings: *settings }
    }
}

impl Open for Rings {
    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        let mut ring = ProactorBuilder::new();
        // Completions are handled when the thread enters the system, not by interrupting it.
        ring.single_issuer(true).defer_taskrun(true);
        let runtime = RuntimeBuilder::new().with_proactor(ring).build().context("the system gives no ring")?;
        ensure!(runtime.driver_type().is_iouring(), "the system has no io_uring");
        let mut files = Vec::new();
        for path in &self.paths {
            let opened = runtime.block_on(File::open(path));
            files.push(opened.with_context(|| format!("could not open {}", path.display()))?);
        }
        let free = RefCell::new(buffers(self.settings.in_flight_max, self.block_bytes));
        Ok(Box::new(RingReader { ahead: self.settings.ahead, free, files, runtime }))
    }
}

/// A ring, and files that are read through it.
struct RingReader {
    ahead: usize,
    /// Buffers of which no read is in flight.
    free: RefCell<Vec<Vec<u8>>>,
    files: Vec<File>,
    runtime: Runtime,
}

impl RingReader {
    async fn read(&self, block: Block) -> Result<(Block, Vec<u8>)> {
        let buffer = self.free.borrow_mut().pop().expect("there are as many buffers as blocks in flight");
        let length = block.length as usize;
        let BufResult(read, slice) =
            self.files[block.file as usize].read_at(buffer.slice(..length), block.offset).await;
        let read = read.with_context(|| format!("could not read {block:?}"))?;
        ensure!(read == length, "{read} bytes were read of {block:?}");
        Ok((block, slice.into_inner()))
    }

    /// The sum of a block, whose buffer is free afterwards.
    fn take(&self, (block, buffer): (Block, Vec<u8>)) -> u64 {
        let sum = sum(&buffer[..block.length as usize]);
        self.free.borrow_mut().push(buffer);
        sum
    }
}

impl Reader for RingReader {
    fn block(&mut self, block: Block) -> Result<u64> {
        Ok(self.take(self.runtime.block_on(self.read(block))?))
    }

    fn wave(&mut self, blocks: &[Block]) -> Result<u64> {
        let reads = stream::iter(blocks).map(|block| self.read(*block)).buffer_unordered(blocks.len().max(1));
        let total = reads.try_fold(0u64, async |total, read| Ok(total.wrapping_add(self.take(read))));
        self.runtime.block_on(total)
    }

    fn pass(&mut self, blocks: &[Block]) -> Result<u64> {
        let reads = stream::iter(blocks).map(|block| self.read(*block)).buffered(self.ahead);
        let total = reads.try_fold(0u64, async |total, read| Ok(total.wrapping_add(self.take(read))));
        self.runtime.block_on(total)
    }
}
