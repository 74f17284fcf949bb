//! Ports for programs that have to be told theirs.

use std::{
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
};

use tokio::net::TcpSocket;

/// A port of the loopback that is reserved until this is dropped.
///
/// To ask for a free port, close it and start a server there is a race: until the server listens, any connection may be given the port, and
/// while a server is down that is to come back. So a socket stays bound to the port here, and never listens. As it allows others to use
/// its address, a server that does as well (all do, to be restarted at once) can listen on the port. But the system chooses no port for
/// anybody to which a socket is bound.
#[derive(Debug)]
pub struct ReservedPort {
    _bound: TcpSocket,
    number: u16,
}

impl ReservedPort {
    /// Reserves a port.
    ///
    /// # Errors
    /// If there is no free port.
    pub fn new() -> io::Result<Self> {
        let bound = TcpSocket::new_v4()?;
        bound.set_reuseaddr(true)?;
        bound.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let number = bound.local_addr()?.port();
        Ok(Self { _bound: bound, number })
    }

    /// Its number.
    pub fn number(&self) -> u16 {
        self.number
    }
}

impl fmt::Display for ReservedPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number)
    }
}
