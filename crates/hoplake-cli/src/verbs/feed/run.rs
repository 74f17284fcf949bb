//! `hoplake feed run`: the first copy if there is none, and then every transaction.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
};

use hoplake::ErrorKind;
use hoplake_doors::parse_address;
use hoplake_feed::{Copied, Event, Feed, Listening, Monitor, Progress, RunOptions, Settings};
use serde_json::json;

use super::{arguments::FileArgs, failure::failed, reconcile::summary};
use crate::{
    failure::Failure,
    output::{numbers::counted, print_line},
    stopping::stopped,
    telemetry::{self, LogFormat},
};

/// Follow the database until Ctrl-C or SIGTERM
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    settings: FileArgs,
    /// End where the database was when the command began, though others go on writing
    #[arg(long)]
    once: bool,
    /// Fail at once, with status 5, if the database or the store is not there at the start; by default they are waited for
    #[arg(long)]
    no_wait: bool,
    /// Go on over the stop at this position: the graph is right without what happened to the tables there
    #[arg(long, value_name = "POSITION")]
    accept_ddl: Option<String>,
    /// Compare all rows with the graph first, write what differs, and go on from there: after a stop, or for a position that the database no longer has
    #[arg(long)]
    resnapshot: bool,
    /// Print what was done as one JSON object
    #[arg(long)]
    json: bool,
    /// Where /metrics, /healthz, /readyz and /status can be asked, in place of http.listen; port 0 takes a free one
    #[arg(long, value_name = "IP:PORT", value_parser = parse_address)]
    http: Option<SocketAddr>,
    /// The log filter: a level, or levels by module, as in warn,hoplake_feed=info, which logs each commit
    #[arg(long, value_name = "LEVELS", default_value = "warn")]
    log: String,
    /// How it is logged, on standard error
    #[arg(long, value_enum, default_value = "text")]
    log_format: LogFormat,
}

/// What was done so far.
#[derive(Debug, Default)]
struct Done {
    copied: Option<Copied>,
    commits: u64,
    rows: u64,
}

struct Report {
    done: Mutex<Done>,
    monitor: Arc<Monitor>,
}

impl Report {
    fn done(&self) -> MutexGuard<'_, Done> {
        self.done.lock().expect("no thread panics with what was done")
    }
}

impl Progress for Report {
    fn report(&self, event: &Event<'_>) {
        self.monitor.report(event);
        let mut done = self.done();
        match event {
            Event::Copied(copied) => {
                let Copied { rows, vertices, edges, read_ms, load_ms, position, .. } = copied;
                eprintln!(
                    "first copy: {rows} rows read in {read_ms} ms, {vertices} vertices and {edges} edges loaded in {load_ms} ms, at {}",
                    position.of_source
                );
                done.copied = Some((*copied).clone());
            }
            Event::Reconciled(reconciled) => eprintln!("{}", summary(reconciled, false)),
            Event::Applied(applied, _) => {
                done.commits += 1;
                done.rows += applied.rows;
            }
            _ => {}
        }
    }
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    let hint = "hoplake feed run --help shows how it is written";
    let telemetry = telemetry::start("hoplake-feed", args.log_format, &args.log, hint)?;
    let settings = args.settings.settings_to_change()?;
    let report = Arc::new(Report { done: Mutex::default(), monitor: Arc::new(Monitor::new(&settings)) });
    let _listening = listen(args, &settings, &report.monitor)?;
    let ended = follow(args, settings, &report).await;
    telemetry::finish(telemetry).await?;
    ended
}

/// Listens, if that is asked for.
fn listen(args: &Args, settings: &Settings, monitor: &Arc<Monitor>) -> anyhow::Result<Option<Listening>> {
    let of_file = || {
        let text = settings.http.listen.as_deref()?;
        Some(parse_address(text).map_err(|error| Failure::usage(format!("http.listen: {error}"), "correct feed.toml")))
    };
    let Some(address) = args.http.map(Ok).or_else(of_file).transpose()? else { return Ok(None) };
    let listening = Listening::open(address, monitor.clone()).map_err(|error| {
        let kind = if error.is_taken() { ErrorKind::Conflict } else { ErrorKind::Invalid };
        Failure::new(kind, error.to_string(), "choose another with --http; port 0 takes a free one")
    })?;
    // For programs that chose port 0.
    eprintln!("listening http={}", listening.address());
    Ok(Some(listening))
}

/// Follows until the end, and prints what was done.
async fn follow(args: &Args, settings: Settings, report: &Arc<Report>) -> anyhow::Result<()> {
    let accepted = args.accept_ddl.clone();
    let once = args.once;
    let no_wait = args.no_wait;
    let options = RunOptions { accepted, once, resnapshot: args.resnapshot, no_wait };
    let opened = tokio::select! {
        opened = Feed::open(settings, options, report.clone()) => Some(opened),
        () = stopped() => None,
    };
    // Nothing of a first copy is visible yet.
    let Some(opened) = opened else { return Ok(()) };
    let mut feed = opened.inspect_err(|error| report.report(&Event::Stopped(Some(error)))).map_err(failed)?;
    eprintln!("following from {}", feed.position().of_source);
    let ended = feed.run(stopped()).await;
    report.report(&Event::Stopped(ended.as_ref().err()));
    let done = report.done();
    let version = feed.graph().version();
    let position = &feed.position().of_source;
    print_line(if args.json {
        let copied = done.copied.as_ref().map(|it| {
            json!({"rows": it.rows, "vertices": it.vertices, "edges": it.edges, "waiting": it.waiting, "read_ms": it.read_ms, "load_ms": it.load_ms})
        });
        json!({"version": version, "position": position, "commits": done.commits, "row_changes": done.rows, "first_copy": copied}).to_string()
    } else {
        let rows = counted(done.rows, "row change", "row changes");
        format!("version {version}, at {position}: {rows} in {}", counted(done.commits, "commit", "commits"))
    })?;
    ended.map_err(failed)
}
