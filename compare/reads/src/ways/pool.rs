//! Plain reads. A pool of threads makes those that are known beforehand.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::Path,
    sync::Arc,
    thread::{self, JoinHandle},
};

use anyhow::{Context, Result};
use crossbeam_channel::{Receiver, Sender, unbounded};

use super::{Open, Reader, Settings, buffers};
use crate::{
    files::{Block, Files},
    work::sum,
};

/// Open files, and a pool of threads that read for all others.
pub struct Pool {
    files: Arc<Vec<File>>,
    block_bytes: usize,
    settings: Settings,
    /// `None` once the pool ends.
    requests: Option<Sender<Request>>,
    threads: Vec<JoinHandle<()>>,
}

struct Request {
    block: Block,
    /// Which one of its wave or pass.
    position: usize,
    buffer: Vec<u8>,
    answers: Sender<Answer>,
}

struct Answer {
    read: io::Result<()>,
    block: Block,
    position: usize,
    buffer: Vec<u8>,
}

impl Pool {
    /// Opens files and starts the threads.
    ///
    /// # Errors
    /// If a file cannot be opened, or a thread not started.
    pub fn open(files: &Files, settings: &Settings) -> Result<Self> {
        let open = |path: &Path| File::open(path).with_context(|| format!("could not open {}", path.display()));
        let opened: Arc<Vec<File>> = Arc::new(files.paths().map(open).collect::<Result<_>>()?);
        let (sender, requests) = unbounded::<Request>();
        let start = |_| {
            let files = opened.clone();
            let requests = requests.clone();
            thread::Builder::new().spawn(move || serve(&files, &requests)).context("could not start a thread")
        };
        let threads = (0..settings.pool_threads).map(start).collect::<Result<_>>()?;
        let block_bytes = files.block_bytes();
        Ok(Self { files: opened, block_bytes, settings: *settings, requests: Some(sender), threads })
    }
}

/// Answers requests until nobody can send any more.
fn serve(files: &[File], requests: &Receiver<Request>) {
    for Request { block, position, mut buffer, answers } in requests {
        let read = read(files, block, &mut buffer);
        // Who has failed and gone needs no answer.
        let _ = answers.send(Answer { read, block, position, buffer });
    }
}

fn read(files: &[File], block: Block, buffer: &mut [u8]) -> io::Result<()> {
    files[block.file as usize].read_exact_at(&mut buffer[..block.length as usize], block.offset)
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.requests = None;
        for thread in self.threads.drain(..) {
            thread.join().expect("a thread of the pool does not panic");
        }
    }
}

impl Open for Pool {
    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        let (sender, answers) = unbounded();
        Ok(Box::new(PoolReader {
            files: &self.files,
            ahead: self.settings.ahead,
            requests: self.requests.as_ref().expect("the pool ends when it is dropped"),
            free: buffers(self.settings.in_flight_max, self.block_bytes),
            sender,
            answers,
        }))
    }
}

/// What a thread has of the pool.
struct PoolReader<'a> {
    files: &'a [File],
    ahead: usize,
    requests: &'a Sender<Request>,
    /// Buffers of which no read is in flight.
    free: Vec<Vec<u8>>,
    sender: Sender<Answer>,
    answers: Receiver<Answer>,
}

impl PoolReader<'_> {
    fn request(&mut self, position: usize, block: Block) {
        let buffer = self.free.pop().expect("there are as many buffers as blocks in flight");
        self.requests
            .send(Request { block, position, buffer, answers: self.sender.clone() })
            .expect("the pool receives until it is dropped");
    }

    fn answer(&mut self) -> Answer {
        self.answers.recv().expect("this reader has a sender")
    }

    /// The sum of an answer, whose buffer is free afterwards.
    fn take(&mut self, answer: Answer) -> Result<u64> {
        answer.read.with_context(|| format!("could not read {:?}", answer.block))?;
        let sum = sum(&answer.buffer[..answer.block.length as usize]);
        self.free.push(answer.buffer);
        Ok(sum)
    }
}

impl Reader for PoolReader<'_> {
    fn block(&mut self, block: Block) -> Result<u64> {
        // A thread that has to wait anyway reads by itself.
        let buffer = self.free.last_mut().expect("nothing is in flight");
        read(self.files, block, buffer).with_context(|| format!("could not read {block:?}"))?;
        Ok(sum(&buffer[..block.length as usize]))
    }

    fn wave(&mut self, blocks: &[Block]) -> Result<u64> {
        blocks.iter().enumerate().for_each(|(position, block)| self.request(position, *block));
        blocks.iter().try_fold(0u64, |total, _| {
            let answer = self.answer();
            Ok(total.wrapping_add(self.take(answer)?))
        })
    }

    fn pass(&mut self, blocks: &[Block]) -> Result<u64> {
        // Answers come in any order: those that are early wait in their places.
        let mut early: Vec<Option<Answer>> = (0..self.ahead).map(|_| None).collect();
        let mut total = 0u64;
        let mut requested = 0;
        for position in 0..blocks.len() {
            while requested < blocks.len().min(position + self.ahead) {
                self.request(requested, blocks[requested]);
                requested += 1;
            }
            let answer = loop {
                if let Some(answer) = early[position % self.ahead].take() {
                    break answer;
                }
                let answer = self.answer();
                let place = answer.position % self.ahead;
                early[place] = Some(answer);
            };
            total = total.wrapping_add(self.take(answer)?);
        }
        Ok(total)
    }
}
