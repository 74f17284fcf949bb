//! A prefix in an object store, by URL.

pub(crate) mod clients;
pub(crate) mod fault;
pub(crate) mod folder;
pub(crate) mod location;

use std::{
    collections::HashMap,
    ops::Range,
    path::{Path as FilePath, PathBuf},
    sync::{Arc, LazyLock, Mutex},
};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use hoplake_format::constants::is_elsewhere;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutPayload, memory::InMemory, path::Path};
use url::Url;

use crate::{
    Clock, PriceList, QueryContext, StorageError, StoreProfile, SystemClock, Upload,
    store::{
        clients::{connect, missing_feature},
        folder::Folder,
        location::{check_endpoints, environment, parse_location},
    },
    write::{create, proof::Proof},
};

pub use fault::{StoreFault, system_text};
pub use folder::{Files, FoundFile};

/// Parts of an upload, by default: S3's minimum is 5 MiB, and 10,000 parts make 80 GB.
const PART_BYTES: usize = 8 << 20;

/// Objects in an answer to a listing, of all stores we know.
const LISTED_AT_ONCE: u64 = 1_000;

/// The in-memory stores of this process, by host: every `memory://name/…` of one name is one store.
static MEMORY: LazyLock<Mutex<HashMap<String, Arc<InMemory>>>> = LazyLock::new(Mutex::default);

/// A prefix in an object store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    /// For all but reads: its client repeats what failed.
    pub(crate) inner: Arc<dyn ObjectStore>,
    /// For reads, which the access layer repeats as the query's limits allow.
    pub(crate) reads: Arc<dyn ObjectStore>,
    /// If the objects are files of this machine.
    folder: Option<Folder>,
    pub(crate) proof: Arc<Proof>,
    prefix: Path,
    url: String,
    profile: Arc<StoreProfile>,
    clock: Arc<dyn Clock>,
    /// The context that meters writes.
    context: Option<QueryContext>,
    pub(crate) part_bytes: usize,
}

/// An object in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Its name below the prefix.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// When it was last written, in milliseconds since 1970, by the store's clock.
    pub modified_unix_ms: i64,
}

impl Store {
    /// The store at a URL (`file://`, `s3://`, `gs://`, `az://`, `memory://`) or local path, with
    /// credentials and endpoint from the provider's usual environment variables.
    ///
    /// # Errors
    /// [`StorageError::Url`] if its scheme is unknown, or one whose feature (`s3`, `gcs`, `azure`) this build does not
    /// have; [`StorageError::Settings`] or [`StorageError::Unavailable`] if the environment does not suffice.
    pub fn open(url: &str) -> Result<Self, StorageError> {
        let wrong = |why: String| StorageError::Url { url: url.to_owned(), why };
        let parsed = parse_location(url).map_err(wrong)?;
        if parsed.scheme() == "memory" {
            let name = parsed.host_str().unwrap_or_default().to_owned();
            // One store for each name: a graph that was written through one `Store` can be opened through another.
            let inner = MEMORY.lock().expect("no thread panics with the map").entry(name).or_default().clone();
            let prefix = Path::from_url_path(parsed.path()).map_err(|error| wrong(error.to_string()))?;
            return Ok(Self::new(inner, prefix, parsed.as_str()));
        }
        if parsed.scheme() == "file" {
            let prefix = Path::from_url_path(parsed.path()).map_err(|error| wrong(error.to_string()))?;
            let root = parsed.to_file_path().map_err(|()| wrong("it names another machine".into()))?;
            return Ok(Self::in_folder(Folder::of_machine(root), prefix, parsed.as_str()));
        }
        // Before the clients: theirs would be an error about the scheme, without the feature that is missing.
        if let Some(why) = missing_feature(parsed.scheme()) {
            return Err(wrong(why));
        }
        check_endpoints(&environment()).map_err(StorageError::Settings)?;
        let clients = connect(&parsed).map_err(|error| match fault::explain(&error) {
            (StoreFault::Credentials, _) => {
                StorageError::Unavailable { action: "open", object: url.to_owned(), source: Arc::new(error) }
            }
            (_, why) => wrong(why),
        })?;
        let endpoint =
            environment().into_iter().find(|(key, _)| key.contains("endpoint")).map(|(_, endpoint)| endpoint);
        let host = parsed.host_str().unwrap_or_default();
        // With the endpoint: two servers may have a bucket of the same name, and only one a conditional create that works.
        let proof = Proof::of_store(format!("{}://{host} {endpoint:?}", parsed.scheme()));
        // Two clients: reads and creates are sent once and repeated here, other writes are repeated by the client.
        Ok(Self { reads: clients.reads, proof, ..Self::new(clients.writes, clients.prefix, parsed.as_str()) })
    }

    /// A prefix of a given store; `url` is its name in messages, and its scheme selects the profile.
    pub fn new(inner: Arc<dyn ObjectStore>, prefix: Path, url: &str) -> Self {
        // The memory of this process decides creates under a lock; a given store of another kind has to be tried.
        let proof = if url.starts_with("memory:") { Proof::given() } else { Arc::default() };
        let profile = StoreProfile::of_url(url);
        let url = url.trim_end_matches('/').to_owned();
        let clock = Arc::new(SystemClock);
        let context = None;
        Self {
            reads: inner.clone(),
            inner,
            folder: None,
            proof,
            prefix,
            profile,
            url,
            clock,
            context,
            part_bytes: PART_BYTES,
        }
    }

    /// A folder of files that are written through `files`, one operation at a time, and read through `reads`.
    pub fn on_files(files: Arc<dyn Files>, reads: Arc<dyn ObjectStore>, prefix: Path, url: &str) -> Self {
        let root = FilePath::new("/").join(prefix.as_ref());
        Self::in_folder(Folder::new(files, reads, root), prefix, url)
    }

    fn in_folder(folder: Folder, prefix: Path, url: &str) -> Self {
        Self { folder: Some(folder.clone()), proof: Proof::given(), ..Self::new(Arc::new(folder), prefix, url) }
    }

    /// A store that only others reach: a name for messages and a profile to plan by, for a
    /// [`Reader::from_source`](crate::Reader::from_source). Asked itself, it is empty.
    pub fn elsewhere(url: &str, profile: Arc<StoreProfile>) -> Self {
        Self::new(Arc::new(InMemory::new()), Path::default(), url).with_profile(profile)
    }

    /// The same store, taken for another kind: other prices, other latencies to plan by.
    pub fn with_profile(self, profile: Arc<StoreProfile>) -> Self {
        Self { profile, ..self }
    }

    /// The same store, whose writers ask this clock for the time and for names.
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// The same store, which uploads long objects in parts of `part_bytes`, at least 1; the last may be shorter.
    pub fn with_part_bytes(self, part_bytes: usize) -> Self {
        Self { part_bytes: part_bytes.max(1), ..self }
    }

    /// The same store, whose conditional create is known to work.
    pub fn with_proof(self) -> Self {
        Self { proof: Proof::given(), ..self }
    }

    /// The source of time and names for its writers.
    pub fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    /// The same store, which meters writes and listings in `context`. A [`Reader`](crate::Reader) meters reads in the
    /// context of the query.
    #[must_use]
    pub fn metered_by(&self, context: &QueryContext) -> Self {
        Self { context: Some(context.clone()), ..self.clone() }
    }

    /// The context of its meter, or a new one.
    pub fn context(&self) -> QueryContext {
        self.context.clone().unwrap_or_default()
    }

    pub(crate) fn unmetered(&self) -> Self {
        Self { context: None, ..self.clone() }
    }

    /// Ends a request at the deadline of its context.
    pub(crate) async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, StorageError>>,
    ) -> Result<T, StorageError> {
        match &self.context {
            Some(context) => context.in_time(work).await,
            None => work.await,
        }
    }

    pub(crate) fn wrote(&self, puts: u64, bytes: usize) {
        self.context.iter().for_each(|context| context.meter().wrote(puts, bytes as u64));
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// How fast it is expected to be, and what it costs.
    pub fn profile(&self) -> &StoreProfile {
        &self.profile
    }

    pub(crate) fn shared_profile(&self) -> Arc<StoreProfile> {
        self.profile.clone()
    }

    /// The prices of its requests.
    pub fn prices(&self) -> &PriceList {
        &self.profile.prices
    }

    /// The URL of an object, for messages.
    pub fn location(&self, name: &str) -> String {
        match Url::parse(&self.url) {
            Ok(mut url) if is_elsewhere(name) => {
                url.set_path(name);
                url.into()
            }
            _ => format!("{}/{name}", self.url),
        }
    }

    /// The name of an object from the root of the store, by which other graphs there can read it.
    pub fn name_from_root(&self, name: &str) -> String {
        if is_elsewhere(name) { name.to_owned() } else { format!("/{}", self.path(name)) }
    }

    /// Whether both are prefixes of the same bucket, container or file system.
    pub fn is_beside(&self, other: &Self) -> bool {
        root_of(&self.url) == root_of(&other.url)
    }

    pub(crate) fn path(&self, name: &str) -> Path {
        // A clone names the objects of its original graph from the root of the store.
        let (from, name) = match name.strip_prefix('/') {
            Some(name) => (Path::default(), name),
            None => (self.prefix.clone(), name),
        };
        name.split('/').fold(from, |path, part| path.join(part))
    }

    /// The file of an object, if objects are files of this machine.
    pub(crate) fn file(&self, name: &str) -> Option<PathBuf> {
        self.folder.as_ref()?.file_of_machine(&self.path(name))
    }

    pub(crate) fn failed(&self, action: &'static str, name: &str) -> impl Fn(object_store::Error) -> StorageError {
        let object = self.location(name);
        move |source| match (fault::explain(&source).0, &source) {
            // Some stores have the same status for a bucket that is not there, and for a user.
            (StoreFault::Other, object_store::Error::NotFound { .. }) => {
                StorageError::NotFound { object: object.clone() }
            }
            _ => self.unavailable(action, object.clone(), source),
        }
    }

    fn unavailable(&self, action: &'static str, object: String, source: object_store::Error) -> StorageError {
        let object = match fault::explain(&source).0 {
            // Whichever object was first: no other can be read or written either.
            StoreFault::Credentials => self.url.clone(),
            _ => object,
        };
        StorageError::Unavailable { action, object, source: Arc::new(source) }
    }

    /// A complete object; `None` if it does not exist. Queries read through a [`Reader`](crate::Reader).
    ///
    /// # Errors
    /// [`StorageError::Unavailable`] if the store fails.
    pub async fn get(&self, name: &str) -> Result<Option<Bytes>, StorageError> {
        self.in_time(self.get_from(&self.inner, name)).await
    }

    /// As [`Self::get`], in one request that is not repeated.
    pub(crate) async fn get_once(&self, name: &str) -> Result<Option<Bytes>, StorageError> {
        self.get_from(&self.reads, name).await
    }

    async fn get_from(&self, client: &Arc<dyn ObjectStore>, name: &str) -> Result<Option<Bytes>, StorageError> {
        let read = async { client.get(&self.path(name)).await?.bytes().await };
        match read.await.map_err(self.failed("read", name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(StorageError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The length of an object; `None` if it is not there.
    ///
    /// # Errors
    /// [`StorageError::Unavailable`] if the store fails.
    pub async fn length(&self, name: &str) -> Result<Option<u64>, StorageError> {
        let path = self.path(name);
        let head = async { self.inner.head(&path).await.map_err(self.failed("look at", name)) };
        match self.in_time(head).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(StorageError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A range of an object, exactly. Queries read through a [`Reader`](crate::Reader).
    ///
    /// # Errors
    /// [`StorageError::NotFound`], [`StorageError::Unavailable`], or [`StorageError::Length`] if the object
    /// is shorter than that.
    pub async fn get_range(&self, name: &str, range: Range<u64>) -> Result<Bytes, StorageError> {
        match self.get_range_from(&self.inner, name, range.clone()).await {
            Err(error) => Err(self.diagnose(name, &range, error).await),
            bytes => bytes,
        }
    }

    /// As [`Self::get_range`], in one request that is not repeated. Most stores say that they are
    /// unavailable if the object ends before the range begins.
    pub(crate) async fn get_range_once(&self, name: &str, range: Range<u64>) -> Result<Bytes, StorageError> {
        self.get_range_from(&self.reads, name, range).await
    }

    async fn get_range_from(
        &self,
        client: &Arc<dyn ObjectStore>,
        name: &str,
        range: Range<u64>,
    ) -> Result<Bytes, StorageError> {
        // A store answers a range over the end of an object with the bytes up to there, so the length is compared below.
        let expected = range.end - range.start;
        // A range of HTTP includes its last byte, so that an empty one cannot be asked for.
        if expected == 0 {
            return Ok(Bytes::new());
        }
        let bytes = client.get_range(&self.path(name), range).await.map_err(self.failed("read", name))?;
        if bytes.len() as u64 != expected {
            return Err(StorageError::Length { object: self.location(name), expected, found: bytes.len() as u64 });
        }
        Ok(bytes)
    }

    /// Why a range could not be read, for a message: each store rejects a range after an object's end in its own way,
    /// so this compares the length.
    pub(crate) async fn diagnose(&self, name: &str, range: &Range<u64>, error: StorageError) -> StorageError {
        // Only errors that a short object may have caused: the HEAD costs a request.
        let StorageError::Unavailable { .. } = error else { return error };
        match self.inner.head(&self.path(name)).await {
            Ok(meta) if meta.size < range.end => StorageError::Length {
                object: self.location(name),
                expected: range.end - range.start,
                found: meta.size.saturating_sub(range.start),
            },
            _ => error,
        }
    }

    /// Creates an object if there is none of that name; `false` if there is. A caller that waits for it advances its
    /// [`Branch`](crate::Branch). A transient rejection is repeated.
    ///
    /// # Errors
    /// [`StorageError::Unanswered`] if the store gave no answer: the object may be there, now or later. Any other error
    /// says that this created nothing.
    pub async fn create(&self, name: &str, bytes: Bytes) -> Result<bool, StorageError> {
        let attempt = || {
            self.wrote(1, bytes.len());
            let payload = PutPayload::from(bytes.clone());
            async { self.reads.put_opts(&self.path(name), payload, PutMode::Create.into()).await }
        };
        let created = self.in_time(async { Ok(create::repeated(attempt).await) }).await;
        // A request that was sent before the deadline may still arrive.
        let late = |late: StorageError| {
            let error = object_store::Error::Generic { store: "store", source: Box::new(late) };
            create::Failure { error, perhaps: true }
        };
        created.unwrap_or_else(|error| Err(late(error))).map_err(|failure| match failure.perhaps {
            true => StorageError::Unanswered { object: self.location(name), source: Arc::new(failure.error) },
            false => self.unavailable("create", self.location(name), failure.error),
        })
    }

    /// Makes names and files that were read in a folder survive a loss of power, even if their writer has not flushed
    /// them yet. In an object store it does.
    ///
    /// # Errors
    /// [`StorageError::Unavailable`] if the flush fails.
    pub async fn flush(&self, folder: &str) -> Result<(), StorageError> {
        match &self.folder {
            Some(files) => files.flush_read(&self.path(folder)).await.map_err(self.failed("flush", folder)),
            None => Ok(()),
        }
    }

    /// Writes an object that nothing depends on, and replaces any existing one. A loss of power may damage it.
    ///
    /// # Errors
    /// [`StorageError::Unavailable`] if the store fails.
    pub async fn advise(&self, name: &str, bytes: Bytes) -> Result<(), StorageError> {
        let Some(files) = &self.folder else { return self.put(name, bytes).await };
        self.wrote(1, bytes.len());
        files.advise(&self.path(name), bytes).await.map_err(self.failed("write", name))
    }

    /// Removes what writers that ended in the middle have left of objects in a folder, if it was last written before a
    /// time, and says what it was. An object store does that by rules of the bucket.
    ///
    /// # Errors
    /// [`StorageError::Unavailable`] if the store fails; then some may be removed.
    pub async fn remove_staged(&self, folder: &str, before_unix_ms: i64) -> Result<Vec<ObjectInfo>, StorageError> {
        let Some(files) = &self.folder else { return Ok(Vec::new()) };
        let path = if folder.is_empty() { self.prefix.clone() } else { self.path(folder) };
        let removed = files.remove_staged(&path, before_unix_ms).await.map_err(self.failed("clean up", folder))?;
        let info = |file: FoundFile| {
            let name = file.path.file_name().unwrap_or_default().to_string_lossy();
            let name = if folder.is_empty() { name.into_owned() } else { format!("{folder}/{name}") };
            ObjectInfo { name, bytes: file.bytes, modified_unix_ms: file.modified_unix_ms }
        };
        Ok(removed.into_iter().map(info).collect())
    }

    /// The folders below a folder, if the store is a folder: also those that have nothing but what writers left.
    ///
    /// # Errors
    /// [`StorageError::Unavailable`] if the store fails.
    pub async fn folders(&self, folder: &str) -> Result<Vec<String>, StorageError> {
        if self.folder.is_none() {
            return Ok(Vec::new());
        }
        let path = if folder.is_empty() { self.prefix.clone() } else { self.path(folder) };
        let list = async { self.inner.list_with_delimiter(Some(&path)).await.map_err(self.failed("list", folder)) };
        let name = |path: &object_store::path::Path| {
            let parts: Vec<_> = path.prefix_match(&self.prefix)?.collect();
            Some(parts.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join("/"))
        };
        Ok(self.in_time(list).await?.common_prefixes.iter().filter_map(name).collect())
    }

    /// Writes an object, and replaces any existing one.
    ///
    /// # Errors
    /// [`StorageError::Unavailable`] if the store fails.
    pub async fn put(&self, name: &str, bytes: Bytes) -> Result<(), StorageError> {
        self.wrote(1, bytes.len());
        let path = self.path(name);
        let put = async {
            let put = self.inner.put(&path, PutPayload::from(bytes)).await;
            put.map(drop).map_err(self.failed("write", name))
        };
        self.in_time(put).await
    }

    /// All objects whose name begins with `folder/`, in no order.
    ///
    /// # Errors
    /// [`StorageError::Unavailable`] if the store fails.
    pub async fn list(&self, folder: &str) -> Result<Vec<ObjectInfo>, StorageError> {
        let path = if folder.is_empty() { self.prefix.clone() } else { self.path(folder) };
        let info = |meta: object_store::ObjectMeta| {
            let parts: Vec<_> = meta.location.prefix_match(&self.prefix)?.collect();
            let name = parts.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join("/");
            Some(ObjectInfo { name, bytes: meta.size, modified_unix_ms: meta.last_modified.timestamp_millis() })
        };
        let list = async { self.inner.list(Some(&path)).try_collect().await.map_err(self.failed("list", folder)) };
        // The client follows the pages by itself, so their number is found from the number of objects.
        let listed: Vec<_> = self.in_time(list).await?;
        self.wrote((listed.len() as u64).div_ceil(LISTED_AT_ONCE).max(1), 0);
        Ok(listed.into_iter().filter_map(info).collect())
    }

    /// Deletes objects; those that are not there count as deleted.
    ///
    /// # Errors
    /// [`StorageError::Unavailable`] if the store fails; then some may be deleted.
    pub async fn delete(&self, names: &[String]) -> Result<(), StorageError> {
        let paths: Vec<_> = names.iter().map(|name| Ok(self.path(name))).collect();
        // The client bundles names where the store has a bulk delete.
        let mut results = self.inner.delete_stream(futures::stream::iter(paths).boxed());
        let delete = async {
            while let Some(result) = results.next().await {
                match result {
                    Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                    Err(error) => return Err(self.failed("delete", "objects")(error)),
                }
            }
            Ok(())
        };
        self.in_time(delete).await
    }

    /// Begins to write an object of any length. It exists when [`Upload::finish`] returns, and not before.
    pub fn upload(&self, name: &str) -> Upload {
        Upload::new(self, name)
    }
}

/// The bucket, container or file system of a URL.
fn root_of(url: &str) -> Option<(String, String, Option<String>)> {
    let url = Url::parse(url).ok()?;
    // `abfss://container@account.…` has its container before the host.
    Some((url.scheme().to_owned(), url.username().to_owned(), url.host_str().map(str::to_owned)))
}

#[cfg(test)]
mod tests {
    use hoplake_testkit::{AzuriteServer, S3Server};

    use super::*;

    #[test]
    fn containers_of_one_account_are_apart() {
        let same = |a: &str, b: &str| root_of(a) == root_of(b);
        assert!(same("s3://bucket/a", "s3://bucket/b/c") && same("file:///a", "file:///b"));
        assert!(same("abfss://one@account.dfs.core.windows.net/a", "abfss://one@account.dfs.core.windows.net/b"));
        assert!(!same("abfss://one@account.dfs.core.windows.net/a", "abfss://two@account.dfs.core.windows.net/a"));
        assert!(!same("s3://bucket/a", "s3://other/a") && !same("s3://bucket/a", "gs://bucket/a"));
    }

    async fn conformance(store: &Store) {
        assert_eq!(store.get("hint").await.unwrap(), None);
        assert!(store.create("manifest/1", Bytes::from_static(b"one")).await.unwrap());
        assert!(!store.create("manifest/1", Bytes::from_static(b"two")).await.unwrap());
        assert_eq!(store.get("manifest/1").await.unwrap().unwrap(), "one");
        store.put("hint", Bytes::from_static(b"a")).await.unwrap();
        store.put("hint", Bytes::from_static(b"b")).await.unwrap();
        assert_eq!(store.get_range("manifest/1", 1..3).await.unwrap(), "ne");
        let long = store.get_range("manifest/1", 1..9).await.unwrap_err();
        assert!(long.to_string().contains("manifest/1"), "{long}");
        for range in [1..9, 3..4, 7..9] {
            let long = store.get_range("manifest/1", range).await;
            assert!(matches!(long, Err(StorageError::Length { .. })), "{long:?}");
        }
        assert!(matches!(store.get_range("none", 0..1).await, Err(StorageError::NotFound { .. })));
        let mut upload = store.upload("data/big");
        let part = vec![7; PART_BYTES - 1];
        upload.write(&part).await.unwrap();
        upload.write(&part).await.unwrap();
        assert_eq!(upload.finish().await.unwrap(), crc32c::crc32c(&[&part[..], &part[..]].concat()));
        let listed = store.list("data").await.unwrap();
        assert_eq!((listed.len(), &*listed[0].name, listed[0].bytes), (1, "data/big", 2 * part.len() as u64));
        assert_eq!(store.list("").await.unwrap().len(), 3);
        store.delete(&["data/big".into(), "data/none".into()]).await.unwrap();
        assert_eq!(store.list("data").await.unwrap(), []);
    }

    #[tokio::test]
    async fn memory_and_files_behave_alike() {
        conformance(&Store::open("memory://conformance/graph").unwrap()).await;
        let folder = tempfile::tempdir().unwrap();
        conformance(&Store::open(folder.path().join("a graph").to_str().unwrap()).unwrap()).await;
    }

    #[tokio::test]
    async fn real_servers_behave_like_memory() {
        for server in S3Server::start_each().unwrap() {
            conformance(&Store::new(Arc::new(server.store()), "a graph".into(), &server.url("a graph"))).await;
        }
        let server = AzuriteServer::start().unwrap();
        let store = Store::new(Arc::new(server.store()), "a graph".into(), &server.url("a graph"));
        conformance(&store).await;
        assert_eq!(store.profile().name, "azure-hot");
    }

    #[tokio::test]
    async fn writes_are_on_the_account() {
        let store = Store::open("memory://account/graph").unwrap();
        let context = QueryContext::new();
        let metered = store.metered_by(&context);
        store.put("other", Bytes::from_static(b"not on it")).await.unwrap();
        let written = || (context.cost().puts, context.cost().put_bytes);
        assert_eq!(written(), (0, 0));
        metered.put("hint", Bytes::from_static(b"four")).await.unwrap();
        assert_eq!(written(), (1, 4));
        // One that finds the name taken is paid all the same.
        for created in [true, false] {
            assert_eq!(metered.create("manifest", Bytes::from_static(b"three")).await.unwrap(), created);
        }
        assert_eq!(written(), (3, 14));
        let mut upload = metered.upload("small");
        upload.write(b"123").await.unwrap();
        upload.finish().await.unwrap();
        assert_eq!(written(), (4, 17));
        // To begin, two parts and a rest, to end.
        let mut upload = metered.upload("large");
        upload.write(&vec![7; 2 * PART_BYTES + 1]).await.unwrap();
        upload.finish().await.unwrap();
        assert_eq!(written(), (9, 18 + 2 * PART_BYTES as u64));
        metered.delete(&["small".into(), "large".into()]).await.unwrap();
        assert_eq!(metered.list("").await.unwrap().len(), 3);
        assert_eq!(written(), (10, 18 + 2 * PART_BYTES as u64));
    }
}
