//! Gremlin over WebSocket, the protocol of TinkerPop 3.8's drivers: from frames to calls and back. (TinkerPop 4: `http::tinkerpop`.)
//!
//! * here: the request of HTTP that becomes a WebSocket.
//! * `connection`: one WebSocket: what it reads, what it answers, and when it ends.
//! * `wire`: its socket, which knows how far a message has arrived or left.
//! * `requests`: from messages to requests.
//! * `answers`: from results to messages.
//! * `sessions`: transactions over several requests.
//! * `auth`: the token, as the password of SASL PLAIN.
//!
//! It knows no steps of Gremlin. A connection stays within the bounds of its door: it counts as one, is closed when it is idle, and
//! gives way to a new one.

mod answers;
mod auth;
mod connection;
mod requests;
mod sessions;
mod status;
mod wire;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderMap, HeaderValue, StatusCode, Version, header},
    response::Response,
};
use futures::FutureExt;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use self::{
    connection::{Client, Conversation, TRACE},
    sessions::SessionLimit,
};
use crate::{GremlinSettings, calls::Service, failure::Failure, request_head::Arrival};

/// What all WebSockets of a server share.
#[derive(Debug)]
pub(crate) struct WebSockets {
    open: AtomicUsize,
    pub(crate) sessions: SessionLimit,
}

impl WebSockets {
    pub(crate) fn new(settings: &GremlinSettings) -> Arc<Self> {
        Arc::new(Self { open: AtomicUsize::new(0), sessions: SessionLimit::new(settings) })
    }

    /// Connections that are open.
    pub(crate) fn connections(&self) -> usize {
        self.open.load(Relaxed)
    }
}

/// Counts an open connection until it is dropped.
struct OpenConnection(Arc<WebSockets>);

impl OpenConnection {
    fn new(all: &Arc<WebSockets>) -> Self {
        all.open.fetch_add(1, Relaxed);
        Self(all.clone())
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Relaxed);
    }
}

/// Makes a WebSocket of the connection of a request.
///
/// # Errors
/// The request is not a valid handshake, or the server is about to end.
pub(crate) fn upgrade(
    service: &Arc<Service>,
    websockets: &Arc<WebSockets>,
    mut request: Request,
) -> Result<Response, Failure> {
    if service.lifecycle.is_draining() {
        return Err(Failure::shutting_down());
    }
    let accept = accept(request.version(), request.headers())?;
    let Arrival { exchange, is_authenticated } = Arrival::of(request.extensions());
    let no_connection = || Failure::invalid("this connection cannot become a WebSocket");
    let connection = exchange.connection().cloned().ok_or_else(no_connection)?;
    let trace = request.headers().get(TRACE).and_then(|value| Some(value.to_str().ok()?.to_owned()));
    let upgrading = hyper::upgrade::on(&mut request);
    let own = connection.clone();
    let service = service.clone();
    let websockets = websockets.clone();
    // The door runs it next, so that it is closed with the connection.
    connection.upgrade_to(
        async move {
            if let Ok(upgraded) = upgrading.await {
                let counted = OpenConnection::new(&websockets);
                let client = Client { trace, is_authenticated };
                Conversation::begin(&service, &websockets.sessions, own, client, upgraded).await.run().await;
                drop(counted);
            }
        }
        .boxed(),
    );
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    Ok(response)
}

/// The answer to the key of a handshake (RFC 6455, 4.2). The library's handshake reads a request from a socket, and this one has been
/// read already.
fn accept(version: Version, headers: &HeaderMap) -> Result<HeaderValue, Failure> {
    let has = |name: &str, word: &str| {
        let texts = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        texts.flat_map(|text| text.split(',')).any(|part| part.trim().eq_ignore_ascii_case(word))
    };
    let key = headers.get("sec-websocket-key").filter(|key| !key.is_empty());
    match key {
        Some(key) if version == Version::HTTP_11 && has("connection", "upgrade") && has("upgrade", "websocket") => {
            if !has("sec-websocket-version", "13") {
                return Err(Failure::invalid("only version 13 of WebSocket is spoken here"));
            }
            let accept = derive_accept_key(key.as_bytes());
            HeaderValue::from_str(&accept).map_err(|_| Failure::invalid("the key of the handshake is wrong"))
        }
        _ => Err(Failure::invalid(
            "this is for drivers of Gremlin, which connect with WebSocket over HTTP/1.1: ws://HOST:PORT/gremlin",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_handshake_is_checked() {
        let good = [
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "WebSocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        // The example of RFC 6455, 1.3.
        assert_eq!(accept(Version::HTTP_11, &headers(&good)).unwrap(), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert!(accept(Version::HTTP_2, &headers(&good)).is_err());
        for left_out in 0..good.len() {
            let mut fewer = good.to_vec();
            fewer.remove(left_out);
            assert!(accept(Version::HTTP_11, &headers(&fewer)).is_err(), "{left_out}");
        }
    }
}
