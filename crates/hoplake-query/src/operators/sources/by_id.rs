//! Elements of some ids, each of them for each row.

use std::fmt::Debug;

use hoplake_storage::MemoryHold;

use crate::{operators::prelude::*, run::ROWS_MAX};

/// An operator that looks elements up.
pub(super) trait ById: Operator {
    /// The elements of its ids, in their order.
    fn found(&self, run: &mut Run) -> impl Future<Output = Done<Items>> + Send;
}

/// The run of an operator that looks elements up. All pairs of rows and elements may be many: they are handed out in parts.
#[derive(Debug)]
pub(super) struct LookedUp<O> {
    operator: Arc<O>,
    pairs: Option<Pairs>,
}

impl<O: ById> LookedUp<O> {
    pub(super) fn running(operator: Arc<O>) -> Running {
        Running::new(Self { operator, pairs: None })
    }
}

impl<O: ById> Stage for LookedUp<O> {
    fn input<'a>(&'a mut self, run: &'a mut Run, batch: Batch, _: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>> {
        Box::pin(async move {
            let found = self.operator.found(run).await?;
            let hold = run.branch.context().hold(found.bytes())?;
            self.pairs = Some(Pairs { batch, found, next: 0, _hold: hold });
            Ok(())
        })
    }

    fn poll<'a>(&'a mut self, run: &'a mut Run, out: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>> {
        Box::pin(async move {
            if let Some(pairs) = &mut self.pairs {
                match pairs.next(run)? {
                    Some(batch) => out.push(Output::Next(batch)),
                    None => self.pairs = None,
                }
            }
            Ok(())
        })
    }
}

/// The rows of a batch, each with each of the elements that were found.
#[derive(Debug)]
struct Pairs {
    batch: Batch,
    found: Items,
    /// The first pair that was not handed out.
    next: usize,
    /// Of the elements.
    _hold: MemoryHold,
}

impl Pairs {
    fn next(&mut self, run: &Run) -> Done<Option<Batch>> {
        let all = self.batch.len().saturating_mul(self.found.len());
        let part = self.next..all.min(self.next.saturating_add(ROWS_MAX));
        if part.is_empty() {
            return Ok(None);
        }
        self.next = part.end;
        let mut parents = run.growth.column(part.len())?;
        let mut places = run.growth.column(part.len())?;
        for pair in part {
            parents.push((pair / self.found.len()) as u32);
            places.push((pair % self.found.len()) as u32);
        }
        let items = self.found.take(&places, &run.growth)?;
        run.derived(&self.batch, &parents, items).map(Some)
    }
}
