//! One request in flight.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use object_store::{Error, Result};
use tokio::time::Instant;

use super::link::Stream;
use super::service::Sim;
use super::{errors, fault::FaultKind, sleep_until_nearest};
use crate::{RequestKind, generate::SplitMix64};

/// Content arrives in pieces of this many bytes, so that a reader of large objects can begin early.
const PIECE_BYTES: usize = 1 << 20;

/// A request in flight. Dropped before [`Request::end`], it was cancelled.
#[derive(Debug)]
pub(super) struct Request {
    sim: Sim,
    kind: RequestKind,
    path: String,
    /// From when on the latency counts.
    begun: Instant,
    latency: Duration,
    fault: Option<FaultKind>,
    random: SplitMix64,
    resets: u64,
    /// Content that is on its way.
    stream: Option<Stream>,
    /// Content that is through.
    bytes: u64,
    ended: bool,
}

impl Request {
    #[expect(clippy::too_many_arguments, reason = "these are the service's decisions, and there is one caller")]
    pub(super) fn new(
        sim: Sim,
        kind: RequestKind,
        path: &str,
        begun: Instant,
        latency: Duration,
        fault: Option<FaultKind>,
        random: SplitMix64,
        resets: u64,
    ) -> Self {
        let path = path.to_owned();
        Self { sim, kind, path, begun, latency, fault, random, resets, stream: None, bytes: 0, ended: false }
    }

    /// Sends content; returns when the store has all of it.
    pub(super) async fn upload(&mut self, bytes: u64) {
        let stream = self.sim.up().begin(self.begun, bytes);
        self.stream.insert(stream).have(bytes).await;
        self.through(bytes);
        if bytes > 0 {
            self.begun = Instant::now();
        }
    }

    /// Notes that all content is through: its stream no longer takes part in the network.
    fn through(&mut self, bytes: u64) {
        self.stream = None;
        self.bytes = bytes;
    }

    /// Waits for the first byte of the answer.
    ///
    /// # Errors
    /// That of a 503 if the request is rejected.
    pub(super) async fn first_byte(&mut self) -> Result<()> {
        if self.fault == Some(FaultKind::Hang) {
            return std::future::pending().await;
        }
        sleep_until_nearest(self.begun + self.latency).await;
        match self.fault {
            Some(FaultKind::Reject) => {
                let error = errors::rejected(self.kind, &self.path).await;
                self.ended = true;
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// The end of a request whose answer has no content: what the store answered, or that the connection
    /// broke before that reached the client.
    pub(super) async fn end<T>(mut self, answer: Result<T>) -> Result<T> {
        self.ended = true;
        match self.fault {
            Some(FaultKind::Reset { .. }) if answer.is_ok() => Err(errors::unanswered(self.kind, &self.path).await),
            _ => answer,
        }
    }

    /// The content of the answer, which begins to arrive now.
    pub(super) fn download(mut self, content: Bytes) -> BoxStream<'static, Result<Bytes>> {
        let (content, breaks) = self.spoilt(content);
        let since = self.begun + self.latency;
        self.stream = Some(self.sim.down().begin(since, content.len() as u64));
        let state = Download { request: self, content, at: 0, breaks };
        stream::unfold(Some(state), |state| async move { state?.piece().await }).boxed()
    }

    /// The content that comes, and whether the connection breaks after it.
    fn spoilt(&mut self, content: Bytes) -> (Bytes, bool) {
        let within = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX).min(content.len());
        match self.fault {
            Some(FaultKind::Reset { after_bytes }) => (content.slice(..within(after_bytes)), true),
            Some(FaultKind::Truncate { bytes }) => (content.slice(..within(bytes)), false),
            Some(FaultKind::Flip) if !content.is_empty() => {
                let bit = self.random.below(8 * content.len() as u64) as usize;
                let mut spoilt = BytesMut::from(&content[..]);
                spoilt[bit / 8] ^= 1 << (bit % 8);
                (spoilt.freeze(), false)
            }
            _ => (content, false),
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        let bytes = self.bytes + self.stream.as_ref().map_or(0, Stream::arrived);
        self.sim.ended(self.resets, |counts| {
            match self.kind {
                RequestKind::Get => counts.bytes_read += bytes,
                RequestKind::Put => counts.bytes_written += bytes,
                // The names in a list of deletions are not content.
                RequestKind::Head | RequestKind::List | RequestKind::Delete => {}
            }
            counts.cancelled += u64::from(!self.ended);
        });
    }
}

/// An answer whose content is arriving.
struct Download {
    request: Request,
    content: Bytes,
    at: usize,
    breaks: bool,
}

impl Download {
    /// The next piece, and what follows it.
    async fn piece(mut self) -> Option<(Result<Bytes, Error>, Option<Self>)> {
        let whole = self.content.len();
        let end = whole.min(self.at + PIECE_BYTES);
        if self.at == whole {
            self.request.ended = true;
            return self.breaks.then(|| (Err(errors::broken_off()), None));
        }
        let stream = self.request.stream.as_ref().expect("a download has a stream");
        stream.have(end as u64).await;
        let piece = self.content.slice(self.at..end);
        self.at = end;
        if end < whole {
            return Some((Ok(piece), Some(self)));
        }
        self.request.through(whole as u64);
        // The last byte is the end: a reader that counts bytes does not read on.
        self.request.ended = !self.breaks;
        Some((Ok(piece), self.breaks.then_some(self)))
    }
}
