//! Traces: a span a request, in which a traversal shows its hops as events.
//!
//! Without an endpoint in the environment no span is made at all.

use tracing::{Span, field::Empty};

use crate::{cost::PricedCost, failure::Failure};

/// The span of a request; it continues the trace whose headers `trace` returns.
pub(crate) fn span_of<'a>(
    call: &'static str,
    protocol: &'static str,
    id: &str,
    trace: impl Fn(&str) -> Option<&'a str>,
) -> Span {
    // No parent: the caller's span is the parent, by its `traceparent`. A field that is recorded later must be declared
    // here, or it is dropped.
    let span = tracing::info_span!(
        target: "hoplake::spans", parent: None, "request", otel.name = call, otel.kind = "server", protocol, id,
        status = Empty, waves = Empty, requests = Empty, bytes = Empty, cache_hits = Empty, usd = Empty,
        otel.status_code = Empty, otel.status_description = Empty,
    );
    if !span.is_disabled() {
        hoplake_telemetry::continue_trace(&span, trace);
    }
    span
}

/// The span of a job, below that of the request that started it.
pub(crate) fn span_of_job(request: &Span, id: &str, algorithm: &'static str) -> Span {
    tracing::info_span!(
        target: "hoplake::spans", parent: request, "job", otel.name = "Job", id, algorithm,
        status = Empty, waves = Empty, requests = Empty, bytes = Empty, cache_hits = Empty, usd = Empty,
        otel.status_code = Empty, otel.status_description = Empty,
    )
}

/// Records the outcome of a request or a job.
pub(crate) fn end(span: &Span, status: &'static str, failure: Option<&Failure>, cost: &PricedCost) {
    if span.is_disabled() {
        return;
    }
    span.record("status", status);
    // OpenTelemetry has no unsigned numbers; they would become text.
    let counters = &cost.counters;
    span.record("waves", counters.waves as i64);
    span.record("requests", counters.requests as i64);
    span.record("bytes", counters.store_bytes as i64);
    span.record("cache_hits", counters.memory.blocks as i64);
    span.record("usd", cost.usd);
    if let Some(failure) = failure {
        span.record("otel.status_code", "ERROR");
        span.record("otel.status_description", &failure.message);
    }
}
