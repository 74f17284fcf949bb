//! The measurements behind the choices of Hoplake, one file a verb.
//!
//! Everything is seeded, so that a table can be had again; times depend on the machine.

mod cache;
mod candidates;
mod codecs;
mod commits;
mod evaluate;
mod graphs;
mod hostile;
mod load;
mod orders;
mod parquet_pairs;
mod rival_orders;
mod serve_load;
mod snb;
mod social_network;
mod timing;
mod traverse;
mod upkeep;

use clap::{Parser, Subcommand};

/// Measures what Hoplake's design rests on and prints markdown tables.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Size and speed of the adjacency codec and of its rivals (RFC 0002).
    Codecs(codecs::Arguments),
    /// Size and blocks touched by the order of the vertices (RFC 0002).
    Orders(orders::Arguments),
    /// Edges per second, peak memory and size of a load.
    Load(load::Arguments),
    /// Size of a social network by edge type, and the cost of the seven traversals from an empty process.
    Snb(snb::Arguments),
    /// Nanoseconds of a hit and of an insert in the memory cache, by policy and beside a library.
    Cache(cache::Arguments),
    /// Loads a generated social network of any size: edges per second, peak memory, and size by edge type.
    SocialNetwork(social_network::Arguments),
    /// A published study of traversals over object storage repeated, and the goals of Hoplake; writes a report.
    Evaluate(evaluate::Arguments),
    /// Latency and rate of commits, reading behind them, and what compaction rewrites.
    Commits(commits::Arguments),
    /// Latency and edges per second of traversals from warm memory.
    Traverse(traverse::Arguments),
    /// Memory, probes and end of a server under a hundred hostile clients.
    Hostile(hostile::Arguments),
    /// Waves, requests and bytes of compactions behind the update stream of a social network.
    Upkeep(upkeep::Arguments),
    /// Queries a second and latency of one hop through a server on loopback.
    ServeLoad(serve_load::Arguments),
}

fn main() -> anyhow::Result<()> {
    // As the command does.
    hoplake_allocator::give_back_large();
    match Arguments::parse().verb {
        Verb::Codecs(arguments) => codecs::run(&arguments),
        Verb::Orders(arguments) => orders::run(&arguments),
        Verb::Load(arguments) => load::run(&arguments),
        Verb::Snb(arguments) => snb::run(&arguments),
        Verb::Cache(arguments) => cache::run(&arguments),
        Verb::SocialNetwork(arguments) => social_network::run(&arguments),
        Verb::Evaluate(arguments) => evaluate::run(&arguments),
        Verb::Commits(arguments) => commits::run(&arguments),
        Verb::Traverse(arguments) => traverse::run(&arguments),
        Verb::Hostile(arguments) => hostile::run(&arguments),
        Verb::Upkeep(arguments) => upkeep::run(&arguments),
        Verb::ServeLoad(arguments) => serve_load::run(&arguments),
    }
}
