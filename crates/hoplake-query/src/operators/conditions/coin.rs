//! Rows at random.

use super::keep;
use crate::{operators::prelude::*, run::reduce::copies};

/// Equal traversers that are drawn for between two looks at the deadline.
const DRAWN_AT_ONCE: usize = 1 << 13;

/// Each traverser with a probability.
#[derive(Debug, Clone, PartialEq)]
pub struct Coin {
    /// From 0 to 1.
    pub probability: f64,
}

impl Operator for Coin {
    fn acts(&self) -> bool {
        true
    }

    fn reach(&self, _: &mut Reach<'_>, input: Elements) -> Elements {
        input
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Coin {
    async fn each(&self, run: &mut Run, mut batch: Batch) -> Done<Output> {
        for row in &mut batch.rows {
            let mut left = copies(row.bulk)?;
            let mut kept = 0;
            while left > 0 {
                let drawn = left.min(DRAWN_AT_ONCE);
                kept += (0..drawn).filter(|_| run.random.f64() < self.probability).count() as u64;
                left -= drawn;
                run.pace.rest(drawn as u64).await?;
            }
            row.bulk = kept;
        }
        let bulks: Vec<u64> = batch.rows.iter().map(|row| row.bulk).collect();
        Ok(keep(batch, |at| bulks[at] > 0))
    }
}
