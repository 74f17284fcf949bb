//! Uploads in parts: each step is a request of its own, and nothing is there before the last.
//!
//! The store knows an upload until it is completed or given up. What arrives for one that it does not know any more
//! is answered with 404, as is a completion that the client repeats after its answer was lost.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use async_trait::async_trait;
use bytes::Bytes;
use object_store::{MultipartUpload, PutPayload, PutResult, Result, UploadPart, path::Path};

use super::{Client, Request, errors::failed, writes::write};
use crate::faults::OperationKind;

/// An upload, as its client has it.
#[derive(Debug)]
pub(super) struct Parts {
    client: Client,
    location: Path,
    upload: u64,
    count: usize,
    /// Parts that the store has acknowledged.
    received: Arc<AtomicUsize>,
}

impl Parts {
    pub(super) async fn begin(client: &Client, location: &Path) -> Result<Self> {
        let request = Request::new(OperationKind::Begin, location, "");
        let (upload, _) = client.ask(request, |_, world, _| Ok(world.uploads().begin())).await?;
        Ok(Self { client: client.clone(), location: location.clone(), upload, count: 0, received: Arc::default() })
    }

    fn request(&self, kind: OperationKind, detail: &str) -> Request {
        Request { upload: Some(self.upload), ..Request::new(kind, &self.location, detail) }
    }
}

#[async_trait]
impl MultipartUpload for Parts {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let client = self.client.clone();
        let upload = self.upload;
        // By the order of the calls, as the requests may overtake each other.
        let number = self.count;
        let bytes = Bytes::from(data);
        self.count += 1;
        let request = self.request(OperationKind::Part, &format!(" part {number}"));
        let received = self.received.clone();
        Box::pin(async move {
            let sent =
                client.ask(request, move |_, world, _| world.uploads().part(upload, number, bytes.clone())).await;
            sent.map(|_| {
                received.fetch_add(1, Relaxed);
            })
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let upload = self.upload;
        let count = self.count;
        let name = self.location.to_string();
        // The completion names the tags of all parts, which the client has from their answers.
        if self.received.load(Relaxed) < count {
            return Err(failed("a part has no tag"));
        }
        let request = self.request(OperationKind::Complete, &format!(" of {count} parts"));
        let completed = self.client.ask(request, move |bucket, world, now| {
            let whole = world.uploads().complete(upload, count)?;
            write(bucket, world, now, &name, &whole);
            Ok(())
        });
        completed.await?;
        Ok(PutResult { e_tag: None, version: None, extensions: Default::default() })
    }

    async fn abort(&mut self) -> Result<()> {
        let upload = self.upload;
        let request = self.request(OperationKind::Abort, "");
        let given_up = self.client.ask(request, move |_, world, _| {
            world.uploads().forget(upload);
            Ok(())
        });
        given_up.await.map(|((), _)| ())
    }
}
