//! What a feed reports while it runs.

use std::time::Duration;

use serde::Serialize;

use super::{position::Position, state::FeedState};
use crate::{FeedError, source::Backlog};

/// Receives the events of a feed: between its steps, and from the task that reads ahead. It must not block.
pub trait Progress: Send + Sync {
    /// Something has happened.
    fn report(&self, event: &Event<'_>);
}

/// Ignores all events.
impl Progress for () {
    fn report(&self, _: &Event<'_>) {}
}

/// What has happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// The first copy has read more rows, and so many by now.
    Copying(u64),
    /// The first copy was made.
    Copied(&'a Copied),
    /// The feed begins to follow the source from where the graph is.
    Following(At<'a>),
    /// The connection that reads the log is there.
    Connected,
    /// A transaction was read.
    Read {
        /// Its changes of tables that are mapped.
        rows: u64,
        /// About the memory that they take.
        bytes: u64,
        /// When it was committed, in milliseconds since 1970, as the source says.
        committed_unix_ms: i64,
    },
    /// The source has no more for now.
    CaughtUp,
    /// What the source says of its log and of its open transactions, every some seconds.
    Backlog(Backlog),
    /// Transactions are about to be applied.
    Applying,
    /// The graph was asked for what a fold has to know.
    LookedUp,
    /// Transactions were applied, and the graph is there now.
    Applied(&'a Applied, At<'a>),
    /// Something is tried again after a pause.
    Retried {
        /// What of.
        cause: Cause,
        /// Why.
        error: &'a FeedError,
        /// When.
        pause: Duration,
    },
    /// Sorted runs were merged, if the merge did not fail.
    Compacted(bool),
    /// Graph and tables were compared.
    Reconciled(&'a Reconciled),
    /// The feed was asked to stop.
    Stopping,
    /// The feed has stopped, with an error or without.
    Stopped(Option<&'a FeedError>),
}

/// Where a graph is.
#[derive(Debug, Clone, Copy)]
pub struct At<'a> {
    /// The position up to which it has followed the source.
    pub position: &'a Position,
    /// Its version.
    pub version: u64,
    /// What the feed has to remember there.
    pub state: &'a FeedState,
}

/// What has to be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The source is away.
    Source,
    /// The store is away.
    Store,
    /// The graph rejects a commit.
    Refused,
    /// Another writer of the graph was faster.
    Conflict,
}

impl Cause {
    /// Why a graph is not changed.
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
    /// The version that has them.
    pub version: u64,
    /// How often the commit was tried.
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
    /// The version that has it.
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
    /// How long it took to read the rows, and then to load them, in milliseconds.
    pub read_ms: u64,
    /// See above.
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
    /// Vertices and edges that they are.
    pub elements: u64,
    /// How often the tables were read.
    pub scans: u32,
    /// Those that the graph lacks.
    pub missing: u64,
    /// Those that the graph has and no row is.
    pub left_over: u64,
    /// Those that have other properties in the graph.
    pub different: u64,
    /// Those of which a change was set aside; they are not counted as differences.
    pub held: u64,
    /// Rows that cannot be read by the mapping.
    pub unreadable: u64,
    /// Differences that were repaired, or would be.
    pub repaired: u64,
    /// Differences that were left alone, since the log has changed them meanwhile.
    pub changed_meanwhile: u64,
    /// Differences that cannot be repaired: an end of an edge is not there.
    pub not_repairable: u64,
    /// The version that has the last repair.
    pub repaired_in: Option<u64>,
    /// How long it took, in milliseconds.
    pub ms: u64,
}

impl Reconciled {
    /// How many vertices and edges differ, or did before a repair.
    pub fn differences(&self) -> u64 {
        self.missing + self.left_over + self.different
    }

    /// Whether the graph is what the tables say.
    pub fn is_equal(&self) -> bool {
        self.differences() == 0
    }
}
