//! A feed as JSON.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::health::{FeedHealth, Now};

/// A time as people and programs read it; nothing if it is of no calendar.
fn time(unix_ms: i64) -> Option<String> {
    Timestamp::from_millisecond(unix_ms).ok().map(|time| time.to_string())
}

pub(super) fn json(source: &str, graph: &str, health: &FeedHealth, now: Now) -> Value {
    let at = health.graph.as_ref();
    let error = health
        .last_error
        .as_ref()
        .map(|error| json!({"message": error.message, "hint": error.hint, "at": time(error.unix_ms)}));
    let copy = health.copying.map(|copy| {
        let ended = copy.ended.unwrap_or(now.running);
        json!({"rows": copy.rows, "complete": copy.ended.is_some(), "ms": ended.saturating_sub(copy.begun).as_millis() as u64})
    });
    let (done, lately) = health.lately(now);
    let per_second = |number: u64| (number as f64 / lately.as_secs_f64() * 1_000.0).round() / 1_000.0;
    let reconciled =
        health.reconciled.map(|(unix_ms, differences)| json!({"at": time(unix_ms), "differences": differences}));
    json!({
        "source": source,
        "graph": graph,
        "state": health.phase.name(),
        "since": time(health.since_unix_ms),
        "position": at.map(|at| &*at.position),
        "position_time": at.and_then(|at| time(at.committed_unix_ms?)),
        "version": at.map(|at| at.version),
        "lag_ms": health.lag_ms(now),
        "source_has_more": health.has_more(),
        "pending": {"rows": health.pending.rows, "transactions": health.pending.transactions},
        "first_copy": copy,
        "last_error": error,
        "dead_letters": at.map(|at| at.dead_letters),
        "held_keys": at.map(|at| at.held_keys),
        "edges_waiting": at.map(|at| at.edges_waiting),
        "last_minute": {
            "rows_per_second": per_second(done.rows),
            "transactions_per_second": per_second(done.transactions),
            "commits_per_second": per_second(done.commits),
        },
        "last_reconciliation": reconciled,
    })
}
