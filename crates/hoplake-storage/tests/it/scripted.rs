//! A source that answers by a script.

use std::{
    collections::VecDeque,
    ops::Range,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::future::BoxFuture;
use hoplake_format::checksum::{ObjectSeed, seal_block};
use hoplake_storage::{
    BlockRequest, Check, Fetched, FetchedObject, Object, ObjectInfo, ObjectSource, ReadPool, ReadSettings, Reader,
    StorageError, Store, StoreProfile, Wanted,
};

/// The outcome of one request. After the script each takes 20 ms and succeeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Act {
    /// Succeeds after this many milliseconds.
    Takes(u64),
    /// Fails at once as a store that is busy.
    Busy,
    /// Fails at once for want of permission.
    Forbidden,
    /// A bit of the answer is flipped.
    Damaged,
    /// Is never answered.
    Hangs,
}

/// One object of 16 sealed blocks of 100 bytes, block n filled with n.
#[derive(Debug)]
pub struct Scripted {
    object: Bytes,
    script: Mutex<VecDeque<Act>>,
    /// The ranges of each request, and the number of its attempt.
    pub asked: Mutex<Vec<(Vec<Range<u64>>, u32)>>,
    /// Requests that are being answered.
    pub in_flight: AtomicUsize,
}

/// Notes the end of a request, also of one that is dropped.
struct Underway<'a>(&'a AtomicUsize);

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

pub const NAME: &str = "data/a";

/// Where block `number` is.
pub fn range(number: u64) -> Range<u64> {
    number * 104..(number + 1) * 104
}

/// Asks for a block.
pub fn request(object: &Object, number: u64) -> BlockRequest<'_> {
    BlockRequest { object, range: range(number), check: Check::Sealed }
}

impl Scripted {
    pub fn new(script: &[Act]) -> Arc<Self> {
        let mut object = Vec::new();
        for block in 0..16u8 {
            seal_block(ObjectSeed::of(NAME), object.len() as u64, &[block; 100], &mut object);
        }
        Arc::new(Self {
            object: object.into(),
            script: Mutex::new(script.iter().copied().collect()),
            asked: Mutex::default(),
            in_flight: AtomicUsize::new(0),
        })
    }

    /// A reader through this source, as if it were S3 Standard.
    pub fn reader(self: &Arc<Self>, settings: ReadSettings) -> Reader {
        let store = Store::open("memory://scripted").unwrap();
        let store = store.with_profile(StoreProfile::s3_standard());
        Reader::from_source(store, self.clone(), ReadPool::new(settings).unwrap())
    }

    /// All of its bytes.
    pub fn object(&self) -> &[u8] {
        &self.object
    }

    pub fn requests(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    async fn act(&self, blocks: &[Wanted]) -> Result<Fetched, StorageError> {
        let act = self.script.lock().unwrap().pop_front().unwrap_or(Act::Takes(20));
        self.in_flight.fetch_add(1, SeqCst);
        let _underway = Underway(&self.in_flight);
        let failed =
            |source| StorageError::Unavailable { action: "read", object: NAME.into(), source: Arc::new(source) };
        let source = || "as scripted".into();
        match act {
            Act::Takes(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Act::Busy => return Err(failed(object_store::Error::Generic { store: "scripted", source: source() })),
            Act::Forbidden => {
                return Err(failed(object_store::Error::PermissionDenied { path: NAME.into(), source: source() }));
            }
            Act::Hangs => std::future::pending().await,
            Act::Damaged => {}
        }
        let cut = |block: &Wanted| {
            let mut bytes = self.object[block.range.start as usize..block.range.end as usize].to_vec();
            bytes[7] ^= u8::from(act == Act::Damaged);
            bytes.into()
        };
        let blocks: Vec<Bytes> = blocks.iter().map(cut).collect();
        let bytes = blocks.iter().map(|block| block.len() as u64).sum();
        Ok(Fetched { blocks, requests: 1, bytes })
    }
}

impl ObjectSource for Scripted {
    fn is_store(&self) -> bool {
        true
    }

    fn get<'a>(&'a self, _: &'a str, _: u32) -> BoxFuture<'a, Result<FetchedObject, StorageError>> {
        let object = Some(self.object.clone());
        let bytes = self.object.len() as u64;
        Box::pin(async move { Ok(FetchedObject { object, requests: 1, bytes }) })
    }

    fn fetch<'a>(
        &'a self,
        name: &'a str,
        blocks: &'a [Wanted],
        attempt: u32,
    ) -> BoxFuture<'a, Result<Fetched, StorageError>> {
        assert_eq!(name, NAME);
        self.asked.lock().unwrap().push((blocks.iter().map(|block| block.range.clone()).collect(), attempt));
        Box::pin(self.act(blocks))
    }

    fn list<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Vec<ObjectInfo>, StorageError>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}
