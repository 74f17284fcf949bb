//! One client for both servers: a text over the WebSocket, and what comes back in Hoplake's own values.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Error, Result, bail};
use futures::{SinkExt, StreamExt};
use hoplake::gremlin::{
    graphbinary, graphson,
    message::{Query, Request, Response},
    value::Value,
};
use serde_json::json;
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{Message, client::IntoClientRequest},
};
use uuid::Uuid;

/// Both servers stop a query long before.
const PATIENCE: Duration = Duration::from_secs(60);

/// How requests and answers are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// GraphBinary 1.
    GraphBinary,
    /// GraphSON 3.
    GraphSon,
}

/// A connection to a server.
pub struct Client {
    socket: WebSocketStream<TcpStream>,
    codec: Codec,
    graph: String,
    requests: u128,
}

/// The results of a text, or why it failed.
pub type Answer = std::result::Result<Vec<Value>, String>;

impl Client {
    /// Connects to the server at `address`, where `g` is to be `graph`.
    pub async fn connect(address: SocketAddr, graph: &str, codec: Codec) -> Result<Self> {
        let request = format!("ws://{address}/gremlin").into_client_request()?;
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (socket, _) = client_async(request, stream).await?;
        Ok(Self { socket, codec, graph: graph.to_owned(), requests: 0 })
    }

    /// Asks for the results of a text.
    ///
    /// # Errors
    /// If the connection breaks. That the text fails is an answer.
    pub async fn ask(&mut self, text: &str) -> Result<Answer> {
        let request = self.request(text);
        let message = encode(&request, self.codec)?;
        self.socket.send(Message::Binary(message.into())).await?;
        let mut results = Vec::new();
        loop {
            let response = match self.response(request.id).await.with_context(|| format!("no answer to {text}"))? {
                Ok(response) => response,
                Err(unread) => return Ok(Err(unread)),
            };
            match (response.status, response.data) {
                (200 | 204 | 206, Value::List(more)) => results.extend(more.into_iter().flat_map(repeated)),
                (200 | 204 | 206, Value::Null) => {}
                (200 | 204 | 206, data) => bail!("the answer to {text} is not a list: {data}"),
                (status, _) => return Ok(Err(format!("{status}: {}", response.message.unwrap_or_default()))),
            }
            if response.status != 206 {
                return Ok(Ok(results));
            }
        }
    }

    fn request(&mut self, text: &str) -> Request {
        self.requests += 1;
        let aliases = Value::Map(vec![("g".into(), self.graph.as_str().into())]);
        Request {
            id: Uuid::from_u128(self.requests),
            op: "eval".into(),
            processor: "".into(),
            query: Some(Query::Text(text.into())),
            arguments: vec![("aliases".into(), aliases), ("language".into(), "gremlin-lang".into())],
        }
    }

    /// The next response to a request, or why it cannot be read: TinkerPop answers with dates and halves of characters that Hoplake's
    /// values do not have.
    async fn response(&mut self, to: Uuid) -> Result<std::result::Result<Response, String>> {
        loop {
            let message = timeout(PATIENCE, self.socket.next()).await.context("the server says nothing")?;
            let read = match message.context("the server has closed the connection")?? {
                Message::Binary(bytes) if self.codec == Codec::GraphBinary => {
                    graphbinary::read_response(&bytes).map_err(Error::from)
                }
                Message::Binary(bytes) => graphson::read_response(&bytes).map_err(Error::from),
                Message::Text(text) => graphson::read_response(text.as_bytes()).map_err(Error::from),
                // Reading a ping has answered it.
                Message::Ping(_) | Message::Pong(_) => continue,
                other => bail!("unexpected message {other:?}"),
            };
            match read {
                // What is left of an answer that could not be read.
                Ok(response) if response.request_id.is_some_and(|id| id != to) => {}
                Ok(response) => return Ok(Ok(response)),
                Err(error) => return Ok(Err(format!("unreadable: {error}"))),
            }
        }
    }
}

/// A result as often as it came.
fn repeated(value: Value) -> Vec<Value> {
    match value {
        Value::Traverser(traverser) => vec![traverser.value; traverser.bulk as usize],
        value => vec![value],
    }
}

/// An argument of a request in GraphSON: texts, and maps of them.
fn plain(value: &Value) -> serde_json::Value {
    match value {
        Value::Map(entries) => {
            let items: Vec<_> = entries.iter().flat_map(|(key, value)| [plain(key), plain(value)]).collect();
            json!({"@type": "g:Map", "@value": items})
        }
        other => json!(other.to_string()),
    }
}

/// The length of the media type, the media type and the request.
fn encode(request: &Request, codec: Codec) -> Result<Vec<u8>> {
    let media_type = match codec {
        Codec::GraphBinary => graphbinary::MEDIA_TYPE,
        Codec::GraphSon => graphson::Version::Third.media_type(),
    };
    let mut message = vec![media_type.len() as u8];
    message.extend(media_type.as_bytes());
    match codec {
        Codec::GraphBinary => graphbinary::write_request(request, &mut message)?,
        Codec::GraphSon => {
            let arguments = request.arguments.iter().map(|(name, value)| json!([name, plain(value)]));
            let text = match &request.query {
                Some(Query::Text(text)) => json!(["gremlin", text]),
                _ => bail!("only texts are asked"),
            };
            let arguments: Vec<_> =
                arguments.chain([text]).flat_map(|pair| pair.as_array().cloned()).flatten().collect();
            let json = json!({
                "requestId": {"@type": "g:UUID", "@value": request.id.to_string()},
                "op": request.op,
                "processor": request.processor,
                "args": {"@type": "g:Map", "@value": arguments},
            });
            message.extend(json.to_string().into_bytes());
        }
    }
    Ok(message)
}
