//! `hoplake mirror`: a copy of the newest version, usually on a local disk.

use std::{path::Path, time::Duration};

use hoplake::{ErrorKind, Graph, Mirrored, Store};
use serde_json::json;

use crate::{
    failure::Failure,
    opening::open_store,
    output::{numbers, print_line, progress::bytes_bar},
    stopping::stopped,
};

/// Copy the newest version to a local folder, and keep it up to date
#[derive(Debug, clap::Args)]
#[command(after_help = "\
What the folder has already is not copied again, so that the next version costs what is new in it, and a mirror that was
interrupted goes on. Objects are checked before they get their names, and a version appears as a whole. All verbs that read
a graph read the folder, with --mapped straight from the page cache; write to the graph itself.

The newest version and the one before stay. With --follow it looks for new versions until it is stopped.

Examples:
  hoplake mirror s3://bucket/social /var/lib/social
  hoplake mirror s3://bucket/social /var/lib/social --follow 10s
  hoplake run /var/lib/social pagerank --edges both:knows --mapped")]
pub struct Args {
    /// Where the graph is: a folder, or s3://bucket/prefix, gs://, az://, file://
    pub url: String,
    /// Where the mirror is to be: a folder that has nothing else, or a URL
    target: String,
    /// Go on, and look for a new version so often, as in 10s
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    follow: Option<Duration>,
    /// Print one JSON object for each version
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    let source = open_store(&args.url)?;
    let target = open_store(&args.target)?;
    let mirrored = mirror(args, &source, &target).await?;
    report(args, &mirrored)?;
    let Some(pause) = args.follow else { return Ok(()) };
    let mut stopped = std::pin::pin!(stopped());
    loop {
        tokio::select! {
            // The mirror has a version as a whole, and goes on from there.
            () = &mut stopped => return Ok(()),
            () = tokio::time::sleep(pause) => {}
        }
        let mirrored = tokio::select! {
            () = &mut stopped => return Ok(()),
            mirrored = mirror(args, &source, &target) => mirrored,
        };
        match mirrored {
            Ok(mirrored) if mirrored.is_current => {}
            Ok(mirrored) => report(args, &mirrored)?,
            // A store that does not answer may do so later; what is wrong with the graph or the folder stays wrong.
            Err(error) if may_pass(&error) => eprintln!("warning: {error:#}; it is tried again"),
            Err(error) => return Err(error),
        }
    }
}

fn may_pass(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<hoplake::Error>().map(hoplake::Error::kind);
    matches!(kind, Some(ErrorKind::Unavailable | ErrorKind::Conflict))
}

async fn mirror(args: &Args, source: &Store, target: &Store) -> anyhow::Result<Mirrored> {
    let bar = bytes_bar("copying", 0);
    let progress = |copied, all| {
        bar.set_length(all);
        bar.set_position(copied);
    };
    let mirrored = Graph::mirror(source, target, progress).await;
    bar.finish_and_clear();
    mirrored.map_err(|error| match error.kind() {
        ErrorKind::Corrupt => {
            let hint = format!("hoplake verify {} lists the damage; the mirror is as it was", args.url);
            Failure::of(&error, hint).into()
        }
        ErrorKind::Invalid if Path::new(&args.target).exists() => {
            Failure::of(&error, "the folder is as it was".to_owned()).into()
        }
        _ => error.into(),
    })
}

fn report(args: &Args, mirrored: &Mirrored) -> anyhow::Result<()> {
    let Mirrored { version, is_current, objects, bytes, kept, removed } = mirrored;
    if args.json {
        return print_line(json!({
            "version": version, "current": is_current, "objects": objects, "bytes": bytes, "kept": kept, "removed": removed,
        }));
    }
    if *is_current {
        return print_line(format_args!("{} has version {version} already", args.target));
    }
    print_line(format_args!(
        "{} has version {version}: copied {}, {}; {kept} were there, {removed} removed",
        args.target,
        numbers::counted(*objects, "object", "objects"),
        numbers::bytes(*bytes)
    ))
}
