//! Batches of changes, and graphs that begin empty.

use axum::{
    extract::{Path, Query, rejection::QueryRejection},
    http::{HeaderMap, StatusCode, header},
    response::Response,
};
use utoipa::IntoParams;

use super::{
    answers::{ChangesAnswer, EmptyGraphAnswer},
    handler::{HttpRequest, RequestBody},
    jobs::unfit,
    problem::Problem,
};
use crate::{
    calls::{self, Call, ChangesFormat, ChangesOptions, ChangesRequest},
    failure::Failure,
};

/// The header of an idempotency key (draft-ietf-httpapi-idempotency-key-header).
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Options of a batch.
#[derive(Debug, Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ChangesParams {
    /// The version that the changes were decided on: if an item of theirs was changed since, they are a conflict.
    #[param(required = false)]
    base: Option<u64>,
    /// To be kept with the version.
    #[param(required = false)]
    message: String,
    /// `NAME=POSITION`: up to where a source was read, to be kept with the version. May be repeated.
    #[param(required = false)]
    source_position: Vec<String>,
    /// `NAME=POSITION`: the changes are a conflict unless the source was read up to there; `NAME=`: unless it was not read. May be
    /// repeated.
    #[param(required = false)]
    if_position: Vec<String>,
    /// Whether vertices that edges name and that are not there are made: `true` or `false`.
    #[param(required = false)]
    create_missing: bool,
    /// Whether labels and properties that the graph does not have are rejected: `true` or `false`.
    #[param(required = false)]
    strict: bool,
    /// How long the answer may take, in milliseconds.
    #[param(required = false)]
    time_ms: u64,
}

/// Applies a batch of changes: all of it, or nothing. The body is JSON Lines, CSV with a header, or an Arrow stream, as
/// `docs/changes.md` has them. With an idempotency key, a batch that is sent again is applied once.
#[utoipa::path(
    post, path = "/v1/graphs/{graph}/changes", tag = "changes",
    params(
        ("graph" = String, Path, example = "air-routes"),
        ("Idempotency-Key" = Option<String>, Header, description = "A name for the batch, such as a UUID"),
        ChangesParams
    ),
    request_body(
        content(
            (String = "application/x-ndjson",
                example = json!("{\"op\": \"upsert_vertex\", \"label\": \"airport\", \"key\": 90001, \"properties\": {\"code\": \"XXX\"}}\n")),
            (String = "text/csv"),
            (Vec<u8> = "application/vnd.apache.arrow.stream"),
        )
    ),
    responses((status = 200, body = ChangesAnswer), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn apply(
    request: HttpRequest,
    Path(graph): Path<String>,
    params: Result<Query<Vec<(String, String)>>, QueryRejection>,
    body: RequestBody,
) -> Response {
    let work = async |call: &mut Call| {
        call.check_token()?;
        // Before the body: a server that does not write reads none.
        call.service.check_writable()?;
        let Query(params) = params.map_err(|error| unfit(&error))?;
        let params = ChangesParams::of(params)?;
        let format = format(&request.headers)?;
        let idempotency_key = idempotency_key(&request.headers)?;
        let changes = body.bytes(call).await?;
        let time_ms = params.time_ms;
        let options = ChangesOptions { idempotency_key, ..params.try_into()? };
        let applied = calls::apply(call, ChangesRequest { graph, format, changes, options, time_ms }).await?;
        Ok(ChangesAnswer::from(applied))
    };
    request.answer("Apply", work).await
}

/// Makes an empty graph, for changes to fill. One that is there and still empty is answered with 200 and not with 201.
#[utoipa::path(
    put, path = "/v1/graphs/{graph}", tag = "changes", params(("graph" = String, Path, example = "new-graph")),
    responses(
        (status = 201, body = EmptyGraphAnswer), (status = 200, body = EmptyGraphAnswer),
        (status = "default", body = Problem, content_type = "application/problem+json")
    )
)]
pub(super) async fn create(request: HttpRequest, Path(graph): Path<String>) -> Response {
    let mut is_created = false;
    let work = async |call: &mut Call| {
        let graph = calls::create(call, &graph).await?;
        is_created = graph.created;
        Ok(EmptyGraphAnswer::from(graph))
    };
    let mut response = request.answer("CreateGraph", work).await;
    if is_created && response.status() == StatusCode::OK {
        *response.status_mut() = StatusCode::CREATED;
    }
    response
}

/// How the changes of a body are written.
fn format(headers: &HeaderMap) -> Result<ChangesFormat, Failure> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?").trim());
    // A body of kilobytes could become gigabytes.
    if let Some(encoding) = text(header::CONTENT_ENCODING).filter(|encoding| !encoding.eq_ignore_ascii_case("identity"))
    {
        return Err(Failure::invalid(format!(
            "bodies in encoding {encoding:?} are not read; send the changes as they are"
        )));
    }
    let kind = text(header::CONTENT_TYPE).unwrap_or_default();
    match kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "application/x-ndjson" | "application/ndjson" | "application/jsonl" | "application/x-jsonlines" => {
            Ok(ChangesFormat::Lines)
        }
        "text/csv" => Ok(ChangesFormat::Csv),
        "application/vnd.apache.arrow.stream" => Ok(ChangesFormat::Arrow),
        _ => Err(Failure::invalid(format!(
            "changes of content-type {kind:?} are not read; send application/x-ndjson, text/csv or \
             application/vnd.apache.arrow.stream"
        ))),
    }
}

/// The idempotency key, as it stands or in quotes.
fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Failure> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let text = value.to_str().map_err(|_| Failure::invalid("the idempotency key is not ASCII text"))?;
    let quoted = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    Ok(Some(quoted.unwrap_or(text).to_owned()))
}

impl ChangesParams {
    fn of(pairs: Vec<(String, String)>) -> Result<Self, Failure> {
        let mut params = Self::default();
        for (name, value) in pairs {
            let wrong = |want: &str| {
                Failure::invalid(format!("the query of the URL is not valid: {name} is {value:?}; write {want}"))
            };
            let number = || value.parse().map_err(|_| wrong("a whole number, 0 or more"));
            let choice = || value.parse().map_err(|_| wrong("true or false"));
            match name.as_str() {
                "base" => params.base = Some(number()?),
                "time_ms" => params.time_ms = number()?,
                "create_missing" => params.create_missing = choice()?,
                "strict" => params.strict = choice()?,
                "message" => params.message = value,
                "source_position" => params.source_position.push(value),
                "if_position" => params.if_position.push(value),
                _ => {
                    let message = format!(
                        "the query of the URL is not valid: unknown parameter {name:?}; there are base, message, source_position, \
                         if_position, create_missing, strict and time_ms"
                    );
                    return Err(Failure::invalid(message));
                }
            }
        }
        Ok(params)
    }
}

impl TryFrom<ChangesParams> for ChangesOptions {
    type Error = Failure;

    fn try_from(params: ChangesParams) -> Result<Self, Failure> {
        let ChangesParams { base, message, source_position, if_position, create_missing, strict, .. } = params;
        let position = |text: String| match text.split_once('=').filter(|(name, _)| !name.is_empty()) {
            Some((name, position)) => Ok((name.to_owned(), position.to_owned())),
            None => Err(Failure::invalid(format!("{text:?} is not a position of a source; write NAME=POSITION"))),
        };
        let source_positions = source_position.into_iter().map(position).collect::<Result<_, _>>()?;
        let expected = |text| position(text).map(|(name, at)| (name, (!at.is_empty()).then_some(at)));
        let if_positions = if_position.into_iter().map(expected).collect::<Result<_, _>>()?;
        Ok(Self { base, message, source_positions, if_positions, create_missing, strict, idempotency_key: None })
    }
}
