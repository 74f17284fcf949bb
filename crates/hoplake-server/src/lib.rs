//! Hoplake as a service: gRPC on one port, HTTP/JSON, Gremlin, probes and counters on another.
//!
//! It is stateless except for caches and cursors: run one, or many behind a balancer. What it
//! can be asked, how graphs are found by name, and what ends a query is in
//! [RFC 0004](https://github.com/hoplake/hoplake/blob/main/docs/rfcs/0004-service.md).
//!
//! * `doors`, `workers`: requests within the bounds of their connections, and the threads that queries have to themselves.
//! * `calls`: what can be asked, whatever the protocol. The rest of the crate is either below or above it.
//! * `access`: the two roles: blocks for other nodes, and blocks from other nodes.
//! * `catalog`, `admission`, `lifecycle`: open graphs, admission of queries, and shutdown.
//! * `jobs`: computations over whole graphs, on threads of their own.
//! * `compaction`: merges sorted runs of the graphs that are served, if it is enabled.
//! * `results`: results of queries that are asked again.
//! * `shape`: errors of JSON and TOML in plain words.
//! * `grpc`, `http`, `gremlin`: from the wire to calls and back.
//! * `telemetry`: counters, and spans of requests.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use hoplake_server::{ServerBuilder, Settings};
//!
//! let settings = Settings { graphs: vec!["s3://bucket/graphs".into()], ..Settings::default() };
//! let server = ServerBuilder::new(settings).bind().await?;
//! println!("{} and {}", server.grpc(), server.http());
//! server.run(async { tokio::signal::ctrl_c().await.expect("signals can be listened to") }).await?;
//! # Ok(())
//! # }
//! ```

mod access;
mod admission;
mod auth;
mod calls;
mod catalog;
mod compaction;
mod cost;
mod failure;
mod grpc;
mod http;
mod jobs;
mod lifecycle;
mod limits;
mod names;
mod ports;
mod request_head;
mod results;
mod server;
mod settings;
mod shape;
mod telemetry;
mod vertex_name;
mod websocket;
mod workers;

/// The messages of gRPC, its clients and its services, as `proto/hoplake/v1` has them.
#[expect(missing_docs, clippy::large_enum_variant, reason = "generated; the .proto files have the documentation")]
pub mod v1 {
    // Checked in, so that a build needs no compiler of protos; `hoplake-protogen` writes it.
    include!("../proto/generated/hoplake.v1.rs");

    /// The descriptors of the `.proto` files, for reflection.
    pub const DESCRIPTORS: &[u8] = include_bytes!("../proto/generated/descriptors.bin");
}

pub use access::Resolver;
pub use cost::{PricedCost, Step};
pub use failure::{Failure, Reason};
pub use names::{Source, StoreOpener};
pub use server::{Server, ServerBuilder, ServerError};
pub use settings::{
    GremlinSettings, InvalidSetting, JobSettings, LimitSettings, ResultSettings, Role, Settings, UnreadableSettings,
};
