//! `hoplake feed status`: up to where a graph has followed its sources, from the bucket alone.

use hoplake::{Graph, Store};
use hoplake_feed::{
    Position,
    state::{self, State},
};
use serde_json::json;

use super::failure::failed;
use crate::output::{numbers::counted, print_line};

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
            None => State::default(),
            Some(id) => state::read(&store, source, id)
                .await
                .transpose()
                .unwrap_or_else(|| Err(state::lost(source, id)))
                .map_err(failed)?,
        };
        let (waiting, letters) = (state.waiting.len() as u64, state.dead_letters());
        let Position { of_source, is_copying, .. } = position;
        print_line(if args.json {
            json!({"source": source, "position": of_source, "copying": is_copying, "edges_waiting": waiting, "dead_letters": letters, "version": newest.version}).to_string()
        } else {
            let copying = if is_copying { ", the first copy is not complete" } else { "" };
            let some = |number, one, many| {
                if number == 0 { String::new() } else { format!(", {}", counted(number, one, many)) }
            };
            let waits = some(waiting, "edge waits for a vertex", "edges wait for a vertex");
            let set_aside = some(letters, "dead letter", "dead letters");
            format!("{source}  {of_source}  version {}{copying}{waits}{set_aside}", newest.version)
        })?;
    }
    Ok(())
}
