//! Generators, oracle, recording stores and real servers for the tests of Hoplake. Development only.
//!
//! - [`WaveStore`]: an object store that counts dependent round trips, requests and bytes exactly.
//! - [`S3Server`]: a real S3 server on a loopback port, with conditional writes that hold.
//! - [`oracle`]: a naive property graph with reference functions to hold the engine's answers against.
//! - [`generate`]: seeded graphs: Kronecker, log-normal, and small ones with labels.
//! - [`snb`]: the real social networks and the answers that queries on them must give.

pub mod generate;
pub mod oracle;
mod s3_server;
pub mod snb;
mod wave_store;

pub use oracle::Oracle;
pub use s3_server::S3Server;
pub use wave_store::{Request, RequestCounts, RequestKind, WaveStore};
