//! A store that counts dependent round trips exactly.
//!
//! **What it is.** [`WaveStore`] wraps an object store and makes every request last until the next
//! full second of tokio's clock. Under a paused clock (`#[tokio::test(start_paused = true)]`) that
//! second costs no real time, and the clock moves only when every task waits. Requests that are sent
//! in parallel therefore share a second (a *tick*), and a request that depends on the answer of
//! another falls into a later one. The number of ticks in which a request was in flight is the
//! number of waves.
//!
//! **Why ticks and not elapsed time.** Processor work does not move a paused clock, but a hedge timer,
//! a backoff or a batching delay does. A request that such a timer starts in the middle of a second
//! still ends at the next full one, so a tick is one wave whatever else sleeps, and idle seconds
//! between requests are not waves.
//!
//! **What counts as one request.** What S3 would bill: a listing costs one per 1,000 entries, and
//! those depend on each other; a multipart upload costs one to begin, one a part and one to complete;
//! `get_ranges` costs one per range left after object_store's own coalescing, ten at a time; each
//! object deleted costs one, up to 1,000 of them in one wave; a copy is a put. A request that fails is
//! a request. One that is dropped before its answer has no `end_tick`, and is still counted.
//!
//! **What it needs.** The inner store should be [`object_store::memory::InMemory`]. `LocalFileSystem`
//! and real stores wait outside of tokio's timers: while they do, a paused clock either stands still or
//! jumps ahead to the next timer, and a wave is attributed to the wrong tick. The same holds for code
//! under test that waits for a thread which is not tokio's own. Without a paused clock every request
//! takes real time, up to a second.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result, UploadPart,
};
use tokio::time::Instant;

use crate::requests::{PAGE_ENTRIES, deletions, paged};

/// The kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestKind {
    /// Reads an object or a part of it.
    Get,
    /// Reads an object's metadata.
    Head,
    /// Writes or copies an object, or a part of one.
    Put,
    /// Reads one page of a listing.
    List,
    /// Deletes one object, or abandons a multipart upload.
    Delete,
}

/// One request that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The request.
    pub kind: RequestKind,
    /// The object, or the prefix of a listing; the destination of a copy.
    pub path: String,
    /// The bytes that the answer of a ranged get covers; `None` for whole objects, other kinds, and
    /// ranged gets that have no answer.
    pub range: Option<Range<u64>>,
    /// Bytes of content that moved: read by a get, sent by a put.
    pub bytes: u64,
    /// The tick in which it was sent, from 0 at the last reset.
    pub start_tick: u64,
    /// The tick at whose beginning it was answered; `None` if it is in flight or was dropped.
    pub end_tick: Option<u64>,
}

/// How many requests of each kind were sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Gets.
    pub get: u64,
    /// Heads.
    pub head: u64,
    /// Puts, parts and copies.
    pub put: u64,
    /// Pages of listings.
    pub list: u64,
    /// Deletions.
    pub delete: u64,
}

impl RequestCounts {
    /// Requests of all kinds.
    pub fn total(&self) -> u64 {
        self.get + self.head + self.put + self.list + self.delete
    }
}

/// An object store that records every request and makes each last one virtual second.
///
/// Clones share the record, so a test can keep one and hand another to the code under test.
///
/// ```
/// use hoplake_testkit::WaveStore;
/// use object_store::{ObjectStoreExt, memory::InMemory, path::Path};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> object_store::Result<()> {
/// let store = WaveStore::new(InMemory::new());
/// store.put(&Path::from("a"), "hello".into()).await?;
/// store.reset();
/// let (path, other) = (Path::from("a"), Path::from("a"));
/// let (head, tail) = futures::join!(store.get_range(&path, 0..2), store.get_range(&other, 2..5));
/// assert_eq!((&head?[..], &tail?[..]), (&b"he"[..], &b"llo"[..]));
/// assert_eq!((store.waves(), store.requests().get, store.bytes_read()), (1, 2, 5));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct WaveStore {
    inner: Arc<dyn ObjectStore>,
    record: Record,
}

impl WaveStore {
    /// Wraps `inner`, which should be in memory (see the module).
    pub fn new(inner: impl ObjectStore) -> Self {
        Self { inner: Arc::new(inner), record: Record::default() }
    }

    /// Forgets what was recorded; the next request starts tick 0. Requests in flight are forgotten too.
    pub fn reset(&self) {
        *self.record.lock() = Log::default();
    }

    /// The number of waves since the last reset: ticks in which a request was in flight.
    pub fn waves(&self) -> u64 {
        let mut ticks: Vec<u64> = self.record.lock().requests.iter().map(|request| request.start_tick).collect();
        ticks.sort_unstable();
        ticks.dedup();
        ticks.len() as u64
    }

    /// Requests by kind since the last reset.
    pub fn requests(&self) -> RequestCounts {
        let mut counts = RequestCounts::default();
        for request in &self.record.lock().requests {
            match request.kind {
                RequestKind::Get => counts.get += 1,
                RequestKind::Head => counts.head += 1,
                RequestKind::Put => counts.put += 1,
                RequestKind::List => counts.list += 1,
                RequestKind::Delete => counts.delete += 1,
            }
        }
        counts
    }

    /// Bytes of content in the answers of all gets since the last reset.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_of(RequestKind::Get)
    }

    /// Bytes of content sent by all puts since the last reset.
    pub fn bytes_written(&self) -> u64 {
        self.bytes_of(RequestKind::Put)
    }

    /// Every request since the last reset, in the order in which they were sent.
    pub fn log(&self) -> Vec<Request> {
        self.record.lock().requests.clone()
    }

    fn bytes_of(&self, kind: RequestKind) -> u64 {
        self.record.lock().requests.iter().filter(|request| request.kind == kind).map(|request| request.bytes).sum()
    }
}

impl fmt::Debug for WaveStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaveStore").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl fmt::Display for WaveStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WaveStore({})", self.inner)
    }
}

#[derive(Default)]
struct Log {
    /// When tick 0 began: the first request after a reset.
    epoch: Option<Instant>,
    requests: Vec<Request>,
    /// Distinguishes this log from those before a reset, whose requests may still be in flight.
    resets: Arc<()>,
}

#[derive(Clone, Default)]
struct Record(Arc<Mutex<Log>>);

/// A request in flight: where its entry is, in which log.
struct InFlight {
    record: Record,
    log: Arc<()>,
    index: usize,
}

impl Record {
    fn lock(&self) -> MutexGuard<'_, Log> {
        self.0.lock().expect("no test panics while it holds the record")
    }

    /// Records a request, and returns when the store has it.
    async fn send(&self, kind: RequestKind, path: impl Into<String>, bytes: u64) -> InFlight {
        let (sent, arrival) = {
            let mut log = self.lock();
            let now = Instant::now();
            let epoch = *log.epoch.get_or_insert(now);
            let start_tick = (now - epoch).as_secs();
            let path = path.into();
            log.requests.push(Request { kind, path, range: None, bytes, start_tick, end_tick: None });
            let sent = InFlight { record: self.clone(), log: log.resets.clone(), index: log.requests.len() - 1 };
            (sent, epoch + Duration::from_secs(start_tick + 1))
        };
        tokio::time::sleep_until(arrival).await;
        sent
    }

    /// A request whose answer is noted as soon as the store has it.
    async fn sent_and_answered(self, kind: RequestKind, path: String) -> Result<()> {
        self.send(kind, path, 0).await.answered(|_| ());
        Ok(())
    }

    /// The requests for the pages of a listing.
    fn pages(&self, prefix: Option<&Path>) -> impl Fn(usize) -> BoxFuture<'static, Result<()>> + use<> {
        let record = self.clone();
        let path = prefix.map(Path::to_string).unwrap_or_default();
        move |_| record.clone().sent_and_answered(RequestKind::List, path.clone()).boxed()
    }
}

impl InFlight {
    /// Notes the answer.
    fn answered(self, edit: impl FnOnce(&mut Request)) {
        let mut log = self.record.lock();
        if Arc::ptr_eq(&log.resets, &self.log) {
            let request = &mut log.requests[self.index];
            request.end_tick = Some(request.start_tick + 1);
            edit(request);
        }
    }
}

fn payload_bytes(payload: &PutPayload) -> u64 {
    payload.content_length() as u64
}

// `get_ranges` and `rename_opts` are left to their defaults, which call the methods below: a real store
// sends those requests, so they are what must be counted.
#[async_trait]
impl ObjectStore for WaveStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let sent = self.record.send(RequestKind::Put, location.as_ref(), payload_bytes(&payload)).await;
        let answer = self.inner.put_opts(location, payload, opts).await;
        sent.answered(|_| ());
        answer
    }

    async fn put_multipart_opts(&self, location: &Path, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        let sent = self.record.send(RequestKind::Put, location.as_ref(), 0).await;
        let inner = self.inner.put_multipart_opts(location, opts).await;
        sent.answered(|_| ());
        Ok(Box::new(WaveUpload { inner: inner?, path: location.to_string(), record: self.record.clone() }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let kind = if options.head { RequestKind::Head } else { RequestKind::Get };
        let ranged = options.range.is_some();
        let sent = self.record.send(kind, location.as_ref(), 0).await;
        let answer = self.inner.get_opts(location, options).await;
        sent.answered(|request| {
            if let (Ok(result), RequestKind::Get) = (&answer, kind) {
                request.bytes = result.range.end - result.range.start;
                request.range = ranged.then(|| result.range.clone());
            }
        });
        answer
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let record = self.record.clone();
        let request = move |path| record.clone().sent_and_answered(RequestKind::Delete, path);
        deletions(self.inner.clone(), locations, request)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let inner = self.inner.clone();
        let prefix = prefix.cloned();
        paged(self.record.pages(prefix.as_ref()), move || inner.list(prefix.as_ref()))
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        let inner = self.inner.clone();
        let prefix = prefix.cloned();
        let offset = offset.clone();
        paged(self.record.pages(prefix.as_ref()), move || inner.list_with_offset(prefix.as_ref(), &offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let path = prefix.map(Path::to_string).unwrap_or_default();
        let sent = self.record.send(RequestKind::List, path.clone(), 0).await;
        let answer = self.inner.list_with_delimiter(prefix).await;
        sent.answered(|_| ());
        let entries = answer.as_ref().map_or(0, |list| list.objects.len() + list.common_prefixes.len());
        for _ in 1..entries.div_ceil(PAGE_ENTRIES) {
            self.record.send(RequestKind::List, path.clone(), 0).await.answered(|_| ());
        }
        answer
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let sent = self.record.send(RequestKind::Put, to.as_ref(), 0).await;
        let answer = self.inner.copy_opts(from, to, options).await;
        sent.answered(|_| ());
        answer
    }
}

struct WaveUpload {
    inner: Box<dyn MultipartUpload>,
    path: String,
    record: Record,
}

impl fmt::Debug for WaveUpload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaveUpload").field("path", &self.path).finish_non_exhaustive()
    }
}

#[async_trait]
impl MultipartUpload for WaveUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let record = self.record.clone();
        let path = self.path.clone();
        let bytes = payload_bytes(&data);
        let part = self.inner.put_part(data);
        async move {
            let sent = record.send(RequestKind::Put, path, bytes).await;
            let answer = part.await;
            sent.answered(|_| ());
            answer
        }
        .boxed()
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let sent = self.record.send(RequestKind::Put, self.path.clone(), 0).await;
        let answer = self.inner.complete().await;
        sent.answered(|_| ());
        answer
    }

    async fn abort(&mut self) -> Result<()> {
        let sent = self.record.send(RequestKind::Delete, self.path.clone(), 0).await;
        let answer = self.inner.abort().await;
        sent.answered(|_| ());
        answer
    }
}

#[cfg(test)]
mod tests;
