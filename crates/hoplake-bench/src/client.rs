//! A connection that stays open, with one request under way.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use hyper::{Request as Message, StatusCode, body::Body, client::conn::http1::SendRequest};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

pub(crate) struct Client(SendRequest<String>);

impl Client {
    pub(crate) async fn connect(server: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(server).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self(sender))
    }

    /// Asks, and reads the answer.
    pub(crate) async fn ask(&mut self, path: &str, body: &str) -> Result<Vec<u8>> {
        let message = Message::post(path).header("host", "x").body(body.to_owned())?;
        let (status, answer) = self.send(message).await?;
        ensure!(status == StatusCode::OK, "{path} {body}: {status} {}", String::from_utf8_lossy(&answer));
        Ok(answer)
    }

    /// The results of a query.
    pub(crate) async fn results(&mut self, path: &str, body: &str) -> Result<Vec<Value>> {
        let answer: Value = serde_json::from_slice(&self.ask(path, body).await?)?;
        Ok(answer["results"].as_array().context("an answer without results")?.clone())
    }

    pub(crate) async fn metrics(&mut self) -> Result<String> {
        let message = Message::get("/metrics").header("host", "x").body(String::new())?;
        Ok(String::from_utf8(self.send(message).await?.1)?)
    }

    async fn send(&mut self, message: Message<String>) -> Result<(StatusCode, Vec<u8>)> {
        self.0.ready().await?;
        let answer = self.0.send_request(message).await?;
        let status = answer.status();
        let mut body = std::pin::pin!(answer.into_body());
        let mut bytes = Vec::new();
        while let Some(frame) = std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await {
            bytes.extend_from_slice(&frame?.into_data().unwrap_or_default());
        }
        Ok((status, bytes))
    }
}
