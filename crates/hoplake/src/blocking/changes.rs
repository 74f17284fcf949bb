//! Changes, versions and their differences, without async: what comes in pages is an iterator.

use std::vec;

use super::wait;
use crate::{Committed, Cost, Difference, Error, Intent, Key, LogEntry, Name, Operation, Value};

/// A batch of changes to a graph; see [`Commit`](crate::Commit). Nothing happens before [`Commit::commit`].
#[derive(Debug)]
pub struct Commit(pub(super) crate::Commit);

impl Commit {
    /// The vertex is there from then on, with these properties; others it keeps.
    pub fn upsert_vertex<N: Into<Name>, V: Into<Value>>(
        &mut self,
        label: &str,
        key: impl Into<Key>,
        properties: impl IntoIterator<Item = (N, V)>,
    ) -> &mut Self {
        self.0.upsert_vertex(label, key, properties);
        self
    }

    /// The vertex is there from then on, with these properties and no others.
    pub fn replace_vertex<N: Into<Name>, V: Into<Value>>(
        &mut self,
        label: &str,
        key: impl Into<Key>,
        properties: impl IntoIterator<Item = (N, V)>,
    ) -> &mut Self {
        self.0.replace_vertex(label, key, properties);
        self
    }

    /// The vertex is gone from then on, and all its edges. If it is not there, nothing happens.
    pub fn delete_vertex(&mut self, label: &str, key: impl Into<Key>) -> &mut Self {
        self.0.delete_vertex(label, key);
        self
    }

    /// There is one edge of this label from the one vertex to the other, with these properties; others it keeps.
    pub fn upsert_edge<N: Into<Name>, V: Into<Value>>(
        &mut self,
        label: &str,
        source: (&str, impl Into<Key>),
        target: (&str, impl Into<Key>),
        properties: impl IntoIterator<Item = (N, V)>,
    ) -> &mut Self {
        self.0.upsert_edge(label, source, target, properties);
        self
    }

    /// There is no edge of this label from the one vertex to the other from then on.
    pub fn delete_edge(
        &mut self,
        label: &str,
        source: (&str, impl Into<Key>),
        target: (&str, impl Into<Key>),
    ) -> &mut Self {
        self.0.delete_edge(label, source, target);
        self
    }

    /// Adds any change, such as one of an edge that a key tells from others between the same two vertices.
    pub fn push(&mut self, operation: Operation) -> &mut Self {
        self.0.push(operation);
        self
    }

    /// A message to keep with the version.
    pub fn message(&mut self, message: impl Into<String>) -> &mut Self {
        self.0.message(message);
        self
    }

    /// Up to where a source was read once this is applied; it becomes visible with the changes.
    pub fn source_position(&mut self, source: impl Into<String>, position: impl Into<String>) -> &mut Self {
        self.0.source_position(source, position);
        self
    }

    /// Makes ends of edges that are not there, without properties; otherwise they are an error.
    pub fn create_missing(&mut self) -> &mut Self {
        self.0.create_missing();
        self
    }

    /// A label, an edge type or a property that the graph does not have is an error; otherwise an upsert adds it.
    pub fn strict(&mut self) -> &mut Self {
        self.0.strict();
        self
    }

    /// Applies all of it, or nothing.
    ///
    /// # Errors
    /// As [`Graph::apply`](crate::Graph::apply).
    pub fn commit(&mut self) -> Result<Committed, Error> {
        wait(self.0.commit())
    }
}

/// The versions of a graph from the newest back; see [`Log`](crate::Log). After an error there are no more.
#[derive(Debug)]
pub struct Log {
    log: crate::Log,
    failed: bool,
}

impl Log {
    pub(super) fn new(log: crate::Log) -> Self {
        Self { log, failed: false }
    }

    /// Writers that take long, such as loads and compactions, and are not done.
    pub fn intents(&self) -> &[Intent] {
        self.log.intents()
    }

    /// What it took so far.
    pub fn cost(&self) -> Cost {
        self.log.cost()
    }
}

impl Iterator for Log {
    type Item = Result<LogEntry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = wait(self.log.next());
        self.failed = next.is_err();
        next.transpose()
    }
}

/// The differences between two versions, one after another; see [`Diff`](crate::Diff). A page of them is in memory. After an
/// error there are no more.
#[derive(Debug)]
pub struct Diff {
    diff: crate::Diff,
    page: vec::IntoIter<Difference>,
    failed: bool,
}

impl Diff {
    pub(super) fn new(diff: crate::Diff) -> Self {
        Self { diff, page: Vec::new().into_iter(), failed: false }
    }

    /// What it took so far.
    pub fn cost(&self) -> Cost {
        self.diff.cost()
    }
}

impl Iterator for Diff {
    type Item = Result<Difference, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.failed {
            if let Some(difference) = self.page.next() {
                return Some(Ok(difference));
            }
            match wait(self.diff.next_page()) {
                Ok(page) => self.page = page?.into_iter(),
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}
