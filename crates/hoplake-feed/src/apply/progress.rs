//! The events that a running feed reports.

use std::time::Duration;

use serde::Serialize;

use super::{position::Position, state::FeedState};
use crate::{FeedError, source::Backlog};

/// Receives the events of a feed, from the feed itself and from its task that reads ahead. It must not block.
pub trait Progress: Send + Sync {
    /// Receives an event.
    fn report(&self, event: &Event<'_>);
}

/// Ignores all events.
impl Progress for () {
    fn report(&self, _: &Event<'_>) {}
}

/// An event of a feed.
#[derive(Debug)]
pub enum Event<'a> {
    /// The first copy has read this many rows so far.
    Copying(u64),
    /// The first copy is complete.
    Copied(&'a Copied),
    /// The feed starts to follow the source, from the graph's position.
    Following(At<'a>),
    /// The connection that reads the log was established.
    Connected,
    /// A transaction was read.
    Read {
        /// The number of its changes of mapped tables.
        rows: u64,
        /// The approximate memory of these changes.
        bytes: u64,
        /// The time of its commit by the source's clock, in milliseconds since 1970.
        committed_unix_ms: i64,
    },
    /// The source has no more transactions for now.
    CaughtUp,
    /// The backlog at the source, every few seconds.
    Backlog(Backlog),
    /// Transactions are about to be applied.
    Applying,
    /// The graph answered the look-ups that a fold needs.
    LookedUp,
    /// Transactions were applied, and the graph has reached this position.
    Applied(&'a Applied, At<'a>),
    /// An operation failed and is retried after a pause.
    Retried {
        /// What caused it.
        cause: Cause,
        /// The error.
        error: &'a FeedError,
        /// The pause until the retry.
        pause: Duration,
    },
    /// A compaction ended; whether it succeeded.
    Compacted(bool),
    /// A reconciliation compared the graph with the tables.
    Reconciled(&'a Reconciled),
    /// The feed was asked to stop.
    Stopping,
    /// The feed has stopped, with or without an error.
    Stopped(Option<&'a FeedError>),
}

/// The state of a graph that follows a source.
#[derive(Debug, Clone, Copy)]
pub struct At<'a> {
    /// The position up to which it has followed the source.
    pub position: &'a Position,
    /// Its version.
    pub version: u64,
    /// The feed's own state at this position.
    pub state: &'a FeedState,
}

/// The cause of a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The source is unreachable.
    Source,
    /// The store is unreachable.
    Store,
    /// The graph rejects a commit.
    Refused,
    /// Another writer of the graph was faster.
    Conflict,
}

impl Cause {
    /// The cause for an error of the graph.
    pub(crate) fn of_graph(error: &FeedError) -> Self {
        match error.graph().map(hoplake::Error::kind) {
            Some(hoplake::ErrorKind::Invalid) => Self::Refused,
            Some(hoplake::ErrorKind::Conflict) => Self::Conflict,
            _ => Self::Store,
        }
    }

    /// Its name for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Store => "store",
            Self::Refused => "refused",
            Self::Conflict => "conflict",
        }
    }
}

/// What was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Applied {
    /// Row changes.
    pub rows: u64,
    /// Operations of the commit.
    pub operations: u64,
    /// The version that contains them.
    pub version: u64,
    /// The number of attempts of the commit.
    pub attempts: u64,
    /// Changes that were set aside.
    pub set_aside: u64,
    /// Transactions that change mapped tables.
    pub transactions: u64,
    /// Waves of look-ups in the graph.
    pub waves: u64,
    /// How long the commit took, with all attempts.
    pub commit_time: Duration,
}

/// What a first copy did.
#[derive(Debug, Clone, PartialEq)]
pub struct Copied {
    /// The version that contains it.
    pub version: u64,
    /// The position of the rows.
    pub position: Position,
    /// Rows that were read.
    pub rows: u64,
    /// Vertices and edges.
    pub vertices: u64,
    /// Edges.
    pub edges: u64,
    /// Edges that wait for a vertex.
    pub waiting: usize,
    /// How long it took to read the rows, in milliseconds.
    pub read_ms: u64,
    /// How long it took to load them, in milliseconds.
    pub load_ms: u64,
}

/// What a reconciliation found and did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Reconciled {
    /// The position at which both sides were compared.
    pub position: String,
    /// The version of the graph that was compared.
    pub version: u64,
    /// Rows that were read, each time.
    pub rows: u64,
    /// Vertices and edges that these rows define.
    pub elements: u64,
    /// How often the tables were read.
    pub scans: u32,
    /// Elements that the graph lacks.
    pub missing: u64,
    /// Elements of the graph that no row defines.
    pub left_over: u64,
    /// Elements with other properties in the graph.
    pub different: u64,
    /// Elements with a change that was set aside; these do not count as differences.
    pub held: u64,
    /// Rows that the mapping cannot convert.
    pub unreadable: u64,
    /// Differences that were repaired, or would be.
    pub repaired: u64,
    /// Differences that were not repaired, since the log has changed these elements meanwhile.
    pub changed_meanwhile: u64,
    /// Differences that cannot be repaired, since an end of an edge does not exist.
    pub not_repairable: u64,
    /// The version of the last repair.
    pub repaired_in: Option<u64>,
    /// How long it took, in milliseconds.
    pub ms: u64,
}

impl Reconciled {
    /// How many vertices and edges differ, or did before a repair.
    pub fn differences(&self) -> u64 {
        self.missing + self.left_over + self.different
    }

    /// Whether the graph equals the tables.
    pub fn is_equal(&self) -> bool {
        self.differences() == 0
    }
}
