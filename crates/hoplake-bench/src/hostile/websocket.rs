//! Clients that open a WebSocket.

use anyhow::Result;
use tokio::net::TcpStream;
use tokio_tungstenite::{client_async, tungstenite::client::IntoClientRequest};

use super::{
    http,
    target::{BEARER, Target},
};

/// The header of a ping: of 125 bytes, with a mask that changes nothing.
const PING_HEADER: [u8; 6] = [0x89, 0x80 | 125, 0, 0, 0, 0];

/// Sends pings, with the token or without, and reads no pong.
pub(super) async fn unread_pings(target: Target, is_known: bool) -> Result<String> {
    let mut request = format!("ws://{}/gremlin", target.http).into_client_request()?;
    if is_known {
        request.headers_mut().insert("authorization", BEARER.parse()?);
    }
    let (mut socket, _) = client_async(request, TcpStream::connect(target.http).await?).await?;
    let ping = [&PING_HEADER[..], &[7; 125]].concat();
    // Written directly to the socket: the library would make a frame and a mask for each.
    let outcome = http::flood(socket.get_mut(), &ping).await;
    Ok(format!("{} a token: {outcome}", if is_known { "with" } else { "without" }))
}
