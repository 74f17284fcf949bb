//! The context that a query passes down to the store: its cost meter and its limits.

use std::sync::{
    Arc, Mutex, OnceLock,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
};
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::{
    Branch, Cost, MemoryBudget, MemoryHold, Pace, PriceList, StorageError,
    cost::{budget::MemoryFull, meter::Meter},
    read::ahead::Ahead,
};

/// The limits of a query's reads. `None` sets no limit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ReadLimits {
    /// The deadline, and the timeout in milliseconds, for the message.
    pub deadline: Option<(Instant, u64)>,
    /// Requests to the store.
    pub requests_max: Option<u64>,
    /// Bytes from the store.
    pub bytes_max: Option<u64>,
    /// US dollars for requests and bytes.
    pub usd_max: Option<f64>,
    /// Bytes of memory for what the query builds: sets, edges, paths, rows. Caches do not count.
    pub memory_bytes_max: Option<u64>,
}

/// A query, as the access layer sees it. Clones are the same query.
#[derive(Debug, Clone, Default)]
pub struct QueryContext {
    inner: Arc<Inner>,
    /// Set when the work that has this clone is cancelled.
    cancelled: Option<Arc<AtomicBool>>,
}

/// Cancels work when it is dropped.
#[derive(Debug)]
#[must_use = "dropping it cancels the work"]
pub struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        // Relaxed: the work polls the flag, and reads no other data that was written before it.
        self.0.store(true, Relaxed);
    }
}

#[derive(Debug)]
struct Inner {
    number: u64,
    meter: Meter,
    limits: Mutex<ReadLimits>,
    memory: MemoryBudget,
    ahead: OnceLock<Arc<Ahead>>,
    /// Reads so far; counted for traces only.
    batches: AtomicU32,
}

/// The name of the budget, for messages.
const OWNER: &str = "the query";

impl Default for Inner {
    fn default() -> Self {
        Self::new(MemoryBudget::unlimited(OWNER))
    }
}

impl Inner {
    fn new(memory: MemoryBudget) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            memory,
            number: NEXT.fetch_add(1, Relaxed),
            meter: Meter::default(),
            limits: Mutex::default(),
            ahead: OnceLock::new(),
            batches: AtomicU32::new(0),
        }
    }
}

impl QueryContext {
    /// A query without cost and without limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// A query whose memory also counts against a budget that it shares with others.
    pub fn within(budget: &MemoryBudget) -> Self {
        Self { inner: Arc::new(Inner::new(budget.within(OWNER, u64::MAX))), cancelled: None }
    }

    /// Identifies the query within this process.
    pub fn number(&self) -> u64 {
        self.inner.number
    }

    /// The number of a read, for traces.
    pub(crate) fn next_batch(&self) -> u32 {
        self.inner.batches.fetch_add(1, Relaxed)
    }

    pub(crate) fn meter(&self) -> &Meter {
        &self.inner.meter
    }

    /// Lets [`Reader::read_ahead`](crate::Reader::read_ahead) keep blocks for this query, up to a budget in bytes. Later calls have no
    /// effect.
    pub fn keep_ahead(&self, bytes_max: u64) {
        self.inner.ahead.get_or_init(|| Arc::new(Ahead::new(bytes_max)));
    }

    pub(crate) fn ahead(&self) -> Option<&Arc<Ahead>> {
        self.inner.ahead.get()
    }

    /// Its cost so far.
    pub fn cost(&self) -> Cost {
        self.inner.meter.cost()
    }

    /// Counts round trips that the query waited for although nothing depends on them, because of the order in which vertices are expanded
    /// ([`Cost::waits`]).
    pub fn waited(&self, waits: u32) {
        self.inner.meter.waited(waits);
    }

    /// Whether it has a limit on requests, bytes or dollars.
    pub(crate) fn has_spending_limit(&self) -> bool {
        let ReadLimits { requests_max, bytes_max, usd_max, .. } = self.limits();
        requests_max.is_some() || bytes_max.is_some() || usd_max.is_some()
    }

    /// Sets its limits; the cost so far counts against them.
    pub fn limit(&self, limits: ReadLimits) {
        // The budget has its bound in an atomic of its own: it is read at every hold, the other limits once a request.
        self.inner.memory.set_bytes_max(limits.memory_bytes_max.unwrap_or(u64::MAX));
        *self.inner.limits.lock().expect("no thread panics with the limits") = limits;
    }

    /// Sets its deadline to `timeout_ms` from now; `None` removes it. Its other limits stay.
    pub fn give_time(&self, timeout_ms: Option<u64>) {
        // A timeout beyond the clock's range sets no deadline.
        let until = |given: u64| Some((Instant::now().checked_add(Duration::from_millis(given))?, given));
        self.limit(ReadLimits { deadline: timeout_ms.and_then(until), ..self.limits() });
    }

    /// Brings its deadline forward to `timeout_ms` from now, if it is later or there is none.
    pub fn give_time_at_most(&self, timeout_ms: u64) {
        let until = Instant::now().checked_add(Duration::from_millis(timeout_ms));
        if until.is_some_and(|until| self.deadline().is_none_or(|deadline| until < deadline)) {
            self.give_time(Some(timeout_ms));
        }
    }

    fn limits(&self) -> ReadLimits {
        *self.inner.limits.lock().expect("no thread panics with the limits")
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.limits().deadline.map(|(deadline, _)| deadline)
    }

    /// Runs `work` until the deadline, which also drops its requests in flight.
    ///
    /// # Errors
    /// The error of `work`, or [`StorageError::Limit`].
    pub(crate) async fn in_time<T, E: From<StorageError>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        match self.deadline() {
            // Dropping `work` drops its requests. Code without an await, such as decoding, checks the deadline through its `Pace`.
            Some(deadline) => timeout_at(deadline, work).await.unwrap_or_else(|_| Err(self.too_late().into())),
            None => work.await,
        }
    }

    /// Whether it is within its limits.
    ///
    /// # Errors
    /// [`StorageError::Limit`] with the cost so far.
    pub fn check(&self, prices: &PriceList) -> Result<(), StorageError> {
        self.check_time()?;
        self.admit(0, 0, prices)
    }

    /// The same query for work on other threads, which dropping a future does not stop: [`check_time`](Self::check_time) of this clone fails
    /// once the guard is dropped. The query itself continues.
    pub fn cancellable(&self) -> (Self, CancelOnDrop) {
        // Only this work is cancelled: the query may start another computation afterwards.
        let cancelled = Arc::new(AtomicBool::new(false));
        (Self { inner: self.inner.clone(), cancelled: Some(cancelled.clone()) }, CancelOnDrop(cancelled))
    }

    /// Checks that the deadline has not passed and that the work was not cancelled.
    ///
    /// # Errors
    /// [`StorageError::Limit`] with the cost so far, or [`StorageError::Cancelled`].
    pub fn check_time(&self) -> Result<(), StorageError> {
        if self.cancelled.as_ref().is_some_and(|cancelled| cancelled.load(Relaxed)) {
            return Err(StorageError::Cancelled);
        }
        match self.deadline() {
            Some(deadline) if deadline <= Instant::now() => Err(self.too_late()),
            _ => Ok(()),
        }
    }

    /// A branch of its work, without round trips so far.
    pub fn branch(&self) -> Branch {
        Branch::new(self)
    }

    /// The pace of a task that works for it.
    pub fn pace(&self) -> Pace {
        Pace::new(self)
    }

    /// Its memory budget.
    pub fn memory(&self) -> &MemoryBudget {
        &self.inner.memory
    }

    /// Acquires memory for something that the query builds.
    ///
    /// # Errors
    /// [`StorageError::Limit`] with the cost so far.
    pub fn hold(&self, bytes: u64) -> Result<MemoryHold, StorageError> {
        self.inner.memory.hold(bytes).map_err(|full| self.out_of_memory(full))
    }

    /// Changes the size of a hold.
    ///
    /// # Errors
    /// As [`Self::hold`].
    pub fn resize(&self, hold: &mut MemoryHold, bytes: u64) -> Result<(), StorageError> {
        hold.resize(bytes).map_err(|full| self.out_of_memory(full))
    }

    fn out_of_memory(&self, full: MemoryFull) -> StorageError {
        StorageError::Limit { limit: full.to_string(), is_shared: full.is_shared, cost: Box::new(self.cost()) }
    }

    /// The error for a query whose deadline has passed.
    pub(crate) fn too_late(&self) -> StorageError {
        let given = self.limits().deadline.map_or(0, |(_, given)| given);
        self.over(format!("{given} ms"))
    }

    /// Rejects requests that would exceed a limit, before they are sent.
    ///
    /// # Errors
    /// [`StorageError::Limit`] with the cost so far.
    pub(crate) fn admit(&self, requests: u64, bytes: u64, prices: &PriceList) -> Result<(), StorageError> {
        let limits = self.limits();
        // Most queries of a library have no limits: they skip the sum of the meter.
        if limits == ReadLimits::default() {
            return Ok(());
        }
        let cost = self.cost();
        // Includes the requests about to be sent: a wave of a hundred requests would overrun a limit that is checked afterwards.
        let requests = cost.requests + requests;
        let bytes = cost.store_bytes + bytes;
        if let Some(limit) = limits.requests_max.filter(|limit| requests > *limit) {
            return Err(self.over(format!("{limit} requests")));
        }
        if let Some(limit) = limits.bytes_max.filter(|limit| bytes > *limit) {
            return Err(self.over(format!("{limit} bytes")));
        }
        match limits.usd_max.filter(|limit| prices.reads_usd(requests, bytes) > *limit) {
            Some(limit) => Err(self.over(format!("{limit} US dollars"))),
            None => Ok(()),
        }
    }

    fn over(&self, limit: String) -> StorageError {
        StorageError::Limit { limit, is_shared: false, cost: Box::new(self.cost()) }
    }
}
