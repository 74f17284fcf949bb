//! `hoplake log`: the versions of a graph, from the newest back.

use std::time::{Duration, Instant, UNIX_EPOCH};

use hoplake::{ErrorKind, Graph, Log, LogEntry, StepCost, WriterLease};
use serde_json::{Value, json};

use super::apply::{counts_json, counts_text};
use crate::{
    arguments,
    failure::Failure,
    opening::open_store,
    output::{
        Pipe, numbers, print_line,
        profile::{Profile, ProfileArgs},
    },
};

/// Print the versions of a graph, newest first: what made each, when, and why
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A version can be opened with --version N or --as-of TIME by every command that reads.

Example: what fed the graph, and how far
  hoplake log s3://bucket/social --limit 1000 --json | jq 'select(.source_positions != {})'")]
pub struct Args {
    /// Where the graph is: a folder, or s3://bucket/prefix, gs://, az://, file://
    pub url: String,
    /// Print at most this many versions
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = arguments::count::<u64>, allow_negative_numbers = true)]
    limit: u64,
    /// Print one JSON object a line: the versions, and before them writers that are not done
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    profile: ProfileArgs,
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    let begun = Instant::now();
    let store = open_store(&args.url)?;
    let mut log = Graph::log(&store).await?;
    let damages = print_versions(args, &mut log).await?;
    let read = StepCost { cost: log.cost(), time_us: begun.elapsed().as_micros() as u64 };
    args.profile.print(Profile::default().step("log", read), store.prices());
    match damages {
        0 => Ok(()),
        _ => {
            let damages = numbers::counted(damages, "version cannot be read", "versions cannot be read");
            let hint = format!("hoplake verify {} lists all damage, and the version that can be restored", args.url);
            Err(Failure::new(ErrorKind::Corrupt, format!("{damages} in {}", store.url()), hint).into())
        }
    }
}

/// Prints versions, and returns how many of them are damaged.
async fn print_versions(args: &Args, log: &mut Log) -> anyhow::Result<u64> {
    for lease in log.leases() {
        print_line(if args.json { lease_json(lease).to_string() } else { lease_text(lease) })?;
    }
    let mut damages = 0;
    for _ in 0..args.limit {
        match log.next().await {
            Ok(None) => return Ok(damages),
            Ok(Some(entry)) => {
                print_line(if args.json { entry_json(&entry).to_string() } else { entry_text(&entry) })?;
            }
            // The others are there to be seen.
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                eprintln!("damaged: {error}");
                damages += 1;
            }
            Err(error) => return Err(error.into()),
        }
        if Pipe::is_closed() {
            return Ok(damages);
        }
    }
    if !args.json && !matches!(log.next().await, Ok(None)) {
        eprintln!("there are older versions; --limit shows more");
    }
    Ok(damages)
}

fn time(unix_ms: u64) -> String {
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(unix_ms)).to_string()
}

/// `42  2026-11-01T00:00:00.000Z  commit  2 vertices added; people of March; crm=17; tag spring`
fn entry_text(entry: &LogEntry) -> String {
    let mut parts = Vec::new();
    if entry.change.kind == hoplake::ChangeKind::Commit {
        parts.push(counts_text(&entry.change.counts));
    }
    if !entry.change.message.is_empty() {
        parts.push(entry.change.message.clone());
    }
    parts.extend(entry.source_positions.iter().map(|(source, position)| format!("{source}={position}")));
    parts.extend(entry.tags.iter().map(|tag| format!("tag {tag}")));
    let head = format!("{}  {}  {:<10}", entry.version, time(entry.created_unix_ms), entry.change.kind.name());
    format!("{head}  {}", parts.join("; ")).trim_end().to_owned()
}

fn entry_json(entry: &LogEntry) -> Value {
    json!({
        "version": entry.version,
        "time": time(entry.created_unix_ms),
        "kind": entry.change.kind.name(),
        "writer": entry.change.writer,
        "message": entry.change.message,
        "counts": counts_json(&entry.change.counts),
        "source_positions": entry.source_positions,
        "tags": entry.tags,
    })
}

fn lease_text(lease: &WriterLease) -> String {
    format!("{} of {} is under way since version {}", lease.kind.name(), lease.writer, lease.since)
}

fn lease_json(lease: &WriterLease) -> Value {
    json!({"under_way": lease.kind.name(), "writer": lease.writer, "since": lease.since})
}
