//! Feeds from real servers, next to what the tables say.

#![expect(clippy::unwrap_used, reason = "helpers outside of #[test] functions are test code, too")]

mod changing;
mod confirming;
mod decoding;
mod encrypted;
mod following;
mod foreign_keys;
mod http;
#[cfg(feature = "kafka")]
mod logs;
mod mariadb;
mod model;
mod operations;
mod postgres;
mod publications;
mod reconciling;
mod remapping;
mod samples;
mod workload;
