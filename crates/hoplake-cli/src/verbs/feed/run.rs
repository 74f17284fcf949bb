//! `hoplake feed run`: the first copy if there is none, and then every transaction.

use std::sync::Mutex;

use hoplake_feed::{Applied, Copied, Feed, Position, Progress, Reconciled, RunOptions, Settings};
use serde_json::json;

use super::{FileArgs, failure::failed, reconcile::summary};
use crate::{
    output::{numbers::counted, print_line},
    stopping::stopped,
};

/// Follow the database until Ctrl-C or SIGTERM
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    settings: FileArgs,
    /// End when the database has no more changes for now
    #[arg(long)]
    once: bool,
    /// Pass over the statement at this position, whatever it does to the tables
    #[arg(long, value_name = "POSITION")]
    accept_ddl: Option<String>,
    /// Compare all rows with the graph first, write what differs, and go on from there: for a position that the database no longer has
    #[arg(long)]
    resnapshot: bool,
    /// Print what was done as one JSON object
    #[arg(long)]
    json: bool,
}

/// What was done so far.
#[derive(Debug, Default)]
struct Done {
    copied: Option<Copied>,
    commits: u64,
    rows: u64,
}

#[derive(Debug, Default)]
struct Report(Mutex<Done>);

impl Progress for Report {
    fn copied(&self, copied: &Copied) {
        let Copied { rows, vertices, edges, read_ms, load_ms, position, .. } = copied;
        eprintln!(
            "first copy: {rows} rows read in {read_ms} ms, {vertices} vertices and {edges} edges loaded in {load_ms} ms, at {}",
            position.of_source
        );
        if let Ok(mut done) = self.0.lock() {
            done.copied = Some(copied.clone());
        }
    }

    fn reconciled(&self, reconciled: &Reconciled) {
        eprintln!("{}", summary(reconciled, false));
    }

    fn applied(&self, applied: &Applied, _position: &Position, _committed_unix_ms: i64) {
        if let Ok(mut done) = self.0.lock() {
            done.commits += 1;
            done.rows += applied.rows;
        }
    }
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
        .init();
    let settings = Settings::read(&args.settings.file).map_err(failed)?;
    let report = Report::default();
    let options = RunOptions { accepted: args.accept_ddl.clone(), once: args.once, resnapshot: args.resnapshot };
    let opened = tokio::select! {
        opened = Feed::open(settings, options, &report) => Some(opened),
        () = stopped() => None,
    };
    // Nothing of a first copy is visible yet.
    let Some(opened) = opened else { return Ok(()) };
    let mut feed = opened.map_err(failed)?;
    eprintln!("following from {}", feed.position().of_source);
    let ended = feed.run(stopped(), &report).await;
    let done = report.0.into_inner().unwrap_or_default();
    let (version, position) = (feed.graph().version(), &feed.position().of_source);
    print_line(if args.json {
        let copied = done.copied.map(|it| {
            json!({"rows": it.rows, "vertices": it.vertices, "edges": it.edges, "waiting": it.waiting, "read_ms": it.read_ms, "load_ms": it.load_ms})
        });
        json!({"version": version, "position": position, "commits": done.commits, "row_changes": done.rows, "first_copy": copied}).to_string()
    } else {
        let rows = counted(done.rows, "row change", "row changes");
        format!("version {version}, at {position}: {rows} in {}", counted(done.commits, "commit", "commits"))
    })?;
    ended.map_err(failed)
}
