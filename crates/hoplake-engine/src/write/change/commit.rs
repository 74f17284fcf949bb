//! Commits: combines batches, writes them as one delta, and publishes it as the next version.
//!
//! A committer writes one delta at a time. Batches that arrive meanwhile wait, and share the next delta and its result if they name
//! different items (*group commit*). If no delta is in progress, the next batch leads a group commit, in a task of its own, so that
//! dropping its future stops no other batch. The leader waits briefly for the callers of the last delta.
//!
//! If another writer was faster, its version becomes the base, and the delta is rebuilt on it. A batch with a base version conflicts with
//! later changes of any of its items.

use std::{
    collections::VecDeque,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use futures::{
    future::{BoxFuture, Either, join, join_all, select, try_join, try_join_all},
    poll,
};
use hoplake_format::{Change, ChangeCounts, ChangeKind, Manifest, Slot};
use hoplake_storage::{Branch, Cost, QueryContext, StorageError};
use tokio::{
    sync::{Mutex as AsyncMutex, Notify, oneshot, watch},
    time::{Instant, timeout_at},
};

use super::{
    Batch,
    assemble::{Assembled, Unfit},
    conflict::{Items, check_conflicts},
    delta::{self, Delta},
    positions::{Condition, Positions},
    requests::{self, RequestStatus, Requests},
    resolved::Resolved,
    retype::{OfOwners, is_free},
    widen,
};
use crate::{
    EngineError, Snapshot,
    write::publish::{self, Published},
};

/// The default timeout of a commit, in milliseconds: enough for a batch of a million changes over a slow network, and not as long as the
/// client waits for an unreachable store.
pub const COMMIT_TIMEOUT_MS: u64 = 120_000;

/// The maximum number of changes of a delta, which is built in memory.
const LEVEL_OPERATIONS_MAX: usize = 1 << 20;

/// The maximum wait for the callers of the last delta, as a share of that delta's time: 15 ms on S3 Standard. Meanwhile, a service has to
/// receive their next batches.
const GATHER_SHARE: u32 = 4;

/// The maximum wait for the callers of the last delta, however slow the store is.
const GATHER_MAX: Duration = Duration::from_millis(20);

/// The result of a commit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Committed {
    /// The version that contains the changes.
    pub version: u64,
    /// The changes of the version, including those of the other batches in it.
    pub counts: ChangeCounts,
    /// The number of batches in the version.
    pub batches: usize,
    /// The index of this batch among them, from 0.
    pub place: usize,
    /// Whether an earlier commit applied it already, as its idempotency key shows.
    pub repeated: bool,
    /// Its cost, publication included; zero for a repeated batch.
    pub cost: Cost,
}

/// Commits batches to one graph, for all threads of a process.
#[derive(Debug)]
pub struct Committer {
    waiting: Mutex<VecDeque<QueuedBatch>>,
    timeout_ms: AtomicU64,
    /// The newest version that it knows. Not behind the lock `leading`, so that readers do not wait for the delta in progress.
    newest: Mutex<Arc<Snapshot>>,
    /// Held by the leader of the delta in progress.
    leading: Arc<AsyncMutex<LastDelta>>,
    /// Notified when a batch begins to wait.
    arrived: Notify,
    /// Each write of a hint holds a receiver.
    hinting: watch::Sender<()>,
}

/// The previous delta, as far as the next leader needs it.
#[derive(Debug, Default)]
struct LastDelta {
    /// The number of its batches and of those that waited when it was done: the next delta may have as many.
    batches: usize,
    /// The time until which the next leader waits for its callers.
    gathered: Option<Instant>,
}

impl LastDelta {
    fn of(batches: usize, begun: Instant) -> Self {
        let took = begun.elapsed();
        Self { batches, gathered: Some(begun + took + (took / GATHER_SHARE).min(GATHER_MAX)) }
    }
}

/// A batch in the queue of the next delta, and the channel for its result.
#[derive(Debug)]
struct QueuedBatch {
    batch: Arc<Batch>,
    done: oneshot::Sender<Result<Committed, EngineError>>,
}

impl Committer {
    /// Commits to the graph of a snapshot.
    pub fn new(snapshot: Arc<Snapshot>) -> Self {
        let timeout_ms = AtomicU64::new(COMMIT_TIMEOUT_MS);
        let newest = Mutex::new(snapshot);
        let hinting = watch::Sender::new(());
        Self { waiting: Mutex::default(), timeout_ms, newest, leading: Arc::default(), arrived: Notify::new(), hinting }
    }

    /// Sets the timeout of later deltas, from the look-up of their names to the publication.
    pub fn set_timeout_ms(&self, timeout_ms: u64) {
        self.timeout_ms.store(timeout_ms, Relaxed);
    }

    /// Waits until the hints of its commits are written. A commit does not wait for its own hint; if the process ends before, the next
    /// open takes one more round trip.
    pub fn settled<'a>(&'a self) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.hinting.closed().await;
        })
    }

    /// The newest version that it knows. It knows a version that it published before it acknowledges the batches.
    pub fn newest(&self) -> Arc<Snapshot> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Moves on to a newer version, so that batches of a caller that has read it are based on it.
    pub fn move_on(&self, snapshot: &Arc<Snapshot>) {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if newest.manifest().version < snapshot.manifest().version {
            *newest = snapshot.clone();
        }
    }

    /// Applies a batch atomically.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] that names the invalid operation; [`EngineError::Conflict`] that names an
    /// item which another writer changed since the batch's base; [`EngineError::Unknown`] if it is unknown whether the version was
    /// published; the store's error, if nothing was published.
    pub fn commit<'a>(
        self: &'a Arc<Self>,
        batch: impl Into<Arc<Batch>>,
    ) -> BoxFuture<'a, Result<Committed, EngineError>> {
        let batch = batch.into();
        Box::pin(async move {
            let (done, mut result) = oneshot::channel();
            self.waiting().push_back(QueuedBatch { batch, done });
            self.arrived.notify_one();
            loop {
                let mut turn = tokio::select! {
                    biased;
                    done = &mut result => return done.map_err(|_| lost())?,
                    turn = self.leading.clone().lock_owned() => turn,
                };
                if let Ok(done) = result.try_recv() {
                    return done;
                }
                let committer = self.clone();
                let carried = tokio::spawn(async move {
                    committer.gather(&turn).await;
                    let begun = Instant::now();
                    let mut newest = committer.newest();
                    let group = committer.take_group();
                    let batches = group.len();
                    let done_with = committer.carry(group, &mut newest).await;
                    committer.move_on(&newest);
                    *turn = LastDelta::of(batches + committer.waiting().len(), begun);
                    // The next delta does not wait until this one's memory is freed.
                    drop(turn);
                    drop(done_with);
                });
                carried.await.map_err(|error| EngineError::Internal(format!("a commit stopped: {error}")))?;
            }
        })
    }

    /// The result of a commit of the batch on the newest version, without writing anything.
    ///
    /// # Errors
    /// As [`Self::commit`], without the errors of a publication.
    pub fn check<'a>(
        &'a self,
        batch: Arc<Batch>,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<ChangeCounts, EngineError>> {
        Box::pin(async move {
            let newest = self.newest().newest(branch).await?;
            if let Condition::Fails(error) = Positions::of(&newest.manifest().source_positions).check(&batch) {
                return Err(error);
            }
            let resolved = resolve_on(&batch, &newest, branch).await?;
            Ok(Assembled::of(newest.manifest(), &[resolved])?.counts)
        })
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<QueuedBatch>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits briefly for the callers of the last delta to send their next batches. If the first of them committed alone, the others would
    /// wait for a whole version, and from then on two groups would alternate, at half the rate of commits. A single caller does not wait.
    async fn gather(&self, last: &LastDelta) {
        let Some(gathered) = last.gathered else { return };
        while self.waiting().len() < last.batches {
            if timeout_at(gathered, self.arrived.notified()).await.is_err() {
                return;
            }
        }
    }

    /// Leads a group commit, until a delta is published or all of its batches have failed. Returns the finished batches.
    async fn carry(&self, mut group: Vec<QueuedBatch>, newest: &mut Arc<Snapshot>) -> Vec<Resolved> {
        let context = QueryContext::new();
        let timeout_ms = self.timeout_ms.load(Relaxed);
        context.give_time(Some(timeout_ms));
        let mut branch = context.branch();
        for attempt in 0..publish::REBUILDS_MAX {
            let (carried, resolved) = self.resolve(group, newest, &mut branch).await;
            if carried.is_empty() {
                return resolved;
            }
            match self.write(&carried, &resolved, newest, attempt, &mut branch).await {
                Ok(PublishOutcome::Published { version, snapshot, counts }) => {
                    // If this fails, the next delta finds this version as it would find another writer's.
                    if let Some(snapshot) = snapshot {
                        *newest = snapshot;
                        // Before the answers, so that later reads through this process find it.
                        self.move_on(newest);
                    }
                    let batches = carried.len();
                    let cost = context.cost();
                    for (place, waiting) in carried.into_iter().enumerate() {
                        let committed = Committed { version, counts, batches, place, repeated: false, cost };
                        drop(waiting.done.send(Ok(committed)));
                    }
                    return resolved;
                }
                Ok(PublishOutcome::Overtaken(snapshot)) => {
                    *newest = snapshot;
                    group = carried;
                }
                Err(error) => {
                    answer_all(carried, in_time(error, timeout_ms, newest));
                    return resolved;
                }
            }
        }
        answer_all(group, publish::always_later(publish::REBUILDS_MAX));
        Vec::new()
    }

    fn take_group(&self) -> Vec<QueuedBatch> {
        let mut waiting = self.waiting();
        let mut operations = 0;
        let mut group = Vec::new();
        while let Some(next) = waiting.front() {
            operations += next.batch.changes();
            if operations > LEVEL_OPERATIONS_MAX && !group.is_empty() {
                break;
            }
            group.extend(waiting.pop_front());
        }
        group
    }

    /// Resolves batches on the newest version. Invalid batches get their error; batches that name an item which another one writes wait for
    /// the next delta.
    async fn resolve(
        &self,
        group: Vec<QueuedBatch>,
        newest: &mut Arc<Snapshot>,
        branch: &mut Branch,
    ) -> (Vec<QueuedBatch>, Vec<Resolved>) {
        let mut results = resolve_all(&group, newest, branch).await;
        let mut looked = false;
        // A rejected batch may be valid by now, so try it once on the newest version; a vacuum may have removed the
        // version that was the newest when this began.
        while results.iter().any(|result| matches!(result, Err(error) if !looked || error.is_missing_object()))
            || !looked && any_is_elsewhere(&group, newest)
        {
            looked = true;
            match newest.newest(branch).await {
                Ok(later) if later.manifest().version > newest.manifest().version => *newest = later,
                _ => break,
            }
            results = resolve_all(&group, newest, branch).await;
        }
        let (mut carried, mut resolved, mut items, mut later) =
            (Vec::new(), Vec::new(), Items::on(newest.manifest(), results.iter().flatten()), VecDeque::new());
        let batches: Vec<_> = group.iter().map(|waiting| waiting.batch.clone()).collect();
        let mut positions = Positions::of(&newest.manifest().source_positions);
        let mut requests = Requests::of(&newest.manifest().applied);
        for ((waiting, batch), result) in group.into_iter().zip(&batches).zip(results) {
            // Its caller cancelled it: drop it as if it had never been sent.
            if waiting.done.is_closed() {
                continue;
            }
            let condition = match requests.look(batch) {
                // First, since a repeated batch may conflict with its own changes.
                RequestStatus::Applied(version, counts) => {
                    let cost = Cost::default();
                    let committed = Committed { version, counts, batches: 1, place: 0, repeated: true, cost };
                    drop(waiting.done.send(Ok(committed)));
                    continue;
                }
                // Only the next version shows whether the other one was applied.
                RequestStatus::InDelta => Condition::Waits,
                RequestStatus::New => positions.check(batch),
            };
            match (result, condition) {
                // A changed source takes precedence over all other errors of the batch.
                (_, Condition::Fails(error)) => drop(waiting.done.send(Err(error))),
                (Err(error), _) => {
                    let error = in_time(error, self.timeout_ms.load(Relaxed), newest);
                    drop(waiting.done.send(Err(error)));
                }
                (Ok(result), condition) => match items.add(&result, matches!(condition, Condition::Waits)) {
                    true => {
                        positions.advance(batch);
                        requests.add(batch);
                        carried.push(waiting);
                        resolved.push(result);
                    }
                    false => {
                        positions.wait_for(batch);
                        later.push_back(waiting);
                    }
                },
            }
        }
        let mut waiting = self.waiting();
        later.into_iter().rev().for_each(|batch| waiting.push_front(batch));
        (carried, resolved)
    }

    /// Writes a delta and the manifest that names it.
    async fn write(
        &self,
        carried: &[QueuedBatch],
        resolved: &[Resolved],
        newest: &Arc<Snapshot>,
        attempt: u32,
        branch: &mut Branch,
    ) -> Result<PublishOutcome, EngineError> {
        // The snapshot, and with it the reader, outlives the commit and its meter.
        let reader = newest.reader().metered_by(branch.context());
        let base = newest.manifest();
        let store = reader.store();
        let assembled = Assembled::of(base, resolved)?;
        let writer = store.clock().ulid();
        let delta = delta::build(&assembled.changes, &assembled.schema, &base.indexes, &writer, base.version + 1)?;
        let put = try_join_all(delta.objects.iter().map(|(name, bytes)| store.put(name, bytes.clone())));
        // The first commit of a process probes the store's conditional create, in the same wave, and removes the probe alongside the next
        // wave.
        let (_, removal) = try_join(put, publish::prove(store, base.version)).await?;
        branch.then(1);
        let counts = assembled.counts;
        let batches: Vec<_> = carried.iter().map(|waiting| &*waiting.batch).collect();
        let manifest = next_manifest(base, assembled, &delta, writer, &batches, store.clock().unix_ms());
        match alongside(publish::publish(&reader, &manifest, branch), removal).await? {
            Published::Visible => {
                let store = store.clone();
                let hinted = manifest.clone();
                let mut hinting = Box::pin(async move { publish::hint(&store, &hinted).await });
                // The commit does not wait for the hint, but includes the cost of its PUT.
                if poll!(hinting.as_mut()).is_pending() {
                    let under_way = self.hinting.subscribe();
                    tokio::spawn(async move {
                        hinting.await;
                        drop(under_way);
                    });
                }
                let own = delta.objects.into_iter().collect();
                let version = manifest.version;
                // It is published, and therefore acknowledged, even if this process cannot read it before the deadline.
                let snapshot = newest.advance(manifest, &own, branch).await.map(Arc::new).ok();
                Ok(PublishOutcome::Published { version, snapshot, counts })
            }
            Published::Taken(by) => {
                let names: Vec<_> = delta.objects.into_iter().map(|(name, _)| name).collect();
                let overtaken_by = async {
                    // Usually no later version exists, so a request for it would be wasted. A writer that is overtaken again is far behind.
                    if let (Slot::Version(manifest), 0) = (by, attempt) {
                        match newest.at(*manifest, branch).await {
                            // A vacuum has deleted that version since.
                            Err(error) if error.is_missing_object() => {}
                            snapshot => return snapshot,
                        }
                    }
                    newest.newest(branch).await
                };
                // Remaining objects are garbage that a vacuum recognises by name.
                let (_, snapshot) = join(store.delete(&names), overtaken_by).await;
                Ok(PublishOutcome::Overtaken(snapshot?))
            }
        }
    }
}

/// Waits for work while a removal runs. A removal that takes longer continues in the background.
async fn alongside<T>(work: impl Future<Output = T>, removal: Option<BoxFuture<'static, ()>>) -> T {
    let Some(mut removal) = removal else { return work.await };
    match select(pin!(work), &mut removal).await {
        Either::Left((done, _)) => {
            if poll!(&mut removal).is_pending() {
                tokio::spawn(removal);
            }
            done
        }
        Either::Right(((), work)) => work.await,
    }
}

/// Whether any batch expects other source positions than those of a version, or those that the batches before it set.
fn any_is_elsewhere(group: &[QueuedBatch], version: &Snapshot) -> bool {
    let mut positions = Positions::of(&version.manifest().source_positions);
    group.iter().any(|waiting| {
        let fails = matches!(positions.check(&waiting.batch), Condition::Fails(_));
        positions.advance(&waiting.batch);
        fails
    })
}

/// Resolves each batch in a task of its own, so that large batches use many threads.
async fn resolve_all(
    group: &[QueuedBatch],
    newest: &Arc<Snapshot>,
    branch: &mut Branch,
) -> Vec<Result<Resolved, EngineError>> {
    let results = group.iter().map(|waiting| {
        let batch = waiting.batch.clone();
        let newest = newest.clone();
        let mut line = branch.clone();
        tokio::spawn(async move { (resolve_on(&batch, &newest, &mut line).await, line) })
    });
    let stopped = |error| EngineError::Internal(format!("a commit stopped: {error}"));
    let results = join_all(results.collect::<Vec<_>>()).await;
    let joined = |result: Result<(Result<Resolved, EngineError>, Branch), _>| {
        let (resolved, line) = result.map_err(stopped)?;
        branch.join([&line]);
        resolved
    };
    results.into_iter().map(joined).collect()
}

/// The outcome of an attempt to publish a version.
enum PublishOutcome {
    Published { version: u64, snapshot: Option<Arc<Snapshot>>, counts: ChangeCounts },
    Overtaken(Arc<Snapshot>),
}

/// The error of a commit that timed out: the store or the network was too slow, and nothing was published.
fn in_time(error: EngineError, timeout_ms: u64, newest: &Snapshot) -> EngineError {
    match error {
        EngineError::Limit { .. } => {
            let object = newest.reader().store().url().to_owned();
            EngineError::Storage(StorageError::TimedOut { object, timeout_ms })
        }
        error => error,
    }
}

/// Returns the same error to all callers.
fn answer_all(carried: Vec<QueuedBatch>, error: EngineError) {
    let error = Arc::new(error);
    carried.into_iter().for_each(|waiting| drop(waiting.done.send(Err(EngineError::Shared(error.clone())))));
}

fn lost() -> EngineError {
    EngineError::Internal("the commit that had this batch was given up".into())
}

pub(super) async fn resolve_on(
    batch: &Arc<Batch>,
    newest: &Arc<Snapshot>,
    branch: &mut Branch,
) -> Result<Resolved, EngineError> {
    let mut resolved = Resolved::of(batch, newest, branch).await?;
    let version = newest.manifest().version;
    if let Some(base) = batch.base.filter(|base| *base > version) {
        let why = format!("the batch is based on version {base}, and the newest is {version}");
        return Err(EngineError::NoVersion(why));
    }
    let mut line = branch.clone();
    let conflicts = async {
        match batch.base.filter(|base| *base < version) {
            Some(base) => check_conflicts(&resolved, base, newest, &mut line).await,
            None => Ok(()),
        }
    };
    // An error in one batch does not fail the delta.
    let fits = async {
        let mut free = OfOwners::new();
        let mut rejections = Vec::new();
        let (widening, converted) = loop {
            let Unfit { error, property } = match Assembled::widens(newest.manifest(), &resolved, &free) {
                Ok(widened) => break widened,
                Err(unfit) => unfit,
            };
            let Some(property) = property.map(|property| *property) else { return Err(error) };
            if free.contains(&property) {
                // The batch itself has values of the old type only: the error is that of a value in another batch.
                let first = rejections.into_iter().find(|(of, _)| *of == property);
                return Err(first.map_or(error, |(_, first)| first));
            }
            if !is_free(&property, &resolved, newest, branch).await? {
                return Err(error);
            }
            free.insert(property.clone());
            rejections.push((property, error));
        };
        widen::check_exact(&resolved, &converted, newest, branch).await?;
        Ok::<_, EngineError>((widening, free))
    };
    // The two are independent, so they are read in one wave, or in as many as a scan for values takes. If both fail, the caller gets the
    // conflict: on the newest version the batch may be valid.
    let (conflicts, widening) = join(conflicts, fits).await;
    conflicts?;
    branch.join([&line]);
    (resolved.widens, resolved.retyped) = widening?;
    Ok(resolved)
}

/// The manifest of the version after `base`, with an additional delta.
pub(super) fn next_manifest(
    base: &Manifest,
    assembled: Assembled<'_>,
    delta: &Delta,
    writer: String,
    carried: &[&Batch],
    now_unix_ms: u64,
) -> Manifest {
    let messages: Vec<_> = carried.iter().map(|it| it.message.as_str()).filter(|it| !it.is_empty()).collect();
    let change = Change { kind: ChangeKind::Commit, writer, message: messages.join("; "), counts: assembled.counts };
    let mut next = Manifest {
        schema: assembled.schema,
        unique_keys: assembled.unique_keys,
        vertex_counts: assembled.vertex_counts,
        edge_counts: assembled.edge_counts,
        degrees: assembled.degrees,
        ..base.next(change, now_unix_ms)
    };
    carried.iter().for_each(|it| next.source_positions.extend(it.source_positions.clone()));
    requests::extend(&mut next.applied, next.version, assembled.counts, carried.iter().copied());
    next.segments.extend(delta.segments.iter().cloned());
    next.tables.extend(delta.tables.iter().cloned());
    next
}
