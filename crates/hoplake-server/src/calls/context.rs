//! What an adapter knows of a request before it reads its message.

use std::{sync::Arc, time::Duration};

use hoplake_doors::Exchange;
use tracing::Span;

use crate::telemetry::traces;

/// The longest name of a request that is accepted from a client, in bytes: it is in every log line of the request.
const ID_BYTES_MAX: usize = 128;

/// A request, whatever its protocol: who sends it, until when, under which name, and what holds its memory.
pub(crate) struct RequestContext {
    /// The name of the protocol in the log and in counters.
    pub(crate) protocol: &'static str,
    /// The name of the call, likewise.
    pub(crate) call: &'static str,
    /// The name of the request, which its response repeats.
    pub(crate) id: String,
    /// The parent of spans within the call.
    pub(crate) span: Span,
    /// Whether it has the server's token.
    pub(crate) is_authenticated: bool,
    /// The client's deadline, from now.
    pub(crate) timeout: Option<Duration>,
    /// Holds memory and permits until the response is sent.
    pub(crate) exchange: Arc<Exchange>,
}

impl RequestContext {
    /// Not authenticated, and without a deadline. `trace` returns the headers of a trace that it continues.
    pub(crate) fn new<'a>(
        protocol: &'static str,
        call: &'static str,
        id: Option<&str>,
        exchange: Arc<Exchange>,
        trace: impl Fn(&str) -> Option<&'a str>,
    ) -> Self {
        let id = id.filter(|id| id.len() <= ID_BYTES_MAX);
        let id = id.map_or_else(|| ulid::Ulid::generate().to_string(), str::to_owned);
        let span = traces::span_of(call, protocol, &id, trace);
        Self { protocol, call, id, span, is_authenticated: false, timeout: None, exchange }
    }
}
