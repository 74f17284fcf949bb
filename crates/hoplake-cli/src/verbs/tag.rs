//! `hoplake tag`: names versions.

use std::time::Duration;

use hoplake::Graph;
use serde_json::json;

use crate::{
    arguments,
    opening::open_store,
    output::print_line,
    stopping::{in_time, within},
};

/// Name a version, so that no vacuum removes it; without a name print the names there are
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  hoplake tag s3://bucket/social before-import
  hoplake traverse s3://bucket/social --version before-import …
  hoplake tag s3://bucket/social before-import --delete")]
pub struct Args {
    /// Where the graph is: a folder, or s3://bucket/prefix, gs://, az://, file://
    pub url: String,
    /// The name; an existing one moves
    name: Option<String>,
    /// The version instead of the newest
    #[arg(long, value_name = "N", requires = "name", value_parser = arguments::count::<u64>, allow_negative_numbers = true)]
    version: Option<u64>,
    /// Remove the name
    #[arg(long, requires = "name", conflicts_with = "version")]
    delete: bool,
    /// How long it may take; then it ends, and reports whether the graph is known to be unchanged
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = humantime::parse_duration)]
    timeout: Duration,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    let store = within(&open_store(&args.url)?, args.timeout);
    let late = |error| in_time(error, "the tags were not read, or not changed,", args.timeout);
    let newest = Graph::newest(&store).await.map_err(late)?;
    let tags = &newest.tags;
    let Some(name) = &args.name else {
        if args.json {
            return print_line(json!(tags));
        }
        return tags.iter().try_for_each(|(name, version)| print_line(format_args!("{name}  {version}")));
    };
    let version = if args.delete { None } else { Some(args.version.unwrap_or(newest.version)) };
    Graph::tag(&store, name, version).await.map_err(late)?;
    if args.json {
        return print_line(json!({"tag": name, "version": version}));
    }
    match version {
        Some(version) => print_line(format_args!("{name} is version {version}")),
        None => print_line(format_args!("{name} is no longer a tag")),
    }
}
