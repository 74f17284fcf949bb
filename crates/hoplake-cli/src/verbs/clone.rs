//! `hoplake clone`: a graph that begins as a version of another.

use std::time::Duration;

use hoplake::{ErrorKind, Graph, Store};
use serde_json::json;

use crate::{
    failure::Failure,
    opening::{VersionArg, open_store},
    output::print_line,
    stopping::{in_time, within},
};

/// Create a graph at another location of the same bucket from a version of this one, without a copy
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The clone reads the objects of the graph it began as, which a tag there keeps, and writes its own: changes to either
are invisible to the other. When the clone is deleted, delete the tag, too.

Example:
  hoplake clone s3://bucket/social s3://bucket/what-if --version 41")]
pub struct Args {
    /// Where the graph is: a folder, or s3://bucket/prefix, gs://, az://, file://
    pub url: String,
    /// Where the clone is to be, in the same bucket
    target: String,
    /// The version, or its tag, instead of the newest
    #[arg(long, value_name = "VERSION")]
    version: Option<VersionArg>,
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
    // One deadline and one meter for both stores.
    let target = open_store(&args.target)?.metered_by(&store.context());
    let late = |error| in_time(error, "the graph was not cloned", args.timeout);
    let version = match &args.version {
        Some(version) => Some(version.find(&store).await.or_else(|error| Err(late(error.downcast()?)))?),
        None => None,
    };
    let tag = Graph::clone_to(&store, version, &target).await.map_err(|error| match error.kind() {
        ErrorKind::Conflict => Failure::of(&error, "choose a target that is empty".to_owned()).into(),
        ErrorKind::Invalid => {
            Failure::of(&error, "copy the objects with your store's tools, then open the copy".to_owned()).into()
        }
        _ => late(error),
    })?;
    copy_feeds(&store, &target).await?;
    if args.json {
        return print_line(json!({"clone": args.target, "tag": tag}));
    }
    print_line(format_args!("{} is a clone; tag {tag:?} of {} keeps what it reads", args.target, args.url))
}

/// Copies what feeds keep next to the graph.
#[cfg(feature = "feed")]
async fn copy_feeds(store: &Store, target: &Store) -> anyhow::Result<()> {
    let positions = Graph::newest(target).await?.source_positions;
    for source in hoplake_feed::copy_objects(store, target, &positions).await.map_err(super::feed::failed)? {
        eprintln!(
            "warning: the state of the feed {source:?} at this version no longer exists: start a feed of the clone with --resnapshot. Until \
             then hoplake verify reports it as missing"
        );
    }
    Ok(())
}

#[cfg(not(feature = "feed"))]
async fn copy_feeds(_: &Store, _: &Store) -> anyhow::Result<()> {
    Ok(())
}
