//! `hoplake clone`: a graph that begins as a version of another.

use std::time::Duration;

use hoplake::{Error, ErrorKind, Graph, Store};
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

/// What has failed at the deadline.
const NOT_CLONED: &str = "the graph was not cloned";

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    let store = within(&open_store(&args.url)?, args.timeout);
    // One deadline and one meter for both stores.
    let target = open_store(&args.target)?.metered_by(&store.context());
    let late = |error| in_time(error, NOT_CLONED, args.timeout);
    let version = match &args.version {
        Some(version) => Some(version.find(&store).await.or_else(|error| Err(late(error.downcast()?)))?),
        None => None,
    };
    // Before the clone is there: it would name what it does not have, and could not be made again.
    let copied =
        copy_feeds(&store, version, &target, args.timeout).await.map_err(|error| match error.downcast::<Error>() {
            Ok(error) => late(error),
            Err(error) => error,
        })?;
    let version = version.or(copied.version);
    let tag = Graph::clone_to(&store, version, &target).await.map_err(|error| match error.kind() {
        ErrorKind::Conflict => Failure::of(&error, "choose a target that is empty".to_owned()).into(),
        ErrorKind::Invalid => {
            Failure::of(&error, "copy the objects with your store's tools, then open the copy".to_owned()).into()
        }
        _ => late(error),
    })?;
    for source in copied.incomplete {
        eprintln!(
            "warning: the state of the feed {source:?} at this version no longer exists: start a feed of the clone with --resnapshot. Until \
             then hoplake verify reports it as missing"
        );
    }
    if args.json {
        return print_line(json!({"clone": args.target, "tag": tag}));
    }
    print_line(format_args!("{} is a clone; tag {tag:?} of {} keeps what it reads", args.target, args.url))
}

/// What was copied of the feeds of a version.
#[derive(Debug, Default)]
struct CopiedFeeds {
    /// The version; `None` if there was nothing to copy.
    version: Option<u64>,
    /// The sources whose objects are not all there any more.
    incomplete: Vec<String>,
}

/// How often a newer version is taken when a feed has gone on and removed what the one before it names.
#[cfg(feature = "feed")]
const VERSIONS_MAX: usize = 5;

/// Copies what feeds keep next to a version of a graph, the newest without a number, to where a clone is to be. What a clone that failed
/// has left there is overwritten, and what the new one does not name its vacuum removes.
#[cfg(feature = "feed")]
async fn copy_feeds(
    store: &Store,
    version: Option<u64>,
    target: &Store,
    timeout: Duration,
) -> anyhow::Result<CopiedFeeds> {
    let mut copied = CopiedFeeds::default();
    // Otherwise the clone fails, and says why.
    let can_be_cloned = store.is_beside(target) && store.url() != target.url() && !has_graph(target).await?;
    if !can_be_cloned {
        return Ok(copied);
    }
    for _ in 0..VERSIONS_MAX {
        let newest = Graph::newest(store).await?;
        let number = version.unwrap_or(newest.version);
        let before = copied.version.replace(number);
        if before == Some(number) {
            break;
        }
        let positions = match number == newest.version {
            true => newest.source_positions,
            false => positions_at(store, number).await?,
        };
        let incomplete = hoplake_feed::copy_objects(store, target, &positions).await;
        copied.incomplete = incomplete.map_err(|error| failed(error, timeout))?;
        if copied.incomplete.is_empty() {
            break;
        }
    }
    Ok(copied)
}

#[cfg(feature = "feed")]
async fn has_graph(store: &Store) -> anyhow::Result<bool> {
    match Graph::newest(store).await {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(feature = "feed")]
async fn positions_at(store: &Store, version: u64) -> anyhow::Result<std::collections::BTreeMap<String, String>> {
    let mut log = Graph::log(store).await?;
    loop {
        match log.next().await {
            Ok(Some(entry)) if entry.version > version => {}
            Ok(Some(entry)) if entry.version == version => return Ok(entry.source_positions),
            // The clone fails, and says why.
            Ok(_) => return Ok(std::collections::BTreeMap::new()),
            // Of another version, or of this one, which then cannot be cloned either.
            Err(error) if error.kind() == ErrorKind::Corrupt => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// An error of the objects of feeds. The deadline is that of the graph.
#[cfg(feature = "feed")]
fn failed(error: hoplake_feed::FeedError, timeout: Duration) -> anyhow::Error {
    match error.graph().map(Error::kind) {
        Some(ErrorKind::Limit) => {
            let message = format!("{NOT_CLONED} within {}; nothing is changed", humantime::format_duration(timeout));
            Failure::new(ErrorKind::Limit, message, "try again later, or raise --timeout").into()
        }
        _ => super::feed::failed(error),
    }
}

#[cfg(not(feature = "feed"))]
async fn copy_feeds(_: &Store, _: Option<u64>, _: &Store, _: Duration) -> anyhow::Result<CopiedFeeds> {
    Ok(CopiedFeeds::default())
}
