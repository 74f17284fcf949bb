//! The bodies of responses.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};

use crate::Exchange;

/// The body of a response, whose frames hold memory and exchange until they are sent.
pub(crate) struct ResponseBody {
    inner: Body,
    exchange: Arc<Exchange>,
}

impl ResponseBody {
    pub(crate) fn new(inner: Body, exchange: Arc<Exchange>) -> Self {
        Self { inner, exchange }
    }
}

impl hyper::body::Body for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.inner).poll_frame(context);
        match &polled {
            // The server is late, not the client: `send_timeout_ms` does not run.
            Poll::Pending => this.exchange.mark_waiting(),
            // The end only waits for the parts before it.
            Poll::Ready(None) => this.exchange.mark_waiting(),
            Poll::Ready(Some(_)) => {}
        }
        polled.map(|frame| frame.map(|frame| Ok(frame?.map_data(|bytes| this.exchange.outgoing(bytes)))))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
