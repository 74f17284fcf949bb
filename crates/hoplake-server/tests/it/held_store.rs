//! A store whose reads and writes can be held back, and that knows which reads were given up.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use hoplake_testkit::{Alteration, AlteredStore};
use object_store::{
    GetOptions, GetResult, ObjectStore, PutOptions, PutPayload, PutResult, Result, memory::InMemory, path::Path,
};
use tokio::sync::watch;

/// In memory; reads wait while it is held, and writes while theirs are.
#[derive(Debug, Clone)]
pub(crate) struct HeldStore {
    inner: Arc<InMemory>,
    held: watch::Sender<bool>,
    /// Writes wait if their path contains this.
    held_writes: watch::Sender<Option<&'static str>>,
    /// Writes that began to wait.
    pub(crate) held_back: Arc<AtomicUsize>,
    pub(crate) waiting: Arc<AtomicUsize>,
    pub(crate) given_up: Arc<AtomicUsize>,
    pub(crate) reads: Arc<AtomicUsize>,
    /// The objects that were read, in order.
    pub(crate) log: Arc<Mutex<Vec<String>>>,
}

impl HeldStore {
    pub(crate) fn new() -> Self {
        Self {
            inner: Arc::default(),
            held: watch::Sender::new(false),
            held_writes: watch::Sender::new(None),
            held_back: Arc::default(),
            waiting: Arc::default(),
            given_up: Arc::default(),
            reads: Arc::default(),
            log: Arc::default(),
        }
    }

    /// The same objects, for another reader: with its own counts, and held on its own.
    pub(crate) fn beside(&self) -> Self {
        Self { inner: self.inner.clone(), ..Self::new() }
    }

    /// It, as a store.
    pub(crate) fn store(&self) -> Arc<dyn ObjectStore> {
        Arc::new(AlteredStore(self.clone()))
    }

    /// The number of reads so far.
    pub(crate) fn count(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }

    pub(crate) fn hold(&self) {
        self.held.send_replace(true);
    }

    /// From now on writes wait if their path contains this.
    pub(crate) fn hold_writes(&self, part: &'static str) {
        self.held_writes.send_replace(Some(part));
    }

    /// Writes go on.
    pub(crate) fn release_writes(&self) {
        self.held_writes.send_replace(None);
    }

    pub(crate) fn release(&self) {
        self.held.send_replace(false);
    }

    /// Waits until this many `reads` wait.
    pub(crate) async fn until_waiting(&self, reads: usize) {
        until(|| self.waiting.load(Ordering::SeqCst) >= reads).await;
    }
}

/// Waits until something holds; gives up after a minute, so that what never holds is a failure.
pub(crate) async fn until(mut holds: impl FnMut() -> bool) {
    let holding = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), holding).await.expect("it holds at last");
}

/// Counts a read that is dropped while it waits.
struct Wait<'a>(&'a HeldStore, bool);

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
        if !self.1 {
            self.0.given_up.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[async_trait]
impl Alteration for HeldStore {
    fn below(&self) -> &dyn ObjectStore {
        &*self.inner
    }

    async fn put(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let free = |held: &Option<&str>| held.is_none_or(|part| !location.as_ref().contains(part));
        let mut held = self.held_writes.subscribe();
        if !free(&held.borrow()) {
            self.held_back.fetch_add(1, Ordering::SeqCst);
        }
        held.wait_for(free).await.unwrap();
        self.inner.put_opts(location, payload, opts).await
    }

    async fn get(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.log.lock().unwrap().push(location.to_string());
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let mut wait = Wait(self, false);
        let mut held = self.held.subscribe();
        held.wait_for(|held| !held).await.unwrap();
        wait.1 = true;
        self.inner.get_opts(location, options).await
    }
}
