//! What the services have in common: how a method begins its call, and how the call ends.

use std::{pin::Pin, sync::Arc};

use futures::{Stream, stream};
use tonic::{Request, Response, Status};

use super::deadline;
use crate::{
    calls::{Call, RequestContext, Service},
    failure::Failure,
    request_head::{Arrival, REQUEST_ID},
};

/// The name of the protocol in the log and in counters.
pub(super) const PROTOCOL: &str = "grpc";

/// The messages of a response.
pub(super) type Messages<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// A result in memory, sent as the client reads it.
pub(super) fn at_hand<T: Send + 'static>(messages: Vec<T>) -> Messages<T> {
    Box::pin(stream::iter(messages.into_iter().map(Ok)))
}

/// The services of hoplake.v1.
#[derive(Clone)]
pub(super) struct Grpc {
    pub(super) service: Arc<Service>,
}

impl Grpc {
    /// Begins a call, and takes its message out.
    pub(super) fn begin<T>(&self, name: &'static str, request: Request<T>) -> (Call, T) {
        let (metadata, extensions, message) = request.into_parts();
        let headers = metadata.into_headers();
        let context = Arrival::of(&extensions).context(PROTOCOL, name, &headers);
        let context = RequestContext { timeout: deadline::timeout(&headers), ..context };
        (Call::begin(&self.service, context), message)
    }

    /// The same for a call of another node, which is part of a request there.
    pub(super) fn begin_for_node<T>(&self, name: &'static str, request: Request<T>) -> (Call, T) {
        let (mut call, message) = self.begin(name, request);
        call.mark_for_node();
        (call, message)
    }
}

/// Ends a call, with its message or its status; both have the request's id.
pub(super) fn answer<T>(call: &mut Call, outcome: Result<T, Failure>) -> Result<Response<T>, Status> {
    call.finish(&outcome);
    // An id that cannot be metadata is left out; the call must not fail for it.
    let id = call.id.parse().ok();
    match outcome {
        Ok(message) => {
            let mut response = Response::new(message);
            id.and_then(|id| response.metadata_mut().insert(REQUEST_ID, id));
            Ok(response)
        }
        Err(failure) => {
            let mut status = failure.status();
            id.and_then(|id| status.metadata_mut().insert(REQUEST_ID, id));
            Err(status)
        }
    }
}

/// Runs a call within its span.
macro_rules! within {
    ($call:ident, $work:expr) => {{
        let span = $call.span.clone();
        let outcome = tracing::Instrument::instrument(async { $work }, span).await;
        $crate::grpc::service::answer(&mut $call, outcome)
    }};
}

/// The methods of a service. Each begins the call of a name, and runs the function of the same name as the method: with the message, and
/// with a writer if the response is a stream.
macro_rules! methods {
    ($service:ident {
        $($name:literal: $method:ident($request:ident) -> $response:ident;)*
        $(stream $stream_name:literal: $stream:ident($stream_request:ident) -> $part:ident as $type:ident;)*
    }) => {
        /// The names of its calls, by their paths.
        pub(super) const CALLS: &[(&str, &str)] = &[
            $((concat!("/hoplake.v1.", stringify!($service), "/", $name), $name),)*
            $((concat!("/hoplake.v1.", stringify!($service), "/", $stream_name), $stream_name),)*
        ];

        #[tonic::async_trait]
        impl $service for $crate::grpc::service::Grpc {
            $(async fn $method(
                &self,
                request: tonic::Request<v1::$request>,
            ) -> Result<tonic::Response<v1::$response>, tonic::Status> {
                let (mut call, request) = self.begin($name, request);
                within!(call, $method(&mut call, request).await)
            })*

            $(type $type = $crate::grpc::service::Messages<v1::$part>;

            async fn $stream(
                &self,
                request: tonic::Request<v1::$stream_request>,
            ) -> Result<tonic::Response<Self::$type>, tonic::Status> {
                let (call, request) = self.begin($stream_name, request);
                stream(call, |call, writer| $stream(call, request, writer).boxed()).await
            })*
        }
    };
}

pub(super) use methods;
pub(super) use within;
