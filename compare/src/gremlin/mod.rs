//! Hoplake's Gremlin next to TinkerPop's own server with TinkerGraph: whether the answers are the same, and how long they take.

mod canonical;
mod client;
mod cold;
mod differential;
mod explained;
mod generate;
mod latency;
mod pair;
mod subject;
mod tree;
mod world;

use anyhow::Result;
use clap::{Args, Subcommand};

/// What to compare.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Clone, Subcommand)]
enum What {
    /// The answers to random traversals of random graphs.
    Differential(differential::Arguments),
    /// How long twenty typical queries take.
    Latency(latency::Arguments),
    /// How long they wait for a simulated bucket, on a graph that was just opened.
    Cold(cold::Arguments),
    /// The answers to one traversal, on the graph of a block of those.
    Ask(differential::Question),
}

/// Compares; an error if answers differ that no reason is known for.
pub fn run(arguments: &Arguments) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    match &arguments.what {
        // Its clock is another.
        What::Cold(arguments) => cold::run(arguments),
        What::Differential(arguments) => runtime.block_on(differential::run(arguments)),
        What::Latency(arguments) => runtime.block_on(latency::run(arguments)),
        What::Ask(question) => runtime.block_on(differential::ask(question)),
    }
}
