//! Transactions that were read and wait for a commit, and when that is due.

use std::time::Duration;

use tokio::time::Instant;
use tracing::{Span, field::Empty};

use super::read_ahead::ReadTransaction;
use crate::{FeedError, Settings};

/// Transactions that wait for a commit.
#[derive(Default)]
pub(super) struct PendingBatch {
    pub(super) arrived: Vec<ReadTransaction>,
    rows: usize,
    bytes: usize,
    /// When the first arrived that changes a table.
    first_change: Option<Instant>,
    /// When the first arrived.
    first: Option<Instant>,
    /// Of the first that changes a table, to the commit.
    pub(super) trace: Option<Trace>,
}

/// The spans of transactions that share a commit. Without a collector they are none.
pub(super) struct Trace {
    all: Span,
    /// From the first of them to the commit.
    read: Span,
}

impl Trace {
    pub(super) fn begin() -> Self {
        // A field that is recorded later must be declared here, or it is dropped.
        let all = tracing::info_span!(
            target: "hoplake::spans", parent: None, "transactions", position = Empty, version = Empty, rows = Empty,
            transactions = Empty, committed_unix_ms = Empty, lag_ms = Empty, otel.status_code = Empty,
            otel.status_description = Empty,
        );
        let read = tracing::info_span!(target: "hoplake::spans", parent: &all, "read");
        Self { all, read }
    }

    /// All have arrived.
    pub(super) fn read(self) -> Span {
        drop(self.read);
        self.all
    }
}

/// Ends the trace of transactions that could not be applied.
pub(super) fn failed(span: &Span, error: &FeedError) {
    span.record("otel.status_code", "ERROR").record("otel.status_description", error.to_string());
}

impl PendingBatch {
    pub(super) fn add(&mut self, mut arrived: ReadTransaction) {
        self.first.get_or_insert(arrived.at);
        if !arrived.transaction.changes.is_empty() {
            self.first_change.get_or_insert(arrived.at);
            self.trace.get_or_insert_with(Trace::begin);
        }
        self.rows += arrived.transaction.changes.len();
        self.bytes += arrived.transaction.bytes;
        // Of transactions that change no row, the last position is enough.
        if let Some(last) = self.arrived.last_mut().filter(|last| last.transaction.changes.is_empty()) {
            let tables = std::mem::take(&mut last.transaction.tables);
            arrived.transaction.tables.splice(..0, tables);
            *last = arrived;
        } else {
            self.arrived.push(arrived);
        }
    }

    pub(super) fn is_full(&self, settings: &Settings) -> bool {
        self.rows >= settings.stream.rows_max || self.bytes as u64 >= settings.stream.bytes_max
    }

    /// When it is committed, if nothing else comes.
    pub(super) fn due(&self, settings: &Settings) -> Option<Instant> {
        let change = self.first_change.map(|first| first + Duration::from_millis(settings.stream.linger_ms));
        let any = self.first.map(|first| first + Duration::from_millis(settings.stream.position_every_ms));
        change.into_iter().chain(any).min()
    }
}

pub(super) fn far_future() -> Instant {
    Instant::now() + Duration::from_secs(86_400)
}
