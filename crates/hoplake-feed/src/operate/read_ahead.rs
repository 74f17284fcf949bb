//! Reads a source ahead of the commits, within a bound of bytes, and finds it again when it was away.

use std::sync::Arc;

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    task::JoinHandle,
    time::Instant,
};

use crate::{
    FeedError, Progress, Transaction,
    apply::progress::{Cause, Event},
    backoff::Backoff,
    source::{Following, Source},
};

/// What a permit stands for.
const UNIT_BYTES: u64 = 1 << 10;

/// Transactions that wait, at most, however small.
const TRANSACTIONS: usize = 4_096;

/// A transaction that was read.
pub(crate) struct ReadTransaction {
    pub(crate) transaction: Transaction,
    pub(crate) at: Instant,
    /// Its bytes of the bound, until it is dropped.
    pub(crate) _permit: OwnedSemaphorePermit,
}

/// A task that reads a source.
pub(crate) struct ReadAhead {
    arrived: mpsc::Receiver<Result<Option<ReadTransaction>, FeedError>>,
    task: JoinHandle<()>,
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ReadAhead {
    /// Reads what comes after a position.
    pub(crate) fn begin(
        source: Arc<dyn Source>,
        from: String,
        following: Following,
        ahead_bytes_max: u64,
        progress: Arc<dyn Progress>,
    ) -> Self {
        let (send, arrived) = mpsc::channel(TRANSACTIONS);
        let units = u32::try_from(ahead_bytes_max / UNIT_BYTES).unwrap_or(u32::MAX).max(1);
        let room = Arc::new(Semaphore::new(units as usize));
        let mut ahead = Ahead { following, room, units, send, progress };
        let task = tokio::spawn(async move {
            let mut from = from;
            let mut pauses = Backoff::new();
            loop {
                let error = match ahead.read(&*source, &mut from, &mut pauses).await {
                    Ok(()) => return,
                    Err(error) => error,
                };
                if !error.is_transient() {
                    // The receiver may be gone.
                    let _ = ahead.send.send(Err(error)).await;
                    return;
                }
                let pause = pauses.next();
                tracing::warn!(error = %error, pause_ms = pause.as_millis() as u64, "the source is away");
                ahead.progress.report(&Event::Retried { cause: Cause::Source, error: &error, pause });
                tokio::time::sleep(pause).await;
            }
        });
        Self { arrived, task }
    }

    /// Ends it, and returns when it has.
    pub(crate) async fn end(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }

    /// The next transaction, or `None` if the source has no more for now. Nothing at all if reading has ended.
    pub(crate) async fn next(&mut self) -> Option<Result<Option<ReadTransaction>, FeedError>> {
        self.arrived.recv().await
    }

    /// What [`Self::next`] returns, if it is there already.
    pub(crate) fn next_now(&mut self) -> Option<Result<Option<ReadTransaction>, FeedError>> {
        self.arrived.try_recv().ok()
    }
}

/// Where what is read goes.
struct Ahead {
    following: Following,
    /// The bound, in units of bytes.
    room: Arc<Semaphore>,
    units: u32,
    send: mpsc::Sender<Result<Option<ReadTransaction>, FeedError>>,
    progress: Arc<dyn Progress>,
}

impl Ahead {
    /// Reads until the connection is lost, or the receiver is gone.
    async fn read(&mut self, source: &dyn Source, from: &mut String, pauses: &mut Backoff) -> Result<(), FeedError> {
        let mut stream = source.stream(from, self.following.clone()).await?;
        self.progress.report(&Event::Connected);
        loop {
            let Some(transaction) = stream.next().await? else {
                pauses.reset();
                self.progress.report(&Event::CaughtUp);
                if self.send.send(Ok(None)).await.is_err() || self.following.once {
                    return Ok(());
                }
                continue;
            };
            pauses.reset();
            self.progress.report(&Event::Read {
                rows: transaction.changes.len() as u64,
                bytes: transaction.bytes as u64,
                committed_unix_ms: transaction.committed_unix_ms,
            });
            let wanted = match transaction.changes.is_empty() {
                // It waits for a commit of others, perhaps for minutes: with a permit, it would keep out a transaction that needs all.
                true => 0,
                false => u32::try_from(transaction.bytes as u64 / UNIT_BYTES).unwrap_or(u32::MAX).clamp(1, self.units),
            };
            let Ok(permit) = self.room.clone().acquire_many_owned(wanted).await else { return Ok(()) };
            from.clone_from(&transaction.position);
            self.following.pass(&transaction);
            let arrived = ReadTransaction { transaction, at: Instant::now(), _permit: permit };
            if self.send.send(Ok(Some(arrived))).await.is_err() {
                return Ok(());
            }
        }
    }
}
