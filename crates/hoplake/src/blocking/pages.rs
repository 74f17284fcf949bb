//! Versions and their differences without async: an iterator instead of pages.

use std::vec;

use super::wait;
use crate::{Cost, Difference, Error, LogEntry, WriterLease};

/// The versions of a graph from the newest back; see [`Log`](crate::Log). It ends after an error.
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
    pub fn leases(&self) -> &[WriterLease] {
        self.log.leases()
    }

    /// The cost so far.
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

/// The differences between two versions, one after another; see [`Diff`](crate::Diff). A page of them is in memory.
/// After an error it ends.
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

    /// The cost so far.
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
