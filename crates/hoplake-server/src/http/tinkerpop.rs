//! Gremlin over HTTP as the drivers of TinkerPop 4 speak it, which is in beta: `POST /gremlin` with a text, and back come results and at their
//! end the status.
//!
//! `Accept` chooses GraphBinary 4 or JSON without types. A failure before the first result has its status in HTTP as well; a later one
//! is in the status at the end alone.

use std::collections::BTreeMap;

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue, header},
    response::Response,
};
use futures::{FutureExt, future::BoxFuture};
use hoplake::gremlin::{self, graphbinary::fourth, script::Statement, value::Value};
use serde::Deserialize;
use serde_json::json;
use tracing::Instrument;

use super::{
    handler::{HttpRequest, JsonBody, named},
    problem,
    writer::{PIECE_BYTES, deliver},
};
use crate::{
    calls::{self, Asked, Call, GraphRef, GremlinQuery, GremlinResults, Outlet, outlet, run_gremlin},
    failure::{Failure, Reason},
};

/// Results that are taken at a time, unless a request says otherwise.
const RESULTS: usize = 1_000;

/// The language of a request.
const LANGUAGE: &str = "gremlin-lang";

/// A request. Drivers send more than is asked here, such as their own name.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestBody {
    gremlin: String,
    /// The graph, or `g` for the usual one.
    #[serde(default = "usual")]
    g: String,
    #[serde(default)]
    language: Option<String>,
    #[serde(default, alias = "bindings")]
    parameters: Option<Parameters>,
    #[serde(default)]
    batch_size: Option<usize>,
    #[serde(default)]
    bulk_results: Option<bool>,
    #[serde(default, alias = "evaluationTimeout", alias = "timeoutMs")]
    timeout_millis: Option<u64>,
    #[serde(default)]
    materialize_properties: Option<String>,
    #[serde(default)]
    transaction_id: Option<serde_json::Value>,
}

/// Values of names: a map in the language, or JSON.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Parameters {
    Text(String),
    Json(BTreeMap<String, serde_json::Value>),
}

fn usual() -> String {
    "g".into()
}

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    GraphBinary,
    Json,
}

impl Form {
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

    /// What a failure is if no result was sent.
    fn refusal(self, failure: &Failure, request_id: &str) -> Response<Body> {
        let mut response = problem::response(failure, Some(request_id));
        let mut body = Vec::new();
        begin(self, false, &mut body);
        end(self, Some(failure), &mut body);
        *response.body_mut() = body.into();
        response.headers_mut().insert(header::CONTENT_TYPE, self.kind());
        response
    }
}

fn begin(form: Form, is_bulked: bool, bytes: &mut Vec<u8>) {
    match form {
        Form::GraphBinary => fourth::begin(is_bulked, bytes),
        Form::Json => bytes.extend_from_slice(b"{\"result\":{\"data\":["),
    }
}

fn end(form: Form, failure: Option<&Failure>, bytes: &mut Vec<u8>) {
    let status = failure.map_or(200, |failure| failure.reason.http().as_u16());
    let error = failure.map(|failure| (failure.message.as_str(), failure.gremlin().1));
    match form {
        Form::GraphBinary => fourth::end(status.into(), error, bytes),
        Form::Json => {
            let (message, exception) = error.unwrap_or_default();
            let status = json!({"code": status, "message": message, "exception": exception});
            bytes.extend_from_slice(format!("]}},\"status\":{status}}}").as_bytes());
        }
    }
}

/// Encodes results.
struct Results {
    form: Form,
    is_bulked: bool,
    buffer: Vec<u8>,
    sent: bool,
    /// How many more there may be.
    left: u64,
    results_max: u64,
    is_first: bool,
    outlet: Outlet<Bytes>,
}

impl Results {
    fn write(&mut self, value: &Value, bulk: Option<u64>) -> Result<(), Failure> {
        match self.form {
            Form::GraphBinary => fourth::write_result(value, bulk, &mut self.buffer).map_err(|why| {
                let failure = Failure::invalid(format!("the results cannot be sent: {why}"));
                Failure { cause: Some(hoplake::Reason::Query), ..failure }
            }),
            Form::Json => {
                if !std::mem::take(&mut self.is_first) {
                    self.buffer.push(b',');
                }
                serde_json::to_writer(&mut self.buffer, &value.to_json())
                    .map_err(|error| Failure::new(Reason::Internal, format!("the answer cannot be written: {error}")))
            }
        }
    }

    async fn flush(&mut self) -> Result<(), Failure> {
        if self.buffer.len() < PIECE_BYTES {
            return Ok(());
        }
        self.sent = true;
        let piece = std::mem::take(&mut self.buffer);
        let hold = self.outlet.hold(piece.capacity())?;
        self.outlet.send(piece.into(), hold).await
    }

    /// Ends the answer and its call.
    async fn finish(mut self, mut call: Call, outcome: Result<(), Failure>) {
        call.finish(&outcome);
        match &outcome {
            Err(failure) if !self.sent => return self.outlet.fail(failure.clone()).await,
            outcome => end(self.form, outcome.as_ref().err(), &mut self.buffer),
        }
        let bytes = self.buffer.capacity();
        self.outlet.send_last(self.buffer.into(), bytes).await;
    }
}

impl GremlinResults for Results {
    fn put(&mut self, results: Vec<(Value, u64)>) -> BoxFuture<'_, Result<(), Failure>> {
        async move {
            for (value, bulk) in results {
                let counted = if self.is_bulked { 1 } else { bulk };
                self.left = self.left.checked_sub(counted).ok_or_else(|| {
                    let message = format!("there are more than {} results; narrow the query", self.results_max);
                    Failure::new(Reason::Limit, message)
                })?;
                for _ in 0..counted {
                    self.write(&value, self.is_bulked.then_some(bulk))?;
                    self.flush().await?;
                }
            }
            Ok(())
        }
        .boxed()
    }

    fn prepare(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// Runs a query.
pub(super) async fn query(request: HttpRequest, body: JsonBody) -> Response<Body> {
    let form = Form::of(&request.headers);
    let bulk_header = request.headers.get("bulkresults").is_some_and(|value| value.as_bytes() == b"true");
    let mut call = request.begin("Gremlin");
    let id = call.id.clone();
    let exchange = call.exchange.clone();
    let (outlet, pieces) = outlet(&call.memory);
    let results_max = call.service.settings.limits.results_max as u64;
    let (buffer, left) = (Vec::new(), results_max);
    let mut results =
        Results { form, is_bulked: false, buffer, sent: false, left, results_max, is_first: true, outlet };
    let work = async move {
        let span = call.span.clone();
        let outcome = run(&mut call, body, bulk_header, &mut results).instrument(span).await;
        results.finish(call, outcome).await;
    };
    let refused = |failure: &Failure| form.refusal(failure, &id);
    let response = deliver(work.boxed(), pieces, exchange, form.kind(), refused).await;
    named(response, &id)
}

async fn run(call: &mut Call, body: JsonBody, bulk_header: bool, results: &mut Results) -> Result<(), Failure> {
    let body: RequestBody = body.read(call).await?;
    if let Some(language) = body.language.filter(|language| language != LANGUAGE) {
        return Err(Failure::invalid(format!("the language {language:?} is not spoken here; write {LANGUAGE}")));
    }
    if body.transaction_id.is_some() {
        return Err(no_transactions());
    }
    let limits = Asked { time_ms: body.timeout_millis.unwrap_or(0), ..Asked::default() };
    let names = match body.parameters {
        None => Vec::new(),
        Some(Parameters::Text(text)) => {
            let needed = call.exchange.request_bytes() + text.len() as u64 * gremlin::PARAMETERS_FACTOR;
            call.exchange.hold_request(&call.service.memory, needed).map_err(|full| Failure::no_memory(full, needed))?;
            let context = calls::planning_context(call, &limits);
            let names = gremlin::parameters_within(&text, &context);
            names.map_err(|error| calls::planning_failure(call, &context, error))?
        }
        Some(Parameters::Json(json)) => json
            .into_iter()
            .map(|(name, json)| calls::named_value(&name, &json.to_string()))
            .collect::<Result<_, _>>()?,
    };
    let properties = match body.materialize_properties.as_deref() {
        None | Some("all") => true,
        Some("tokens") => false,
        Some(other) => return Err(Failure::invalid(format!("materializeProperties is all or tokens, not {other:?}"))),
    };
    let script = calls::read_script(call, &body.gremlin, &limits)?;
    // A driver that begins one wants its id, and says something else if it gets none.
    if let [Statement::Transaction(_)] = &script.statements[..] {
        return Err(no_transactions());
    }
    results.is_bulked = results.form == Form::GraphBinary && body.bulk_results.unwrap_or(bulk_header);
    begin(results.form, results.is_bulked, &mut results.buffer);
    let asked = GremlinQuery {
        graph: GraphRef { name: body.g, version: 0 },
        is_alias: true,
        script,
        prepared: None,
        names,
        batch: body.batch_size.unwrap_or(RESULTS).clamp(1, RESULTS),
        properties,
        limits,
    };
    run_gremlin(call, &asked, None, results).await.map(drop)
}

fn no_transactions() -> Failure {
    Failure::invalid(
        "transactions over several requests of HTTP (`tx`) are not supported: send the statements in one text, which is one transaction, or \
         use a session of a driver of TinkerPop 3",
    )
}
