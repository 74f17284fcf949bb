//! Traces: a span a request, in which a traversal shows its hops as events.
//!
//! They go out as OTLP over HTTP, in batches from a thread of their own. Without an endpoint in the environment no
//! span is made at all.

use axum::http::HeaderMap;
use opentelemetry::{
    propagation::{Extractor, TextMapPropagator},
    trace::TracerProvider,
};
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::{Resource, propagation::TraceContextPropagator, trace::SdkTracerProvider};
use tracing::{Span, Subscriber, field::Empty, level_filters::LevelFilter};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::{Layer, filter::Targets, registry::LookupSpan};

use crate::{cost::Spent, failure::Failure};

/// The target of all spans and their events; a literal where macros need one.
pub(crate) const TARGET: &str = "hoplake::spans";

/// Where the environment may name the collector, by OpenTelemetry's rules.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];

/// What sends spans; none if the environment names no collector.
pub(super) fn provider() -> Result<Option<SdkTracerProvider>, Failure> {
    if !ENDPOINTS.iter().any(|name| std::env::var(name).is_ok_and(|value| !value.is_empty())) {
        return Ok(None);
    }
    // The exporter's client wants the TLS library's provider named once in a process; a store may have named it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let exporter = SpanExporter::builder()
        .with_http()
        .build()
        .map_err(|error| Failure::invalid(format!("cannot send traces: {error}")))?;
    let mut resource = Resource::builder();
    if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
        resource = resource.with_service_name("hoplake");
    }
    Ok(Some(SdkTracerProvider::builder().with_resource(resource.build()).with_batch_exporter(exporter).build()))
}

/// Gives spans to the provider.
pub(super) fn layer<S: Subscriber + for<'a> LookupSpan<'a>>(provider: &SdkTracerProvider) -> impl Layer<S> + use<S> {
    let only = Targets::new().with_target(TARGET, LevelFilter::DEBUG);
    tracing_opentelemetry::layer().with_tracer(provider.tracer("hoplake")).with_filter(only)
}

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(axum::http::HeaderName::as_str).collect()
    }
}

/// The span of a request; it continues the trace that the headers name.
pub(crate) fn span_of(call: &'static str, protocol: &'static str, id: &str, headers: &HeaderMap) -> Span {
    let span = tracing::info_span!(
        target: "hoplake::spans", parent: None, "request", otel.name = call, otel.kind = "server", protocol, id,
        status = Empty, waves = Empty, requests = Empty, bytes = Empty, cache_hits = Empty, usd = Empty,
        otel.status_code = Empty, otel.status_description = Empty,
    );
    if !span.is_disabled() {
        // It fails only where no layer listens.
        let _ = span.set_parent(TraceContextPropagator::new().extract(&Headers(headers)));
    }
    span
}

/// Says how a request ended.
pub(crate) fn end(span: &Span, status: &'static str, failure: Option<&Failure>, spent: &Spent) {
    if span.is_disabled() {
        return;
    }
    span.record("status", status);
    // OpenTelemetry has no unsigned numbers; they would become text.
    span.record("waves", spent.waves as i64);
    span.record("requests", spent.requests as i64);
    span.record("bytes", spent.bytes as i64);
    span.record("cache_hits", spent.cache_hits as i64);
    span.record("usd", spent.usd);
    if let Some(failure) = failure {
        span.record("otel.status_code", "ERROR");
        span.record("otel.status_description", &failure.message);
    }
}
