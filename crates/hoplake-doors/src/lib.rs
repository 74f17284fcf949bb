//! Accepts connections, and bounds their number, their times, and the bytes that wait for a client.
//!
//! A *door* is a port. It answers within bounds that no client can move:
//!
//! * `listen`: takes a port.
//! * `door`: accepts connections. At the bound on connections, or on those that have not completed a request, the
//!   oldest that is idle or half-open gives way to the new one, so that probes still get in.
//! * `connection`: one of them. It is half-open until its first request is complete, then busy or idle; one that is
//!   half-open or idle for too long, or whose client does not read, is closed. A request may upgrade it to another protocol: what
//!   it does then is a future that the door runs, within the same bounds.
//! * `exchange`: one request, and its response until the last byte is handed to the socket: its permit to run,
//!   and the memory that is held for it.
//! * `response`: bodies of responses, counted until they are sent.
//!
//! A [`Handler`] makes the responses and reads the bodies of requests: one that reads none need not bound any.
//!
//! It uses hyper directly, since `axum::serve` lacks all of these bounds.

mod connection;
mod door;
mod exchange;
mod listen;
mod response;

pub use connection::{Connection, Connections, Patience, UpgradeTask};
pub use door::{Bounds, Door, Handler, Versions, open_metrics};
pub use exchange::Exchange;
pub use listen::{ListenError, NoAddress, listen, parse_address};
