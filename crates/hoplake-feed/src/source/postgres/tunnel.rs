//! TLS to a server, for a client that has none on ring: what the client says to a socket on this machine goes to the server encrypted.
//!
//! The socket is in a folder that no other user may enter, takes one connection, and is removed when that is there.

use std::{collections::HashMap, path::PathBuf, sync::Arc, time::Duration};

use rustls::{ClientConfig, pki_types::ServerName};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpStream, UnixListener},
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::{
    FeedError,
    source::tls::{self, Tls, Verified},
};

/// That a client wants TLS: a length and a number in place of a version.
const REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// How long the client may take to connect to a socket that is there.
const CONNECTED_WITHIN: Duration = Duration::from_secs(30);

/// A server that requires TLS.
#[derive(Debug, Clone)]
pub(super) struct TlsServer {
    host: String,
    port: u16,
    config: Arc<ClientConfig>,
}

/// Reads what the address of a server says of TLS, as `libpq` has it: `sslmode`, `sslrootcert`, `sslcert` and `sslkey`.
pub(super) fn of_query(query: &HashMap<String, String>) -> Result<Option<Tls>, FeedError> {
    let path = |name: &str| query.get(name).map(PathBuf::from);
    let authorities = path("sslrootcert").filter(|path| path.as_os_str() != "system");
    let verified = match query.get("sslmode").map(String::as_str) {
        None | Some("disable") if ["sslrootcert", "sslcert", "sslkey"].iter().all(|it| !query.contains_key(*it)) => {
            return Ok(None);
        }
        Some("require") if authorities.is_none() => Verified::Nothing,
        Some("require" | "verify-ca") => Verified::Chain,
        Some("verify-full") => Verified::Name,
        Some(mode @ ("allow" | "prefer")) => {
            let why = format!("sslmode={mode} does not say whether TLS is wanted");
            return Err(FeedError::invalid(why).hint("write sslmode=verify-full, verify-ca, require or disable"));
        }
        mode => {
            let why = format!("sslmode={} does not go with certificates", mode.unwrap_or("disable"));
            return Err(FeedError::invalid(why).hint("write sslmode=verify-full, verify-ca, require or disable"));
        }
    };
    let client = match (path("sslcert"), path("sslkey")) {
        (None, None) => None,
        (Some(certificate), Some(key)) => Some((certificate, key)),
        _ => return Err(FeedError::invalid("sslcert and sslkey belong together").hint("write both, or none of them")),
    };
    Ok(Some(Tls { verified, authorities, client }))
}

impl TlsServer {
    pub(super) fn new(host: &str, port: u16, tls: &Tls) -> Result<Self, FeedError> {
        Ok(Self { host: host.to_owned(), port, config: tls.config()? })
    }

    /// Connects, and returns the folder with a socket that leads there: it has to be there until the client has connected to it.
    pub(super) async fn tunnel(&self) -> Result<TempDir, FeedError> {
        let mut server = self.connect().await?;
        let here = |error: std::io::Error| FeedError::unavailable(format!("could not make a socket for TLS: {error}"));
        let folder = tempfile::Builder::new().prefix("hoplake-tls-").tempdir().map_err(here)?;
        let socket = folder.path().join(format!(".s.PGSQL.{}", self.port));
        let listener = UnixListener::bind(socket).map_err(here)?;
        tokio::spawn(async move {
            let Ok(Ok((mut client, _))) = timeout(CONNECTED_WITHIN, listener.accept()).await else { return };
            drop(listener);
            // How it ended, either side has heard itself.
            let _ = copy_bidirectional(&mut client, &mut server).await;
        });
        Ok(folder)
    }

    async fn connect(&self) -> Result<TlsStream<TcpStream>, FeedError> {
        let address = format!("{}:{}", self.host, self.port);
        let away = |error: std::io::Error| {
            FeedError::unavailable(format!("could not connect to {address}: {}", hoplake::system_text(&error)))
        };
        let mut stream = TcpStream::connect((self.host.as_str(), self.port)).await.map_err(away)?;
        stream.set_nodelay(true).map_err(away)?;
        stream.write_all(&REQUEST).await.map_err(away)?;
        let mut answer = [0];
        stream.read_exact(&mut answer).await.map_err(away)?;
        if answer != *b"S" {
            return Err(FeedError::invalid(format!("the server at {address} has no TLS"))
                .hint("set ssl = on there, or write sslmode=disable where the network is trusted"));
        }
        let name = ServerName::try_from(self.host.clone())
            .map_err(|_| FeedError::invalid(format!("{} is not a name that a certificate may have", self.host)))?;
        let connected = TlsConnector::from(self.config.clone()).connect(name, stream).await;
        connected.map_err(|error| tls::failed(&address, &error))
    }
}
