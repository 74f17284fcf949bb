//! The requests of a store: what each does to the bucket.

use std::{collections::BTreeSet, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::{StreamExt, stream::BoxStream};
use object_store::{
    CopyOptions, Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, path::Path,
};
use tokio::time::sleep;

use super::{
    Client, Request, TIMEOUT,
    errors::{exists, failed},
    upload::Parts,
    writes::{remove, write},
};
use crate::{
    bucket::{Bucket, EPOCH_UNIX_MS, Stored},
    faults::{Fault, OperationKind},
    world::{Concern, World},
};

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
        let kind = if create { OperationKind::Create } else { OperationKind::Put };
        let name = location.to_string();
        let bytes = Bytes::from(payload);
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

    async fn put_multipart_opts(&self, location: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        Ok(Box::new(Parts::begin(self, location).await?))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let name = location.to_string();
        let range = match options.range {
            Some(GetRange::Bounded(range)) => Some(range),
            None => None,
            Some(_) => return not_implemented("ranges without an end"),
        };
        let kind = if options.head { OperationKind::Head } else { OperationKind::Get };
        let detail = range.as_ref().map_or_else(String::new, |range| format!(" {}..{}", range.start, range.end));
        let find =
            move |bucket: &mut Bucket, _: &World, _: Duration| bucket.get(&name).cloned().ok_or_else(|| missing(&name));
        // The complete object comes back: the faults of a body need the bytes around the range, too.
        let (stored, fault) = self.ask(Request::new(kind, location, detail), find).await?;
        if fault == Some(Fault::Missing) {
            return Err(missing(location.as_ref()));
        }
        let length = stored.bytes.len();
        let range = match range {
            // As S3: a range that begins beyond the end is an error, and one that ends there is cut.
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
                    // Deleting an absent object is not an error, as with S3.
                    remove(bucket, world, &name);
                    world.medium().removed(&name);
                    Ok(())
                };
                client.ask(Request::new(OperationKind::Delete, &location, ""), effect).await?;
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

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let prefix = prefix.map(|prefix| format!("{prefix}/")).unwrap_or_default();
        let mut objects = Vec::new();
        let mut folders = BTreeSet::new();
        for object in self.list_all(prefix.clone()).await? {
            let below = object.location.as_ref().strip_prefix(&*prefix).unwrap_or_default();
            match below.split_once('/') {
                Some((folder, _)) => drop(folders.insert(Path::from(format!("{prefix}{folder}")))),
                None => objects.push(object),
            }
        }
        Ok(ListResult { objects, common_prefixes: folders.into_iter().collect(), extensions: Default::default() })
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
            let prefix = prefix.clone();
            // Pages go on after a name, and each sees the bucket of its own moment.
            let after = listed.last().map(|meta| meta.location.to_string());
            let detail = format!(" page {page}");
            let request = Request { kind: OperationKind::List, name: prefix.clone(), detail, upload: None };
            let find = move |bucket: &mut Bucket, _: &World, now: Duration| {
                let found = bucket.iter().filter(|(name, _)| name.starts_with(&prefix));
                let found = found.filter(|(name, _)| after.as_ref().is_none_or(|after| *name > after));
                Ok((found.map(|(name, stored)| (meta(name, stored), stored.modified)).collect::<Vec<_>>(), now))
            };
            let ((mut found, now), fault) = self.ask(request, find).await?;
            if fault == Some(Fault::StaleList) {
                let bound = Duration::from_millis(self.world.random(Concern::Store).below(60_000));
                // An object that was written over of late is missing as well; a real store would show its old length.
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
                        // Fisher and Yates: every order is equally likely.
                        listed.swap(at, random.below(at as u64 + 1) as usize);
                    }
                }
                return Ok(listed);
            }
            page += 1;
        }
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
        // Always less than what was asked for, unless that was nothing.
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
