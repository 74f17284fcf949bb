//! Reserved ports, in a test binary that starts no programs. A child process has the sockets of its parent between `fork` and `exec`, so in the
//! library's tests a port could still be listened on after its listener was dropped.

use std::{
    collections::HashSet,
    net::{Ipv4Addr, TcpListener, TcpStream},
};

use hoplake_testkit::ReservedPort;

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
