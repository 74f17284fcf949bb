//! Standard output whose reader may go away.
//!
//! `hoplake … | head` closes the pipe after its last line. That is not a failure: the rest is discarded, and an endless
//! producer can ask whether the reader is still there.

use std::{
    io::{self, ErrorKind, Stdout, Write},
    sync::atomic::{AtomicBool, Ordering},
};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Standard output.
#[derive(Debug)]
pub struct Pipe(Stdout);

impl Pipe {
    /// Standard output.
    pub fn stdout() -> Self {
        Self(io::stdout())
    }

    /// Whether its reader went away.
    pub fn is_closed() -> bool {
        CLOSED.load(Ordering::Relaxed)
    }
}

/// Takes a closed pipe for success.
fn forgive<T>(result: io::Result<T>, instead: T) -> io::Result<T> {
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            CLOSED.store(true, Ordering::Relaxed);
            Ok(instead)
        }
        result => result,
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if Self::is_closed() {
            return Ok(bytes.len());
        }
        forgive(self.0.write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if Self::is_closed() { Ok(()) } else { forgive(self.0.flush(), ()) }
    }
}
