//! `hoplake cache-sim`: how a recorded workload would do with other caches.

#[cfg(feature = "plots")]
mod plot;

use std::{io::ErrorKind as IoErrorKind, path::PathBuf};

use bytesize::ByteSize;
use hoplake::{
    ErrorKind,
    caching::{Recording, Tier, TraceError},
};
use hoplake_cache_sim::{Contender, Fetched, Outcome, Plan, Summary, Workload};
use serde_json::{Value, json};

use super::limits::processors;
#[cfg(feature = "plots")]
use crate::output::check_writable;
use crate::{
    arguments,
    failure::Failure,
    output::{numbers, print_line, tables::table},
};

/// Replay a recorded trace of accesses against caches of other sizes and policies
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A trace is CSV, compressed if its name ends in .zst, with these columns:
  query,wave,object,position,bytes,served
Policies: lru, lfu, lrfu:LAMBDA, s3-fifo, w-tiny-lfu. With +retention-cost, those with scores keep a
small block longer, since it costs a full request all the same. The table adds belady, which knows the future (optimal if
all blocks have one size), and bound, which no policy can exceed.

Example: what would half and twice the memory do, and would another policy?
  hoplake cache-sim trace.csv.zst --sizes 128MiB,256MiB,512MiB --policies lru,s3-fifo --plot curves.svg")]
pub struct Args {
    /// The trace
    trace: PathBuf,
    /// Sizes of the cache, as in 16MiB; by default parts of what holds everything, from a 64th to a half
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    sizes: Vec<ByteSize>,
    /// Policies to compare; by default all
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    policies: Vec<Contender>,
    /// Replay also with read-ahead: a miss brings up to this many blocks that follow in the same object
    #[arg(long, value_name = "BLOCKS", default_value_t = 0, value_parser = arguments::count::<usize>, allow_negative_numbers = true)]
    prefetch: usize,
    /// Draw the hit-ratio curves
    #[cfg(feature = "plots")]
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub fn run(args: &Args) -> anyhow::Result<()> {
    #[cfg(feature = "plots")]
    args.check()?;
    let recording = Recording::read(&args.trace).map_err(|error| unreadable(&error))?;
    let workload = Workload::new(&recording);
    drop(recording);
    let summary = workload.summary();
    let outcomes = args.plan(&summary).run(&workload, processors());
    #[cfg(feature = "plots")]
    if let Some(path) = &args.plot {
        plot::draw(path, &outcomes)?;
    }
    if args.json {
        return print_line(to_json(&summary, &outcomes));
    }
    print_summary(&summary)?;
    print_outcomes(&outcomes)
}

impl Args {
    /// Rejects arguments that could not be drawn, before any work.
    #[cfg(feature = "plots")]
    fn check(&self) -> Result<(), Failure> {
        match &self.plot {
            Some(path) if !path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg")) => {
                let message = format!("{} is not a name for a plot: plots are SVG", path.display());
                Err(Failure::usage(message, "end its name in .svg"))
            }
            Some(path) => check_writable(path),
            None => Ok(()),
        }
    }

    fn plan(&self, summary: &Summary) -> Plan {
        let mut plan = Plan { read_ahead_blocks: self.prefetch, ..Plan::default() };
        plan.sizes = self.sizes.iter().map(|size| size.as_u64()).collect();
        if plan.sizes.is_empty() {
            plan.sizes = (1..=6).rev().map(|halvings| summary.cache_bytes >> halvings).collect();
        }
        plan.sizes.sort_unstable();
        plan.sizes.dedup();
        if !self.policies.is_empty() {
            plan.contenders.clear();
            for contender in self.policies.iter().chain(&[Contender::Belady, Contender::Bound]) {
                if !plan.contenders.contains(contender) {
                    plan.contenders.push(*contender);
                }
            }
        }
        plan
    }
}

fn unreadable(error: &TraceError) -> Failure {
    match error {
        TraceError::Read { source, .. } if source.kind() == IoErrorKind::NotFound => {
            Failure::new(ErrorKind::NotFound, error.to_string(), "check its name")
        }
        _ => Failure::usage(error.to_string(), "hoplake cache-sim --help shows the columns of a trace"),
    }
}

/// The contender, and the read-ahead it had.
fn name(outcome: &Outcome) -> String {
    match outcome.read_ahead_blocks {
        0 => outcome.contender.to_string(),
        blocks => format!("{}, {blocks} ahead", outcome.contender),
    }
}

fn print_summary(summary: &Summary) -> anyhow::Result<()> {
    print_line(format_args!(
        "{} in {}: {} of {}, and {} in a cache",
        numbers::counted(summary.accesses, "access", "accesses"),
        numbers::counted(summary.queries, "query", "queries"),
        numbers::bytes(summary.bytes),
        numbers::counted(summary.blocks, "block", "blocks"),
        numbers::bytes(summary.cache_bytes),
    ))?;
    let served = Tier::ALL.iter().zip(summary.served).filter(|(_, accesses)| *accesses > 0);
    let served = served.map(|(from, accesses)| format!("{} {}", from.name(), percent(accesses, summary.accesses)));
    print_line(format_args!("When recorded, served from: {}\n", served.collect::<Vec<_>>().join(", ")))
}

fn print_outcomes(outcomes: &[Outcome]) -> anyhow::Result<()> {
    let header = ["policy", "cache", "object hits", "byte hits", "read ahead", "requests", "from store"];
    let mut rows = table(&header, &[1, 2, 3, 4, 5, 6]);
    for outcome in outcomes {
        let fetched = |text: fn(&Fetched) -> String| outcome.fetched.as_ref().map_or_else(|| "–".into(), text);
        rows.add_row([
            name(outcome),
            numbers::bytes(outcome.cache_bytes_max),
            percent(outcome.hits + outcome.prefetched, outcome.accesses),
            percent(outcome.hit_bytes, outcome.bytes),
            percent(outcome.prefetched, outcome.accesses),
            fetched(|fetched| numbers::count(fetched.requests)),
            fetched(|fetched| numbers::bytes(fetched.bytes)),
        ]);
    }
    print_line(rows)
}

/// `12.3 %`.
fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", if whole == 0 { 0.0 } else { part as f64 / whole as f64 * 100.0 })
}

fn to_json(summary: &Summary, outcomes: &[Outcome]) -> Value {
    let served: serde_json::Map<_, _> =
        Tier::ALL.iter().zip(summary.served).map(|(from, accesses)| (from.name().into(), accesses.into())).collect();
    let outcome = |outcome: &Outcome| {
        json!({
            "policy": outcome.contender.to_string(),
            "cache_bytes_max": outcome.cache_bytes_max,
            "read_ahead_blocks": outcome.read_ahead_blocks,
            "hits": outcome.hits,
            "prefetched": outcome.prefetched,
            "object_hit_ratio": outcome.object_hit_ratio(),
            "byte_hit_ratio": outcome.byte_hit_ratio(),
            "requests": outcome.fetched.map(|fetched| fetched.requests),
            "store_bytes": outcome.fetched.map(|fetched| fetched.bytes),
        })
    };
    json!({
        "trace": {
            "accesses": summary.accesses,
            "queries": summary.queries,
            "bytes": summary.bytes,
            "blocks": summary.blocks,
            "cache_bytes": summary.cache_bytes,
            "served": served,
        },
        "outcomes": outcomes.iter().map(outcome).collect::<Vec<_>>(),
    })
}
