//! Where spans go: as OTLP over HTTP, in batches from a thread of their own.

use std::collections::HashMap;

use opentelemetry::{propagation::TextMapPropagator, trace::TracerProvider};
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::{Resource, propagation::TraceContextPropagator, trace::SdkTracerProvider};
use tracing::{Span, Subscriber, level_filters::LevelFilter};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::{Layer, filter::Targets, registry::LookupSpan};

use crate::{SPANS, TelemetryError};

/// Sends spans to a collector.
pub(crate) struct Exporter(SdkTracerProvider);

impl Exporter {
    /// Begins to send. The environment names the collector.
    pub(crate) fn start(service: &'static str) -> Result<Self, TelemetryError> {
        // The exporter's client wants the TLS library's provider named once in a process; a store may have named it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let exporter = SpanExporter::builder()
            .with_http()
            .build()
            .map_err(|error| TelemetryError(format!("cannot send traces: {error}")))?;
        // The builder reads the environment; a name that is set here would replace the one from there.
        let mut resource = Resource::builder();
        if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
            resource = resource.with_service_name(service);
        }
        Ok(Self(SdkTracerProvider::builder().with_resource(resource.build()).with_batch_exporter(exporter).build()))
    }

    /// Takes the spans.
    pub(crate) fn layer<S: Subscriber + for<'a> LookupSpan<'a>>(&self) -> impl Layer<S> + use<S> {
        // Spans of libraries are left out: a trace is what the program itself says.
        let only = Targets::new().with_target(SPANS, LevelFilter::DEBUG);
        tracing_opentelemetry::layer().with_tracer(self.0.tracer("hoplake")).with_filter(only)
    }

    /// Sends the rest, or returns the error.
    pub(crate) fn finish(self) -> Result<(), String> {
        self.0.shutdown().map_err(|error| error.to_string())
    }
}

/// Makes a span a part of the trace that the headers of its request name.
pub fn continue_trace<'a>(span: &Span, header: impl Fn(&str) -> Option<&'a str>) {
    let propagator = TraceContextPropagator::new();
    let headers: HashMap<String, String> =
        propagator.fields().filter_map(|name| Some((name.to_owned(), header(name)?.to_owned()))).collect();
    // It fails only where no layer listens.
    let _ = span.set_parent(propagator.extract(&headers));
}
