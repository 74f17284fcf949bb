//! Hoplake as a service: gRPC on one port, HTTP/JSON, Gremlin, probes and counters on another.
//!
//! It is stateless except for caches and cursors: run one, or many behind a balancer. Its calls, how graphs are found by name, and
//! what ends a query are in
//! [RFC 0004](https://github.com/hoplake/hoplake/blob/main/docs/rfcs/0004-service.md).
//!
//! # Layout
//! Imports point down only:
//!
//! | | modules | duty |
//! | --- | --- | --- |
//! | start | `server` | from settings to a server that listens, and to its end |
//! | ports | `ports` | reads requests within the bounds of their connections, and authenticates them |
//! | adapters | `grpc`, `http`, `websocket` | from messages of a protocol to calls and back |
//! | | `request_head`, `auth` | what all protocols over HTTP have in their headers |
//! | calls | `calls` | the calls, whatever the protocol |
//! | state | `catalog`, `names` | open graphs, by name |
//! | | `access` | the two roles: blocks for other nodes, and blocks from other nodes |
//! | | `jobs` | computations over whole graphs, on threads of their own |
//! | | `results` | results of queries that are repeated |
//! | | `compaction` | merges sorted runs of the graphs that are served, if it is enabled |
//! | | `admission`, `lifecycle`, `workers` | admission of queries, shutdown, and the threads of queries |
//! | base | `telemetry`, `cost`, `failure`, `limits`, `settings`, `shape`, `vertex_name` | counters and spans, costs, failures, limits, and errors of JSON and TOML in plain words |
//!
//! # Glossary
//! One word per concept:
//!
//! | word | meaning |
//! | --- | --- |
//! | request | what a client asks, as its message or as a type of `calls` (`NeighborsRequest`) |
//! | request context | what an adapter knows of a request before it reads the message (`RequestContext`) |
//! | call | a request while it is handled: admitted, bounded, logged (`Call`) |
//! | exchange | a request and its response on a connection: what holds permits and memory until the response is sent |
//! | query | a text of Gremlin, or the facade's `Query` |
//! | cursor | a traversal that a client steers step by step |
//! | response | what a client gets, in its protocol; its JSON body over HTTP is a type `…Answer` (`http::answers`) |
//! | batch | rows, edges, paths or values of a result, as a call returns them (`ResultBatch`) |
//! | sink | the consumer of batches, in a protocol |
//! | chunk | encoded bytes or a message of a response, on its way to the client |
//! | failure | why a call failed: a reason, a sentence, and the cost until then |
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
pub use cost::{PricedCost, PricedStep};
pub use failure::{Failure, Reason};
pub use names::{Source, StoreOpener};
pub use server::{Server, ServerBuilder, ServerError};
pub use settings::{
    GremlinSettings, InvalidSetting, JobSettings, LimitSettings, ResultSettings, Role, Settings, UnreadableSettings,
};
