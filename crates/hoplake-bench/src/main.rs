//! What Hoplake takes: time, memory, requests and bytes, one file a verb.
//!
//! Everything is seeded, so that a table can be had again; times depend on the machine.

mod client;
mod commits;
mod computations;
mod conditions;
mod feed;
mod hostile;
mod idle_connections;
mod index;
mod kronecker;
mod load;
mod local;
mod organisation;
mod parquet_pairs;
mod sampling;
mod serve_load;
mod snb;
mod social_network;
mod state_stores;
mod streamed;
mod traverse;
mod upkeep;

use clap::{Parser, Subcommand};

/// Measures Hoplake and prints markdown tables.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Edges per second, peak memory and size of a load.
    Load(load::Arguments),
    /// Size of a social network by edge type, and the cost of the seven traversals from an empty process.
    Snb(snb::Arguments),
    /// Loads a generated social network of any size: edges per second, peak memory, and size by edge type.
    SocialNetwork(social_network::Arguments),
    /// Latency and rate of commits, reading after them, and what compaction rewrites.
    Commits(commits::Arguments),
    /// Latency and edges per second of traversals from warm memory.
    Traverse(traverse::Arguments),
    /// Memory, probes and end of a server under a hundred hostile clients.
    Hostile(hostile::Arguments),
    /// Waves, requests and bytes of compactions along the update stream of a social network.
    Upkeep(upkeep::Arguments),
    /// Time, memory and disk of the stores that states of vertex programs are kept in.
    StateStores(state_stores::Arguments),
    /// Kernels over lists in memory, over stored blocks and as vertex programs; of a compacted graph and of one with deltas.
    Computations(computations::Arguments),
    /// Conditions after a hop, on columns and as steps.
    Conditions(conditions::Arguments),
    /// How fast lists come from a simulated bucket.
    Streamed(streamed::Arguments),
    /// Walks and passes over a graph in mapped files that is larger than its memory, with and without advice.
    Local(local::Arguments),
    /// Samples of neighbourhoods: edges a second from memory, and batches of an epoch before the simulated bucket.
    Sampling(sampling::Arguments),
    /// Memory of a server with idle connections of Gremlin drivers.
    IdleConnections(idle_connections::Arguments),
    /// Property indexes: sizes, times, and look-ups next to scans.
    Index(index::Arguments),
    /// Prepared and dynamic queries of an organisation through a server on loopback: latency by rate, with and without kept results.
    Organisation(organisation::Arguments),
    /// A graph that follows a database: rows a second, memory, and how late it is.
    Feed(feed::Arguments),
    /// Queries a second and latency of one hop through a server on loopback.
    ServeLoad(serve_load::Arguments),
}

fn main() -> anyhow::Result<()> {
    // As the command does.
    hoplake_allocator::give_back_large();
    match Arguments::parse().verb {
        Verb::Load(arguments) => load::run(&arguments),
        Verb::Feed(arguments) => feed::run(&arguments),
        Verb::Snb(arguments) => snb::run(&arguments),
        Verb::SocialNetwork(arguments) => social_network::run(&arguments),
        Verb::Commits(arguments) => commits::run(&arguments),
        Verb::Traverse(arguments) => traverse::run(&arguments),
        Verb::Hostile(arguments) => hostile::run(&arguments),
        Verb::Upkeep(arguments) => upkeep::run(&arguments),
        Verb::StateStores(arguments) => state_stores::run(&arguments),
        Verb::Computations(arguments) => computations::run(&arguments),
        Verb::Conditions(arguments) => conditions::run(&arguments),
        Verb::Streamed(arguments) => streamed::run(&arguments),
        Verb::Sampling(arguments) => sampling::run(&arguments),
        Verb::Local(arguments) => local::run(&arguments),
        Verb::IdleConnections(arguments) => idle_connections::run(&arguments),
        Verb::Index(arguments) => index::run(&arguments),
        Verb::Organisation(arguments) => organisation::run(&arguments),
        Verb::ServeLoad(arguments) => serve_load::run(&arguments),
    }
}
