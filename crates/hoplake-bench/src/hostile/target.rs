//! What is attacked, and what all clients know of it.

use std::{net::SocketAddr, time::Duration};

/// The token of the server, which clients send wherever they are not to be rejected.
pub(super) const TOKEN: &str = "s3cret";
/// The token as a header value.
pub(super) const BEARER: &str = "Bearer s3cret";

/// What is attacked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub(super) http: SocketAddr,
    pub(super) grpc: SocketAddr,
    /// Persons have the keys below it.
    pub(super) vertices: u64,
}

/// How long a client waits that does not read, or does not go on.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
