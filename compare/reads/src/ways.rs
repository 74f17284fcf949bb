//! How it is read.

use std::{
    fmt,
    fs::File,
    ops::Range,
    os::unix::fs::FileExt,
    sync::{Arc, mpsc},
    thread,
};

use anyhow::{Context, Result};
use compio::{BufResult, io::AsyncReadAtExt};
use crossbeam_channel::{Sender, unbounded};
use futures_util::{StreamExt, stream::FuturesUnordered};
use hoplake_mapping::{Access, MappedFile};

use crate::work::{Block, Files, Work};

/// A way of reading blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// A map, of which the system reads ahead as it likes.
    Mapped,
    /// A map, of which the system reads the pages that are touched.
    Random,
    /// The same, and the system is asked for all blocks of a wave before the first is touched, and for some ahead of a pass.
    Advised,
    /// Reads by the thread itself where it can do nothing else, and by those of a pool.
    Pool,
    /// Reads through a ring that the thread shares with the system.
    Ring,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mapped => "mapped",
            Self::Random => "mapped, random",
            Self::Advised => "mapped, advised",
            Self::Pool => "pool",
            Self::Ring => "io_uring",
        })
    }
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Mapped, Self::Random, Self::Advised, Self::Pool, Self::Ring];

    /// Reads what a thread has to read, and returns the sum of all words.
    pub fn read(self, files: &Files, pool: &Pool, work: &Work) -> Result<u64> {
        match self {
            Self::Mapped => mapped(files, work, Access::Any, false),
            Self::Random => mapped(files, work, Access::Random, false),
            Self::Advised => mapped(files, work, Access::Random, true),
            Self::Pool => pool.read(files, work),
            Self::Ring => compio::runtime::Runtime::new()?.block_on(ring(files, work)),
        }
    }
}

/// The sum of a block's words.
fn sum(block: &[u8]) -> u64 {
    block.as_chunks::<8>().0.iter().fold(0, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)))
}

fn mapped(files: &Files, work: &Work, access: Access, is_advised: bool) -> Result<u64> {
    let maps = files.paths().map(MappedFile::open).collect::<Result<Vec<_>, _>>()?;
    maps.iter().for_each(|map| map.expect(access));
    let bytes = files.block_bytes as u64;
    let ask = |block: Block| {
        if is_advised {
            maps[block.file].will_need(block.offset..block.offset + bytes);
        }
    };
    let read = |block: Block| {
        let slice = maps[block.file].slice(block.offset..block.offset + bytes);
        anyhow::Ok(sum(&slice.context("a file has become shorter")?))
    };
    let mut all = 0u64;
    match work {
        Work::Waves(waves) => {
            for wave in waves {
                wave.iter().for_each(|block| ask(*block));
                for block in wave {
                    all = all.wrapping_add(read(*block)?);
                }
            }
        }
        Work::Pass(blocks, ahead) => {
            let mut next = blocks.start;
            for number in blocks.clone() {
                while next < blocks.end.min(number + *ahead as u64 + 1) {
                    ask(files.block(next));
                    next += 1;
                }
                all = all.wrapping_add(read(files.block(number))?);
            }
        }
    }
    Ok(all)
}

/// A block to read, the memory to read it into, and who waits for it.
type Task = (Block, Vec<u8>, mpsc::Sender<Result<Vec<u8>>>);

/// Threads that read blocks for others.
#[derive(Debug)]
pub struct Pool {
    files: Arc<Vec<File>>,
    tasks: Sender<Task>,
}

impl Pool {
    /// Starts its threads, which end with it.
    pub fn new(files: &Files, threads: usize) -> Result<Self> {
        let files = Arc::new(files.paths().map(File::open).collect::<Result<Vec<_>, _>>()?);
        let (tasks, waiting) = unbounded::<Task>();
        for _ in 0..threads {
            let (files, waiting) = (files.clone(), waiting.clone());
            thread::spawn(move || {
                for (block, mut buffer, done) in waiting {
                    let read = files[block.file].read_exact_at(&mut buffer, block.offset);
                    // Nobody waits any more if another block failed.
                    let _ = done.send(read.map(|()| buffer).map_err(Into::into));
                }
            });
        }
        Ok(Self { files, tasks })
    }

    fn read(&self, files: &Files, work: &Work) -> Result<u64> {
        let (done, finished) = mpsc::channel();
        let mut spare: Vec<Vec<u8>> = Vec::new();
        let ask = |block: Block, spare: &mut Vec<Vec<u8>>| {
            let buffer = spare.pop().unwrap_or_else(|| vec![0; files.block_bytes]);
            self.tasks.send((block, buffer, done.clone())).context("the pool has ended")
        };
        let take = |spare: &mut Vec<Vec<u8>>| {
            let buffer: Vec<u8> = finished.recv().context("the pool has ended")??;
            let sum = sum(&buffer);
            spare.push(buffer);
            anyhow::Ok(sum)
        };
        let mut all = 0u64;
        match work {
            Work::Waves(waves) => {
                let mut buffer = vec![0; files.block_bytes];
                for wave in waves {
                    if let [block] = wave[..] {
                        self.files[block.file].read_exact_at(&mut buffer, block.offset)?;
                        all = all.wrapping_add(sum(&buffer));
                        continue;
                    }
                    wave.iter().try_for_each(|block| ask(*block, &mut spare))?;
                    for _ in wave {
                        all = all.wrapping_add(take(&mut spare)?);
                    }
                }
            }
            Work::Pass(blocks, ahead) => {
                let (first, rest) = window(blocks, *ahead);
                first.into_iter().try_for_each(|number| ask(files.block(number), &mut spare))?;
                let mut rest = rest.into_iter();
                for _ in blocks.clone() {
                    all = all.wrapping_add(take(&mut spare)?);
                    rest.next().map_or(Ok(()), |number| ask(files.block(number), &mut spare))?;
                }
            }
        }
        Ok(all)
    }
}

/// The blocks that are asked for before the first is taken, and those after them.
fn window(blocks: &Range<u64>, ahead: usize) -> (Range<u64>, Range<u64>) {
    let middle = blocks.end.min(blocks.start + ahead as u64 + 1);
    (blocks.start..middle, middle..blocks.end)
}

async fn ring(files: &Files, work: &Work) -> Result<u64> {
    let mut opened = Vec::new();
    for path in files.paths() {
        opened.push(compio::fs::File::open(path).await?);
    }
    let opened = &opened;
    let read = |block: Block, mut buffer: Vec<u8>| async move {
        buffer.clear();
        let BufResult(read, buffer) = opened[block.file].read_exact_at(buffer, block.offset).await;
        read.map(|()| buffer)
    };
    let mut spare: Vec<Vec<u8>> = Vec::new();
    let buffer = |spare: &mut Vec<Vec<u8>>| spare.pop().unwrap_or_else(|| Vec::with_capacity(files.block_bytes));
    let mut reads = FuturesUnordered::new();
    let mut all = 0u64;
    match work {
        Work::Waves(waves) => {
            for wave in waves {
                wave.iter().for_each(|block| reads.push(read(*block, buffer(&mut spare))));
                while let Some(done) = reads.next().await {
                    let done = done?;
                    all = all.wrapping_add(sum(&done));
                    spare.push(done);
                }
            }
        }
        Work::Pass(blocks, ahead) => {
            let (first, mut rest) = window(blocks, *ahead);
            first.into_iter().for_each(|number| reads.push(read(files.block(number), buffer(&mut spare))));
            while let Some(done) = reads.next().await {
                let done = done?;
                all = all.wrapping_add(sum(&done));
                spare.push(done);
                rest.next().into_iter().for_each(|number| reads.push(read(files.block(number), buffer(&mut spare))));
            }
        }
    }
    Ok(all)
}
