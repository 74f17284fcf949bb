//! `hoplake feed status`: up to where a graph has followed its sources, from the bucket alone.

use std::time::Duration;

use hoplake::{Graph, Manifest, Store, Value, changes::plain_json};
use hoplake_feed::{
    Position,
    state::{self, FeedState},
};
use serde_json::json;

use super::failure::failed;
use crate::{
    opening::MIRROR,
    output::{numbers::counted, print_line},
};

/// Show up to where a graph has followed its sources
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the graph is: a folder, or s3://bucket/prefix, gs://, az://, file://
    pub url: String,
    /// Print one JSON object for each source
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    let store = Store::open(&args.url).map_err(hoplake::Error::from)?;
    let newest = Graph::newest(&store).await?;
    if newest.source_positions.is_empty() && !args.json {
        print_line("no source: the graph is not fed")?;
    }
    let now = i64::try_from(store.clock().unix_ms()).unwrap_or(i64::MAX);
    for (source, text) in &newest.source_positions {
        let Ok(position) = Position::parse(text) else {
            // Another tool keeps a position here.
            print_line(if args.json {
                json!({"source": source, "position": text}).to_string()
            } else {
                format!("{source}  {text}")
            })?;
            continue;
        };
        let state = match &position.state {
            None => FeedState::default(),
            Some(id) => match state::read(&store, source, id).await.map_err(failed)? {
                Some(state) => state,
                // It has what versions name, and not what a feed keeps next to them.
                None if store.get(MIRROR).await.map_err(hoplake::Error::from)?.is_some() => FeedState::default(),
                None => return Err(failed(state::lost(source, id))),
            },
        };
        let line = if args.json { as_json } else { as_text };
        print_line(line(source, &newest, &position, &state, now))?;
    }
    Ok(())
}

/// When the source committed the last transaction that the graph has; of a feed that did not note it, when the version was made.
fn time_of(position: &Position, newest: &Manifest) -> i64 {
    position.committed_unix_ms.unwrap_or_else(|| i64::try_from(newest.created_unix_ms).unwrap_or(i64::MAX))
}

fn as_json(source: &str, newest: &Manifest, position: &Position, state: &FeedState, now: i64) -> String {
    let time = time_of(position, newest);
    let Position { of_source, is_copying, .. } = position;
    json!({
        "source": source,
        "position": of_source,
        "position_time": plain_json(&Value::Timestamp(time.saturating_mul(1_000))),
        "age_ms": now.saturating_sub(time).max(0),
        "copying": is_copying,
        "edges_waiting": state.waiting.len(),
        "held_keys": state.held.len(),
        "dead_letters": state.dead_letters(),
        "version": newest.version,
        "stopped": state.stop.as_ref().map(|stop| json!({"why": stop.why, "hint": stop.what_to_do})),
    })
    .to_string()
}

fn as_text(source: &str, newest: &Manifest, position: &Position, state: &FeedState, now: i64) -> String {
    let age = now.saturating_sub(time_of(position, newest)).max(0).unsigned_abs() / 1_000;
    let age = humantime::format_duration(Duration::from_secs(age));
    let copying = if position.is_copying { ", the first copy is not complete" } else { "" };
    let some = |number, one, many| {
        if number == 0 { String::new() } else { format!(", {}", counted(number, one, many)) }
    };
    let waits = some(state.waiting.len() as u64, "edge waits for a vertex", "edges wait for a vertex");
    let set_aside = some(state.dead_letters(), "dead letter", "dead letters");
    let held = some(state.held.len() as u64, "held key", "held keys");
    let stopped = state
        .stop
        .as_ref()
        .map_or_else(String::new, |stop| format!("\nstopped: {}\nhint: {}", stop.why, stop.what_to_do));
    format!(
        "{source}  {}  version {}, {age} old{copying}{waits}{set_aside}{held}{stopped}",
        position.of_source, newest.version
    )
}
