//! The way from a process to the bucket: requests that take their time, go wrong, are overtaken, and never return to a
//! process that has ended.
//!
//! Each request has three moments: it is sent, it takes effect, and it is answered. The delays between them are drawn,
//! and decide the order in which everything happens. A process that crashes sends nothing any more, and nothing
//! returns to it: its tasks wait for ever. One that is suspended does both later.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicI64, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::{StreamExt, stream::BoxStream};
use hoplake_format::constants::manifest_version;
use hoplake_storage::Clock;
use object_store::{
    CopyOptions, Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, path::Path,
};
use tokio::{sync::Notify, time::sleep};

use crate::{
    faults::{Fault, Kind},
    world::{Bucket, Concern, EPOCH_UNIX_MS, Stored, World},
};

/// After which time a client gives a request up.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Requests for the same bytes that one process may send between two steps of its callers.
const REPETITIONS_MAX: u32 = 48;

/// A process, as the store and the machine treat it.
#[derive(Debug)]
pub struct Machine {
    /// Its name in the trace.
    pub name: String,
    /// Whether faults befall it.
    pub reliable: bool,
    dead: AtomicBool,
    died: Notify,
    /// Until when it stands still.
    suspended_until: Mutex<Duration>,
    /// Until when its credentials do not hold.
    expired_until: Mutex<Duration>,
    /// Until when nothing comes back to it.
    cut_off_until: Mutex<Duration>,
    /// By how many milliseconds its clock is wrong.
    clock_off_ms: AtomicI64,
    /// How often each request was sent since a caller last took a step.
    asked: Mutex<BTreeMap<(Kind, String), u32>>,
}

impl Machine {
    /// A process that has just begun.
    pub fn new(name: impl Into<String>, reliable: bool) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            reliable,
            dead: AtomicBool::new(false),
            died: Notify::new(),
            suspended_until: Mutex::default(),
            expired_until: Mutex::default(),
            cut_off_until: Mutex::default(),
            clock_off_ms: AtomicI64::new(0),
            asked: Mutex::default(),
        })
    }

    /// Returns when it has crashed.
    pub async fn until_dead(&self) {
        self.died.notified().await;
    }

    /// Whether it has crashed.
    pub fn is_dead(&self) -> bool {
        self.dead.load(Relaxed)
    }

    /// A caller begins or ends an operation: what is asked from now on counts anew.
    pub fn stepped(&self) {
        self.asked.lock().expect("nothing panics with it").clear();
    }

    /// Whether it stands still.
    pub fn is_suspended(&self, now: Duration) -> bool {
        now < *self.suspended_until.lock().expect("nothing panics with it")
    }

    fn crash(&self) {
        self.dead.store(true, Relaxed);
        self.died.notify_one();
    }
}

/// The clock of a process.
#[derive(Debug)]
pub struct MachineClock {
    /// Whose.
    pub machine: Arc<Machine>,
    /// Where the true time is.
    pub world: Arc<World>,
}

impl Clock for MachineClock {
    fn unix_ms(&self) -> u64 {
        let now = EPOCH_UNIX_MS + self.world.now().as_millis() as u64;
        now.saturating_add_signed(self.machine.clock_off_ms.load(Relaxed))
    }

    fn running(&self) -> Duration {
        self.world.now()
    }

    fn ulid(&self) -> String {
        let mut random = self.world.random(Concern::Names);
        let low = u128::from(random.next_u64()) << 16 | u128::from(random.next_u64() >> 48);
        ulid::Ulid::from_parts(self.unix_ms(), low).to_string()
    }
}

/// An object store, as one process reaches it.
#[derive(Clone)]
pub struct Client {
    world: Arc<World>,
    machine: Arc<Machine>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.machine.name)
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A request: what it asks, how it is called in the trace.
struct Request {
    kind: Kind,
    name: String,
    detail: String,
}

impl Request {
    fn new(kind: Kind, path: &Path, detail: impl Into<String>) -> Self {
        Self { kind, name: path.to_string(), detail: detail.into() }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}{}", self.kind, self.name, self.detail)
    }
}

impl Client {
    /// How a process reaches the bucket.
    pub fn new(world: &Arc<World>, machine: &Arc<Machine>) -> Self {
        Self { world: world.clone(), machine: machine.clone() }
    }

    /// Waits while the process stands still, for ever if it has ended.
    async fn gate(&self) {
        loop {
            if self.machine.is_dead() {
                return std::future::pending().await;
            }
            let until = *self.machine.suspended_until.lock().expect("nothing panics with it");
            match until.checked_sub(self.world.now()) {
                Some(rest) if !rest.is_zero() => sleep(rest).await,
                _ => return,
            }
        }
    }

    /// Draws a delay: mostly about the seed's latency, sometimes much longer.
    fn delay(&self) -> Duration {
        if self.machine.reliable {
            return Duration::ZERO;
        }
        let mut random = self.world.random(Concern::Store);
        let usual = self.world.weather.latency_ms;
        let bound = match random.below(100) {
            0 => usual * 100,
            1..=5 => usual * 10,
            _ => usual,
        };
        Duration::from_millis(1 + random.below(bound.min(10_000)))
    }

    /// Sends a request; `effect` is what it does to the bucket, in one step.
    async fn ask<T: Send>(
        &self,
        request: Request,
        mut effect: impl FnMut(&mut Bucket, &World, Duration) -> Result<T> + Clone + Send + 'static,
    ) -> Result<(T, Option<Fault>)> {
        self.gate().await;
        let (world, machine) = (&self.world, &self.machine);
        if !world.admits_request() {
            return std::future::pending().await;
        }
        let fault = self.befall(&request);
        if !machine.reliable {
            let with = fault.map_or_else(String::new, |fault| format!(" ({fault:?})"));
            world.log(|| format!("{} → {request}{with}", machine.name));
            self.count(&request);
        }
        match fault {
            Some(Fault::Expired) => return Err(self.expired(&request)),
            Some(Fault::CutOff) => return self.cut_off(&request, effect).await,
            Some(Fault::TimedOutBefore) => {
                sleep(TIMEOUT).await;
                return self.answer(&request, Err(failed("no answer"))).await;
            }
            Some(Fault::Late) => {
                self.later(effect);
                sleep(TIMEOUT).await;
                return self.answer(&request, Err(failed("no answer"))).await;
            }
            _ => {}
        }
        if !machine.reliable {
            sleep(self.delay()).await;
        }
        match fault {
            Some(Fault::Refused) => return self.answer(&request, Err(failed("503 Slow Down"))).await,
            Some(Fault::ConflictForNothing) => return self.answer(&request, Err(exists(&request.name))).await,
            Some(Fault::Crash) if world.random(Concern::Store).below(2) == 0 => return self.end(&request).await,
            // What was sent before the crash may arrive or not.
            _ if machine.is_dead() && world.random(Concern::Store).below(2) == 0 => {
                return std::future::pending().await;
            }
            _ => {}
        }
        let now = world.now();
        let done = effect(&mut world.bucket(), world, now);
        match fault {
            Some(Fault::Crash) => return self.end(&request).await,
            Some(Fault::Twice) => self.later(effect),
            Some(Fault::TimedOutAfter) => sleep(TIMEOUT).await,
            _ => {}
        }
        if !machine.reliable {
            sleep(self.delay()).await;
        }
        let answer = match (fault, done) {
            (Some(Fault::TimedOutAfter | Fault::LostAnswer), _) => Err(failed("the connection broke")),
            (Some(Fault::ExistsByItself), _) => Err(exists(&request.name)),
            (Some(Fault::Precondition), Err(Error::AlreadyExists { path, source })) => {
                Err(Error::Precondition { path, source })
            }
            (_, done) => done,
        };
        self.answer(&request, answer.map(|answer| (answer, fault))).await
    }

    /// A request of a process that is cut off. Creates and reads fail soon; the client repeats the others for a while.
    async fn cut_off<T: Send>(
        &self,
        request: &Request,
        mut effect: impl FnMut(&mut Bucket, &World, Duration) -> Result<T> + Clone + Send + 'static,
    ) -> Result<(T, Option<Fault>)> {
        let (world, arrives) = (&self.world, self.world.random(Concern::Store).below(4));
        let until = *self.machine.cut_off_until.lock().expect("nothing panics with it");
        let rest = until.saturating_sub(world.now());
        let repeated = matches!(request.kind, Kind::Put | Kind::Delete | Kind::List) && rest < 2 * TIMEOUT;
        if repeated {
            sleep(rest).await;
            let now = world.now();
            let done = effect(&mut world.bucket(), world, now);
            return self.answer(request, done.map(|done| (done, None))).await;
        }
        match arrives {
            0 => self.later(effect),
            1 => {
                let now = world.now();
                let _ = effect(&mut world.bucket(), world, now);
            }
            _ => {}
        }
        sleep(self.delay()).await;
        self.answer(request, Err(failed("the connection broke"))).await
    }

    /// What befalls a request.
    fn befall(&self, request: &Request) -> Option<Fault> {
        let (world, machine) = (&self.world, &self.machine);
        if machine.reliable || world.is_calm() {
            return None;
        }
        let now = world.now();
        if now < *machine.expired_until.lock().expect("nothing panics with it") {
            return Some(Fault::Expired);
        }
        if now < *machine.cut_off_until.lock().expect("nothing panics with it") {
            return Some(Fault::CutOff);
        }
        let fault = world.weather.strike(request.kind, now, &mut world.random(Concern::Store))?;
        let mut random = world.random(Concern::Store);
        match fault {
            Fault::Zombie => {
                let minutes = if random.below(2) == 0 { 10 } else { 600 };
                let until = now + Duration::from_millis(random.below(minutes * 60_000));
                *machine.suspended_until.lock().expect("nothing panics with it") = until;
            }
            Fault::ClockJump => {
                let hours = [1, 48][random.below(2) as usize];
                let off = random.below(2 * hours * 3_600_000) as i64 - hours as i64 * 3_600_000;
                machine.clock_off_ms.store(off, Relaxed);
            }
            Fault::CutOff => {
                let seconds = [5, 60, 300][random.below(3) as usize];
                let until = now + Duration::from_millis(random.below(seconds * 1_000));
                *machine.cut_off_until.lock().expect("nothing panics with it") = until;
            }
            Fault::Expired => {
                let until = now + Duration::from_millis(random.below(60_000));
                *machine.expired_until.lock().expect("nothing panics with it") = until;
            }
            _ => {}
        }
        Some(fault)
    }

    /// No process asks for the same again and again.
    fn count(&self, request: &Request) {
        let mut asked = self.machine.asked.lock().expect("nothing panics with it");
        let times = asked.entry((request.kind, format!("{}{}", request.name, request.detail))).or_default();
        *times += 1;
        if *times == REPETITIONS_MAX {
            drop(asked);
            self.world.violated(format!("{} asked {REPETITIONS_MAX} times for {request}", self.machine.name));
        }
    }

    /// Does something once more, or at last, after everybody has forgotten it.
    fn later<T: Send>(&self, mut effect: impl FnMut(&mut Bucket, &World, Duration) -> Result<T> + Send + 'static) {
        let world = self.world.clone();
        let minutes = if world.random(Concern::Store).below(3) == 0 { 300 } else { 2 };
        let after = Duration::from_millis(world.random(Concern::Store).below(minutes * 60_000));
        tokio::spawn(async move {
            sleep(after).await;
            let now = world.now();
            world.log(|| "a late request arrives".into());
            let _ = effect(&mut world.bucket(), &world, now);
        });
    }

    /// The process ends here.
    async fn end<T>(&self, request: &Request) -> T {
        self.world.log(|| format!("{} crashed at {request}", self.machine.name));
        self.machine.crash();
        std::future::pending().await
    }

    fn expired(&self, request: &Request) -> Error {
        self.world.log(|| format!("{} ← {request}: 403", self.machine.name));
        Error::PermissionDenied { path: request.name.clone(), source: "the credentials have expired".into() }
    }

    async fn answer<T>(&self, request: &Request, answer: Result<T>) -> Result<T> {
        self.gate().await;
        if !self.machine.reliable {
            let said = answer.as_ref().map_or_else(variant, |_| "done".into());
            self.world.log(|| format!("{} ← {request}: {said}", self.machine.name));
        }
        answer
    }

    /// A body that something happened to.
    fn body(
        &self,
        whole: &Bytes,
        asked: Bytes,
        start: usize,
        fault: Option<Fault>,
    ) -> BoxStream<'static, Result<Bytes>> {
        let mut random = self.world.random(Concern::Store);
        let cut = random.below(asked.len().max(1) as u64) as usize;
        let one = |bytes: Bytes| futures::stream::iter([Ok(bytes)]).boxed();
        match fault {
            Some(Fault::Reset) => {
                futures::stream::iter([Ok(asked.slice(..cut)), Err(failed("the connection broke"))]).boxed()
            }
            Some(Fault::Short) => one(asked.slice(..cut)),
            Some(Fault::Whole) => one(whole.clone()),
            Some(Fault::Stalled) => {
                let rest = futures::stream::once(async {
                    sleep(TIMEOUT).await;
                    Err(failed("no answer"))
                });
                futures::stream::iter([Ok(asked.slice(..cut))]).chain(rest).boxed()
            }
            Some(Fault::WrongRange) => {
                let other = random.below((whole.len() - asked.len()) as u64 + 1) as usize;
                let other = if other == start { 0 } else { other };
                one(whole.slice(other..other + asked.len()))
            }
            Some(Fault::FlippedBit) if !asked.is_empty() => {
                let mut spoilt = asked.to_vec();
                let bit = random.below(8 * spoilt.len() as u64) as usize;
                spoilt[bit / 8] ^= 1 << (bit % 8);
                one(spoilt.into())
            }
            _ => one(asked),
        }
    }
}

fn failed(why: &str) -> Error {
    Error::Generic { store: "S3", source: why.into() }
}

fn exists(name: &str) -> Error {
    Error::AlreadyExists { path: name.to_owned(), source: "412 Precondition Failed".into() }
}

fn variant(error: &Error) -> String {
    match error {
        Error::Generic { source, .. } => source.to_string(),
        Error::NotFound { .. } => "404".into(),
        Error::AlreadyExists { .. } => "exists".into(),
        Error::Precondition { .. } => "precondition failed".into(),
        _ => "another error".into(),
    }
}

/// Writes an object, and lets the oracle look at what that means.
fn write(bucket: &mut Bucket, world: &World, now: Duration, name: &str, bytes: &Bytes) {
    bucket.insert(name.to_owned(), Stored { bytes: bytes.clone(), modified: now });
    if let Some(version) = manifest_version(name) {
        world.log(|| format!("{name} is there"));
        let published = match hoplake_format::Slot::decode(bytes) {
            Ok(hoplake_format::Slot::Version(manifest)) => world.history().published(*manifest, bucket),
            Ok(hoplake_format::Slot::Removed { .. }) => world.history().marked(version),
            Err(error) => Err(format!("{name} is no manifest: {error}")),
        };
        world.check(published);
        world.published();
    }
}

fn meta(name: &str, stored: &Stored) -> ObjectMeta {
    let modified_ms = EPOCH_UNIX_MS as i64 + stored.modified.as_millis() as i64;
    ObjectMeta {
        location: Path::from(name),
        last_modified: DateTime::<Utc>::from_timestamp_millis(modified_ms).unwrap_or_default(),
        size: stored.bytes.len() as u64,
        e_tag: None,
        version: None,
    }
}

fn not_implemented<T>(operation: &str) -> Result<T> {
    Err(Error::NotImplemented { operation: operation.into(), implementer: "the simulation".into() })
}

#[async_trait]
impl ObjectStore for Client {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let create = opts.mode == PutMode::Create;
        let kind = if create { Kind::Create } else { Kind::Put };
        let (name, bytes) = (location.to_string(), Bytes::from(payload));
        let effect = move |bucket: &mut Bucket, world: &World, now: Duration| {
            if create && bucket.contains_key(&name) {
                return Err(exists(&name));
            }
            write(bucket, world, now, &name, &bytes);
            Ok(())
        };
        self.ask(Request::new(kind, location, ""), effect).await?;
        Ok(PutResult { e_tag: None, version: None, extensions: Default::default() })
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        not_implemented("uploads in parts")
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let name = location.to_string();
        let range = match options.range {
            Some(GetRange::Bounded(range)) => Some(range),
            None => None,
            Some(_) => return not_implemented("ranges without an end"),
        };
        let kind = if options.head { Kind::Head } else { Kind::Get };
        let detail = range.as_ref().map_or_else(String::new, |range| format!(" {}..{}", range.start, range.end));
        let find =
            move |bucket: &mut Bucket, _: &World, _: Duration| bucket.get(&name).cloned().ok_or_else(|| missing(&name));
        let (stored, fault) = self.ask(Request::new(kind, location, detail), find).await?;
        if fault == Some(Fault::Missing) {
            return Err(missing(location.as_ref()));
        }
        let length = stored.bytes.len();
        let range = match range {
            Some(range) if range.start >= length as u64 => return Err(failed("416 Range Not Satisfiable")),
            Some(range) => range.start..range.end.min(length as u64),
            None => 0..length as u64,
        };
        let asked = stored.bytes.slice(range.start as usize..range.end as usize);
        let payload = GetResultPayload::Stream(self.body(&stored.bytes, asked, range.start as usize, fault));
        let meta = meta(location.as_ref(), &stored);
        Ok(GetResult { payload, meta, range, attributes: Default::default(), extensions: Default::default() })
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let client = self.clone();
        let delete = move |location: Result<Path>| {
            let client = client.clone();
            async move {
                let location = location?;
                let name = location.to_string();
                let effect = move |bucket: &mut Bucket, world: &World, _: Duration| {
                    if bucket.remove(&name).is_some() {
                        world.check(world.history().deleted(&name));
                    }
                    Ok(())
                };
                client.ask(Request::new(Kind::Delete, &location, ""), effect).await?;
                Ok(location)
            }
        };
        locations.map(delete).buffered(10).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let client = self.clone();
        let prefix = prefix.map(|prefix| format!("{prefix}/")).unwrap_or_default();
        futures::stream::once(async move { client.list_all(prefix).await })
            .map(|listed| match listed {
                Ok(listed) => futures::stream::iter(listed.into_iter().map(Ok).collect::<Vec<_>>()),
                Err(error) => futures::stream::iter(vec![Err(error)]),
            })
            .flatten()
            .boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
        not_implemented("listings by folder")
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        not_implemented("copies")
    }
}

fn missing(name: &str) -> Error {
    Error::NotFound { path: name.to_owned(), source: "404".into() }
}

impl Client {
    /// A listing, page by page, as stale and as unordered as it comes.
    async fn list_all(&self, prefix: String) -> Result<Vec<ObjectMeta>> {
        let mut listed: Vec<ObjectMeta> = Vec::new();
        let mut page = 0;
        loop {
            let (prefix, after) = (prefix.clone(), listed.last().map(|meta| meta.location.to_string()));
            let request = Request { kind: Kind::List, name: prefix.clone(), detail: format!(" page {page}") };
            let find = move |bucket: &mut Bucket, _: &World, now: Duration| {
                let found = bucket.iter().filter(|(name, _)| name.starts_with(&prefix));
                let found = found.filter(|(name, _)| after.as_ref().is_none_or(|after| *name > after));
                Ok((found.map(|(name, stored)| (meta(name, stored), stored.modified)).collect::<Vec<_>>(), now))
            };
            let ((mut found, now), fault) = self.ask(request, find).await?;
            if fault == Some(Fault::StaleList) {
                let bound = Duration::from_millis(self.world.random(Concern::Store).below(60_000));
                found.retain(|(_, modified)| *modified + bound <= now);
            }
            let more = fault == Some(Fault::PagedList) && found.len() > 3;
            if more {
                found.truncate(3);
            }
            listed.extend(found.into_iter().map(|(meta, _)| meta));
            if !more {
                if fault == Some(Fault::ShuffledList) {
                    let mut random = self.world.random(Concern::Store);
                    for at in (1..listed.len()).rev() {
                        listed.swap(at, random.below(at as u64 + 1) as usize);
                    }
                }
                return Ok(listed);
            }
            page += 1;
        }
    }
}
