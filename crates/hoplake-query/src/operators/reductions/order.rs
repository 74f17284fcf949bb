//! Sorted rows.

use crate::{
    operators::prelude::*,
    plan::{Sorting, write_sortings},
    run::sort::sort,
    tokens,
};

/// All rows, sorted.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// By what.
    pub sortings: Vec<Sorting>,
}

impl Operator for Order {
    nested!(sortings);

    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_sortings(f, &self.sortings)
    }

    fn is_barrier(&self) -> bool {
        true
    }

    fn acts(&self) -> bool {
        self.sortings.iter().any(|(_, order)| *order == tokens::Order::Shuffle)
    }

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        reach.each_by(self.sortings.iter().map(|(by, _)| by), &input);
        input
    }

    fn start(self: Arc<Self>) -> Running {
        AllInput::running(self)
    }
}

impl All for Order {
    async fn all(&self, run: &mut Run, all: Batch, _: &Frames) -> Done<Output> {
        let (keys, mut places) = run.sort_keys(&all, &self.sortings).await?;
        // Within each frame; rows without a value to sort by go.
        sort(&mut places, |place| all.rows[place as usize].frame, &keys, &self.sortings, &run.growth)?;
        Ok(Output::Same(all.take(&places, &run.growth)?))
    }
}
