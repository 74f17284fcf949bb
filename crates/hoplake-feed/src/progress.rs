//! What a feed reports while it runs.

use std::time::Duration;

use crate::{Applied, Copied, FeedError, Position, Reconciled, source::Backlog, state::State};

/// Hears what a feed does. It is called between the steps of the feed, and by the task that reads ahead: it must not block.
pub trait Progress: Send + Sync {
    /// Something has happened.
    fn report(&self, event: &Event<'_>);
}

/// Hears nothing.
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
    pub state: &'a State,
}

/// What has to be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The source is away.
    Source,
    /// The store is away.
    Store,
    /// The graph refuses a commit.
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
