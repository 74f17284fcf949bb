//! Accepts connections, and bounds their number, their times, and the bytes that wait for a client.
//!
//! A *door* is a port. It answers within bounds that no client can move:
//!
//! * `door`: accepts connections. At the bound on connections, or on those that have not completed a request, the
//!   oldest that is idle or half-open gives way to the new one, so that probes still get in.
//! * `connection`: one of them. It is half-open until its first request is complete, then busy or idle; one that is
//!   half-open or idle for too long, or whose client does not read, is closed. A request may change its protocol: what the connection
//!   does then is a future that the door goes on with, within the same bounds.
//! * `visit`: one request, and its answer until the last byte is handed to the socket: its permit to run,
//!   and the memory that is held for it.
//! * `bodies`: requests, counted and timed, and answers, counted until they have left.
//!
//! Without the right token nothing of a body is read, and nothing of the request reaches the threads that run queries.
//!
//! It uses hyper directly, since `axum::serve` lacks all of these bounds.

mod bodies;
mod connection;
mod door;
mod visit;

pub(crate) use bodies::{Arriving, no_memory};
pub(crate) use connection::{Connection, Connections};
pub(crate) use door::{Door, joined};
pub(crate) use visit::Visit;
