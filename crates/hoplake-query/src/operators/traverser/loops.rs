//! How many times a loop has run.

use crate::{operators::prelude::*, value::value_bytes};

/// How many times a loop has run.
#[derive(Debug, Clone, PartialEq)]
pub struct Loops {
    /// The name of the loop; the innermost without.
    pub name: Option<Name>,
}

impl Operator for Loops {
    fn reach(&self, _: &mut Reach<'_>, _: Elements) -> Elements {
        Elements::default()
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Loops {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let found = run.loops.iter().rev().find(|(other, _)| self.name.is_none() || *other == self.name);
        let Some((_, rounds)) = found else {
            return Err(QueryError::wrong_type("`loops` is within a `repeat`"));
        };
        let rounds = Value::from(i32::try_from(*rounds).unwrap_or(i32::MAX));
        let items = Items::Values(run.growth.copies(&rounds, value_bytes(&rounds), batch.len())?);
        Ok(Output::Next(batch.on(items)))
    }
}
