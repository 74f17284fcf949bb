//! Logs and traces of programs that run on, such as `hoplake serve` and `hoplake feed run`.
//!
//! Logs go to standard error. Spans whose target is [`SPANS`], and they alone, go to a collector if the environment names one;
//! without one no span is made at all. A warning that repeats is written a few times in ten seconds (`throttle`).

#[cfg(feature = "otlp")]
mod export;
#[cfg(not(feature = "otlp"))]
#[path = "no_export.rs"]
mod export;

mod throttle;

use export::Exporter;
pub use export::continue_trace;
use throttle::Throttle;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::{
    Layer,
    filter::{FilterExt, Targets},
    layer::SubscriberExt,
    registry,
    util::SubscriberInitExt,
};

/// The target of spans that are exported, and of their events; a literal where macros need one.
pub const SPANS: &str = "hoplake::spans";

/// Where the environment may name the collector, by OpenTelemetry's rules.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];

/// How a line of log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Why nothing is logged or traced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TelemetryError(String);

/// Ends what was begun by [`start`]: sends the spans that are still here.
#[must_use = "spans are lost when it is dropped without `finish`"]
pub struct Telemetry(Option<Exporter>);

/// Begins to log to standard error, and to trace if `OTEL_EXPORTER_OTLP_ENDPOINT` (or the same for traces alone) is
/// in the environment. `service` is the name of the program in traces, unless `OTEL_SERVICE_NAME` has one. `filter` is a
/// level, or levels by module: `info`, `warn,hoplake=debug`.
///
/// Once per process, by its `main`.
///
/// # Errors
/// The filter cannot be read, the endpoint is none, this build has not the feature `otlp` that sends traces, or something else
/// logs already.
pub fn start(service: &'static str, format: LogFormat, filter: &str) -> Result<Telemetry, TelemetryError> {
    let targets = targets(filter)?;
    // Spans are for traces; on every line of log they would repeat it.
    let targets = targets.with_target(SPANS, LevelFilter::OFF);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = match format {
        LogFormat::Text => lines.with_ansi(false).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed(),
    };
    let is_wanted = ENDPOINTS.iter().any(|name| std::env::var(name).is_ok_and(|value| !value.is_empty()));
    // Before logging begins: an error here is returned, and a later call can still begin to log.
    let exporter = is_wanted.then(|| Exporter::start(service)).transpose()?;
    let spans = exporter.as_ref().map(Exporter::layer);
    let begun = registry().with(lines.with_filter(targets.and(Throttle::default()))).with(spans).try_init();
    begun.map_err(|error| TelemetryError(format!("cannot log: {error}")))?;
    Ok(Telemetry(exporter))
}

/// Parses log levels. Anything else is rejected, since it would be taken for a module at all levels, so that nothing
/// else is logged.
fn targets(filter: &str) -> Result<Targets, TelemetryError> {
    let wrong = |level: &str| {
        TelemetryError(format!(
            "{level:?} is not a level of logs; write off, error, warn, info, debug or trace, or levels by module, as in \
             warn,hoplake=debug"
        ))
    };
    for part in filter.split(',') {
        let level = part.rsplit_once('=').map_or(part, |(_, level)| level);
        let known = LEVELS.iter().any(|known| known.eq_ignore_ascii_case(level));
        known.then_some(()).ok_or_else(|| wrong(level))?;
    }
    filter.parse().map_err(|_| wrong(filter))
}

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

impl Telemetry {
    /// Sends the spans that are still here; waits for the collector, so not to be called where others wait.
    pub fn finish(self) {
        if let Some(Err(error)) = self.0.map(Exporter::finish) {
            tracing::warn!(error, "could not send the last spans");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_those_there_are() {
        for filter in ["info", "off", "WARN", "warn,hoplake=debug", "info,hoplake::requests=debug"] {
            targets(filter).unwrap();
        }
        for (filter, level) in
            [("lod", "lod"), ("", ""), ("info,", ""), ("warn,hoplake=debgu", "debgu"), ("hoplake", "hoplake")]
        {
            let error = targets(filter).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{level:?} is not a level")), "{error}");
            assert!(error.contains("error, warn, info, debug or trace"), "{error}");
        }
    }
}
