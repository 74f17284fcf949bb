//! What a traversal gives, or the row itself.

use std::collections::HashSet;

use super::restored;
use crate::operators::prelude::*;

/// What a traversal gives, or the row itself if it gives nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Optional {
    /// The traversal.
    pub steps: Steps,
}

impl Operator for Optional {
    nested!(steps);

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        let mut after = reach.steps(&self.steps, input.clone());
        after.join(input);
        after
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Optional {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let batch = run.one_by_one_if_it_acts(batch, &self.steps)?;
        let found = run.child(&self.steps, &batch).await?;
        let (mut all, mut parents) = restored(found, &batch);
        let productive: HashSet<u32> = parents.iter().copied().collect();
        let others: Vec<u32> = (0..batch.len() as u32).filter(|at| !productive.contains(at)).collect();
        if !others.is_empty() {
            let growth = run.growth.clone();
            growth.absorb(all.hold.take());
            all.append(batch.take(&others, &growth)?, &growth)?;
            parents.extend(&others);
            let mut order: Vec<u32> = (0..all.len() as u32).collect();
            order.sort_by_key(|at| parents[*at as usize]);
            all = all.take(&order, &growth)?;
        }
        Ok(Output::Same(all))
    }
}
