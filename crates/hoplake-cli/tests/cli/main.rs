//! Runs the binary as a person or a script does.

#![expect(clippy::unwrap_used, reason = "helpers outside of #[test] functions are test code, too")]

mod apply;
mod azure;
mod cache_sim;
mod collector;
mod computations;
mod console;
mod cost;
mod costs;
mod damaged;
mod deadlines;
mod documents;
mod durable;
mod errors;
mod export;
mod feed;
mod feed_employees;
#[cfg(feature = "kinesis")]
mod feed_kinesis;
mod feed_running;
mod hoplake;
mod index;
mod inputs;
mod installing;
mod leftovers;
mod load;
mod memory;
mod mirrors;
mod mistakes;
mod outputs;
mod prepared;
mod queries;
mod quickstart;
mod round_trips;
mod serve;
mod stores;
mod upkeep;
mod versions;
mod wide;
