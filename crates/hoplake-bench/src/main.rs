//! The measurements behind the choices of Hoplake, one file a verb.
//!
//! Everything is seeded, so that a table can be had again; times depend on the machine.

mod candidates;
mod codecs;
mod graphs;
#[path = "../../hoplake-ingest/src/order.rs"]
mod order;
mod orders;
mod rival_orders;
mod timing;

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
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().verb {
        Verb::Codecs(arguments) => codecs::run(&arguments),
        Verb::Orders(arguments) => orders::run(&arguments),
    }
}
