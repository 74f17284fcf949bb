//! `hoplake restore`: an older version becomes the newest.

use std::time::Duration;

use hoplake::Graph;
use serde_json::json;

use crate::{
    opening::{VersionArg, open_store},
    output::print_line,
    stopping::{in_time, within},
};

/// Publish an older version again as the newest; versions in between stay readable
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Batches with a base before the new version are in conflict with it.

Example:
  hoplake restore s3://bucket/social --version 41 --message 'the import of May was wrong'")]
pub struct Args {
    /// Where the graph is: a folder, or s3://bucket/prefix, gs://, az://, file://
    pub url: String,
    /// The version, or its tag
    #[arg(long, value_name = "VERSION")]
    version: VersionArg,
    /// A message to keep with the new version
    #[arg(long, value_name = "TEXT", default_value = "")]
    message: String,
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
    let late = |error| in_time(error, "the version was not restored", args.timeout);
    let version = args.version.find(&store).await.or_else(|error| Err(late(error.downcast()?)))?;
    let restored = Graph::restore(&store, version, &args.message).await.map_err(late)?;
    if args.json {
        return print_line(json!({"version": restored, "restored": version}));
    }
    print_line(format_args!("version {restored} has the content of version {version}"))
}
