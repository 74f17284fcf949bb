//! Hoplake compared with others, one file a verb: what was measured before its codec, its order of vertices and its caches were
//! chosen, its Gremlin next to the reference server's, and the study whose goals it set itself.
//!
//! Everything is seeded, so that a table can be had again; times depend on the machine.

mod baseline_orders;
mod cache;
mod candidates;
mod codecs;
mod evaluate;
mod graphs;
mod gremlin;
mod kernels;
mod orders;
mod scans;
mod timing;

use clap::{Parser, Subcommand};

/// Compares Hoplake with others and prints markdown tables.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Size and speed of the adjacency codec and of those that were not chosen (RFC 0002).
    Codecs(codecs::Arguments),
    /// Size and blocks touched by the order of the vertices (RFC 0002).
    Orders(orders::Arguments),
    /// Nanoseconds of a hit and of an insert in the memory cache, by policy, and of a library's.
    Cache(cache::Arguments),
    /// Whole-graph kernels on the Kronecker graph of the GAP suite, next to the `graph` crate and networkit.
    Kernels(kernels::Arguments),
    /// Scans with a condition, next to DuckDB over the same Parquet files.
    Scans(scans::Arguments),
    /// Gremlin, next to TinkerPop's own server with TinkerGraph.
    Gremlin(gremlin::Arguments),
    /// A published study of traversals over object storage repeated, and the goals of Hoplake; writes a report.
    Evaluate(evaluate::Arguments),
}

fn main() -> anyhow::Result<()> {
    // As the command does.
    hoplake_allocator::give_back_large();
    match Arguments::parse().verb {
        Verb::Codecs(arguments) => codecs::run(&arguments),
        Verb::Orders(arguments) => orders::run(&arguments),
        Verb::Cache(arguments) => cache::run(&arguments),
        Verb::Kernels(arguments) => kernels::run(&arguments),
        Verb::Scans(arguments) => scans::run(&arguments),
        Verb::Gremlin(arguments) => gremlin::run(&arguments),
        Verb::Evaluate(arguments) => evaluate::run(&arguments),
    }
}
