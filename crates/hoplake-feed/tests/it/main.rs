//! Feeds from real servers, next to what the tables say.

#![expect(clippy::unwrap_used, reason = "helpers outside of #[test] functions are test code, too")]

mod following;
mod http;
#[cfg(feature = "kafka")]
mod logs;
mod mariadb;
mod model;
mod postgres;
mod reconciling;
mod samples;
mod workload;
