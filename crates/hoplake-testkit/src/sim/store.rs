//! A simulated service before any object store.

use std::fmt;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::FutureExt;
use futures::stream::BoxStream;
use hoplake_storage::{Store, StoreProfile};
use object_store::{
    CopyOptions, Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};
use object_store::{memory::InMemory, path::Path};

use super::service::Sim;
use crate::RequestKind;
use crate::requests::{PAGE_ENTRIES, deletions, paged};

/// An object store with the latencies and rejections of a [`StoreProfile`].
///
/// One request is what S3 would bill, as for [`WaveStore`](crate::WaveStore). An object is written and read
/// at the moment of the first byte of the answer, so that a cancelled put has written nothing. The content
/// of an upload in parts goes to the inner store as one object when it is completed.
///
/// ```
/// use std::time::Duration;
/// use hoplake_storage::StoreProfile;
/// use hoplake_testkit::SimStore;
/// use object_store::{ObjectStoreExt, memory::InMemory, path::Path};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> object_store::Result<()> {
/// let store = SimStore::new(InMemory::new(), StoreProfile::s3_standard(), 7);
/// let path = Path::from("a");
/// store.put(&path, "hello".into()).await?;
/// let asked = tokio::time::Instant::now();
/// assert_eq!(&store.get_range(&path, 1..3).await?[..], b"el");
/// // No get from S3 Standard takes less than 15 ms; this time it passes in no time.
/// assert!(asked.elapsed() >= Duration::from_millis(15));
/// assert_eq!((store.sim().counts().requests.get, store.sim().counts().bytes_read), (1, 2));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SimStore {
    inner: Arc<dyn ObjectStore>,
    sim: Sim,
}

impl SimStore {
    /// Wraps `inner`, which should be in memory for virtual time.
    pub fn new(inner: impl ObjectStore, profile: impl Into<Arc<StoreProfile>>, seed: u64) -> Self {
        Self { inner: Arc::new(inner), sim: Sim::new(profile, seed) }
    }

    /// A store at `url` that simulates a service before objects in memory, and the service.
    pub fn before(objects: Arc<InMemory>, profile: Arc<StoreProfile>, seed: u64, url: &str) -> (Sim, Store) {
        let simulated = Self::new(objects, profile.clone(), seed);
        let sim = simulated.sim.clone();
        let store = Store::new(Arc::new(simulated), Path::default(), url);
        (sim, store.with_profile(profile))
    }

    /// The service: its settings and its counts.
    pub fn sim(&self) -> &Sim {
        &self.sim
    }
}

impl fmt::Debug for SimStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimStore").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl fmt::Display for SimStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimStore({})", self.inner)
    }
}

/// What distinguishes two gets of an object.
fn range_text(range: Option<&GetRange>) -> String {
    match range {
        None => String::new(),
        Some(GetRange::Bounded(range)) => format!("{}-{}", range.start, range.end),
        Some(GetRange::Offset(from)) => format!("{from}-"),
        Some(GetRange::Suffix(last)) => format!("-{last}"),
    }
}

/// Sends a request without content whose answer has none, and waits for that.
async fn ask(sim: Sim, kind: RequestKind, path: String, detail: String) -> Result<()> {
    let mut request = sim.send(kind, &path, &detail);
    request.first_byte().await?;
    request.end(Ok(())).await
}

// `get_ranges` and `rename_opts` are left to their defaults, which call the methods below: a real store
// sends those requests, so they are what must be delayed.
#[async_trait]
impl ObjectStore for SimStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let mut request = self.sim.send(RequestKind::Put, location.as_ref(), "");
        request.upload(payload.content_length() as u64).await;
        request.first_byte().await?;
        let answer = self.inner.put_opts(location, payload, opts).await;
        request.end(answer).await
    }

    async fn put_multipart_opts(&self, location: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        ask(self.sim.clone(), RequestKind::Put, location.to_string(), "begin".into()).await?;
        let inner = self.inner.clone();
        let sim = self.sim.clone();
        let location = location.clone();
        Ok(Box::new(SimUpload { inner, sim, location, parts: Arc::default() }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let kind = if options.head { RequestKind::Head } else { RequestKind::Get };
        let mut request = self.sim.send(kind, location.as_ref(), &range_text(options.range.as_ref()));
        request.first_byte().await?;
        let found = match self.inner.get_opts(location, options).await {
            Ok(found) if kind == RequestKind::Get => found,
            answer => return request.end(answer).await,
        };
        let meta = found.meta.clone();
        let range = found.range.clone();
        let attributes = found.attributes.clone();
        let extensions = found.extensions.clone();
        let payload = GetResultPayload::Stream(request.download(found.bytes().await?));
        Ok(GetResult { payload, meta, range, attributes, extensions })
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let sim = self.sim.clone();
        let request = move |path| ask(sim.clone(), RequestKind::Delete, path, String::new());
        deletions(self.inner.clone(), locations, request)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let inner = self.inner.clone();
        let prefix = prefix.cloned();
        paged(list_pages(&self.sim, prefix.as_ref(), ""), move || inner.list(prefix.as_ref()))
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        let inner = self.inner.clone();
        let prefix = prefix.cloned();
        let offset = offset.clone();
        let request = list_pages(&self.sim, prefix.as_ref(), offset.as_ref());
        paged(request, move || inner.list_with_offset(prefix.as_ref(), &offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let page = list_pages(&self.sim, prefix, "/");
        page(0).await?;
        let answer = self.inner.list_with_delimiter(prefix).await?;
        for number in 1..(answer.objects.len() + answer.common_prefixes.len()).div_ceil(PAGE_ENTRIES) {
            page(number).await?;
        }
        Ok(answer)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let mut request = self.sim.send(RequestKind::Put, to.as_ref(), from.as_ref());
        request.first_byte().await?;
        let answer = self.inner.copy_opts(from, to, options).await;
        request.end(answer).await
    }
}

/// The requests for the pages of a listing.
fn list_pages(
    sim: &Sim,
    prefix: Option<&Path>,
    detail: &str,
) -> impl Fn(usize) -> futures::future::BoxFuture<'static, Result<()>> + use<> {
    let sim = sim.clone();
    let path = prefix.map(Path::to_string).unwrap_or_default();
    let detail = detail.to_owned();
    move |page| ask(sim.clone(), RequestKind::List, path.clone(), format!("{detail} {page}")).boxed()
}

/// An upload in parts. They are kept here, because an inner store may keep a part from the moment when it is
/// given, and this one may yet be rejected.
#[derive(Debug)]
struct SimUpload {
    inner: Arc<dyn ObjectStore>,
    sim: Sim,
    location: Path,
    /// By number; those that did not arrive are none.
    parts: Arc<Mutex<Vec<Option<PutPayload>>>>,
}

#[async_trait]
impl MultipartUpload for SimUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let sim = self.sim.clone();
        let path = self.location.to_string();
        let parts = self.parts.clone();
        let number = {
            let mut parts = parts.lock().expect("nothing panics while it holds the parts");
            parts.push(None);
            parts.len() - 1
        };
        async move {
            let mut request = sim.send(RequestKind::Put, &path, &format!("part {number}"));
            request.upload(data.content_length() as u64).await;
            request.first_byte().await?;
            parts.lock().expect("nothing panics while it holds the parts")[number] = Some(data);
            request.end(Ok(())).await
        }
        .boxed()
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let parts: Option<Vec<_>> =
            self.parts.lock().expect("nothing panics while it holds the parts").iter().cloned().collect();
        let Some(parts) = parts else {
            // The error of object_store's S3 client, before it sends a request.
            return Err(Error::Generic { store: "Parts", source: "Missing part".into() });
        };
        let mut request = self.sim.send(RequestKind::Put, self.location.as_ref(), "complete");
        request.first_byte().await?;
        let whole: PutPayload = parts.iter().flat_map(|part| part.iter().cloned()).collect();
        let answer = self.inner.put_opts(&self.location, whole, PutOptions::default()).await;
        request.end(answer).await
    }

    async fn abort(&mut self) -> Result<()> {
        ask(self.sim.clone(), RequestKind::Delete, self.location.to_string(), "abort".into()).await
    }
}
