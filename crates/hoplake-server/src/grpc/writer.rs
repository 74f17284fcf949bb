//! Long responses, as messages that are sent while the rest is read.
//!
//! The last message of a response often has its cost, so one is kept back until it is known whether it is the last.

use futures::{FutureExt, TryStreamExt, future::BoxFuture};
use hoplake::MemoryHold;
use prost::Message;
use tonic::{Response, Status};
use tracing::Instrument;

use super::{columns, send, service::Messages};
use crate::{
    calls::{Call, ChunkSender, Chunks, ResultBatch, ResultSink, chunk_channel},
    cost::PricedCost,
    failure::Failure,
    request_head::REQUEST_ID,
    v1::{self, RowFormat, traverse_response::Kind},
};

/// A message that batches of a result become.
pub(super) trait ResponseMessage: Message + Default + 'static {
    /// The messages of a batch.
    fn of(part: ResultBatch<'_>, format: RowFormat) -> impl Iterator<Item = Result<Self, Failure>> + Send;
}

impl ResponseMessage for v1::NeighborsResponse {
    fn of(part: ResultBatch<'_>, _: RowFormat) -> impl Iterator<Item = Result<Self, Failure>> + Send {
        let ResultBatch::Edges { edges, keys, graph, columns } = part else { return None.into_iter() };
        let edges = send::all_edges(edges, keys, columns);
        Some(edges.map(|edges| Self { edges, cost: None, version: graph.version(), count: None })).into_iter()
    }
}

impl ResponseMessage for v1::PropertiesResponse {
    fn of(part: ResultBatch<'_>, format: RowFormat) -> impl Iterator<Item = Result<Self, Failure>> + Send {
        let rows = if let ResultBatch::Rows(rows) = part { Some(rows) } else { None };
        let messages = rows.into_iter().flat_map(move |rows| send::rows(rows, format));
        messages.map(|rows| Ok(Self { rows: Some(rows?), ..Self::default() }))
    }
}

impl ResponseMessage for v1::ScanResponse {
    fn of(part: ResultBatch<'_>, format: RowFormat) -> impl Iterator<Item = Result<Self, Failure>> + Send {
        let rows = if let ResultBatch::Scanned(rows) = part { Some(rows) } else { None };
        let messages = rows.into_iter().flat_map(move |rows| send::rows(rows, format));
        messages.map(|rows| Ok(Self { rows: Some(rows?), ..Self::default() }))
    }
}

impl ResponseMessage for v1::JobResultResponse {
    fn of(part: ResultBatch<'_>, format: RowFormat) -> impl Iterator<Item = Result<Self, Failure>> + Send {
        let rows = if let ResultBatch::Values(rows) = part { Some(rows) } else { None };
        rows.into_iter().flat_map(move |rows| send::value_rows(rows, format))
    }
}

impl ResponseMessage for v1::TraverseResponse {
    fn of(part: ResultBatch<'_>, format: RowFormat) -> impl Iterator<Item = Result<Self, Failure>> + Send {
        let (rows, vertices) = match part {
            ResultBatch::Rows(rows) => (Some(rows), None),
            ResultBatch::Vertices { depth, vertices } if !vertices.is_empty() => {
                (None, Some(v1::Vertices { depth, ids: columns::ids(vertices.iter().copied()) }))
            }
            _ => (None, None),
        };
        let rows = rows.into_iter().flat_map(move |rows| send::rows(rows, format)).map(|rows| rows.map(Kind::Rows));
        let vertices = vertices.map(|vertices| Ok(Kind::Vertices(vertices)));
        rows.chain(vertices).map(|kind| Ok(Self { kind: Some(kind?) }))
    }
}

impl ResponseMessage for v1::PathsResponse {
    fn of(part: ResultBatch<'_>, _: RowFormat) -> impl Iterator<Item = Result<Self, Failure>> + Send {
        let ResultBatch::Paths(paths) = part else { return None.into_iter() };
        let paths = paths.iter().map(send::path).collect::<Result<_, _>>();
        Some(paths.map(|paths| Self { paths, statistics: None })).into_iter()
    }
}

impl ResponseMessage for v1::GremlinResponse {
    fn of(part: ResultBatch<'_>, _: RowFormat) -> impl Iterator<Item = Result<Self, Failure>> + Send {
        let results = if let ResultBatch::Results(results) = part { results } else { &[] };
        send::results(results).map(|results| Ok(Self { results, ..Self::default() }))
    }
}

/// Sends the batches of a result as messages.
pub(super) struct Writer<T> {
    /// Of rows.
    pub(super) format: RowFormat,
    chunks: ChunkSender<T>,
    kept: Option<(T, Option<MemoryHold>)>,
}

/// The size of a message in memory: a short text, or a key, takes several times its encoding.
pub(super) fn message_bytes(message: &impl Message) -> usize {
    message.encoded_len() * 6
}

impl<T: ResponseMessage> Writer<T> {
    /// The last message so far; an empty one if there is none.
    pub(super) fn last(&mut self) -> &mut T {
        &mut self.kept.get_or_insert_default().0
    }

    /// One message more.
    pub(super) async fn add(&mut self, message: T) -> Result<(), Failure> {
        let hold = self.chunks.hold(message_bytes(&message))?;
        // Only the empty message that `last` makes has no memory, and no message follows that one.
        if let Some((before, Some(hold))) = self.kept.replace((message, Some(hold))) {
            self.chunks.send(before, hold).await?;
        }
        Ok(())
    }

    async fn write(&mut self, part: ResultBatch<'_>) -> Result<(), Failure> {
        for message in T::of(part, self.format) {
            self.add(message?).await?;
        }
        Ok(())
    }

    /// Ends the response and its call.
    async fn finish(self, mut call: Call, outcome: Result<(), Failure>) {
        call.finish(&outcome);
        match outcome {
            Ok(()) => {
                // A result without batches is still one message, with version and cost. These made the last message
                // larger, so its memory is held again, and the old hold stays until then.
                let (last, _hold) = self.kept.unwrap_or_default();
                let bytes = message_bytes(&last);
                self.chunks.send_last(last, bytes).await;
            }
            Err(failure) => self.chunks.fail(failure).await,
        }
    }
}

impl Writer<v1::NeighborsResponse> {
    /// Adds version and cost to the last message.
    pub(super) fn end_neighbors(&mut self, version: u64, cost: PricedCost) {
        let last = self.last();
        last.version = version;
        last.cost = Some(cost.into());
    }
}

impl<T: ResponseMessage> ResultSink for Writer<T> {
    fn put<'a>(&'a mut self, part: ResultBatch<'a>) -> BoxFuture<'a, Result<(), Failure>> {
        self.write(part).boxed()
    }
}

/// Runs a call whose result is a list, and sends messages as it returns batches.
pub(super) async fn stream<T: ResponseMessage>(
    mut call: Call,
    work: impl for<'a> FnOnce(&'a mut Call, &'a mut Writer<T>) -> BoxFuture<'a, Result<(), Failure>> + Send + 'static,
) -> Result<Response<Messages<T>>, Status> {
    let id = call.id.clone();
    let exchange = call.exchange.clone();
    let (chunks, received) = chunk_channel(&call.memory);
    let mut writer = Writer { format: RowFormat::default(), chunks, kept: None };
    let work = async move {
        let span = call.span.clone();
        let outcome = work(&mut call, &mut writer).instrument(span).await;
        writer.finish(call, outcome).await;
    };
    let id = id.parse().ok();
    match Chunks::begin(work.boxed(), received, exchange).await {
        Ok(chunks) => {
            let mut response = Response::new(messages(chunks));
            id.and_then(|id| response.metadata_mut().insert(REQUEST_ID, id));
            Ok(response)
        }
        Err(failure) => {
            // Before the first message: the status goes out with the headers (Trailers-Only, gRPC over HTTP/2).
            let mut status = failure.status();
            id.and_then(|id| status.metadata_mut().insert(REQUEST_ID, id));
            Err(status)
        }
    }
}

/// Chunks as the messages of a stream.
pub(super) fn messages<T: Send + 'static>(chunks: Chunks<T>) -> Messages<T> {
    Box::pin(chunks.into_stream().map_err(|failure| failure.status()))
}
