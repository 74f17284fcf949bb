//! Objects that are not in the store yet, in front of those that are: a change reads what it is about to write.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use futures::future::BoxFuture;

use crate::{
    ObjectInfo, ObjectSource, StorageError,
    read::source::{Fetched, FetchedObject, Wanted},
};

/// A source, and objects that it does not have.
#[derive(Debug)]
pub(crate) struct Unpublished {
    pub(crate) source: Arc<dyn ObjectSource>,
    pub(crate) objects: BTreeMap<String, Bytes>,
}

impl ObjectSource for Unpublished {
    fn nodes(&self) -> u32 {
        self.source.nodes()
    }

    fn get<'a>(&'a self, name: &'a str, attempt: u32) -> BoxFuture<'a, Result<FetchedObject, StorageError>> {
        match self.objects.get(name) {
            Some(object) => {
                let found = FetchedObject { object: Some(object.clone()), requests: 0, bytes: 0 };
                Box::pin(std::future::ready(Ok(found)))
            }
            None => self.source.get(name, attempt),
        }
    }

    fn fetch<'a>(
        &'a self,
        name: &'a str,
        blocks: &'a [Wanted],
        attempt: u32,
    ) -> BoxFuture<'a, Result<Fetched, StorageError>> {
        let Some(object) = self.objects.get(name) else { return self.source.fetch(name, blocks, attempt) };
        let cut = |wanted: &Wanted| {
            let range = wanted.range.start as usize..wanted.range.end as usize;
            object.get(range).map(Bytes::copy_from_slice)
        };
        let blocks = blocks.iter().map(cut).collect::<Option<Vec<_>>>();
        let fetched = blocks.map(|blocks| Fetched { blocks, requests: 0, bytes: 0 });
        let found = fetched.ok_or_else(|| StorageError::NotFound { object: name.to_owned() });
        Box::pin(std::future::ready(found))
    }

    fn list<'a>(&'a self, folder: &'a str) -> BoxFuture<'a, Result<Vec<ObjectInfo>, StorageError>> {
        self.source.list(folder)
    }

    fn diagnose<'a>(&'a self, name: &'a str, blocks: &'a [Wanted], error: StorageError) -> BoxFuture<'a, StorageError> {
        self.source.diagnose(name, blocks, error)
    }
}
