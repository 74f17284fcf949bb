//! Planning as the work of a query: it counts against the query's memory, and ends at its deadline.
//!
//! A text of a megabyte has a hundred thousand steps. A rule that looks at a traversal within another for each step that has it, or
//! copies it, does the square of that.

use hoplake_storage::{MemoryHold, PIECE_UNITS, QueryContext};

use crate::error::GremlinError;

/// What a step takes: its call, itself, and what runs it.
pub(crate) const STEP_BYTES: u64 = 1 << 10;

/// Units of work that a step is.
const STEP_UNITS: u64 = 16;

/// The work of a plan.
#[derive(Debug)]
pub(super) struct Work {
    context: QueryContext,
    hold: MemoryHold,
    /// Since the deadline was last looked at.
    worked: u64,
    /// Why there is no more of it.
    failure: Option<GremlinError>,
}

impl Work {
    pub(super) fn new(context: &QueryContext) -> Result<Self, GremlinError> {
        Ok(Self { context: context.clone(), hold: context.hold(0)?, worked: 0, failure: None })
    }

    pub(super) fn context(&self) -> &QueryContext {
        &self.context
    }

    /// Takes over the memory of a part of it.
    pub(super) fn absorb(&mut self, part: Self) {
        self.hold.join(part.hold);
    }

    /// Brings the deadline forward.
    pub(super) fn give_time(&self, timeout_ms: u64) {
        // As in TinkerPop, 0 is no limit.
        if timeout_ms > 0 {
            self.context.give_time_at_most(timeout_ms);
        }
    }

    /// Notes steps that are looked at. After a failure there is nothing more to do.
    pub(super) fn looks_at(&mut self, steps: usize) -> bool {
        self.worked += 1 + steps as u64 * STEP_UNITS;
        if self.worked >= PIECE_UNITS && self.failure.is_none() {
            self.worked = 0;
            self.failure = self.context.check_time().err().map(Into::into);
        }
        self.failure.is_none()
    }

    /// Notes steps that are made, before they are. After a failure there is nothing more to do.
    pub(super) fn makes(&mut self, steps: usize) -> bool {
        if self.looks_at(steps) {
            let bytes = self.hold.bytes().saturating_add(steps as u64 * STEP_BYTES);
            self.failure = self.context.resize(&mut self.hold, bytes).err().map(Into::into);
        }
        self.failure.is_none()
    }

    /// What has failed.
    ///
    /// # Errors
    /// A limit, if the query's memory or time is used up.
    pub(super) fn check(&mut self) -> Result<(), GremlinError> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// What the plan takes.
    pub(super) fn bytes(&self) -> u64 {
        self.hold.bytes()
    }
}
