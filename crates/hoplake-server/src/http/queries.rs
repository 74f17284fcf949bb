//! Gremlin without a driver: prepared queries, and queries by text.

use std::collections::BTreeMap;

use axum::{extract::Path, http::StatusCode, response::Response};
use futures::FutureExt;
use hoplake::{QueryEdition, QueryParameter, gremlin};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    handler::{HttpRequest, RequestBody},
    problem::Problem,
    requests::LimitsBody,
    writer::stream,
};
use crate::{
    calls::{self, Call, GraphRef, GremlinOutcome, QueriesInfo},
    cost::PricedCost,
    failure::Failure,
};

/// A query by text.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GremlinBody {
    /// The query; of several statements the results of the last.
    gremlin: String,
    /// Values of names in it, as JSON or GraphSON.
    #[serde(default)]
    bindings: BTreeMap<String, Value>,
    /// The version of the graph, which is read alone then; without, the newest that is open.
    #[serde(default)]
    version: u64,
    #[serde(default)]
    limits: LimitsBody,
}

/// A call of a prepared query.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CallBody {
    /// Values of its parameters, as JSON or GraphSON.
    #[serde(default)]
    parameters: BTreeMap<String, Value>,
    /// The version of the graph, which is read alone then; without, the newest that is open.
    #[serde(default)]
    version: u64,
    #[serde(default)]
    limits: LimitsBody,
}

/// A parameter of a prepared query.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ParameterBody {
    name: String,
    /// `string`, `int64`, `float64`, `bool`, `date`, `timestamp`, `list<string>` or `list<int64>`.
    r#type: String,
    /// Its value if a call gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    default: Option<Value>,
}

/// A query to save.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SaveBody {
    /// One traversal.
    text: String,
    #[serde(default)]
    parameters: Vec<ParameterBody>,
    /// What it is for, in one line.
    #[serde(default)]
    description: String,
}

/// Results of a query.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct GremlinAnswer {
    /// As JSON without types.
    results: Vec<Value>,
    version: u64,
    /// Whether they were kept from an equal request on the same version, and nothing was computed.
    cached: bool,
    cost: PricedCost,
}

impl GremlinAnswer {
    fn of(GremlinOutcome { version, cached }: GremlinOutcome, cost: PricedCost) -> Self {
        Self { results: Vec::new(), version, cached, cost }
    }
}

/// A prepared query, as it was saved once.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct QueryAnswer {
    name: String,
    /// `NAME` calls the one with the highest number, `NAME@NUMBER` this one.
    number: u32,
    text: String,
    parameters: Vec<ParameterBody>,
    description: String,
    saved_unix_ms: u64,
}

/// The prepared queries of a version.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct QueriesAnswer {
    queries: Vec<QueryAnswer>,
    version: u64,
}

/// A query that was saved.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SavedAnswer {
    name: String,
    number: u32,
    /// The version that has it, which the server has open.
    version: u64,
}

/// A query that was deleted.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DeletedAnswer {
    /// The version that does not have it any more, which the server has open.
    version: u64,
}

/// Runs a query of Gremlin.
#[utoipa::path(
    post, path = "/v1/graphs/{graph}/gremlin", tag = "gremlin", params(("graph" = String, Path, example = "air-routes")),
    request_body(
        content = GremlinBody,
        example = json!({"gremlin": "g.V().has('airport', 'code', code).out().limit(3).values('code')", "bindings": {"code": "AUS"}})
    ),
    responses((status = 200, body = GremlinAnswer), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn gremlin(request: HttpRequest, Path(graph): Path<String>, body: RequestBody) -> Response {
    stream(request, "Gremlin", "results", |call, writer| {
        async move {
            let GremlinBody { gremlin, bindings, version, limits } = body.read(call).await?;
            writer.of_values()?;
            let graph = GraphRef { name: graph, version };
            let names = values(bindings)?;
            let answered = calls::dynamic_query(call, graph, &gremlin, names, limits.into(), writer).await?;
            Ok(GremlinAnswer::of(answered, call.cost))
        }
        .boxed()
    })
    .await
}

/// Calls a prepared query: `NAME`, or `NAME@NUMBER` for an older edition.
#[utoipa::path(
    post, path = "/v1/graphs/{graph}/queries/{query}", tag = "gremlin",
    params(("graph" = String, Path, example = "air-routes"), ("query" = String, Path, example = "routes")),
    request_body(content = CallBody, example = json!({"parameters": {"code": "AUS"}})),
    responses((status = 200, body = GremlinAnswer), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn call(
    request: HttpRequest,
    Path((graph, query)): Path<(String, String)>,
    body: RequestBody,
) -> Response {
    stream(request, "CallQuery", "results", |call, writer| {
        async move {
            let CallBody { parameters, version, limits } = body.read(call).await?;
            writer.of_values()?;
            let graph = GraphRef { name: graph, version };
            let parameters = values(parameters)?;
            let answered = calls::call_query(call, graph, &query, parameters, limits.into(), writer).await?;
            Ok(GremlinAnswer::of(answered, call.cost))
        }
        .boxed()
    })
    .await
}

/// The prepared queries of the newest version, by name and number.
#[utoipa::path(
    get, path = "/v1/graphs/{graph}/queries", tag = "gremlin", params(("graph" = String, Path, example = "air-routes")),
    responses((status = 200, body = QueriesAnswer), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn list(request: HttpRequest, Path(graph): Path<String>) -> Response {
    let graph = GraphRef { name: graph, version: 0 };
    let work = async |call: &mut Call| calls::list_queries(call, &graph).await.map(QueriesAnswer::from);
    request.answer("ListQueries", work).await
}

/// Saves a query, with the next number of its name. What is there already in the same words keeps its number, and is answered with 200
/// and not with 201.
#[utoipa::path(
    put, path = "/v1/graphs/{graph}/queries/{query}", tag = "gremlin",
    params(("graph" = String, Path, example = "air-routes"), ("query" = String, Path, example = "routes")),
    request_body(
        content = SaveBody,
        example = json!({
            "text": "g.V().has('airport', 'code', code).out().count()", "parameters": [{"name": "code", "type": "string"}]
        })
    ),
    responses(
        (status = 201, body = SavedAnswer), (status = 200, body = SavedAnswer),
        (status = "default", body = Problem, content_type = "application/problem+json")
    )
)]
pub(super) async fn save(
    request: HttpRequest,
    Path((graph, query)): Path<(String, String)>,
    body: RequestBody,
) -> Response {
    let mut is_new = false;
    let work = async |call: &mut Call| {
        call.check_token()?;
        // Before the body: a server that does not write reads none.
        call.service.check_writable()?;
        let body: SaveBody = body.read(call).await?;
        let saved = calls::save_query(call, &graph, &query, body.try_into()?).await?;
        is_new = saved.is_new;
        Ok(SavedAnswer { name: query, number: saved.number, version: saved.version })
    };
    let mut response = request.answer("SaveQuery", work).await;
    if is_new && response.status() == StatusCode::OK {
        *response.status_mut() = StatusCode::CREATED;
    }
    response
}

/// Deletes a prepared query, or with `NAME@NUMBER` one of its editions.
#[utoipa::path(
    delete, path = "/v1/graphs/{graph}/queries/{query}", tag = "gremlin",
    params(("graph" = String, Path, example = "air-routes"), ("query" = String, Path, example = "routes")),
    responses((status = 200, body = DeletedAnswer), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn delete(request: HttpRequest, Path((graph, query)): Path<(String, String)>) -> Response {
    let work = async |call: &mut Call| {
        let version = calls::delete_query(call, &graph, &query).await?;
        Ok(DeletedAnswer { version })
    };
    request.answer("DeleteQuery", work).await
}

/// JSON as values of Gremlin.
fn values(json: BTreeMap<String, Value>) -> Result<Vec<gremlin::Named>, Failure> {
    json.into_iter().map(|(name, json)| calls::named_value(&name, &json.to_string())).collect()
}

impl TryFrom<SaveBody> for QueryEdition {
    type Error = Failure;

    fn try_from(SaveBody { text, parameters, description }: SaveBody) -> Result<Self, Failure> {
        let parameter = |ParameterBody { name, r#type, default }| {
            let kind = gremlin::parameter_type(&r#type)?;
            Ok(QueryParameter { name, kind, default: default.map(|json: Value| json.to_string()) })
        };
        let parameters = parameters.into_iter().map(parameter).collect::<Result<_, Failure>>()?;
        Ok(Self { text, parameters, description, ..Self::default() })
    }
}

impl From<QueriesInfo> for QueriesAnswer {
    fn from(QueriesInfo { editions, version }: QueriesInfo) -> Self {
        let query = |(name, edition): (String, QueryEdition)| {
            let QueryEdition { number, text, parameters, description, saved_unix_ms } = edition;
            let parameter = |parameter: QueryParameter| ParameterBody {
                name: parameter.name,
                r#type: parameter.kind.to_string(),
                // It was checked when it was saved.
                default: parameter.default.and_then(|json| serde_json::from_str(&json).ok()),
            };
            let parameters = parameters.into_iter().map(parameter).collect();
            QueryAnswer { name, number, text, parameters, description, saved_unix_ms }
        };
        Self { queries: editions.into_iter().map(query).collect(), version }
    }
}
