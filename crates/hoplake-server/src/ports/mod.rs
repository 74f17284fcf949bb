//! The ports of a server: how requests of gRPC and HTTP are read and answered within the bounds of [`hoplake_doors`].
//!
//! * `answering`: which requests reach the threads of queries, and with which token.
//! * `bodies`: bodies of requests, counted and timed.
//!
//! Without the right token nothing of a body is read, and nothing of the request reaches the threads that run queries.

mod answering;
mod bodies;

pub(crate) use answering::{Protocol, door};
