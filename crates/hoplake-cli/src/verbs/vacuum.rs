//! `hoplake vacuum`: removes what no version names.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hoplake::{Graph, VacuumSettings};
use serde_json::json;

use crate::{
    opening::open_store,
    output::{numbers, print_line},
};

/// Remove what loads that failed or were interrupted left behind
#[derive(Debug, clap::Args)]
#[command(after_help = "\
No version of the graph loses anything. What may belong to a load that is still running stays until it
is --min-age old; choose more than your longest load takes.

Example:
  hoplake vacuum s3://bucket/social --min-age 6h")]
pub struct Args {
    /// Where the graph is: a folder, or s3://bucket/prefix, gs://, az://, file://
    pub url: String,
    /// How long ago it was last written, at least, as in 90m or 2days
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = humantime::parse_duration)]
    min_age: Duration,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    let store = open_store(&args.url)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let written_before_unix_ms = now.saturating_sub(args.min_age).as_millis() as i64;
    let settings = VacuumSettings { written_before_unix_ms, ..VacuumSettings::default() };
    let vacuumed = Graph::vacuum(&store, &settings).await?;
    if args.json {
        return print_line(json!({"objects": vacuumed.objects, "bytes": vacuumed.bytes}));
    }
    print_line(format_args!(
        "removed {}, {}",
        numbers::counted(vacuumed.objects, "object", "objects"),
        numbers::bytes(vacuumed.bytes)
    ))
}
