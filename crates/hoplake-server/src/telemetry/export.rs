//! Where spans go: as OTLP over HTTP, in batches from a thread of their own.

use axum::http::HeaderMap;
use opentelemetry::{
    propagation::{Extractor, TextMapPropagator},
    trace::TracerProvider,
};
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::{Resource, propagation::TraceContextPropagator, trace::SdkTracerProvider};
use tracing::{Span, Subscriber, level_filters::LevelFilter};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::{Layer, filter::Targets, registry::LookupSpan};

use super::traces::TARGET;
use crate::failure::Failure;

/// Sends spans to a collector.
pub(super) struct Exporter(SdkTracerProvider);

impl Exporter {
    /// Begins to send. The environment names the collector.
    pub(super) fn start() -> Result<Self, Failure> {
        // The exporter's client wants the TLS library's provider named once in a process; a store may have named it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let exporter = SpanExporter::builder()
            .with_http()
            .build()
            .map_err(|error| Failure::invalid(format!("cannot send traces: {error}")))?;
        // The builder reads the environment; a name that is set here would replace the one from there.
        let mut resource = Resource::builder();
        if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
            resource = resource.with_service_name("hoplake");
        }
        Ok(Self(SdkTracerProvider::builder().with_resource(resource.build()).with_batch_exporter(exporter).build()))
    }

    /// Takes the spans.
    pub(super) fn layer<S: Subscriber + for<'a> LookupSpan<'a>>(&self) -> impl Layer<S> + use<S> {
        // Spans of libraries are left out: a trace is a request and its hops.
        let only = Targets::new().with_target(TARGET, LevelFilter::DEBUG);
        tracing_opentelemetry::layer().with_tracer(self.0.tracer("hoplake")).with_filter(only)
    }

    /// Sends the rest, or returns the error.
    pub(super) fn finish(self) -> Result<(), String> {
        self.0.shutdown().map_err(|error| error.to_string())
    }
}

/// Headers, as OpenTelemetry reads them. One that is not text is as good as absent.
struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(axum::http::HeaderName::as_str).collect()
    }
}

/// Makes a span a part of the trace that the headers name.
pub(super) fn continue_trace(span: &Span, headers: &HeaderMap) {
    // It fails only where no layer listens.
    let _ = span.set_parent(TraceContextPropagator::new().extract(&Headers(headers)));
}
