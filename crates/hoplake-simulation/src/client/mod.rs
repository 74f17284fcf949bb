//! The way from a process to the bucket: requests that take their time, go wrong, are overtaken, and never return to a
//! process that has ended.
//!
//! Each request has three moments: it is sent, it takes effect, and it is answered. The delays between them are drawn,
//! and decide the order in which everything happens. A process that crashes sends nothing any more, and nothing
//! returns to it: its tasks wait for ever. One that is suspended does both later.

mod errors;
mod objects;
mod upload;
mod uploads;
mod writes;

pub use uploads::Uploads;
pub(crate) use writes::{remove, write};

use std::{
    fmt,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use object_store::{Error, Result, path::Path};
use tokio::time::sleep;

use crate::{
    bucket::Bucket,
    faults::{Fault, OperationKind},
    machine::Machine,
    world::{Concern, World},
};
use errors::{exists, failed, unknown_upload, variant};

/// After which time a client gives a request up.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Requests for the same bytes that one process may send between two steps of its callers.
const REPETITIONS_MAX: u32 = 48;

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
    kind: OperationKind,
    name: String,
    detail: String,
    /// Of which upload in parts, if of one.
    upload: Option<u64>,
}

impl Request {
    fn new(kind: OperationKind, path: &Path, detail: impl Into<String>) -> Self {
        Self { kind, name: path.to_string(), detail: detail.into(), upload: None }
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
    pub(crate) async fn gate(&self) {
        // Time stands still until a thread is done: what follows it, and draws, comes after all else of its moment.
        if self.machine.loads.load(Relaxed) {
            sleep(Duration::from_millis(1)).await;
        }
        loop {
            if self.machine.is_dead() {
                return std::future::pending().await;
            }
            // Asked again after each sleep: another request may have suspended the process for longer meanwhile.
            let until = self.machine.suspended_until.get();
            match until.checked_sub(self.world.now()) {
                Some(rest) if !rest.is_zero() => sleep(rest).await,
                _ => return,
            }
        }
    }

    /// Draws a delay: mostly about the seed's latency, sometimes much longer.
    pub(crate) fn delay(&self) -> Duration {
        if self.machine.reliable {
            return Duration::ZERO;
        }
        let mut random = self.world.random(Concern::Store);
        let usual = self.world.schedule.latency_ms;
        let bound = match random.below(100) {
            0 => usual * 100,
            1..=5 => usual * 10,
            _ => usual,
        };
        // Two delays stay below the time-out of 30 s: a request that is only slow is never given up.
        Duration::from_millis(1 + random.below(bound.min(10_000)))
    }

    /// Sends a request; `effect` is what it does to the bucket, in one step.
    async fn ask<T: Send>(
        &self,
        request: Request,
        mut effect: impl FnMut(&mut Bucket, &World, Duration) -> Result<T> + Clone + Send + 'static,
    ) -> Result<(T, Option<Fault>)> {
        let world = &self.world;
        let machine = &self.machine;
        if world.is_in_load() {
            // Nothing goes wrong in a load but that its process ends.
            if machine.is_dead() {
                return Err(failed("the process has ended"));
            }
            let now = world.now();
            return effect(&mut world.bucket(), world, now).map(|done| (done, None));
        }
        self.gate().await;
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
            // The client gives up after its time-out, so the caller waits as long as it would for a real one.
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
            Some(Fault::Rejected) => return self.answer(&request, Err(failed("503 Slow Down"))).await,
            Some(Fault::ConflictForNothing) => return self.answer(&request, Err(exists(&request.name))).await,
            // Before the effect, which then finds no such upload.
            Some(Fault::UploadGone) => request.upload.into_iter().for_each(|upload| world.uploads().forget(upload)),
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
            (Some(Fault::UploadRepeated), _) => Err(unknown_upload()),
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
        let world = &self.world;
        // Drawn in any case, so that the draws after it do not depend on how long the process is cut off.
        let arrives = self.world.random(Concern::Store).below(4);
        let until = self.machine.cut_off_until.get();
        let rest = until.saturating_sub(world.now());
        // The client repeats these for a while: if it is no longer cut off by then, the request is only late.
        let repeated = request.kind.is_repeated() && rest < 2 * TIMEOUT;
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
        let world = &self.world;
        let machine = &self.machine;
        if machine.reliable || world.is_calm() {
            return None;
        }
        let now = world.now();
        if now < machine.expired_until.get() {
            return Some(Fault::Expired);
        }
        if now < machine.cut_off_until.get() {
            return Some(Fault::CutOff);
        }
        // A fault that lasts is not drawn again while it lasts: the checks above come first.
        let fault = world.schedule.strike(request.kind, now, &mut world.random(Concern::Store))?;
        let mut random = world.random(Concern::Store);
        match fault {
            Fault::Zombie => {
                let minutes = if random.below(2) == 0 { 10 } else { 600 };
                let until = now + Duration::from_millis(random.below(minutes * 60_000));
                machine.suspended_until.set(until);
            }
            Fault::ClockJump => {
                let hours = [1, 48][random.below(2) as usize];
                // Either way: a clock that is behind is as wrong as one that is ahead.
                let off = random.below(2 * hours * 3_600_000) as i64 - hours as i64 * 3_600_000;
                machine.clock_off_ms.store(off, Relaxed);
            }
            Fault::CutOff => {
                let seconds = [5, 60, 300][random.below(3) as usize];
                let until = now + Duration::from_millis(random.below(seconds * 1_000));
                machine.cut_off_until.set(until);
            }
            Fault::Expired => {
                let until = now + Duration::from_millis(random.below(60_000));
                machine.expired_until.set(until);
            }
            _ => {}
        }
        Some(fault)
    }

    /// No process asks for the same again and again.
    fn count(&self, request: &Request) {
        let times = self.machine.count(request.kind, format!("{}{}", request.name, request.detail));
        // A feed waits for its store as long as that is away, with growing pauses.
        let most = if self.world.is_fed { 8 * REPETITIONS_MAX } else { REPETITIONS_MAX };
        if times == most {
            self.world.violated(format!("{} asked {most} times for {request}", self.machine.name));
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
}
