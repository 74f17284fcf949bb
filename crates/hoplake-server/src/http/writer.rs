//! Long answers, written as they are read.
//!
//! `Accept` chooses the form. JSON is one object, first the list and then the summary; JSON Lines has a line for each
//! item and one for the summary; an Arrow stream has the items alone, in one schema. An answer that fits one piece is
//! sent at once, with its length. A longer one is sent in pieces, and a failure after the first piece cannot have a
//! status any more: in JSON Lines it is the last line, elsewhere the connection breaks off, so that no client takes
//! what it has for all.

use std::sync::Arc;

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue, Response, header},
    response::IntoResponse,
};
use futures::{FutureExt, future::BoxFuture, stream};
use hoplake_doors::Exchange;
use serde::Serialize;
use tokio::sync::mpsc::Receiver;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

use super::{
    answers::{edges, found_rows, ids, path, rows, value_rows},
    arrow::ArrowRows,
    handler::{HttpRequest, named},
    problem,
};
use crate::{
    calls::{Call, Outlet, Part, Parts, Sent, outlet},
    failure::{Failure, Reason},
};

/// A piece is sent when it has this many bytes.
pub(super) const PIECE_BYTES: usize = 128 << 10;
/// Rows that are encoded between two looks at the size of the piece.
const ROWS_AT_A_TIME: usize = 256;

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Lines,
    Arrow,
}

impl Form {
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

/// Encodes the parts of an answer.
pub(super) struct Writer {
    form: Form,
    /// The name of the list; without it, the answer is only the summary.
    pub(super) list: Option<&'static str>,
    buffer: Vec<u8>,
    items: u64,
    sent: bool,
    outlet: Outlet<Bytes>,
    /// The depth whose ids are being written, as one item.
    depth: Option<u32>,
    arrow: ArrowRows,
}

impl Writer {
    /// The answer has no list. To be called before the work begins: an Arrow stream is nothing but the list.
    pub(super) fn without_list(&mut self) -> Result<(), Failure> {
        if self.form == Form::Arrow {
            let why = "a count or a summary is not an Arrow stream, which has rows alone; ask for application/json";
            return Err(Failure::invalid(why));
        }
        self.list = None;
        Ok(())
    }

    /// The items of the list are values of any type. To be called before the work begins.
    pub(super) fn of_values(&self) -> Result<(), Failure> {
        match self.form {
            Form::Arrow => {
                let why = "results of Gremlin have no common type, as the rows of an Arrow stream have; ask for application/json";
                Err(Failure::invalid(why))
            }
            Form::Json | Form::Lines => Ok(()),
        }
    }

    fn item<T: Serialize>(&mut self, item: &T) -> Result<(), Failure> {
        self.next_item();
        serde_json::to_writer(&mut self.buffer, item).map_err(unwritable)?;
        if self.form == Form::Lines {
            self.buffer.push(b'\n');
        }
        Ok(())
    }

    /// The separator before an item.
    fn next_item(&mut self) {
        if self.form == Form::Json {
            self.begin_list();
            if self.items > 0 {
                self.buffer.push(b',');
            }
        }
        self.items += 1;
    }

    /// With the first item, or else with the summary: a call may set `list` only after it has read its body.
    fn begin_list(&mut self) {
        if let Some(list) = self.list.filter(|_| self.items == 0 && !self.sent) {
            self.buffer.extend_from_slice(format!("{{\"{list}\":[").as_bytes());
        }
    }

    /// Sends what is a whole piece. The rest leaves with `finish`, so that a short answer is one piece.
    async fn flush(&mut self) -> Result<(), Failure> {
        if self.buffer.len() < PIECE_BYTES {
            return Ok(());
        }
        self.sent = true;
        let piece = std::mem::take(&mut self.buffer);
        // Its capacity, not its length: that is what is allocated until the socket has the piece.
        let hold = self.outlet.hold(piece.capacity())?;
        self.outlet.send(piece.into(), hold).await
    }

    async fn write(&mut self, part: Part<'_>) -> Result<(), Failure> {
        if self.form == Form::Arrow {
            self.arrow.write(part, &mut self.buffer)?;
            return self.flush().await;
        }
        match part {
            Part::Edges { graph, edges: all, keys, columns } => {
                for edge in edges(graph, all, keys, columns)? {
                    self.item(&edge)?;
                    self.flush().await?;
                }
            }
            Part::Vertices { depth, vertices } => self.write_ids(depth, &ids(vertices.iter().copied())).await?,
            Part::Rows(all) => {
                for some in all.chunks(ROWS_AT_A_TIME) {
                    rows(&some)?.iter().try_for_each(|row| self.item(row))?;
                    self.flush().await?;
                }
            }
            Part::Found(all) => {
                for some in all.chunks(ROWS_AT_A_TIME) {
                    found_rows(&some)?.iter().try_for_each(|row| self.item(row))?;
                    self.flush().await?;
                }
            }
            Part::Values(all) => {
                for some in all.chunks(ROWS_AT_A_TIME) {
                    value_rows(&some)?.iter().try_for_each(|row| self.item(row))?;
                    self.flush().await?;
                }
            }
            Part::Results(results) => {
                for (value, bulk) in results {
                    let json = value.to_json();
                    for _ in 0..*bulk {
                        self.item(&json)?;
                        self.flush().await?;
                    }
                }
            }
            Part::Paths(paths) => {
                for walk in paths {
                    self.item(&path(walk)?)?;
                    self.flush().await?;
                }
            }
        }
        Ok(())
    }

    /// Ids of a depth: in JSON one object a depth, however many parts it has.
    async fn write_ids(&mut self, depth: u32, ids: &[String]) -> Result<(), Failure> {
        if self.form == Form::Lines {
            self.item(&super::answers::Vertices { depth, ids: ids.to_vec() })?;
            return self.flush().await;
        }
        let is_new = self.depth != Some(depth);
        if is_new {
            self.end_depth();
            self.next_item();
            self.buffer.extend_from_slice(format!("{{\"depth\":{depth},\"ids\":[").as_bytes());
            self.depth = Some(depth);
        }
        for (position, id) in ids.iter().enumerate() {
            if position > 0 || !is_new {
                self.buffer.push(b',');
            }
            serde_json::to_writer(&mut self.buffer, id).map_err(unwritable)?;
        }
        self.flush().await
    }

    /// Ends the object of a depth. Only what follows shows that it is complete: a depth may have several parts.
    fn end_depth(&mut self) {
        if self.depth.take().is_some() {
            self.buffer.extend_from_slice(b"]}");
        }
    }

    /// Writes the fields after the list. `summary` is the complete answer with an empty list.
    fn write_summary<T: Serialize>(&mut self, summary: &T) -> Result<(), Failure> {
        if self.form == Form::Arrow {
            return self.arrow.finish(&mut self.buffer);
        }
        self.end_depth();
        let all = serde_json::to_string(summary).map_err(unwritable)?;
        let Some(list) = self.list else {
            self.buffer.extend_from_slice(all.as_bytes());
            if self.form == Form::Lines {
                self.buffer.push(b'\n');
            }
            return Ok(());
        };
        let empty = format!("{{\"{list}\":[");
        // Serialized whole and cut: the schema of the document and the streamed answer cannot differ.
        let rest = all.strip_prefix(&empty).ok_or_else(|| Failure::new(Reason::Internal, "an answer has no list"))?;
        match self.form {
            Form::Json => {
                self.begin_list();
                self.buffer.extend_from_slice(rest.as_bytes());
            }
            _ => {
                let fields = rest.strip_prefix("],").unwrap_or(rest);
                self.buffer.extend_from_slice(format!("{{{fields}\n").as_bytes());
            }
        }
        Ok(())
    }

    /// Ends the answer and its call.
    async fn finish<T: Serialize>(mut self, mut call: Call, outcome: Result<T, Failure>) {
        // No deadline from here on. A client that does not read loses its connection, and that drops this task.
        let outcome = outcome.and_then(|summary| self.write_summary(&summary));
        call.finish(&outcome);
        match outcome {
            Ok(()) => {}
            Err(failure) if self.sent && self.form == Form::Lines => {
                let problem = problem::of(&failure, Some(&call.id));
                let line = serde_json::to_string(&problem).unwrap_or_default();
                self.buffer.extend_from_slice(format!("{{\"problem\":{line}}}\n").as_bytes());
            }
            // With nothing sent it becomes a problem with its own status. Later it breaks the body off.
            Err(failure) => return self.outlet.fail(failure).await,
        }
        let bytes = self.buffer.capacity();
        self.outlet.send_last(self.buffer.into(), bytes).await;
    }
}

fn unwritable(error: serde_json::Error) -> Failure {
    Failure::new(Reason::Internal, format!("the answer cannot be written: {error}"))
}

impl Parts for Writer {
    fn put<'a>(&'a mut self, part: Part<'a>) -> BoxFuture<'a, Result<(), Failure>> {
        self.write(part).boxed()
    }
}

/// Runs a call whose answer is a list and a summary, and sends the answer as the call writes it. The call returns the
/// summary with an empty list.
pub(super) async fn stream<T: Serialize + Send + 'static>(
    request: HttpRequest,
    name: &'static str,
    list: &'static str,
    work: impl for<'a> FnOnce(&'a mut Call, &'a mut Writer) -> BoxFuture<'a, Result<T, Failure>> + Send + 'static,
) -> Response<Body> {
    let form = Form::of(&request.headers);
    let mut call = request.begin(name);
    let id = call.id.clone();
    let exchange = call.exchange.clone();
    let (outlet, pieces) = outlet(&call.memory);
    let buffer = Vec::new();
    let arrow = ArrowRows::default();
    let mut writer = Writer { form, list: Some(list), buffer, items: 0, sent: false, outlet, depth: None, arrow };
    let work = async move {
        let span = call.span.clone();
        let outcome = work(&mut call, &mut writer).instrument(span).await;
        writer.finish(call, outcome).await;
    };
    let refused = |failure: &Failure| problem::response(failure, Some(&id));
    let response = deliver(work.boxed(), pieces, exchange, HeaderValue::from_static(form.kind()), refused).await;
    named(response, &id)
}

/// Does the work of an answer, and sends its pieces as they come. A failure before the first of them is another response.
pub(super) async fn deliver(
    mut work: BoxFuture<'static, ()>,
    mut pieces: Receiver<Sent<Bytes>>,
    exchange: Arc<Exchange>,
    kind: HeaderValue,
    refused: impl FnOnce(&Failure) -> Response<Body>,
) -> Response<Body> {
    // Most answers are one piece, and need no task of their own.
    let (first, rest) = tokio::select! {
        // The work first: if it ends at once, its pieces are in the channel, and one piece goes out with its length.
        biased;
        () = work.as_mut() => (pieces.recv().await, None),
        first = pieces.recv() => (first, Some(AbortOnDropHandle::new(tokio::spawn(work)))),
    };
    match first {
        Some(Sent { item: Ok(piece), hold, last }) => {
            exchange.hand(hold);
            let body = if last { Body::from(piece) } else { body(piece, pieces, exchange, rest) };
            ([(header::CONTENT_TYPE, kind)], body).into_response()
        }
        // The headers are not sent yet, so the status can still be that of the failure.
        Some(Sent { item: Err(failure), .. }) => refused(&failure),
        None => refused(&Failure::new(Reason::Internal, "the call broke off")),
    }
}

/// The pieces of an answer; the task that makes them ends with it.
fn body(first: Bytes, pieces: Receiver<Sent<Bytes>>, exchange: Arc<Exchange>, task: Option<AbortOnDropHandle<()>>) -> Body {
    let state = Some((Some(first), pieces, exchange, task));
    Body::from_stream(stream::unfold(state, async |state| {
        let (first, mut pieces, exchange, task) = state?;
        if let Some(first) = first {
            return Some((Ok(first), Some((None, pieces, exchange, task))));
        }
        let Some(Sent { item, hold, last }) = pieces.recv().await else {
            // The task panicked. An error ends the body without its last chunk (RFC 9112, 8), or with a reset stream
            // (RFC 9113, 5.4.2), so the client knows that the answer is incomplete.
            return Some((Err(Failure::new(Reason::Internal, "the call broke off")), None));
        };
        // Before the bytes are returned: the door gives them all memory that was handed.
        exchange.hand(hold);
        let more = (!last).then_some((None, pieces, exchange, task));
        Some((item, more))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_form_that_is_known_is_taken() {
        let form = |accept: &str| Form::of(&HeaderMap::from_iter([(header::ACCEPT, accept.parse().unwrap())]));
        assert_eq!(Form::of(&HeaderMap::new()), Form::Json);
        assert_eq!(form("*/*"), Form::Json);
        assert_eq!(form("text/html, application/x-ndjson;q=0.9, application/json"), Form::Lines);
        assert_eq!(form("application/vnd.apache.arrow.stream"), Form::Arrow);
    }
}
