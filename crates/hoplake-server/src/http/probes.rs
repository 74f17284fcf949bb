//! What operators ask without a token: liveness, readiness, counters, and the OpenAPI document.
//!
//! Anyone may ask, on the threads that probes need. So an answer costs next to nothing: what takes time to make is made once for
//! many, and its bytes are shared. `doors::answering` bounds how many answers a connection may leave unread.

use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};

use hoplake_doors::open_metrics;

use super::state::HttpState;
use crate::{jobs::JobState, results::ResultCache, telemetry::metrics::Readings};

/// Whether the process lives.
#[utoipa::path(get, path = "/healthz", tag = "operations", responses((status = 200, description = "It lives.", body = String)))]
pub(super) async fn healthz() -> &'static str {
    // Also while the server shuts down: a failed liveness probe could have it killed within its grace.
    "ok\n"
}

/// Whether to send it queries.
#[utoipa::path(
    get, path = "/readyz", tag = "operations",
    responses(
        (status = 200, description = "Send it queries.", body = String),
        (status = 503, description = "It is about to end.", body = String),
    )
)]
pub(super) async fn readyz(State(state): State<HttpState>) -> Response {
    // From the signal on, and for `notice_ms` before connections are refused: balancers have that time to notice.
    if state.service.lifecycle.is_draining() {
        return (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n").into_response();
    }
    "ready\n".into_response()
}

/// Counters for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "operations", responses((status = 200, description = "OpenMetrics text.", body = String)))]
pub(super) async fn metrics(State(state): State<HttpState>) -> Response {
    open_metrics(state.counters.newest(|| state.service.metrics.text(&readings(&state))).await)
}

/// What is going on now.
fn readings(state: &HttpState) -> Readings {
    let service = &state.service;
    let (connections, half_open) = state.connections.count();
    Readings {
        connections,
        half_open,
        running: service.admission.running(),
        waiting: service.admission.waiting(),
        fetches: service.fetches.running(),
        changes: service.changes.running(),
        traversals: service.cursors.len(),
        jobs_running: service.jobs.count(JobState::Running),
        jobs_waiting: service.jobs.count(JobState::Waiting),
        background: service.catalog.background(),
        tasks: service.workers.tasks(),
        memory_bytes: service.memory.used(),
        gremlin_connections: state.websockets.connections(),
        gremlin_sessions: state.websockets.sessions.count(),
        results: service.results.as_ref().map(ResultCache::counts).unwrap_or_default(),
    }
}
