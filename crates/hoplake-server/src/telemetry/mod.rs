//! The server's telemetry: logs, counters and traces.

#[cfg(feature = "telemetry")]
mod export;
#[cfg(not(feature = "telemetry"))]
#[path = "no_export.rs"]
mod export;
pub(crate) mod metrics;
pub(crate) mod traces;

use export::Exporter;
use serde::{Deserialize, Serialize};
use tracing_subscriber::{Layer, filter::Targets, layer::SubscriberExt, registry, util::SubscriberInitExt};

use crate::failure::Failure;

/// How a line of log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Ends what was begun by [`start`]: sends the spans that are still here.
#[must_use = "spans are lost when it is dropped without `finish`"]
pub struct Telemetry(Option<Exporter>);

/// Begins to log to standard error, and to trace if `OTEL_EXPORTER_OTLP_ENDPOINT` (or the same for traces alone) is
/// in the environment. `filter` is a level, or levels by module: `info`, `warn,hoplake=debug`.
///
/// Once per process, by its `main`.
///
/// # Errors
/// [`Reason::Invalid`](crate::Reason::Invalid) if the filter cannot be read, the endpoint is none, this build has not
/// the feature `telemetry` that sends traces, or something else logs already.
pub fn start(format: LogFormat, filter: &str) -> Result<Telemetry, Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::invalid(format!("cannot log: {error}"));
    let targets = targets(filter)?;
    // Spans are for traces; on every line of log they would repeat it.
    let targets = targets.with_target(traces::TARGET, tracing::level_filters::LevelFilter::OFF);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = match format {
        LogFormat::Text => lines.with_ansi(false).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed(),
    };
    // Before logging begins: an error here is returned, and a later call can still begin to log.
    let exporter = traces::are_wanted().then(Exporter::start).transpose()?;
    let spans = exporter.as_ref().map(Exporter::layer);
    registry().with(lines.with_filter(targets)).with(spans).try_init().map_err(|error| wrong(&error))?;
    Ok(Telemetry(exporter))
}

/// Parses log levels. Anything else is rejected, since it would be taken for a module at all levels, so that nothing
/// else is logged.
fn targets(filter: &str) -> Result<Targets, Failure> {
    let wrong = |level: &str| {
        Failure::invalid(format!(
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
            let failure = targets(filter).unwrap_err();
            assert!(failure.message.starts_with(&format!("{level:?} is not a level")), "{failure}");
            assert!(failure.message.contains("error, warn, info, debug or trace"), "{failure}");
        }
    }
}
