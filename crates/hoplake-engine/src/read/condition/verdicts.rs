//! What a condition says of the rows of a column: true, false or unknown, as two sets of bits.

use arrow_array::{Array, BooleanArray};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};

use super::ThreeValued;

/// The verdict on each of some rows. A row in neither set is unknown.
#[derive(Debug, Clone)]
pub(crate) struct Verdicts {
    pub(super) yes: BooleanBuffer,
    pub(super) no: BooleanBuffer,
}

impl Verdicts {
    /// Nulls are unknown.
    pub(super) fn of(mask: &BooleanArray) -> Self {
        let yes = mask.values().clone();
        let no = !mask.values();
        match mask.nulls() {
            Some(known) => Self { yes: &yes & known.inner(), no: &no & known.inner() },
            None => Self { yes, no },
        }
    }

    /// On rows of which none is unknown: true for those that are set.
    pub(crate) fn known(yes: BooleanBuffer) -> Self {
        Self { no: !&yes, yes }
    }

    /// Each of some rows may be either, if rows stand for groups of which nothing is known.
    pub(crate) fn any(rows: usize) -> Self {
        Self { yes: BooleanBuffer::new_set(rows), no: BooleanBuffer::new_set(rows) }
    }

    /// The same verdict on each of some rows; `None` is unknown.
    pub(crate) fn all(rows: usize, verdict: Option<bool>) -> Self {
        let set = |it: bool| BooleanBuffer::collect_bool(rows, |_| it);
        Self { yes: set(verdict == Some(true)), no: set(verdict == Some(false)) }
    }

    /// The verdict on one row; `None` is unknown.
    pub(super) fn get(&self, row: usize) -> Option<bool> {
        match (self.yes.value(row), self.no.value(row)) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        }
    }

    /// The rows that match the condition.
    pub(crate) fn matching(self) -> BooleanBuffer {
        self.yes
    }
}

impl ThreeValued for Verdicts {
    fn and(self, other: Self) -> Self {
        Self { yes: &self.yes & &other.yes, no: &self.no | &other.no }
    }

    fn or(self, other: Self) -> Self {
        Self { yes: &self.yes | &other.yes, no: &self.no & &other.no }
    }

    fn negated(self) -> Self {
        Self { yes: self.no, no: self.yes }
    }
}

/// Verdicts on rows that come in parts.
#[derive(Debug)]
pub(crate) struct VerdictsBuilder {
    yes: BooleanBufferBuilder,
    no: BooleanBufferBuilder,
}

impl VerdictsBuilder {
    pub(crate) fn new(rows: usize) -> Self {
        Self { yes: BooleanBufferBuilder::new(rows), no: BooleanBufferBuilder::new(rows) }
    }

    /// Some of the rows of other verdicts.
    pub(crate) fn append(&mut self, verdicts: &Verdicts, from: usize, rows: usize) {
        self.yes.append_buffer(&verdicts.yes.slice(from, rows));
        self.no.append_buffer(&verdicts.no.slice(from, rows));
    }

    /// The same verdict on some rows; `None` is unknown.
    pub(crate) fn append_n(&mut self, rows: usize, verdict: Option<bool>) {
        self.yes.append_n(rows, verdict == Some(true));
        self.no.append_n(rows, verdict == Some(false));
    }

    pub(crate) fn finish(mut self) -> Verdicts {
        Verdicts { yes: self.yes.finish(), no: self.no.finish() }
    }
}
