//! The `hoplake` command: one file a verb.
//!
//! Data goes to standard output, everything else to standard error; an error ends with a hint and a
//! status for its kind (see [`failure`]).

mod arguments;
mod failure;
mod opening;
mod output;
mod stopping;
#[cfg(any(feature = "serve", feature = "feed"))]
mod telemetry;
mod verbs;

use std::{process::ExitCode, sync::LazyLock};

use clap::{Parser, Subcommand};
use tokio::runtime::Builder;

/// A graph engine whose graphs live in object storage.
///
/// URL is a local folder or a prefix in a store: s3://bucket/prefix, gs://, az://, file://.
/// Credentials come from the provider's usual environment variables.
#[derive(Debug, Parser)]
#[command(name = "hoplake", version, after_help = "New here? Run: hoplake quickstart", after_long_help = LONG_HELP.as_str())]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

static LONG_HELP: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{}\n\nShell completions and manual pages: hoplake completions SHELL, hoplake man\n\nNew here? Run: hoplake quickstart",
        failure::STATUSES
    )
});

#[derive(Debug, Subcommand)]
enum Verb {
    Quickstart(verbs::quickstart::Args),
    Load(verbs::load::Args),
    Apply(verbs::apply::Args),
    #[cfg(feature = "feed")]
    Feed(verbs::feed::Args),
    Info(verbs::info::Args),
    Log(verbs::log::Args),
    Diff(verbs::diff::Args),
    Traverse(verbs::traverse::Args),
    Neighbors(verbs::neighbors::Args),
    Path(verbs::path::Args),
    Khop(verbs::khop::Args),
    Get(verbs::get::Args),
    Scan(verbs::scan::Args),
    Query(verbs::query::Args),
    Queries(verbs::queries::Args),
    Console(verbs::console::Args),
    Export(verbs::export::Args),
    Index(verbs::index::Args),
    // By far the most options: the others are not as large as it.
    Run(Box<verbs::run::Args>),
    #[cfg(feature = "serve")]
    Serve(verbs::serve::Args),
    Tag(verbs::tag::Args),
    Restore(verbs::restore::Args),
    Clone(verbs::clone::Args),
    Mirror(verbs::mirror::Args),
    Compact(verbs::compact::Args),
    Verify(verbs::verify::Args),
    Vacuum(verbs::vacuum::Args),
    Cost(verbs::cost::Args),
    CacheSim(verbs::cache_sim::Args),
    // For those who install the program: not in the list that everybody reads.
    #[command(hide = true)]
    Completions(verbs::completions::Args),
    #[command(hide = true)]
    Man(verbs::man::Args),
}

impl Verb {
    async fn run(&self) -> anyhow::Result<()> {
        self.changed_url().into_iter().for_each(opening::warn_of_mirror);
        match self {
            Self::Quickstart(args) => verbs::quickstart::run(args).await,
            Self::Load(args) => verbs::load::run(args).await,
            Self::Apply(args) => verbs::apply::run(args).await,
            #[cfg(feature = "feed")]
            Self::Feed(args) => verbs::feed::run(args).await,
            Self::Info(args) => verbs::info::run(args).await,
            Self::Log(args) => verbs::log::run(args).await,
            Self::Diff(args) => verbs::diff::run(args).await,
            Self::Traverse(args) => verbs::traverse::run(args).await,
            Self::Neighbors(args) => verbs::neighbors::run(args).await,
            Self::Path(args) => verbs::path::run(args).await,
            Self::Khop(args) => verbs::khop::run(args).await,
            Self::Get(args) => verbs::get::run(args).await,
            Self::Scan(args) => verbs::scan::run(args).await,
            Self::Query(args) => verbs::query::run(args).await,
            Self::Queries(args) => verbs::queries::run(args).await,
            Self::Console(args) => verbs::console::run(args).await,
            Self::Export(args) => verbs::export::run(args).await,
            Self::Index(args) => verbs::index::run(args).await,
            Self::Run(args) => verbs::run::run(args).await,
            #[cfg(feature = "serve")]
            Self::Serve(args) => verbs::serve::run(args).await,
            Self::Tag(args) => verbs::tag::run(args).await,
            Self::Restore(args) => verbs::restore::run(args).await,
            Self::Clone(args) => verbs::clone::run(args).await,
            Self::Mirror(args) => verbs::mirror::run(args).await,
            Self::Compact(args) => verbs::compact::run(args).await,
            Self::Verify(args) => verbs::verify::run(args).await,
            Self::Vacuum(args) => verbs::vacuum::run(args).await,
            Self::Cost(args) => verbs::cost::run(args),
            Self::CacheSim(args) => verbs::cache_sim::run(args),
            Self::Completions(args) => verbs::completions::run(args),
            Self::Man(args) => verbs::man::run(args),
        }
    }

    /// The graph that it changes, if it does.
    fn changed_url(&self) -> Option<&str> {
        let changes = match self {
            Self::Load(_) | Self::Tag(_) | Self::Restore(_) | Self::Compact(_) | Self::Vacuum(_) => true,
            Self::Apply(args) => args.commits(),
            Self::Run(args) => args.writes(),
            Self::Query(args) => args.commits(),
            Self::Console(args) => args.commits(),
            // A tag here keeps what the clone reads.
            Self::Clone(_) => true,
            Self::Index(args) => args.changes(),
            Self::Queries(args) => args.changes(),
            _ => false,
        };
        changes.then(|| self.name_and_url().1)
    }

    /// Its name and the graph it is about, for hints.
    fn name_and_url(&self) -> (&'static str, &str) {
        match self {
            Self::Quickstart(_) => ("quickstart", "URL"),
            Self::Load(args) => ("load", &args.url),
            Self::Apply(args) => ("apply", &args.url),
            #[cfg(feature = "feed")]
            Self::Feed(args) => ("feed", args.url()),
            Self::Info(args) => ("info", &args.graph.url),
            Self::Log(args) => ("log", &args.url),
            Self::Diff(args) => ("diff", &args.url),
            Self::Traverse(args) => ("traverse", &args.graph.url),
            Self::Neighbors(args) => ("neighbors", &args.graph.url),
            Self::Path(args) => ("path", &args.graph.url),
            Self::Khop(args) => ("khop", &args.graph.url),
            Self::Get(args) => ("get", &args.graph.url),
            Self::Scan(args) => ("scan", &args.graph.url),
            Self::Query(args) => ("query", &args.graph.url),
            Self::Queries(args) => ("queries", args.url()),
            Self::Console(args) => ("console", &args.graph.url),
            Self::Export(args) => ("export", &args.graph.url),
            Self::Index(args) => ("index", args.url()),
            Self::Run(args) => ("run", &args.graph.url),
            #[cfg(feature = "serve")]
            Self::Serve(_) => ("serve", "URL"),
            Self::Tag(args) => ("tag", &args.url),
            Self::Restore(args) => ("restore", &args.url),
            Self::Clone(args) => ("clone", &args.url),
            Self::Mirror(args) => ("mirror", &args.url),
            Self::Compact(args) => ("compact", &args.url),
            Self::Verify(args) => ("verify", &args.graph.url),
            Self::Vacuum(args) => ("vacuum", &args.url),
            Self::Cost(_) => ("cost", "URL"),
            Self::CacheSim(_) => ("cache-sim", "URL"),
            Self::Completions(_) => ("completions", "URL"),
            Self::Man(_) => ("man", "URL"),
        }
    }
}

fn main() -> ExitCode {
    // Before there is any other thread: it sets a number of the allocator.
    hoplake_allocator::give_back_large();
    let Cli { verb } = Cli::try_parse().unwrap_or_else(|error| arguments::shortened(error).exit());
    let outcome = Builder::new_multi_thread().enable_all().build().map_err(anyhow::Error::from).and_then(|runtime| {
        let outcome = runtime.block_on(verb.run());
        // Blocking work that a verb left on a thread must not delay the end of the process.
        runtime.shutdown_background();
        outcome
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Hints name the command that was run, as it can be copied.
            let (name, url) = verb.name_and_url();
            ExitCode::from(failure::report(&error, name, url))
        }
    }
}
