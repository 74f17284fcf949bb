//! Jobs: start, list, look, cancel, and the result.

use axum::{
    extract::{Path, Query, rejection::QueryRejection},
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use futures::FutureExt;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{
    answers::{JobAnswer, JobResultAnswer},
    handler::{HttpRequest, RequestBody},
    job_body::JobBody,
    problem::Problem,
    writer::stream,
};
use crate::{
    calls::{self, Call, GraphRef, JobResultRequest},
    failure::Failure,
};

/// Starts a computation over the whole graph, and returns at once: `Location` is where it can be looked at.
#[utoipa::path(
    post, path = "/v1/graphs/{graph}/jobs", tag = "jobs", params(("graph" = String, Path, example = "air-routes")),
    request_body(content = JobBody, example = json!({"algorithm": "pagerank", "edges": "out:route", "iterations": 20})),
    responses((status = 202, body = JobAnswer), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn start(request: HttpRequest, Path(graph): Path<String>, body: RequestBody) -> Response {
    let mut location = None;
    let work = async |call: &mut Call| {
        let body: JobBody = body.read(call).await?;
        let graph = GraphRef { name: graph, version: body.version };
        let job = calls::start_job(call, &graph, &body.try_into()?).await?;
        location = HeaderValue::from_str(&format!("/v1/jobs/{}", job.id)).ok();
        Ok(JobAnswer::from(job))
    };
    let mut response = request.answer("StartJob", work).await;
    // The answer itself may still have failed, for want of memory.
    if let Some(location) = location.filter(|_| response.status() == StatusCode::OK) {
        *response.status_mut() = StatusCode::ACCEPTED;
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

/// The jobs of this server, in the order in which they were started.
#[utoipa::path(
    get, path = "/v1/jobs", tag = "jobs",
    responses((status = 200, body = Vec<JobAnswer>), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn list(request: HttpRequest) -> Response {
    let work = async |call: &mut Call| {
        let jobs = calls::list_jobs(call)?.into_iter();
        Ok(jobs.map(JobAnswer::from).collect::<Vec<_>>())
    };
    request.answer("ListJobs", work).await
}

/// A job: its state, its progress, and what it has cost so far.
#[utoipa::path(
    get, path = "/v1/jobs/{job}", tag = "jobs", params(("job" = String, Path, description = "The id from the answer that started it")),
    responses((status = 200, body = JobAnswer), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn get(request: HttpRequest, Path(id): Path<String>) -> Response {
    request.answer("GetJob", async |call: &mut Call| calls::get_job(call, &id).map(JobAnswer::from)).await
}

/// Cancels a job, or drops the result of one that is done. A second time changes nothing.
#[utoipa::path(
    delete, path = "/v1/jobs/{job}", tag = "jobs", params(("job" = String, Path, description = "The id from the answer that started it")),
    responses((status = 200, body = JobAnswer), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn cancel(request: HttpRequest, Path(id): Path<String>) -> Response {
    request.answer("CancelJob", async |call: &mut Call| calls::cancel_job(call, &id).map(JobAnswer::from)).await
}

/// Which part of a result.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ResultParams {
    /// At most this many rows, in the order of values: the least components, communities, levels and lengths first, and the
    /// greatest other values. Without it, all rows in the order of label and position.
    top: Option<u64>,
    /// Of all rows, how many to leave out first.
    #[serde(default)]
    skip: u64,
    /// Of all rows, the most to return; 0 is all.
    #[serde(default)]
    limit: u64,
    /// Properties in addition to the key, separated by commas.
    #[serde(default)]
    select: String,
}

/// The result of a job that is done.
#[utoipa::path(
    get, path = "/v1/jobs/{job}/result", tag = "jobs",
    params(("job" = String, Path, description = "The id from the answer that started it"), ResultParams),
    responses((status = 200, body = JobResultAnswer), (status = "default", body = Problem, content_type = "application/problem+json"))
)]
pub(super) async fn result(
    request: HttpRequest,
    Path(id): Path<String>,
    params: Result<Query<ResultParams>, QueryRejection>,
) -> Response {
    stream(request, "JobResult", "rows", |call, writer| {
        async move {
            call.check_token()?;
            let Query(params) = params.map_err(|error| unfit(&error))?;
            let ResultParams { top, skip, limit, select } = params;
            let select = select.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
            let requested = JobResultRequest { id, top, skip, limit, select };
            let summary = calls::job_result(call, &requested, writer).await?;
            Ok(JobResultAnswer::of(summary, call.cost))
        }
        .boxed()
    })
    .await
}

pub(super) fn unfit(error: &QueryRejection) -> Failure {
    let text = error.body_text();
    // Axum's own words before the cause.
    let why = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
    Failure::invalid(format!("the query of the URL is not valid: {why}"))
}
