//! What all phases of the search know: how often they look at the deadline, and the number that stands for none.

use hoplake_storage::{QueryContext, StorageError};

use crate::kernels::CHUNK;

/// The place of a vertex that was deleted, and its community.
pub(super) const NONE: u32 = u32::MAX;

/// Looks at the deadline now and then.
pub(super) struct Pace<'a> {
    context: &'a QueryContext,
    steps: usize,
}

impl<'a> Pace<'a> {
    pub(super) fn new(context: &'a QueryContext) -> Self {
        Self { context, steps: 0 }
    }

    pub(super) fn step(&mut self, steps: usize) -> Result<(), StorageError> {
        self.steps += steps;
        if self.steps >= CHUNK {
            self.steps = 0;
            self.context.check_time()?;
        }
        Ok(())
    }
}
