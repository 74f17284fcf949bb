//! Scans inputs with several threads.
//!
//! Threads first take inputs of their own; when there are fewer inputs than threads, several share one:
//! one reads the next chunk while the others work on theirs. So a single large file keeps all busy.

use std::{
    sync::{
        Arc, Mutex, TryLockError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use super::progress::Progress;
use crate::{BadRows, Chunk, IngestError, Input, Phase, dataset::Chunks};

/// Chunks of some inputs, shared by threads.
struct Scan<'a> {
    inputs: Vec<(usize, Mutex<State<'a>>)>,
    stopped: AtomicBool,
}

enum State<'a> {
    Waiting(&'a dyn Input),
    Open(Chunks),
    Done,
}

/// A thread's part of a scan.
pub(crate) trait Worker: Send {
    /// Takes a chunk of the input with this number.
    fn take(&mut self, input: usize, chunk: Chunk) -> Result<(), IngestError>;
}

/// The parameters of a scan.
#[derive(Clone, Copy)]
pub(crate) struct ScanContext<'a> {
    pub(crate) inputs: &'a [Box<dyn Input>],
    pub(crate) bad_rows: &'a Arc<BadRows>,
    pub(crate) progress: &'a dyn Progress,
}

impl ScanContext<'_> {
    /// Scans the inputs with these numbers and gives every chunk to one of `workers`, each on a thread.
    /// Ends with the first error of any.
    pub(crate) fn run<W: Worker>(
        &self,
        numbers: &[usize],
        phase: Phase,
        workers: Vec<W>,
    ) -> Result<Vec<W>, IngestError> {
        let waiting = |number: &usize| (*number, Mutex::new(State::Waiting(self.inputs[*number].as_ref())));
        let scan = Scan { inputs: numbers.iter().map(waiting).collect(), stopped: AtomicBool::new(false) };
        thread::scope(|scope| {
            let work = |mut worker: W| {
                let scan = &scan;
                move || {
                    let result = scan.work(self, phase, &mut worker);
                    scan.stopped.fetch_or(result.is_err(), Ordering::Relaxed);
                    result.map(|()| worker)
                }
            };
            let threads: Vec<_> = workers.into_iter().map(|worker| scope.spawn(work(worker))).collect();
            threads.into_iter().map(|thread| thread.join().expect("a worker does not panic")).collect()
        })
    }
}

impl Scan<'_> {
    fn work(&self, context: &ScanContext<'_>, phase: Phase, worker: &mut impl Worker) -> Result<(), IngestError> {
        while !self.stopped.load(Ordering::Relaxed) {
            let Some((input, chunk)) = self.next(context, phase)? else { break };
            context.progress.advance(chunk.bytes_read);
            worker.take(input, chunk)?;
        }
        Ok(())
    }

    /// The next chunk of an input that no other thread is reading, else of any that is not done.
    fn next(&self, context: &ScanContext<'_>, phase: Phase) -> Result<Option<(usize, Chunk)>, IngestError> {
        for wait in [false, true] {
            for (number, state) in &self.inputs {
                let mut state = match (wait, state.try_lock()) {
                    (_, Ok(state)) => state,
                    (true, Err(TryLockError::WouldBlock)) => state.lock().expect("a reader does not panic"),
                    _ => continue,
                };
                if let State::Waiting(input) = &*state {
                    *state = State::Open(input.scan(phase, context.bad_rows.clone())?);
                }
                let State::Open(chunks) = &mut *state else { continue };
                match chunks.next() {
                    Some(chunk) => return Ok(Some((*number, chunk?))),
                    None => *state = State::Done,
                }
            }
        }
        Ok(None)
    }
}
