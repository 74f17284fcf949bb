//! A feed as JSON.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::seen::{Now, Seen};

/// A time as people and programs read it; nothing if it is of no calendar.
fn time(unix_ms: i64) -> Option<String> {
    Timestamp::from_millisecond(unix_ms).ok().map(|time| time.to_string())
}

pub(super) fn json(source: &str, graph: &str, seen: &Seen, now: Now) -> Value {
    let at = seen.graph.as_ref();
    let error = seen
        .last_error
        .as_ref()
        .map(|error| json!({"message": error.message, "hint": error.hint, "at": time(error.unix_ms)}));
    let copy = seen.copying.map(|copy| {
        let ended = copy.ended.unwrap_or(now.running);
        json!({"rows": copy.rows, "complete": copy.ended.is_some(), "ms": ended.saturating_sub(copy.begun).as_millis() as u64})
    });
    let (done, lately) = seen.lately(now);
    let per_second = |number: u64| (number as f64 / lately.as_secs_f64() * 1_000.0).round() / 1_000.0;
    let reconciled =
        seen.reconciled.map(|(unix_ms, differences)| json!({"at": time(unix_ms), "differences": differences}));
    json!({
        "source": source,
        "graph": graph,
        "state": seen.state.name(),
        "since": time(seen.since_unix_ms),
        "position": at.map(|at| &*at.position),
        "position_time": at.and_then(|at| time(at.committed_unix_ms?)),
        "version": at.map(|at| at.version),
        "lag_ms": seen.lag_ms(now),
        "source_has_more": seen.has_more(),
        "pending": {"rows": seen.pending.rows, "transactions": seen.pending.transactions},
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
