//! Whether a store's conditional create can be relied on: tried once per process, before anything hangs on it.
//!
//! Everything that is published is published by `If-None-Match: *`: of all creates of a name, one succeeds. Some stores
//! that speak S3 ignore the header, and others look first and write later, so that two concurrent creates both succeed.
//! The second of them silently replaces a version that was acknowledged.
//!
//! So several creates of one name, with different bytes, are sent at once. If more than one of them succeeds, the store
//! is rejected; but if they took long, it is tried again: a vacuum may have removed what the first created. A store that
//! passes is taken for good; one that could not be tried, because requests failed, is not: what is created there is
//! read back, and it is tried again next time.

use std::{
    collections::HashMap,
    sync::{
        Arc, LazyLock, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use futures::{
    FutureExt,
    future::{BoxFuture, join_all},
};
use object_store::{Error, ObjectStoreExt, PutMode, PutPayload};
use tokio::sync::Mutex as AsyncMutex;

use crate::{StorageError, Store};

/// Creates that are sent at once.
const RIVALS: usize = 2;

/// Within this time no vacuum removes the object of a create: it spares trial objects for five times as long.
const QUICK: Duration = Duration::from_secs(2);

/// Slow trials that must all have several winners before a store is rejected.
const SLOW_TRIALS: usize = 3;

/// The length of the trial objects. Stores that look first and write later do so when the complete body has arrived:
/// the longer that takes, the surer they meet. Of 40 trials on s3s-fs two of 256 KiB found it in 40, of 64 KiB in 38;
/// six of 16 KiB in 21.
const PROBE_BYTES: usize = 256 << 10;

/// What this process knows about the stores at one endpoint.
#[derive(Debug, Default)]
pub(crate) struct Proof {
    proven: AtomicBool,
    /// One tries, and others wait for it.
    trying: AsyncMutex<()>,
}

/// By the location of the store.
static PROOFS: LazyLock<Mutex<HashMap<String, Arc<Proof>>>> = LazyLock::new(Mutex::default);

impl Proof {
    /// What this process knows about the stores at one endpoint.
    pub(crate) fn of_store(location: String) -> Arc<Self> {
        PROOFS.lock().unwrap_or_else(PoisonError::into_inner).entry(location).or_default().clone()
    }

    /// The proof of a store that needs none: a file system, or the memory of this process.
    pub(crate) fn given() -> Arc<Self> {
        Arc::new(Self { proven: AtomicBool::new(true), ..Self::default() })
    }
}

impl Store {
    /// Whether its conditional create is known to work.
    pub fn is_proven(&self) -> bool {
        self.proof.proven.load(Relaxed)
    }

    /// Tries whether its conditional create works, if that is not known, with an object of this name. Returns the
    /// removal of that object if anything was sent: the caller awaits it, in parallel with its next step.
    ///
    /// # Errors
    /// [`StorageError::Unfit`] if it does not work; [`StorageError::Limit`] if the deadline has passed. That requests
    /// failed is not an error: then it remains unknown.
    pub async fn prove(&self, name: &str) -> Result<Option<BoxFuture<'static, ()>>, StorageError> {
        if self.is_proven() {
            return Ok(None);
        }
        self.in_time(self.race(name)).await
    }

    /// Lets several tasks create a name, while no other task of the process does so.
    async fn race(&self, name: &str) -> Result<Option<BoxFuture<'static, ()>>, StorageError> {
        // Asked again below: another task may have finished the trial while this one waited for its turn.
        let _alone = self.proof.trying.lock().await;
        if self.is_proven() {
            return Ok(None);
        }
        let mut slow = 1;
        loop {
            let begun = self.clock().running();
            let tried = self.trial(&format!("{name}{}", "-again".repeat(slow - 1))).await;
            let quick = self.clock().running().saturating_sub(begun) < QUICK;
            match tried {
                // A trial that took long proves nothing: the second create may have found a name that a vacuum had cleared.
                Err(StorageError::Unfit { .. }) if !quick && slow < SLOW_TRIALS => slow += 1,
                tried => return tried,
            }
        }
    }

    /// One race for a name.
    async fn trial(&self, name: &str) -> Result<Option<BoxFuture<'static, ()>>, StorageError> {
        let created = join_all((0..RIVALS).map(|rival| self.rival(name, rival))).await;
        let winners = created.iter().filter(|created| created.is_ok()).count();
        let rejection = created.iter().find_map(|created| match created {
            Err(error @ (Error::NotImplemented { .. } | Error::NotSupported { .. })) => Some(error.to_string()),
            _ => None,
        });
        let known = created
            .iter()
            .all(|created| matches!(created, Ok(()) | Err(Error::AlreadyExists { .. } | Error::Precondition { .. })));
        // A remaining object is garbage by its name.
        let store = self.clone();
        let path = self.path(name);
        let removal = async move {
            let _ = store.in_time(async { Ok(store.inner.delete(&path).await) }).await;
        };
        // A rejection of the request itself is as final as two winners: the store does not have the header.
        if winners > 1 || rejection.is_some() {
            removal.await;
            let twice = || format!("{winners} of {RIVALS} creates of one object succeeded at once");
            let why = rejection.filter(|_| winners < 2).unwrap_or_else(twice);
            return Err(StorageError::Unfit { store: self.url().to_owned(), why });
        }
        // Only if every rival was answered: a failed one could have won as well.
        self.proof.proven.store(known && winners == 1, Relaxed);
        Ok(Some(removal.boxed()))
    }

    /// One of several concurrent creates of a name.
    async fn rival(&self, name: &str, rival: usize) -> object_store::Result<()> {
        let bytes = vec![rival as u8; PROBE_BYTES];
        self.wrote(1, bytes.len());
        let path = self.path(name);
        let payload = PutPayload::from(bytes);
        // Through the client that sends once: a repetition would meet its own object and look like a loser.
        self.reads.put_opts(&path, payload, PutMode::Create.into()).await.map(drop)
    }
}
