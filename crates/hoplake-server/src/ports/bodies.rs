//! Bodies of requests as they arrive, counted and timed.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::body::Bytes;
use hoplake::MemoryBudget;
use hoplake_doors::Exchange;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::{Sleep, sleep, timeout};

use crate::failure::{Failure, Reason};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// The bytes before each message of gRPC: whether it is compressed, and its length in 4 bytes.
const PREFIX_BYTES: usize = 5;

/// The progress of a body, in messages. HTTP has one message, which ends with the body.
#[derive(Debug)]
enum Messages {
    Whole { bytes: u64, bytes_max: u64 },
    Prefixed { prefix: Vec<u8>, left: u64, bytes: u64, ended: bool },
}

impl Messages {
    /// Bytes of the message that is arriving, or of the one that has arrived.
    fn bytes(&self) -> u64 {
        match self {
            Self::Whole { bytes, .. } | Self::Prefixed { bytes, .. } => *bytes,
        }
    }

    /// Whether no byte of the next message has arrived.
    fn is_between(&self) -> bool {
        matches!(self, Self::Prefixed { ended: true, .. })
    }

    /// Counts bytes that arrived, and finds where messages end. It decodes nothing.
    fn take(&mut self, data: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Whole { bytes, bytes_max } => {
                *bytes += data.len() as u64;
                let too_large = || Failure::new(Reason::TooLarge, format!("the body is larger than {bytes_max} bytes"));
                (*bytes <= *bytes_max).then_some(()).ok_or_else(too_large)
            }
            Self::Prefixed { prefix, left, bytes, ended } => {
                let mut data = data;
                while !data.is_empty() {
                    // Only now: until its next byte, a message that ended still shows its length to `bytes`.
                    if std::mem::take(ended) {
                        *bytes = 0;
                    }
                    if *left == 0 {
                        let taken = data.len().min(PREFIX_BYTES - prefix.len());
                        prefix.extend_from_slice(&data[..taken]);
                        data = &data[taken..];
                        if let [_, length @ ..] = &prefix[..]
                            && let Ok(length) = <[u8; 4]>::try_from(length)
                        {
                            // Big-endian (gRPC over HTTP/2, Length-Prefixed-Message).
                            *left = u32::from_be_bytes(length).into();
                            prefix.clear();
                            *ended = *left == 0;
                        }
                        continue;
                    }
                    let taken = data.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= taken as u64;
                    *bytes += taken as u64;
                    data = &data[taken..];
                    *ended = *left == 0;
                }
                Ok(())
            }
        }
    }
}

/// What becomes of a body that is announced as too large, whose rejection is sent at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// The client sends it without waiting for an answer: it is dropped on arrival, up to twice the maximum of a body.
    Dropped,
    /// The client can learn of the rejection before it sends it: nothing of it is read.
    Unread,
}

/// The body of a request. It fails if it arrives too slowly, if it is too large, or if memory for it runs out.
///
/// Over HTTP/1.1 a client reads no answer before it has sent its body, and loses the answer if the connection is closed
/// before. So the rest of a rejected body is dropped on arrival, up to the maximum of a body, and then the rejection is
/// sent. One that is announced as too large is rejected before anything is read.
pub(crate) struct Arriving {
    /// Taken out when the rest of it is dropped without a handler.
    inner: Option<Incoming>,
    rest: Rest,
    exchange: Arc<Exchange>,
    budget: MemoryBudget,
    messages: Messages,
    /// Why it is rejected, and how many bytes were dropped since.
    rejected: Option<(Failure, u64)>,
    /// For a message, and between two of them.
    times: (Duration, Duration),
    /// The deadline of its message, or of the silence before one. It starts when there is first nothing to read, and no
    /// byte moves it: a client cannot extend it by sending one at a time.
    patience: Option<Pin<Box<Sleep>>>,
}

impl Arriving {
    /// The body of HTTP, at most so long.
    pub(super) fn whole(
        inner: Incoming,
        exchange: Arc<Exchange>,
        budget: &MemoryBudget,
        bytes_max: usize,
        rest: Rest,
    ) -> Self {
        let whole = Self::of(inner, exchange, budget, Messages::Whole { bytes: 0, bytes_max: bytes_max as u64 });
        Self { rest, ..whole }
    }

    /// The body of gRPC, whose messages its decoder bounds.
    pub(super) fn prefixed(inner: Incoming, exchange: Arc<Exchange>, budget: &MemoryBudget) -> Self {
        let none = Messages::Prefixed { prefix: Vec::with_capacity(PREFIX_BYTES), left: 0, bytes: 0, ended: false };
        Self::of(inner, exchange, budget, none)
    }

    fn of(inner: Incoming, exchange: Arc<Exchange>, budget: &MemoryBudget, messages: Messages) -> Self {
        // No handler polls the body of a GET, so its end is noted here; else its connection stays half-open.
        if inner.is_end_stream() {
            exchange.complete();
        }
        let times = (Duration::MAX, Duration::MAX);
        let inner = Some(inner);
        let rest = Rest::Unread;
        Self { inner, rest, exchange, budget: budget.clone(), messages, rejected: None, times, patience: None }
    }

    /// How long a message may take, and how long a client may be silent between two.
    pub(super) fn within(self, message: Duration, silence: Duration) -> Self {
        Self { times: (message, silence), ..self }
    }

    /// Rejects a body that is announced as too large, before anything of it is read.
    fn announced(&mut self) -> Option<Failure> {
        let Messages::Whole { bytes: 0, bytes_max } = self.messages else { return None };
        let announced = self.inner.as_ref().map_or(0, |inner| inner.size_hint().lower());
        if announced <= bytes_max {
            return None;
        }
        let inner = self.inner.take().filter(|_| self.rest == Rest::Dropped);
        if let Some(inner) = inner {
            tokio::spawn(timeout(self.times.0, drop_bytes(inner, bytes_max.saturating_mul(2))));
        }
        let message = format!("the body of {announced} bytes is larger than {bytes_max} bytes, and was not read");
        Some(Failure::new(Reason::TooLarge, message))
    }

    /// In the form of the decoder's errors.
    fn error(&self, failure: Failure) -> Error {
        match &self.messages {
            Messages::Whole { .. } => failure.into(),
            Messages::Prefixed { .. } => failure.status().into(),
        }
    }

    /// Takes a part, or drops it, if its rejection can be sent later.
    fn arrived(&mut self, data: &Bytes) -> Result<(), Failure> {
        if self.rejected.is_none() {
            let taken = self.take(data);
            // Over HTTP/2 a client may have the whole answer before it has sent its request (RFC 9113, 8.1), so a
            // rejection over gRPC need not wait for the rest.
            let Messages::Whole { .. } = &self.messages else { return taken };
            self.rejected = taken.err().map(|failure| (failure, 0));
        } else if let (Some((_, dropped)), Messages::Whole { bytes_max, .. }) = (&mut self.rejected, &self.messages) {
            *dropped += data.len() as u64;
            if *dropped > *bytes_max {
                return self.rejected.take().map_or(Ok(()), |(failure, _)| Err(failure));
            }
        }
        Ok(())
    }

    fn take(&mut self, data: &Bytes) -> Result<(), Failure> {
        let was_between = self.messages.is_between();
        self.messages.take(data)?;
        let bytes = self.messages.bytes();
        let between = self.messages.is_between();
        if between || was_between {
            // The time of the next message, or of this one, begins.
            self.patience = None;
        }
        if between {
            self.exchange.complete();
            let decoded = usize::try_from(bytes).unwrap_or(usize::MAX);
            // Reserved before the decoder sees the last byte of the message.
            let needed = Exchange::decoded_bytes(decoded);
            return self.exchange.hold_decoded(&self.budget, decoded).map_err(|full| Failure::no_memory(full, needed));
        }
        self.exchange.hold_request(&self.budget, bytes).map_err(|full| Failure::no_memory(full, bytes))
    }

    /// Ready when a message, or the silence before one, takes too long.
    fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<Failure> {
        let (message, silence) = self.times;
        let time = if self.messages.is_between() { silence } else { message };
        let patience = self.patience.get_or_insert_with(|| Box::pin(sleep(time)));
        ready!(patience.as_mut().poll(context));
        let late = format!("the request did not arrive within {} ms", time.as_millis());
        Poll::Ready(Failure::new(Reason::Slow, late))
    }
}

impl Body for Arriving {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = self.get_mut();
        if let Some(failure) = this.announced() {
            return Poll::Ready(Some(Err(this.error(failure))));
        }
        loop {
            // Bytes first, then the clock: what has arrived is taken even if its time is over.
            let Some(inner) = &mut this.inner else { return Poll::Ready(None) };
            let Poll::Ready(next) = Pin::new(inner).poll_frame(context) else {
                let failure = ready!(this.poll_late(context));
                return Poll::Ready(Some(Err(this.error(failure))));
            };
            let frame = match next {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                None => {
                    this.exchange.complete();
                    return Poll::Ready(this.rejected.take().map(|(failure, _)| Err(this.error(failure))));
                }
            };
            if let Err(failure) = frame.data_ref().map_or(Ok(()), |data| this.arrived(data)) {
                return Poll::Ready(Some(Err(this.error(failure))));
            }
            // A rejected body returns no frames, so a handler buffers none of it.
            if this.rejected.is_none() {
                return Poll::Ready(Some(Ok(frame)));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map(Body::size_hint).unwrap_or_default()
    }
}

/// Takes bytes of a body, at most so many, so that a client which sends it all before it reads finds the answer. Without its end
/// the connection is closed.
async fn drop_bytes(mut inner: Incoming, most: u64) {
    let mut dropped = 0;
    while dropped <= most
        && let Some(Ok(frame)) = std::future::poll_fn(|context| Pin::new(&mut inner).poll_frame(context)).await
    {
        dropped += frame.data_ref().map_or(0, |data| data.len() as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However the bytes are cut, the ends of messages are found.
    #[test]
    fn messages_end_where_their_prefix_says() {
        let bytes = [&[0, 0, 0, 0, 3][..], b"abc", &[0, 0, 0, 0, 0], &[0, 0, 0, 1, 0], &[7; 256]].concat();
        for cut in 1..bytes.len() {
            let mut messages = Messages::Prefixed { prefix: Vec::new(), left: 0, bytes: 0, ended: false };
            let mut taken = 0;
            for part in bytes.chunks(cut) {
                messages.take(part).unwrap();
                taken += part.len();
                assert_eq!(messages.is_between(), [8, 13, 274].contains(&taken), "{cut} {taken}");
            }
            assert_eq!(messages.bytes(), 256);
        }
    }

    #[test]
    fn a_body_is_bounded() {
        let mut messages = Messages::Whole { bytes: 0, bytes_max: 4 };
        messages.take(b"abcd").unwrap();
        assert!(!messages.is_between());
        assert_eq!(messages.take(b"e").unwrap_err().reason, Reason::TooLarge);
    }
}
