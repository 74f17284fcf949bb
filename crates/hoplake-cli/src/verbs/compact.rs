//! `hoplake compact`: makes one run of several.

use std::{cell::Cell, time::Duration};

use bytesize::ByteSize;
use hoplake::{CompactionSettings, ErrorKind, Graph};
use serde_json::json;

use crate::{
    arguments,
    failure::Failure,
    opening::open_store,
    output::{cost, numbers, print_line},
    stopping::{interrupted, stopped, timeout_ms},
};

/// Merge what commits added, so that reading stays fast; no answer changes
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Readers and writers go on meanwhile. Each merge is published as it is done: what is interrupted is continued by the
next. At Ctrl-C, at SIGTERM and at --timeout it takes its name out of the graph and ends. Old versions keep their objects
until hoplake vacuum lets them go.

Example:
  hoplake compact s3://bucket/social --memory 1GiB")]
pub struct Args {
    /// Where the graph is: a folder, or s3://bucket/prefix, gs://, az://, file://
    pub url: String,
    /// Merge all runs of each label and edge type into one, not only what is due
    #[arg(long)]
    all: bool,
    /// Memory for it, at least 64MiB
    #[arg(long, value_name = "SIZE", default_value_t = ByteSize::mib(256), value_parser = arguments::size_from_1)]
    memory: ByteSize,
    /// End after so long; what was merged until then is published
    #[arg(long, value_name = "TIME", default_value = "1day", value_parser = humantime::parse_duration)]
    timeout: Duration,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    let settings = CompactionSettings {
        memory_bytes: args.memory.as_u64(),
        everything: args.all,
        timeout_ms: Some(timeout_ms(args.timeout)),
        ..CompactionSettings::default()
    };
    let store = open_store(&args.url)?;
    // A compaction that was stopped returns as one that is done does, with what it has published until then.
    let was_stopped = Cell::new(false);
    let stop = async {
        stopped().await;
        was_stopped.set(true);
    };
    let done = Graph::compact_until(&store, &settings, stop).await.map_err(|error| match error.kind() {
        ErrorKind::Limit => {
            let message = format!("the compaction was not done within {}", humantime::format_duration(args.timeout));
            let hint = "what was merged until then is published; run it again to continue, or raise --timeout";
            Failure::new(ErrorKind::Limit, message, hint).into()
        }
        _ => anyhow::Error::from(error),
    })?;
    if was_stopped.get() {
        let merged = numbers::counted(done.merges, "merge is", "merges are");
        interrupted(&format!("{merged} published, and nothing is left announced"), "run it again to continue");
    }
    if args.json {
        return print_line(json!({
            "version": done.version, "merges": done.merges, "sorted_runs": done.runs,
            "bytes_read": done.bytes_read, "bytes_written": done.bytes_written,
            "cost": cost::json(&done.cost, store.prices()),
        }));
    }
    if done.merges == 0 {
        return print_line("nothing is due");
    }
    print_line(format_args!(
        "merged {} into {}, {} into {}; version {}: {}",
        numbers::counted(done.runs, "sorted run", "sorted runs"),
        done.merges,
        numbers::bytes(done.bytes_read),
        numbers::bytes(done.bytes_written),
        done.version,
        cost::text(&done.cost, store.prices())
    ))
}
