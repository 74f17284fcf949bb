//! Gremlin's WebSocket: whatever comes after the handshake, frames or the message of a driver within one, the connection goes on with an
//! answer or ends, in time.

#![no_main]

use std::{net::SocketAddr, sync::LazyLock, time::Duration};

use futures::{SinkExt, StreamExt};
use hoplake::gremlin::{
    graphbinary,
    message::{Query, Request},
    value::Value,
};
use hoplake_fuzz::{
    begin, bounded, seeds,
    serving::{self, BYTES_MAX},
};
use libfuzzer_sys::fuzz_target;
use tokio::{
    io::AsyncWriteExt,
    net::TcpStream,
    runtime::{Builder, Runtime},
    time::timeout,
};
use tokio_tungstenite::{client_async, tungstenite::Message};
use uuid::Uuid;

/// Far beyond the 200 ms that a request has.
const PATIENCE: Duration = Duration::from_secs(8);

struct Fixture {
    client: Runtime,
    http: SocketAddr,
    _server: Runtime,
}

static FIXTURE: LazyLock<Fixture> = LazyLock::new(|| {
    let (server, http) = serving::start(200);
    let client = Builder::new_current_thread().enable_all().build().expect("a runtime can be had");
    Fixture { client, http, _server: server }
});

/// A request of a driver, after the byte that says how it is sent.
fn seed(op: &str, processor: &str, text: &str, session: Option<&str>) -> Vec<u8> {
    let aliases = Value::Map(vec![("g".into(), "g".into())]);
    let mut arguments = vec![("aliases".into(), aliases)];
    arguments.extend(session.map(|session| ("session".into(), session.into())));
    let query = Some(Query::Text(text.into()));
    let request = Request { id: Uuid::from_u128(1), op: op.into(), processor: processor.into(), query, arguments };
    let mut bytes = vec![1, graphbinary::MEDIA_TYPE.len() as u8];
    bytes.extend(graphbinary::MEDIA_TYPE.as_bytes());
    graphbinary::write_request(&request, &mut bytes).expect("a request can be written");
    bytes
}

fuzz_target!(
    init: {
        begin();
        LazyLock::force(&FIXTURE);
        seeds([
            seed("eval", "", "g.V().out().values('name')", None),
            seed("eval", "session", "g.V().limit(x)", Some("s")),
            seed("close", "session", "", Some("s")),
            seed("authentication", "", "", None),
            [&[2], &br#"{"requestId":"00000000-0000-0000-0000-000000000001","op":"eval","processor":"","args":{"gremlin":"g.V()","aliases":{"g":"g"}}}"#[..]].concat(),
            // Frames: the first half of a text, a ping, and the other half.
            vec![0, 0x01, 0x81, 0, 0, 0, 0, b'a', 0x89, 0x80, 0, 0, 0, 0, 0x80, 0x81, 0, 0, 0, 0, b'b'],
        ]);
    },
    |bytes: &[u8]| {
        let [how, bytes @ ..] = bytes else { return };
        let message = match how % 3 {
            0 => None,
            1 => Some(Message::Binary(bytes.to_vec().into())),
            _ => Some(Message::Text(String::from_utf8_lossy(bytes).into_owned().into())),
        };
        let Fixture { client, http, .. } = &*FIXTURE;
        bounded(BYTES_MAX, || {
            let asked = async { timeout(PATIENCE, ask(*http, message, bytes)).await };
            client.block_on(asked).expect("the server answers, or ends the connection");
        });
    }
);

async fn ask(http: SocketAddr, message: Option<Message>, bytes: &[u8]) {
    let stream = TcpStream::connect(http).await.expect("the server listens");
    let (mut socket, _) = client_async("ws://localhost/gremlin", stream).await.expect("it speaks WebSocket");
    match message {
        Some(message) => {
            if socket.send(message).await.is_ok() {
                // An answer, or that there will be none.
                let _ = socket.next().await;
            }
            let _ = socket.close(None).await;
        }
        None => {
            let stream = socket.get_mut();
            // It may have closed before all of it was sent.
            let _ = stream.write_all(bytes).await;
            let _ = stream.shutdown().await;
        }
    }
    while let Some(Ok(_)) = socket.next().await {}
}
