//! `hoplake vacuum`: lets old versions go, and removes what no version names.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hoplake::{ChangeKind, Error, ErrorKind, Graph, Store, VacuumSettings, Vacuumed, WriterLease};
use serde_json::{Value, json};

use crate::{
    failure::Failure,
    opening::open_store,
    output::{numbers, print_line},
    stopping::timeout_ms,
    verbs::verify,
};

/// Delete old versions, and leftovers of failed or interrupted writers
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --keep-versions and --keep-for all versions stay, and only leftovers are removed. The newest version and those
with a tag always stay. A query on a deleted version can fail with missing objects: keep versions for longer than
your longest query.

A writer that began from the newest version may still be at work; what it has written stays until it is --min-age old.
Loads and compactions announce themselves, and are spared until they are taken for dead. Objects of feeds that the
newest version does not name are removed when they are --min-age old and no load is at work; a feed that is about to
commit then writes new ones.

Example:
  hoplake vacuum s3://bucket/social --keep-versions 10 --keep-for 7days")]
pub struct Args {
    /// Where the graph is: a folder, or s3://bucket/prefix, gs://, az://, file://
    pub url: String,
    /// Keep this many of the newest versions
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    keep_versions: Option<u64>,
    /// Keep the versions that were the newest at any time since, as in 90m or 7days
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    keep_for: Option<Duration>,
    /// How long ago a leftover of the newest version was written, at least
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = humantime::parse_duration)]
    min_age: Duration,
    /// Take loads and compactions for dead that began so long ago; they cannot publish any more
    #[arg(long, value_name = "TIME", default_value = "2days", value_parser = humantime::parse_duration)]
    dead_after: Duration,
    /// Take this writer for dead, as hoplake log names it. May be repeated
    #[arg(long, value_name = "WRITER")]
    abort: Vec<String>,
    /// End after so long; the next vacuum removes the rest
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = humantime::parse_duration)]
    timeout: Duration,
    /// Read the whole graph first, as hoplake verify does, and delete nothing if the newest version is damaged. Without it, a
    /// vacuum sees whether objects are missing or too short, and not whether their bytes are right
    #[arg(long)]
    verify: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    let store = open_store(&args.url)?;
    let begun = Instant::now();
    if args.verify {
        // Nothing is deleted before it ends, so it can simply be dropped.
        let verified = tokio::time::timeout(args.timeout, verify::newest_is_intact(&store, &args.url)).await;
        verified.unwrap_or_else(|_| Err(not_done(args, "raise --timeout, or run hoplake verify by itself").into()))?;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let ago = |time: Duration| now.saturating_sub(time).as_millis() as u64;
    let settings = VacuumSettings {
        // The newest is one of them, and no past version.
        keep_versions: args.keep_versions.map(|count| count - 1),
        keep_since_unix_ms: args.keep_for.map(ago),
        written_before_unix_ms: ago(args.min_age) as i64,
        announced_before_unix_ms: ago(args.dead_after),
        abort: args.abort.clone(),
        timeout_ms: Some(timeout_ms(args.timeout.saturating_sub(begun.elapsed()))),
    };
    let mut vacuumed = Graph::vacuum(&store, &settings).await.map_err(|error| explain(args, error))?;
    // A load may be a first copy of a feed, which takes hours.
    let is_loading = vacuumed.spared.iter().any(|lease| lease.kind == ChangeKind::Load);
    let cleared = match is_loading {
        true => Ok(()),
        false => {
            let left = args.timeout.saturating_sub(begun.elapsed());
            let clearing = vacuum_feeds(&store, settings.written_before_unix_ms, &mut vacuumed);
            let cleared = tokio::time::timeout(left, clearing).await;
            cleared.unwrap_or_else(|_| Err(not_done(args, RUN_AGAIN).into()))
        }
    };
    for lease in &vacuumed.spared {
        eprintln!("{} {} is at work since version {}", lease.kind.name(), lease.writer, lease.since);
    }
    // Also before an error: what was removed until then cannot be restored.
    print_line(if args.json { as_json(&vacuumed).to_string() } else { as_text(&vacuumed) })?;
    cleared
}

/// What to do about a vacuum that was not done in time.
const RUN_AGAIN: &str = "run it again to remove the rest, or raise --timeout";

/// Removes what feeds have written next to the graph, and no version names. Adds it to what was removed, also if it fails or is broken off.
#[cfg(feature = "feed")]
async fn vacuum_feeds(store: &Store, written_before_unix_ms: i64, vacuumed: &mut Vacuumed) -> anyhow::Result<()> {
    let mut counted = FeedObjectCount { removed: hoplake_feed::RemovedObjects::default(), vacuumed };
    let removed = hoplake_feed::remove_orphans(store, written_before_unix_ms, &mut counted.removed).await;
    removed.map_err(super::feed::failed)
}

/// Counts removed objects of feeds, and adds them to the graph's on drop, also after an error.
#[cfg(feature = "feed")]
struct FeedObjectCount<'a> {
    removed: hoplake_feed::RemovedObjects,
    vacuumed: &'a mut Vacuumed,
}

#[cfg(feature = "feed")]
impl Drop for FeedObjectCount<'_> {
    fn drop(&mut self) {
        self.vacuumed.objects += self.removed.objects;
        self.vacuumed.bytes += self.removed.bytes;
    }
}

#[cfg(not(feature = "feed"))]
async fn vacuum_feeds(_: &Store, _: i64, _: &mut Vacuumed) -> anyhow::Result<()> {
    Ok(())
}

fn not_done(args: &Args, hint: &str) -> Failure {
    let message = format!("the vacuum was not done within {}", humantime::format_duration(args.timeout));
    Failure::new(ErrorKind::Limit, message, hint)
}

fn explain(args: &Args, error: Error) -> anyhow::Error {
    let url = &args.url;
    match error.kind() {
        ErrorKind::Limit => not_done(args, RUN_AGAIN).into(),
        ErrorKind::Corrupt => {
            let hint = format!("hoplake verify {url} lists the damage, and the version that can be restored");
            Failure::of(&error, hint).into()
        }
        _ => error.into(),
    }
}

fn as_text(vacuumed: &Vacuumed) -> String {
    let versions = match vacuumed.versions {
        0 => String::new(),
        versions => format!("{}, ", numbers::counted(versions, "version", "versions")),
    };
    let aborted = match vacuumed.aborted.len() {
        0 => String::new(),
        writers => format!("; aborted {}", numbers::counted(writers as u64, "writer", "writers")),
    };
    let objects = numbers::counted(vacuumed.objects, "object", "objects");
    format!("removed {versions}{objects}, {}{aborted}", numbers::bytes(vacuumed.bytes))
}

fn as_json(vacuumed: &Vacuumed) -> Value {
    let writers = |leases: &[WriterLease]| leases.iter().map(|lease| lease.writer.clone()).collect::<Vec<_>>();
    json!({
        "versions": vacuumed.versions, "objects": vacuumed.objects, "bytes": vacuumed.bytes,
        "aborted": writers(&vacuumed.aborted), "spared": writers(&vacuumed.spared),
    })
}
