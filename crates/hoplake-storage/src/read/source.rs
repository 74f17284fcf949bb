//! Where objects are read from: a store, or nodes that stand in front of one.

use std::{fmt::Debug, ops::Range};

use bytes::Bytes;
use futures::future::BoxFuture;

use crate::{Check, ObjectInfo, StorageError, Store};

/// A block that is wanted of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Its bytes, with checksum if sealed.
    pub range: Range<u64>,
    /// How it is checked, for nodes that cache it on the way.
    pub check: Check,
}

/// The outcome of one request, and its cost behind the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The blocks as they are stored, in the order in which they were wanted; not checked yet.
    pub blocks: Vec<Bytes>,
    /// Its requests to the store; 0 if a node had all blocks.
    pub requests: u64,
    /// Bytes that these brought.
    pub bytes: u64,
}

/// A complete object, and its cost behind the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedObject {
    /// Its bytes; `None` if it is not there.
    pub object: Option<Bytes>,
    /// Its requests to the store.
    pub requests: u64,
    /// Bytes that these brought.
    pub bytes: u64,
}

/// Reads objects. A call is one request, which may be sent again: with the next `attempt`, counted from 0,
/// so that a source of several nodes can ask another. Callers check the answers.
pub trait ObjectSource: Debug + Send + Sync {
    /// Whether each call is a request to the store. If not, answers say how many requests they caused.
    fn is_store(&self) -> bool {
        false
    }

    /// The number of nodes; a failure of one says nothing about the others.
    fn nodes(&self) -> u32 {
        1
    }

    /// A complete object, if it exists.
    fn get<'a>(&'a self, name: &'a str, attempt: u32) -> BoxFuture<'a, Result<FetchedObject, StorageError>>;

    /// Blocks of one object that lie close together; they ascend and may overlap.
    fn fetch<'a>(
        &'a self,
        name: &'a str,
        blocks: &'a [Wanted],
        attempt: u32,
    ) -> BoxFuture<'a, Result<Fetched, StorageError>>;

    /// All objects whose name begins with `folder/`.
    fn list<'a>(&'a self, folder: &'a str) -> BoxFuture<'a, Result<Vec<ObjectInfo>, StorageError>>;

    /// The final error after `fetch` has failed.
    fn diagnose<'a>(
        &'a self,
        _name: &'a str,
        _blocks: &'a [Wanted],
        error: StorageError,
    ) -> BoxFuture<'a, StorageError> {
        Box::pin(std::future::ready(error))
    }
}

/// The bytes from the first block's beginning to the last one's end.
fn covering(blocks: &[Wanted]) -> Range<u64> {
    let start = blocks.iter().map(|block| block.range.start).min().unwrap_or(0);
    let end = blocks.iter().map(|block| block.range.end).max().unwrap_or(0);
    start..end
}

/// An answer in one piece is itself a slice of the connection's buffer, which has at most this length. Longer
/// ones were put together from pieces.
const CONNECTION_BUFFER_BYTES: usize = 1 << 20;

impl ObjectSource for Store {
    fn is_store(&self) -> bool {
        true
    }

    fn get<'a>(&'a self, name: &'a str, _: u32) -> BoxFuture<'a, Result<FetchedObject, StorageError>> {
        Box::pin(async move {
            let object = self.get_once(name).await?;
            let bytes = object.as_ref().map_or(0, |object| object.len() as u64);
            Ok(FetchedObject { object, requests: 1, bytes })
        })
    }

    fn fetch<'a>(
        &'a self,
        name: &'a str,
        blocks: &'a [Wanted],
        _: u32,
    ) -> BoxFuture<'a, Result<Fetched, StorageError>> {
        Box::pin(async move {
            let all = covering(blocks);
            let answer = self.get_range_once(name, all.clone()).await?;
            let cut = |block: &Wanted| {
                let start = (block.range.start - all.start) as usize;
                let cut = answer.slice(start..start + (block.range.end - block.range.start) as usize);
                // A slice would keep the entire answer alive for as long as a cache keeps the block.
                let is_slice = blocks.len() > 1 || answer.len() <= CONNECTION_BUFFER_BYTES;
                if is_slice { Bytes::copy_from_slice(&cut) } else { cut }
            };
            Ok(Fetched { blocks: blocks.iter().map(cut).collect(), requests: 1, bytes: answer.len() as u64 })
        })
    }

    fn list<'a>(&'a self, folder: &'a str) -> BoxFuture<'a, Result<Vec<ObjectInfo>, StorageError>> {
        Box::pin(Store::list(self, folder))
    }

    fn diagnose<'a>(&'a self, name: &'a str, blocks: &'a [Wanted], error: StorageError) -> BoxFuture<'a, StorageError> {
        Box::pin(async move { Store::diagnose(self, name, &covering(blocks), error).await })
    }
}
