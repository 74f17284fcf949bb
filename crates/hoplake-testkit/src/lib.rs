//! Generators, oracle, recording stores and real servers for the tests of Hoplake. Development only.
//!
//! - [`AlteredStore`]: an object store in which some requests go wrong, or wait, as a test wants it.
//! - [`WaveStore`]: an object store that counts dependent round trips, requests and bytes exactly; [`WaveProxy`]: the same
//!   before a real S3 server, for real processes.
//! - [`SimStore`]: an object store with published latencies, limits and prices, in virtual or real time;
//!   [`SimProxy`]: the same before a real S3 server.
//! - [`S3Server`]: a real S3 server on a loopback port, with conditional writes that hold; [`TcpProxy`]: a network before it
//!   that breaks.
//! - [`AzuriteServer`]: a real server of Azure Blob Storage's protocol, likewise.
//! - [`MariaDbServer`] and [`PostgresServer`]: databases whose changes can be followed; [`Debezium`] and [`Maxwell`]: others that follow
//!   them, and write to a file or to a [`KafkaServer`]; [`KinesisServer`]: streams.
//! - [`HoplakeServer`]: `hoplake serve` as a process of its own.
//! - [`ReservedPort`]: a port for a program that has to be told its port.
//! - [`DuckDb`]: another database, to hold answers against.
//! - [`GremlinServer`]: TinkerPop's own server on a loopback port; [`gremlin_python`], [`gremlin_javascript`] and [`gremlin_java`]:
//!   Gremlin's drivers.
//! - [`clock`]: virtual time for the store and processor time for the rest, kept apart.
//! - [`oracle`]: a naive property graph with reference functions to hold the engine's answers against.
//! - [`generate`]: seeded graphs: Kronecker, log-normal, social networks, and small ones with labels.
//! - [`snb`]: the real social networks and the answers that queries on them must give.

mod altered_store;
mod azurite;
pub mod clock;
mod debezium;
mod duckdb;
pub mod generate;
mod gremlin_drivers;
mod gremlin_server;
mod hoplake_server;
mod java;
mod kafka;
mod kinesis;
mod mariadb;
mod maxwell;
pub mod oracle;
mod port;
mod postgres;
mod programs;
mod requests;
mod s3_server;
#[cfg(test)]
mod samples;
mod sim;
pub mod snb;
mod tcp_proxy;
mod wave_proxy;
mod wave_store;

pub use altered_store::{Alteration, AlteredStore};
pub use azurite::AzuriteServer;
pub use debezium::{ChangeOutput, Debezium};
pub use duckdb::DuckDb;
pub use gremlin_drivers::{gremlin_java, gremlin_javascript, gremlin_python, gremlin_python_4};
pub use gremlin_server::GremlinServer;
pub use hoplake_server::HoplakeServer;
pub use kafka::{KafkaKeys, KafkaServer};
pub use kinesis::KinesisServer;
pub use mariadb::MariaDbServer;
pub use maxwell::Maxwell;
pub use oracle::Oracle;
pub use port::ReservedPort;
pub use postgres::PostgresServer;
pub use s3_server::S3Server;
pub use sim::{Fault, FaultKind, Sim, SimCounts, SimProxy, SimStore};
pub use tcp_proxy::{TcpFault, TcpFaults, TcpProxy};
pub use wave_proxy::{Passed, WaveProxy};
pub use wave_store::{Request, RequestCounts, RequestKind, WaveStore};
