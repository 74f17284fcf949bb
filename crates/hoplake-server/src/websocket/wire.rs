//! The socket of a WebSocket, which knows how far a message has arrived or left.
//!
//! The library hands out whole messages. What has arrived of one counts in the memory of all queries, and has its time; what has
//! left of one shows that its client reads.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use hoplake::{MemoryBudget, MemoryHold};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that no hold is taken for: those of a usual request, in the buffer that each connection has.
const FREE_BYTES: u64 = 4 << 10;
/// The header of a control frame from a client, with its mask (RFC 6455, 5.2).
const CONTROL_HEADER_BYTES: u64 = 6;

/// What is known of a socket.
#[derive(Debug)]
pub(super) struct Watch {
    budget: MemoryBudget,
    arriving: Mutex<Arriving>,
    written: AtomicU64,
}

#[derive(Debug, Default)]
struct Arriving {
    bytes: u64,
    since: Option<Instant>,
    hold: Option<MemoryHold>,
    is_rejected: bool,
}

impl Watch {
    pub(super) fn new(budget: &MemoryBudget) -> Arc<Self> {
        Arc::new(Self { budget: budget.clone(), arriving: Mutex::default(), written: AtomicU64::new(0) })
    }

    fn arriving(&self) -> MutexGuard<'_, Arriving> {
        self.arriving.lock().expect("no thread panics with what arrives")
    }

    fn read(&self, bytes: usize) -> io::Result<()> {
        let mut arriving = self.arriving();
        arriving.since.get_or_insert_with(Instant::now);
        arriving.bytes += bytes as u64;
        let all = arriving.bytes;
        let held = match &mut arriving.hold {
            Some(hold) => hold.resize(all),
            None if all <= FREE_BYTES => Ok(()),
            None => self.budget.hold(all).map(|hold| arriving.hold = Some(hold)),
        };
        held.map_err(|full| {
            arriving.is_rejected = true;
            io::Error::other(full.to_string())
        })
    }

    /// A message has arrived; returns its memory.
    pub(super) fn complete(&self) -> Option<MemoryHold> {
        std::mem::take(&mut *self.arriving()).hold
    }

    /// A ping or a pong has arrived, perhaps within a message.
    pub(super) fn control(&self, payload: usize) {
        let mut arriving = self.arriving();
        arriving.bytes = arriving.bytes.saturating_sub(CONTROL_HEADER_BYTES + payload as u64);
        if arriving.bytes == 0 {
            *arriving = Arriving::default();
        }
    }

    /// Whether a message has been arriving for so long.
    pub(super) fn is_late(&self, time: Duration) -> bool {
        self.arriving().since.is_some_and(|since| since.elapsed() > time)
    }

    /// Whether there was no memory for what arrived.
    pub(super) fn is_rejected(&self) -> bool {
        self.arriving().is_rejected
    }

    /// Bytes that the socket took.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Relaxed)
    }
}

/// A socket that is watched.
pub(super) struct Watched<T> {
    inner: T,
    watch: Arc<Watch>,
}

impl<T> Watched<T> {
    pub(super) fn new(inner: T, watch: Arc<Watch>) -> Self {
        Self { inner, watch }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Watched<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        match buffer.filled().len() - before {
            0 => Poll::Ready(Ok(())),
            read => Poll::Ready(self.watch.read(read)),
        }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Watched<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.inner).poll_write(context, bytes))?;
        self.watch.written.fetch_add(written as u64, Relaxed);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_counts_until_the_message_is_there() {
        let budget = MemoryBudget::new("all queries", 10_000);
        let watch = Watch::new(&budget);
        watch.read(5_000).unwrap();
        // A ping between two fragments, of which nothing else is counted.
        watch.read(10).unwrap();
        watch.control(4);
        assert!(watch.is_late(Duration::ZERO) && !watch.is_late(Duration::from_secs(60)));
        let hold = watch.complete().unwrap();
        assert_eq!((hold.bytes() >= 5_000, watch.is_late(Duration::ZERO)), (true, false));
        watch.read(6_000).unwrap_err();
        assert!(watch.is_rejected());
        drop(hold);
        assert!(watch.complete().is_none());
        // Pongs alone are no message.
        watch.read(6).unwrap();
        watch.control(0);
        assert!(!watch.is_late(Duration::ZERO));
    }
}
