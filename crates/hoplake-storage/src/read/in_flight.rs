//! Single flight: a block in flight is not requested again.
//!
//! A request is a shared future, driven by the readers that wait for it. So no task can leak, no reader waits for a
//! cancelled request, and dropping the last reader drops the request.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};

use bytes::Bytes;
use futures::{
    FutureExt,
    future::{BoxFuture, Shared, WeakShared},
};

use crate::{StorageError, read::cache::BlockKey};

/// The blocks that a request brought, by position and ascending, and in how many rounds.
pub(crate) type Flown = Result<(Arc<[(u64, Bytes)]>, u32), StorageError>;

/// A request in flight. It does nothing unless polled.
pub(crate) type InFlightRequest = Shared<BoxFuture<'static, Flown>>;

/// The requests in flight, by the blocks they bring.
#[derive(Debug, Clone, Default)]
pub(crate) struct InFlightRequests(Arc<Mutex<HashMap<BlockKey, WeakShared<BoxFuture<'static, Flown>>>>>);

/// Removes a request when it ends, or when no reader waits for it any more.
pub(crate) struct Landing {
    in_flight: InFlightRequests,
    keys: Vec<BlockKey>,
}

impl Drop for Landing {
    fn drop(&mut self) {
        let mut in_flight = self.in_flight.lock();
        for key in &self.keys {
            in_flight.0.remove(key);
        }
    }
}

/// The requests in flight, locked: finding missing blocks and registering their requests is one step.
pub(crate) struct Locked<'a>(MutexGuard<'a, HashMap<BlockKey, WeakShared<BoxFuture<'static, Flown>>>>);

impl InFlightRequests {
    pub(crate) fn lock(&self) -> Locked<'_> {
        Locked(self.0.lock().expect("no thread panics with the requests in flight"))
    }

    /// Ends the registration of `keys` when it is dropped; to be held by the request.
    pub(crate) fn landing(&self, keys: Vec<BlockKey>) -> Landing {
        Landing { in_flight: self.clone(), keys }
    }
}

impl Locked<'_> {
    /// The request that brings a block. To be dropped after the lock: its end takes the lock.
    pub(crate) fn bringing(&self, key: BlockKey) -> Option<InFlightRequest> {
        self.0.get(&key)?.upgrade()
    }

    /// Registers a request for all blocks it brings.
    pub(crate) fn launch(&mut self, keys: &[BlockKey], request: BoxFuture<'static, Flown>) -> InFlightRequest {
        let request = request.shared();
        // Weak, so that the map keeps no request alive: a request ends when the last reader that waits for it leaves.
        if let Some(weak) = request.downgrade() {
            for key in keys {
                self.0.insert(*key, weak.clone());
            }
        }
        request
    }
}
