//! `hoplake tag`: names versions.

use hoplake::Graph;
use serde_json::json;

use crate::{
    opening::{GraphArgs, open_store},
    output::print_line,
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
    /// The name; one that is there moves
    name: Option<String>,
    /// The version instead of the newest
    #[arg(long, value_name = "N", requires = "name")]
    version: Option<u64>,
    /// Remove the name
    #[arg(long, requires = "name", conflicts_with = "version")]
    delete: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    let graph = GraphArgs::at(args.url.clone()).open().await?.graph;
    let tags = &graph.manifest().tags;
    let Some(name) = &args.name else {
        if args.json {
            return print_line(json!(tags));
        }
        return tags.iter().try_for_each(|(name, version)| print_line(format_args!("{name}  {version}")));
    };
    let version = if args.delete { None } else { Some(args.version.unwrap_or(graph.version())) };
    Graph::tag(&open_store(&args.url)?, name, version).await?;
    if args.json {
        return print_line(json!({"tag": name, "version": version}));
    }
    match version {
        Some(version) => print_line(format_args!("{name} is version {version}")),
        None => print_line(format_args!("{name} is no tag any more")),
    }
}
