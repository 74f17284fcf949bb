//! One request, and its response until it is sent.
//!
//! Hyper takes a frame of a response long before the client has it: frames wait in its buffers, which grow while the client is slow. So
//! each frame holds its memory and the exchange itself, and releases both when hyper drops the frame, which is when the socket has
//! taken its last byte.

use std::{
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use axum::body::Bytes;
use hoplake_storage::{MemoryBudget, MemoryFull, MemoryHold};
use tokio::sync::OwnedSemaphorePermit;

use crate::Connection;

/// A decoded request takes at most this many times its encoded bytes: a vertex that is named in 5 bytes becomes
/// some 150 in two lists.
const DECODED_BYTES_PER_BYTE: u64 = 32;

/// A request and its response.
pub struct Exchange {
    connection: Option<Arc<Connection>>,
    begun: Instant,
    /// The permit of its query to run.
    permit: Mutex<Option<OwnedSemaphorePermit>>,
    /// For the request, encoded and decoded.
    request: Mutex<Option<MemoryHold>>,
    /// For a response that is complete in memory.
    answer: Mutex<Vec<MemoryHold>>,
    /// For frames of the response that are queued for hyper.
    handed: Mutex<Vec<MemoryHold>>,
    /// Frames that hyper has and the socket has not.
    unsent: AtomicUsize,
    /// Whether the response waits for its next frame, and not for the client.
    waiting: AtomicBool,
    /// Milliseconds from the beginning to the last sign that the client reads.
    progress_ms: AtomicU64,
    /// Whether it counts among the responses of its connection that need no token.
    is_open: AtomicBool,
}

/// A frame of a response that hyper has.
struct Unsent {
    bytes: Bytes,
    exchange: Arc<Exchange>,
    _holds: Vec<MemoryHold>,
}

impl AsRef<[u8]> for Unsent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        // Relaxed, here and below: only `is_stalled` reads these, again and again; a value may be a moment old.
        self.exchange.unsent.fetch_sub(1, Relaxed);
        self.exchange.progress();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics with a part of a exchange")
}

impl Exchange {
    /// Of a connection.
    pub(crate) fn begin(connection: &Arc<Connection>) -> Arc<Self> {
        let exchange = Arc::new(Self::of(Some(connection.clone())));
        connection.begin(&exchange);
        exchange
    }

    fn of(connection: Option<Arc<Connection>>) -> Self {
        Self {
            connection,
            begun: Instant::now(),
            permit: Mutex::default(),
            request: Mutex::default(),
            answer: Mutex::default(),
            handed: Mutex::default(),
            unsent: AtomicUsize::new(0),
            // Until there is a response, it waits for one.
            waiting: AtomicBool::new(true),
            progress_ms: AtomicU64::new(0),
            is_open: AtomicBool::new(false),
        }
    }

    /// Counts it among the responses of its connection that need no token, until it is sent. Returns whether there is room for it: if not,
    /// the client has not read those before, and gets a response without a body, which does not wait for it.
    pub fn count_open_response(&self) -> bool {
        let has_room = self.connection.as_ref().is_none_or(|connection| connection.count_open_response());
        self.is_open.store(has_room, Relaxed);
        has_room
    }

    /// Holds the query's permit until the response is sent.
    pub fn hold_permit(&self, permit: OwnedSemaphorePermit) {
        *locked(&self.permit) = Some(permit);
    }

    /// Acquires memory of `budget` for `bytes` of the request that have arrived.
    pub fn hold_request(&self, budget: &MemoryBudget, bytes: u64) -> Result<(), MemoryFull> {
        let mut request = locked(&self.request);
        if let Some(hold) = &mut *request {
            return hold.resize(bytes);
        }
        *request = Some(budget.hold(bytes)?);
        Ok(())
    }

    /// The same for a request of `bytes` that is about to be decoded.
    pub fn hold_decoded(&self, budget: &MemoryBudget, bytes: usize) -> Result<(), MemoryFull> {
        self.hold_request(budget, Self::decoded_bytes(bytes))
    }

    /// Memory that is held for the request.
    pub fn request_bytes(&self) -> u64 {
        locked(&self.request).as_ref().map_or(0, MemoryHold::bytes)
    }

    /// What a request of `bytes` takes when it is decoded.
    pub fn decoded_bytes(bytes: usize) -> u64 {
        (bytes as u64).saturating_mul(DECODED_BYTES_PER_BYTE)
    }

    /// Releases the memory that a decoded request does not take: all but its bytes that were only copied, and 32 times the others.
    pub fn release_copied(&self, copied: usize, others: usize) {
        let bytes = (others as u64).saturating_mul(DECODED_BYTES_PER_BYTE).saturating_add(copied as u64);
        // Less can always be had.
        let _ = locked(&self.request).as_mut().filter(|hold| bytes < hold.bytes()).map(|hold| hold.resize(bytes));
    }

    /// Its connection.
    pub fn connection(&self) -> Option<&Arc<Connection>> {
        self.connection.as_ref()
    }

    /// The request is complete.
    pub fn complete(&self) {
        self.connection.iter().for_each(|connection| connection.complete());
    }

    /// Holds memory for the entire response.
    pub fn hold_response(&self, hold: MemoryHold) {
        locked(&self.answer).push(hold);
    }

    /// Holds memory until the next bytes of the response are sent.
    pub fn hold_next(&self, hold: Option<MemoryHold>) {
        locked(&self.handed).extend(hold);
    }

    /// Bytes of the response, which hold memory and exchange until they are sent.
    pub(crate) fn outgoing(self: &Arc<Self>, bytes: Bytes) -> Bytes {
        self.unsent.fetch_add(1, Relaxed);
        // Hyper polls again only when it has room. If it does not, the client is the one that is slow.
        self.waiting.store(false, Relaxed);
        self.progress();
        // All that was handed since the last frame: tonic may put several messages into one.
        let holds = std::mem::take(&mut *locked(&self.handed));
        Bytes::from_owner(Unsent { bytes, exchange: self.clone(), _holds: holds })
    }

    /// Notes that the response waits for its next frame.
    pub(crate) fn mark_waiting(&self) {
        self.waiting.store(true, Relaxed);
    }

    fn progress(&self) {
        self.progress_ms.store(self.begun.elapsed().as_millis() as u64, Relaxed);
    }

    /// Whether something has waited for the client for so long.
    pub(crate) fn is_stalled(&self, time: Duration) -> bool {
        // Of a client that reads slowly, each part that leaves is progress: only one that stopped is stalled.
        let waits_for_client = !self.waiting.load(Relaxed) || self.unsent.load(Relaxed) > 0;
        let since = Duration::from_millis(self.progress_ms.load(Relaxed));
        waits_for_client && self.begun.elapsed().saturating_sub(since) > time
    }
}

impl Default for Exchange {
    /// Without a connection, for calls that do not arrive through a door.
    fn default() -> Self {
        Self::of(None)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let Some(connection) = &self.connection else { return };
        if self.is_open.load(Relaxed) {
            connection.end_open_response();
        }
        connection.end();
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Semaphore;

    use super::*;

    #[test]
    fn a_part_holds_memory_and_permit_until_it_is_dropped() {
        let budget = MemoryBudget::new("all queries", 100);
        let permits = Arc::new(Semaphore::new(1));
        let exchange = Arc::new(Exchange::default());
        exchange.hold_permit(permits.clone().try_acquire_owned().unwrap());
        exchange.hold_next(Some(budget.hold(60).unwrap()));
        let part = exchange.outgoing(Bytes::from_static(b"abc"));
        let half = part.slice(1..);
        drop((exchange, part));
        assert_eq!((budget.used(), permits.available_permits(), &half[..]), (60, 0, &b"bc"[..]));
        drop(half);
        assert_eq!((budget.used(), permits.available_permits()), (0, 1));
    }

    #[test]
    fn only_what_waits_for_the_client_is_stalled() {
        let exchange = Arc::new(Exchange::default());
        assert!(!exchange.is_stalled(Duration::ZERO));
        let part = exchange.outgoing(Bytes::from_static(b"abc"));
        std::thread::sleep(Duration::from_millis(3));
        assert!(exchange.is_stalled(Duration::ZERO) && !exchange.is_stalled(Duration::from_secs(60)));
        exchange.mark_waiting();
        assert!(exchange.is_stalled(Duration::ZERO));
        drop(part);
        assert!(!exchange.is_stalled(Duration::ZERO));
    }
}
