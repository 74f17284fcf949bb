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

#[cfg(test)]
mod tests {
    use std::{
        collections::HashSet,
        net::{TcpListener, TcpStream},
    };

    use super::*;

    /// Of the 28,000 ports that Linux chooses from by default.
    const RESERVED: usize = 500;
    const CHOSEN: usize = 5_000;

    #[test]
    fn nobody_else_is_given_a_reserved_port() {
        let reserved: Vec<_> = (0..RESERVED).map(|_| ReservedPort::new().unwrap()).collect();
        let numbers: HashSet<u16> = reserved.iter().map(ReservedPort::number).collect();
        assert_eq!(numbers.len(), RESERVED);
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let there = server.local_addr().unwrap();
        for _ in 0..CHOSEN {
            let listening = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
            assert!(!numbers.contains(&listening), "a server was given {listening}");
            let connected = TcpStream::connect(there).unwrap().local_addr().unwrap().port();
            assert!(!numbers.contains(&connected), "a connection was given {connected}");
            server.accept().unwrap();
        }
    }

    #[test]
    fn a_server_can_listen_on_it_and_again() {
        let port = ReservedPort::new().unwrap();
        let address = (Ipv4Addr::LOCALHOST, port.number());
        for _ in 0..3 {
            let server = TcpListener::bind(address).unwrap();
            let client = TcpStream::connect(address).unwrap();
            // The side that closes first keeps the address for a minute, which does not hinder the next server.
            drop(server.accept().unwrap());
            drop((server, client));
        }
        assert!(TcpStream::connect(address).is_err(), "the reservation does not listen");
    }
}
