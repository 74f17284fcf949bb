//! Logs and traces of the verbs that run until a signal stops them.

use clap::ValueEnum;
use hoplake_telemetry::Telemetry;

use crate::failure::Failure;

/// How a line of log is written.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

/// Begins to log and to trace.
pub fn start(service: &'static str, format: LogFormat, filter: &str, hint: &str) -> Result<Telemetry, Failure> {
    let format = match format {
        LogFormat::Text => hoplake_telemetry::LogFormat::Text,
        LogFormat::Json => hoplake_telemetry::LogFormat::Json,
    };
    hoplake_telemetry::start(service, format, filter).map_err(|error| Failure::usage(error.to_string(), hint))
}

/// Sends the last spans.
pub async fn finish(telemetry: Telemetry) -> anyhow::Result<()> {
    // On a thread of its own, since the exporter blocks and the runtime has to go on for its requests.
    // It waits for the collector of traces.
    Ok(tokio::task::spawn_blocking(|| telemetry.finish()).await?)
}
