//! One request made to succeed: hedged, repeated with pauses, checked, bounded.
//!
//! Everything that is read goes through here. An attempt is over when it is answered, when it has taken
//! too long, or when its hedge was faster. What failed in a way that may pass is tried again after a
//! pause, as often as the request, and the query, may. An answer that fails its check counts as failed:
//! the store or the network may have damaged it, and the stored bytes may be intact. Dropping the future
//! drops whatever is in flight.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::future::{BoxFuture, Either, select};
use hoplake_format::FormatError;
use tokio::time::{Instant, sleep, timeout};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{
    Branch, Object, ObjectSource, QueryContext, ReadPool, StorageError, Store,
    read::{block::verified_payload, plan::Planner, pool::IN_FLIGHT_UNIT_BYTES, source::Wanted},
};

/// How a graph's objects are reached.
#[derive(Debug)]
pub(crate) struct Fetcher {
    pub(crate) store: Store,
    pub(crate) source: Arc<dyn ObjectSource>,
    pub(crate) pool: Arc<ReadPool>,
    pub(crate) planner: Arc<Planner>,
}

/// The checked answer of a request.
pub(crate) struct Landed {
    /// The blocks as they are stored, and their payloads.
    pub(crate) blocks: Vec<(Bytes, Bytes)>,
    /// Its dependent round trips: one, and one for each repetition.
    pub(crate) rounds: u32,
}

/// The assumed length of an object of unknown length, in bytes.
const OBJECT_BYTES: u64 = 64 << 10;

impl Fetcher {
    /// Blocks of an object that lie close together, in one request.
    pub(crate) async fn blocks(
        &self,
        object: &Object,
        wanted: &[Wanted],
        branch: &Branch,
    ) -> Result<Landed, StorageError> {
        let span = wanted.iter().map(|block| block.range.end).max().unwrap_or(0)
            - wanted.iter().map(|block| block.range.start).min().unwrap_or(0);
        let name = &object.name;
        let attempt = |attempt| -> BoxFuture<'_, _> {
            let fetch = self.source.fetch(name, wanted, attempt);
            Box::pin(async move {
                let fetched = fetch.await?;
                self.took(fetched.requests, fetched.bytes, branch.context());
                Ok(fetched.blocks)
            })
        };
        let check = |blocks: Vec<Bytes>| {
            let opened = wanted.iter().zip(blocks).map(|(block, bytes)| {
                let payload = verified_payload(object, block.range.start, block.check, &bytes);
                let payload = payload.map_err(|source| StorageError::Corrupt {
                    object: self.store.location(name),
                    start: block.range.start,
                    end: block.range.end,
                    source,
                })?;
                Ok((bytes, payload))
            });
            opened.collect::<Result<Vec<_>, _>>()
        };
        let pause_seed = wanted.first().map_or(0, |block| block.range.start);
        match self.repeated(span, pause_seed, branch, attempt, check).await {
            Ok((blocks, rounds)) => Ok(Landed { blocks, rounds }),
            Err(error) => Err(self.source.diagnose(name, wanted, error).await),
        }
    }

    /// A complete object, decoded; `None` if it does not exist.
    pub(crate) async fn object<T>(
        &self,
        name: &str,
        branch: &mut Branch,
        decode: impl Fn(Bytes) -> Result<T, FormatError>,
    ) -> Result<Option<T>, StorageError> {
        let at: &Branch = branch;
        let attempt = |attempt| -> BoxFuture<'_, _> {
            let get = self.source.get(name, attempt);
            Box::pin(async move {
                let found = get.await?;
                self.took(found.requests, found.bytes, at.context());
                Ok(found.object)
            })
        };
        let check = |found: Option<Bytes>| {
            let Some(bytes) = found else { return Ok(None) };
            let end = bytes.len() as u64;
            let corrupt = |source| StorageError::Corrupt { object: self.store.location(name), start: 0, end, source };
            decode(bytes).map(Some).map_err(corrupt)
        };
        let (found, rounds) = self.repeated(OBJECT_BYTES, 0, at, attempt, check).await?;
        branch.reached(branch.wave().later(rounds));
        Ok(found)
    }

    /// Meters an attempt. Requests to a store count when they are sent, whatever their outcome.
    fn took(&self, requests: u64, bytes: u64, context: &QueryContext) {
        context.meter().received(bytes);
        if !self.source.is_store() {
            context.meter().requested(requests);
        }
    }

    /// Tries until an answer passes its check, with pauses between; returns the number of rounds.
    ///
    /// A crate for retries such as `backon` would not do: it counts the attempts of one call, and here a query has a
    /// budget for all of its reads, a hedge is an attempt too, no pause is due while another node can be asked, and
    /// each round is a wave on the query's meter.
    async fn repeated<'a, T, U>(
        &'a self,
        bytes: u64,
        pause_seed: u64,
        branch: &Branch,
        attempt: impl Fn(u32) -> BoxFuture<'a, Result<T, StorageError>>,
        check: impl Fn(T) -> Result<U, StorageError>,
    ) -> Result<(U, u32), StorageError> {
        let retry = &self.pool.settings.retry;
        let context = branch.context();
        let mut rounds = 1;
        // Hedges and repetitions count on, so that a source of several nodes asks another each time.
        let sent = AtomicU32::new(0);
        let attempt = || attempt(sent.fetch_add(1, Relaxed));
        loop {
            // Before the answer: an error of a limit reports the waves that were begun.
            context.meter().reached(branch.wave().later(rounds));
            let answer = self.hedged(bytes, context, &attempt).await;
            let error = match answer.and_then(&check) {
                Ok(value) => return Ok((value, rounds)),
                Err(error) => error,
            };
            let is_last = !error.is_retryable() || rounds >= retry.attempts_max;
            if is_last || !context.meter().retry(retry.query_retries_max) {
                return Err(error);
            }
            // While there is another node to ask, no store needs time to recover.
            if sent.load(Relaxed) >= self.source.nodes() {
                sleep(self.pause(rounds, pause_seed)).await;
            }
            rounds += 1;
        }
    }

    /// A pause drawn evenly from zero to a bound that doubles with each round ("full jitter"), so that requests that
    /// failed together do not return together. The pool counts its pauses: with a counter of the process, other pools
    /// would influence its pauses, and no run could be repeated. (`backon` adds its jitter to the bound, which keeps
    /// requests that failed together closer together than full jitter does.)
    fn pause(&self, round: u32, seed: u64) -> Duration {
        let retry = &self.pool.settings.retry;
        let bound = retry.backoff_ms.saturating_mul(1 << (round - 1).min(20)).min(retry.backoff_max_ms);
        let mut drawn_from = [0; 24];
        let count = self.pool.pauses.fetch_add(1, Relaxed);
        for (bytes, number) in drawn_from.chunks_exact_mut(8).zip([seed, round.into(), count]) {
            bytes.copy_from_slice(&number.to_le_bytes());
        }
        let share = xxh3_64_with_seed(&drawn_from, self.pool.seed) as f64 / u64::MAX as f64;
        Duration::from_secs_f64(bound as f64 * share / 1e3)
    }

    /// One attempt, once its bytes fit the memory in flight, and a hedge if it is slow.
    async fn hedged<'a, T>(
        &'a self,
        bytes: u64,
        context: &QueryContext,
        attempt: &impl Fn() -> BoxFuture<'a, Result<T, StorageError>>,
    ) -> Result<T, StorageError> {
        let pool = &self.pool;
        // A request larger than the entire limit takes all of it. More than the semaphore has would never be granted.
        let units_max = pool.settings.in_flight_bytes_max.div_ceil(IN_FLIGHT_UNIT_BYTES).clamp(1, u32::MAX.into());
        let units = bytes.div_ceil(IN_FLIGHT_UNIT_BYTES).clamp(1, units_max) as u32;
        let _room = pool.in_flight.acquire_many(units).await.expect("the semaphore is never closed");
        let profile = self.store.profile();
        // Only now: the wait for room says nothing about the store, and must neither count as slow nor cause a hedge.
        let sent = Instant::now();
        let mut first = Box::pin(self.timed(bytes, context, attempt()));
        // Without a bound there is no hedge. Only answers are observed: a quick rejection would make the bound too low.
        let Some(slow) = pool.hedge.sent(bytes, profile) else {
            let answer = first.await;
            answer.as_ref().ok().inspect(|_| pool.hedge.observed(sent.elapsed(), bytes, profile));
            return answer;
        };
        // By reference: when the time is over, the first request goes on, and both race.
        if let Ok(answer) = timeout(slow, &mut first).await {
            answer.as_ref().ok().inspect(|_| pool.hedge.observed(sent.elapsed(), bytes, profile));
            return answer;
        }
        if !pool.hedge.pay() {
            let answer = first.await;
            pool.hedge.observed(sent.elapsed(), bytes, profile);
            return answer;
        }
        context.meter().hedged();
        let sent_again = Instant::now();
        let second = Box::pin(self.timed(bytes, context, attempt()));
        let answer = match select(first, second).await {
            // One failed, but the other may still answer. The error of the second is returned only if both fail.
            Either::Left((Err(_), other)) | Either::Right((Err(_), other)) => other.await,
            // The loser is dropped, which ends its request.
            Either::Left((answer, _)) => answer,
            Either::Right((answer, _)) => {
                pool.hedge.observed(sent_again.elapsed(), bytes, profile);
                answer
            }
        };
        // The first request took at least so long.
        pool.hedge.observed(sent.elapsed(), bytes, profile);
        answer
    }

    /// Sends one request, and waits so long at most.
    async fn timed<T>(
        &self,
        bytes: u64,
        context: &QueryContext,
        attempt: BoxFuture<'_, Result<T, StorageError>>,
    ) -> Result<T, StorageError> {
        if self.source.is_store() {
            context.meter().requested(1);
        }
        let timeout_ms = self.pool.settings.retry.attempt_timeout_ms;
        let in_time = timeout(Duration::from_millis(timeout_ms) + self.store.profile().transfer(bytes), attempt);
        let late = |_| StorageError::TimedOut { object: self.store.url().to_owned(), timeout_ms };
        // The time for the transfer is on top: at the profile's bandwidth a long answer never runs into the time-out.
        in_time.await.map_err(late)?
    }
}
