//! Takes a port.

use std::{io, net::SocketAddr};

use hoplake_storage::system_text;
use tokio::net::{TcpListener, TcpSocket};

/// Connections that the system completes before they are accepted. The usual 128 are full after one burst, and then the
/// system drops what a client sends first, which it repeats after a second: a probe would be as late.
const BACKLOG: u32 = 4_096;

/// Why a port cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {}", self.why())]
pub struct ListenError {
    /// Where.
    pub address: SocketAddr,
    /// The system's error.
    #[source]
    pub source: io::Error,
}

impl ListenError {
    fn why(&self) -> String {
        match self.source.kind() {
            io::ErrorKind::AddrInUse => "another program listens there".into(),
            io::ErrorKind::AddrNotAvailable => "this machine does not have that address".into(),
            _ => system_text(&self.source),
        }
    }

    /// Whether another program has the port.
    pub fn is_taken(&self) -> bool {
        self.source.kind() == io::ErrorKind::AddrInUse
    }
}

/// Listens, and returns where: port 0 takes a free one.
///
/// # Errors
/// The port is taken, or not ours.
pub fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), ListenError> {
    let bind = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // A program that was stopped may be started again at once.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(BACKLOG)?;
        let bound = listener.local_addr()?;
        Ok((listener, bound))
    };
    bind().map_err(|source| ListenError { address, source })
}

/// Text that is not an address to listen on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an address to listen on; write IP:PORT, as in 127.0.0.1:7481")]
pub struct NoAddress(String);

/// Reads an address to listen on: `127.0.0.1:7481`, `[::1]:7481` or `localhost:7481`.
///
/// # Errors
/// [`NoAddress`] with what to write.
pub fn parse_address(text: &str) -> Result<SocketAddr, NoAddress> {
    let wrong = || NoAddress(text.to_owned());
    match text.strip_prefix("localhost:") {
        Some(port) => port.parse().map(|port: u16| SocketAddr::from(([127, 0, 0, 1], port))).map_err(|_| wrong()),
        None => text.parse().map_err(|_| wrong()),
    }
}
