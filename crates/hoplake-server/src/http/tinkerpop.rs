//! Gremlin over HTTP, the protocol of TinkerPop 4's drivers, which is in beta: `POST /gremlin` with a text returns results and, after
//! them, the status.
//!
//! `Accept` chooses GraphBinary 4 or JSON without types. A failure before the first result has its status in HTTP as well; a later one
//! is in the status at the end alone.

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, header},
    response::Response,
};
use futures::{FutureExt, future::BoxFuture};
use hoplake::gremlin::{self, graphbinary::fourth, script::Statement, value::Value};
use serde::Deserialize;
use serde_json::json;
use tracing::Instrument;

use super::{
    chunk_buffer::ChunkBuffer,
    handler::{HttpRequest, RequestBody, named},
    problem,
    writer::deliver,
};
use crate::{
    calls::{
        self, Call, DriverOptions, GraphRef, GremlinOptions, GremlinRequest, GremlinSink, RequestedLimits,
        ResultValues, chunk_channel, run_gremlin,
    },
    failure::Failure,
};

/// A request. Drivers send more fields, such as their own name.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DriverRequest {
    gremlin: String,
    /// The graph, or `g` for the usual one.
    g: Option<String>,
    parameters: Option<serde_json::Value>,
    bindings: Option<serde_json::Value>,
    transaction_id: Option<serde_json::Value>,
    // Options, whose values are read as those of a driver of TinkerPop 3.
    language: Option<serde_json::Value>,
    batch_size: Option<serde_json::Value>,
    bulk_results: Option<serde_json::Value>,
    evaluation_timeout: Option<serde_json::Value>,
    timeout_millis: Option<serde_json::Value>,
    timeout_ms: Option<serde_json::Value>,
    materialize_properties: Option<serde_json::Value>,
}

impl DriverRequest {
    /// The options that a request has, by their names.
    fn options(&mut self) -> Result<Vec<gremlin::Named>, Failure> {
        let fields = [
            ("language", &mut self.language),
            ("batchSize", &mut self.batch_size),
            ("bulkResults", &mut self.bulk_results),
            ("evaluationTimeout", &mut self.evaluation_timeout),
            ("timeoutMillis", &mut self.timeout_millis),
            ("timeoutMs", &mut self.timeout_ms),
            ("materializeProperties", &mut self.materialize_properties),
        ];
        let given = fields.into_iter().filter_map(|(name, value)| Some((name, value.take()?)));
        given.map(|(name, value)| calls::named_value(name, &value.to_string())).collect()
    }
}

/// The format of a response to a TinkerPop 4 request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TinkerPopFormat {
    GraphBinary,
    Json,
}

impl TinkerPopFormat {
    /// JSON if a client does not ask for GraphBinary 4.
    fn of(headers: &HeaderMap) -> Self {
        let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let mut kinds =
            accepted.flat_map(|value| value.split(',')).map(|kind| kind.split(';').next().unwrap_or("").trim());
        if kinds.any(|kind| kind == fourth::MEDIA_TYPE) { Self::GraphBinary } else { Self::Json }
    }

    fn kind(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::GraphBinary => fourth::MEDIA_TYPE,
            Self::Json => "application/json",
        })
    }

    /// The response of a failure before the first result.
    fn rejection(self, failure: &Failure, request_id: &str) -> Response<Body> {
        let mut response = problem::response(failure, Some(request_id));
        let mut body = Vec::new();
        begin(self, false, &mut body);
        end(self, Some(failure), &mut body);
        *response.body_mut() = body.into();
        response.headers_mut().insert(header::CONTENT_TYPE, self.kind());
        response
    }
}

fn begin(form: TinkerPopFormat, is_bulked: bool, bytes: &mut Vec<u8>) {
    match form {
        TinkerPopFormat::GraphBinary => fourth::begin(is_bulked, bytes),
        TinkerPopFormat::Json => bytes.extend_from_slice(b"{\"result\":{\"data\":["),
    }
}

fn end(form: TinkerPopFormat, failure: Option<&Failure>, bytes: &mut Vec<u8>) {
    let status = failure.map_or(200, |failure| failure.reason.http().as_u16());
    let error = failure.map(|failure| (failure.message.as_str(), failure.gremlin().1));
    match form {
        TinkerPopFormat::GraphBinary => fourth::end(status.into(), error, bytes),
        TinkerPopFormat::Json => {
            let (message, exception) = error.unwrap_or_default();
            let status = json!({"code": status, "message": message, "exception": exception});
            bytes.extend_from_slice(format!("]}},\"status\":{status}}}").as_bytes());
        }
    }
}

/// Encodes results.
struct ResponseSink {
    form: TinkerPopFormat,
    is_bulked: bool,
    is_first: bool,
    chunks: ChunkBuffer,
}

impl ResponseSink {
    fn write(&mut self, value: &Value, bulk: Option<u64>) -> Result<(), Failure> {
        match self.form {
            TinkerPopFormat::GraphBinary => fourth::write_result(value, bulk, &mut self.chunks.bytes).map_err(|why| {
                let failure = Failure::invalid(format!("the results cannot be sent: {why}"));
                Failure { cause: Some(hoplake::Reason::Query), ..failure }
            }),
            TinkerPopFormat::Json => {
                if !std::mem::take(&mut self.is_first) {
                    self.chunks.bytes.push(b',');
                }
                self.chunks.write_json(&value.to_json())
            }
        }
    }

    /// Ends the response and its call.
    async fn finish(mut self, mut call: Call, outcome: Result<(), Failure>) {
        call.finish(&outcome);
        match outcome {
            Err(failure) if !self.chunks.is_sent() => self.chunks.fail(failure).await,
            outcome => {
                end(self.form, outcome.as_ref().err(), &mut self.chunks.bytes);
                self.chunks.finish().await;
            }
        }
    }
}

impl GremlinSink for ResponseSink {
    fn put(&mut self, results: ResultValues) -> BoxFuture<'_, Result<(), Failure>> {
        async move {
            for (value, bulk) in results.as_slice() {
                let times = if self.is_bulked { 1 } else { *bulk };
                for _ in 0..times {
                    self.write(value, self.is_bulked.then_some(*bulk))?;
                    self.chunks.flush().await?;
                }
            }
            Ok(())
        }
        .boxed()
    }
}

/// Runs a query.
pub(super) async fn query(request: HttpRequest, body: RequestBody) -> Response<Body> {
    let form = TinkerPopFormat::of(&request.headers);
    let bulk_header = request.headers.get("bulkresults").is_some_and(|value| value.as_bytes() == b"true");
    let mut call = request.begin("Gremlin");
    let id = call.id.clone();
    let exchange = call.exchange.clone();
    let (chunks, received) = chunk_channel(&call.memory);
    let mut results = ResponseSink { form, is_bulked: false, is_first: true, chunks: ChunkBuffer::new(chunks) };
    let work = async move {
        let span = call.span.clone();
        let outcome = run(&mut call, body, bulk_header, &mut results).instrument(span).await;
        results.finish(call, outcome).await;
    };
    let rejected = |failure: &Failure| form.rejection(failure, &id);
    let response = deliver(work.boxed(), received, exchange, form.kind(), rejected).await;
    named(response, &id)
}

async fn run(call: &mut Call, body: RequestBody, bulk_header: bool, results: &mut ResponseSink) -> Result<(), Failure> {
    let mut body: DriverRequest = body.read(call).await?;
    if body.transaction_id.is_some() {
        return Err(no_transactions());
    }
    let given = body.options()?;
    let option = |name: &str| given.iter().find(|(other, _)| **other == *name).map(|(_, value)| value);
    let defaults = GremlinOptions { is_bulked: bulk_header, ..GremlinOptions::default() };
    let DriverOptions { mut options, limits } = DriverOptions::read(option, defaults)?;
    // JSON has no form for bulked results.
    options.is_bulked &= results.form == TinkerPopFormat::GraphBinary;
    let mut names = Vec::new();
    for (field, given) in [("parameters", body.parameters), ("bindings", body.bindings)] {
        names.extend(names_of(call, field, given.unwrap_or_default(), &limits)?);
    }
    let script = calls::read_script(call, &body.gremlin, &limits)?;
    // A driver that begins one wants its id, and says something else if it gets none.
    if let [Statement::Transaction(_)] = &script.statements[..] {
        return Err(no_transactions());
    }
    results.is_bulked = options.is_bulked;
    begin(results.form, results.is_bulked, &mut results.chunks.bytes);
    let graph = GraphRef { name: body.g.unwrap_or_else(|| "g".into()), version: 0 };
    let request = GremlinRequest { graph, is_alias: true, script, prepared: None, names, options, limits };
    run_gremlin(call, &request, None, results).await.map(drop)
}

/// The values of names: a map in the language, or JSON.
fn names_of(
    call: &mut Call,
    field: &str,
    given: serde_json::Value,
    limits: &RequestedLimits,
) -> Result<Vec<gremlin::Named>, Failure> {
    let text = match given {
        serde_json::Value::String(text) => text,
        serde_json::Value::Object(entries) => {
            return entries.into_iter().map(|(name, json)| calls::named_value(&name, &json.to_string())).collect();
        }
        other => return calls::names_of(field, calls::named_value(field, &other.to_string())?.1),
    };
    let needed = call.exchange.request_bytes() + text.len() as u64 * gremlin::PARAMETERS_FACTOR;
    call.exchange.hold_request(&call.service.memory, needed).map_err(|full| Failure::no_memory(full, needed))?;
    let context = calls::planning_context(call, limits);
    let names = gremlin::parameters_within(&text, &context);
    names.map_err(|error| calls::planning_failure(call, &context, error))
}

fn no_transactions() -> Failure {
    Failure::invalid(
        "transactions over several requests of HTTP (`tx`) are not supported: send the statements in one text, which is one transaction, or \
         use a session of a driver of TinkerPop 3",
    )
}
