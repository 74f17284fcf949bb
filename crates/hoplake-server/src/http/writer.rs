//! Long responses, written as they are read.
//!
//! `Accept` chooses the form. JSON is one object, first the list and then the summary; JSON Lines has a line for each
//! item and one for the summary; an Arrow stream has the items alone, in one schema. A response that fits one chunk is
//! sent at once, with its length. A longer one is sent in chunks, and a failure after the first chunk cannot have a
//! status any more: in JSON Lines it is the last line, elsewhere the connection breaks off, so that no client takes
//! what it has for all.

use std::sync::Arc;

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue, Response, header},
    response::IntoResponse,
};
use futures::{FutureExt, future::BoxFuture};
use hoplake_doors::Exchange;
use serde::Serialize;
use tokio::sync::mpsc::Receiver;
use tracing::Instrument;

use super::{
    arrow::ArrowRows,
    chunk_buffer::{ChunkBuffer, unwritable},
    handler::{HttpRequest, named},
    paths::path,
    problem,
    rows::{Vertices, edges, found_rows, ids, rows, value_rows},
};
use crate::{
    calls::{Call, Chunk, Chunks, ResultBatch, ResultSink, chunk_channel},
    failure::{Failure, Reason},
};

/// Rows that are encoded between two looks at the size of the chunk.
const ROWS_AT_A_TIME: usize = 256;

/// The format of a response with results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResultFormat {
    Json,
    Lines,
    Arrow,
}

impl ResultFormat {
    /// The first one that a client accepts; JSON if it names none that there is.
    fn of(headers: &HeaderMap) -> Self {
        let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let kinds = accepted.flat_map(|value| value.split(',')).map(|kind| kind.split(';').next().unwrap_or("").trim());
        // The order of the list decides; weights (`q`, RFC 9110, 12.4.2) are not compared.
        let known = |kind: &str| [Self::Json, Self::Lines, Self::Arrow].into_iter().find(|form| form.kind() == kind);
        kinds.into_iter().find_map(known).unwrap_or(Self::Json)
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Lines => "application/x-ndjson",
            Self::Arrow => "application/vnd.apache.arrow.stream",
        }
    }
}

/// Encodes the batches of a result.
pub(super) struct Writer {
    form: ResultFormat,
    /// The name of the list; without it, the answer is only the summary.
    pub(super) list: Option<&'static str>,
    chunks: ChunkBuffer,
    items: u64,
    /// The depth whose ids are being written, as one item.
    depth: Option<u32>,
    arrow: ArrowRows,
}

impl Writer {
    /// The response has no list. To be called before the work begins: an Arrow stream is nothing but the list.
    pub(super) fn without_list(&mut self) -> Result<(), Failure> {
        if self.form == ResultFormat::Arrow {
            let why = "a count or a summary is not an Arrow stream, which has rows alone; ask for application/json";
            return Err(Failure::invalid(why));
        }
        self.list = None;
        Ok(())
    }

    /// The items of the list are values of any type. To be called before the work begins.
    pub(super) fn of_values(&self) -> Result<(), Failure> {
        match self.form {
            ResultFormat::Arrow => {
                let why = "results of Gremlin have no common type, as the rows of an Arrow stream have; ask for application/json";
                Err(Failure::invalid(why))
            }
            ResultFormat::Json | ResultFormat::Lines => Ok(()),
        }
    }

    fn item<T: Serialize>(&mut self, item: &T) -> Result<(), Failure> {
        self.next_item();
        self.chunks.write_json(item)?;
        if self.form == ResultFormat::Lines {
            self.chunks.bytes.push(b'\n');
        }
        Ok(())
    }

    /// The separator before an item.
    fn next_item(&mut self) {
        if self.form == ResultFormat::Json {
            self.begin_list();
            if self.items > 0 {
                self.chunks.bytes.push(b',');
            }
        }
        self.items += 1;
    }

    /// With the first item, or else with the summary: a call may set `list` only after it has read its body.
    fn begin_list(&mut self) {
        if let Some(list) = self.list.filter(|_| self.items == 0 && !self.chunks.is_sent()) {
            self.chunks.bytes.extend_from_slice(format!("{{\"{list}\":[").as_bytes());
        }
    }

    async fn write(&mut self, part: ResultBatch<'_>) -> Result<(), Failure> {
        if self.form == ResultFormat::Arrow {
            self.arrow.write(part, &mut self.chunks.bytes)?;
            return self.chunks.flush().await;
        }
        match part {
            ResultBatch::Edges { graph, edges: all, keys, columns } => {
                for edge in edges(graph, all, keys, columns)? {
                    self.item(&edge)?;
                    self.chunks.flush().await?;
                }
            }
            ResultBatch::Vertices { depth, vertices } => self.write_ids(depth, &ids(vertices.iter().copied())).await?,
            ResultBatch::Rows(all) => self.write_rows(all.chunks(ROWS_AT_A_TIME).map(|some| rows(&some))).await?,
            ResultBatch::Scanned(all) => {
                self.write_rows(all.chunks(ROWS_AT_A_TIME).map(|some| found_rows(&some))).await?;
            }
            ResultBatch::Values(all) => {
                self.write_rows(all.chunks(ROWS_AT_A_TIME).map(|some| value_rows(&some))).await?;
            }
            ResultBatch::Results(results) => {
                for (value, bulk) in results {
                    let json = value.to_json();
                    for _ in 0..*bulk {
                        self.item(&json)?;
                        self.chunks.flush().await?;
                    }
                }
            }
            ResultBatch::Paths(paths) => {
                for walk in paths {
                    self.item(&path(walk)?)?;
                    self.chunks.flush().await?;
                }
            }
        }
        Ok(())
    }

    async fn write_rows<T: Serialize>(
        &mut self,
        chunks: impl Iterator<Item = Result<Vec<T>, Failure>>,
    ) -> Result<(), Failure> {
        for rows in chunks {
            rows?.iter().try_for_each(|row| self.item(row))?;
            self.chunks.flush().await?;
        }
        Ok(())
    }

    /// Ids of a depth: in JSON one object a depth, however many parts it has.
    async fn write_ids(&mut self, depth: u32, ids: &[String]) -> Result<(), Failure> {
        if self.form == ResultFormat::Lines {
            self.item(&Vertices { depth, ids: ids.to_vec() })?;
            return self.chunks.flush().await;
        }
        let is_new = self.depth != Some(depth);
        if is_new {
            self.end_depth();
            self.next_item();
            self.chunks.bytes.extend_from_slice(format!("{{\"depth\":{depth},\"ids\":[").as_bytes());
            self.depth = Some(depth);
        }
        for (position, id) in ids.iter().enumerate() {
            if position > 0 || !is_new {
                self.chunks.bytes.push(b',');
            }
            self.chunks.write_json(id)?;
        }
        self.chunks.flush().await
    }

    /// Ends the object of a depth. Only what follows shows that it is complete: a depth may have several parts.
    fn end_depth(&mut self) {
        if self.depth.take().is_some() {
            self.chunks.bytes.extend_from_slice(b"]}");
        }
    }

    /// Writes the fields after the list. `summary` is the complete answer with an empty list.
    fn write_summary<T: Serialize>(&mut self, summary: &T) -> Result<(), Failure> {
        if self.form == ResultFormat::Arrow {
            return self.arrow.finish(&mut self.chunks.bytes);
        }
        self.end_depth();
        let all = serde_json::to_string(summary).map_err(unwritable)?;
        let Some(list) = self.list else {
            self.chunks.bytes.extend_from_slice(all.as_bytes());
            if self.form == ResultFormat::Lines {
                self.chunks.bytes.push(b'\n');
            }
            return Ok(());
        };
        let empty = format!("{{\"{list}\":[");
        // Serialized whole and cut: the schema of the document and the streamed answer cannot differ.
        let rest = all.strip_prefix(&empty).ok_or_else(|| Failure::new(Reason::Internal, "an answer has no list"))?;
        match self.form {
            ResultFormat::Json => {
                self.begin_list();
                self.chunks.bytes.extend_from_slice(rest.as_bytes());
            }
            _ => {
                let fields = rest.strip_prefix("],").unwrap_or(rest);
                self.chunks.bytes.extend_from_slice(format!("{{{fields}\n").as_bytes());
            }
        }
        Ok(())
    }

    /// Ends the response and its call.
    async fn finish<T: Serialize>(mut self, mut call: Call, outcome: Result<T, Failure>) {
        // No deadline from here on. A client that does not read loses its connection, and that drops this task.
        let outcome = outcome.and_then(|summary| self.write_summary(&summary));
        call.finish(&outcome);
        match outcome {
            Ok(()) => {}
            Err(failure) if self.chunks.is_sent() && self.form == ResultFormat::Lines => {
                let problem = problem::of(&failure, Some(&call.id));
                let line = serde_json::to_string(&problem).unwrap_or_default();
                self.chunks.bytes.extend_from_slice(format!("{{\"problem\":{line}}}\n").as_bytes());
            }
            // With nothing sent it becomes a problem with its own status. Later it breaks the body off.
            Err(failure) => return self.chunks.fail(failure).await,
        }
        self.chunks.finish().await;
    }
}

impl ResultSink for Writer {
    fn put<'a>(&'a mut self, part: ResultBatch<'a>) -> BoxFuture<'a, Result<(), Failure>> {
        self.write(part).boxed()
    }
}

/// Runs a call whose result is a list and a summary, and sends the response as the call returns batches. The call returns the
/// summary with an empty list.
pub(super) async fn stream<T: Serialize + Send + 'static>(
    request: HttpRequest,
    name: &'static str,
    list: &'static str,
    work: impl for<'a> FnOnce(&'a mut Call, &'a mut Writer) -> BoxFuture<'a, Result<T, Failure>> + Send + 'static,
) -> Response<Body> {
    let form = ResultFormat::of(&request.headers);
    let mut call = request.begin(name);
    let id = call.id.clone();
    let exchange = call.exchange.clone();
    let (chunks, received) = chunk_channel(&call.memory);
    let chunks = ChunkBuffer::new(chunks);
    let arrow = ArrowRows::default();
    let mut writer = Writer { form, list: Some(list), chunks, items: 0, depth: None, arrow };
    let work = async move {
        let span = call.span.clone();
        let outcome = work(&mut call, &mut writer).instrument(span).await;
        writer.finish(call, outcome).await;
    };
    let rejected = |failure: &Failure| problem::response(failure, Some(&id));
    let response = deliver(work.boxed(), received, exchange, HeaderValue::from_static(form.kind()), rejected).await;
    named(response, &id)
}

/// Does the work of a response, and sends its chunks as they come. A failure before the first of them is another response.
pub(super) async fn deliver(
    work: BoxFuture<'static, ()>,
    received: Receiver<Chunk<Bytes>>,
    exchange: Arc<Exchange>,
    kind: HeaderValue,
    rejected: impl FnOnce(&Failure) -> Response<Body>,
) -> Response<Body> {
    // An error ends a body without its last chunk (RFC 9112, 8), or with a reset stream (RFC 9113, 5.4.2), so the client knows that
    // the response is incomplete.
    let body = match Chunks::begin(work, received, exchange).await {
        Ok(mut chunks) => match chunks.take_only() {
            Some(only) => Body::from(only),
            None => Body::from_stream(chunks.into_stream()),
        },
        // The headers are not sent yet, so the status can still be that of the failure.
        Err(failure) => return rejected(&failure),
    };
    ([(header::CONTENT_TYPE, kind)], body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_form_that_is_known_is_taken() {
        let form = |accept: &str| ResultFormat::of(&HeaderMap::from_iter([(header::ACCEPT, accept.parse().unwrap())]));
        assert_eq!(ResultFormat::of(&HeaderMap::new()), ResultFormat::Json);
        assert_eq!(form("*/*"), ResultFormat::Json);
        assert_eq!(form("text/html, application/x-ndjson;q=0.9, application/json"), ResultFormat::Lines);
        assert_eq!(form("application/vnd.apache.arrow.stream"), ResultFormat::Arrow);
    }
}
