//! Why a feed does not go on.

use thiserror::Error as ThisError;

use serde::{Deserialize, Serialize};

/// What to do where changes cannot be followed.
pub(crate) const COPY_ANEW: &str =
    "run the feed with --resnapshot: it compares all rows with the graph, writes what differs and goes on from there";

/// What to do where a foreign key does not have the text of what it names.
pub(crate) const SAME_TEXT: &str = "write the same text in both tables; or give the edge missing = \"wait\" in feed.toml, and it is there as soon \
     as a vertex has that text";

/// What a caller can do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedErrorKind {
    /// The settings, the mapping or the database are not as they have to be: change them.
    Invalid,
    /// Another feed of the same source has gone on, or the graph has other content: look at it.
    Conflict,
    /// The database or the store cannot be reached: try again.
    Unavailable,
    /// The source no longer has what comes after the graph's position.
    Purged,
    /// A row cannot be applied, and its entry says that the feed stops then.
    Row,
    /// The graph's own error.
    Graph,
}

/// A sentence, what to do, and its kind.
#[derive(Debug, ThisError)]
#[error("{message}")]
pub struct FeedError {
    kind: FeedErrorKind,
    message: String,
    hint: Option<String>,
    stop: Option<Box<StopNote>>,
    #[source]
    graph: Option<Box<hoplake::Error>>,
}

impl FeedError {
    /// An error of a kind.
    pub fn new(kind: FeedErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, stop: None, graph: None }
    }

    /// Settings, mapping or database are wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(FeedErrorKind::Invalid, message)
    }

    /// The database cannot be reached.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(FeedErrorKind::Unavailable, message)
    }

    /// The same, with what to do about it.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The same, with what it is about before it.
    #[must_use]
    pub(crate) fn about(self, what: &str) -> Self {
        Self { message: format!("{what}: {}", self.message), ..self }
    }

    /// The same in other words.
    #[must_use]
    pub(crate) fn saying(self, message: String) -> Self {
        Self { message, ..self }
    }

    /// The same, as one that lasts until an operator decides.
    #[must_use]
    pub(crate) fn stop(self, note: StopNote) -> Self {
        Self { stop: Some(Box::new(note)), ..self }
    }

    /// The stop that lasts until an operator decides, if it is one.
    pub fn stop_note(&self) -> Option<&StopNote> {
        self.stop.as_deref()
    }

    /// What a caller can do about it.
    pub fn kind(&self) -> FeedErrorKind {
        self.kind
    }

    /// What to do about it.
    pub fn what_to_do(&self) -> &str {
        self.hint.as_deref().unwrap_or(match self.kind {
            FeedErrorKind::Invalid | FeedErrorKind::Row => {
                "correct feed.toml or the database; hoplake feed check compares the two"
            }
            FeedErrorKind::Conflict => "hoplake feed status shows where the graph is",
            FeedErrorKind::Unavailable => "check the address, the user and the password of the database, and try again",
            FeedErrorKind::Purged => COPY_ANEW,
            FeedErrorKind::Graph => "check the address of the graph, and the credentials of its store",
        })
    }

    /// What to do about it, if there is more to say than the kind does.
    pub(crate) fn own_hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The error of the graph, if it is one.
    pub fn graph(&self) -> Option<&hoplake::Error> {
        self.graph.as_deref()
    }

    /// Whether it may pass by itself.
    pub fn is_transient(&self) -> bool {
        match self.kind {
            FeedErrorKind::Unavailable => true,
            FeedErrorKind::Graph => self.graph.as_ref().is_some_and(|error| is_transient(error)),
            _ => false,
        }
    }
}

/// A stop that lasts until an operator decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopNote {
    /// What to pass to `--accept-ddl` to go on.
    pub position: String,
    /// Why, as a sentence.
    pub why: String,
    /// What an operator can do.
    pub what_to_do: String,
}

impl StopNote {
    /// A stop at a position, with the two ways to go on.
    pub fn new(position: impl Into<String>, why: impl Into<String>) -> Self {
        let position = position.into();
        let what_to_do = format!(
            "{COPY_ANEW}; or, if you know that the graph is right without it, run the feed with --accept-ddl {position}"
        );
        Self { position, why: why.into(), what_to_do }
    }

    /// The same, as an error.
    pub fn error(self) -> FeedError {
        FeedError::invalid(self.why.clone()).hint(self.what_to_do.clone()).stop(self)
    }
}

/// Whether an error of the graph may pass by itself: the store is away, or its answer was lost.
pub(crate) fn is_transient(error: &hoplake::Error) -> bool {
    use hoplake::{ErrorKind, Reason};
    match error.kind() {
        ErrorKind::Unknown => true,
        ErrorKind::Unavailable => {
            let permanent = [Reason::Credentials, Reason::Denied, Reason::NoBucket, Reason::Region];
            !error.reason().is_some_and(|reason| permanent.contains(&reason))
        }
        _ => false,
    }
}

impl From<hoplake::Error> for FeedError {
    fn from(error: hoplake::Error) -> Self {
        let message = error.to_string();
        Self { kind: FeedErrorKind::Graph, message, hint: None, stop: None, graph: Some(Box::new(error)) }
    }
}
