//! Values under a name.

use crate::operators::prelude::*;

/// Collects what is computed under a name, before the first goes on.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    /// The name.
    pub name: Name,
    /// What is computed.
    pub by: By,
}

/// Collects what is computed under a name, as each passes.
#[derive(Debug, Clone, PartialEq)]
pub struct AggregateEach {
    /// The name.
    pub name: Name,
    /// What is computed.
    pub by: By,
}

impl Operator for Aggregate {
    nested!(by);

    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {} as {}", self.by, self.name)
    }

    fn is_barrier(&self) -> bool {
        true
    }

    fn collects(&self) -> Option<(&Name, Collects)> {
        Some((&self.name, Collects::Values))
    }

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        reach.by(&self.by, input.clone());
        input
    }

    fn start(self: Arc<Self>) -> Running {
        AllInput::running(self)
    }
}

impl All for Aggregate {
    async fn all(&self, run: &mut Run, all: Batch, _: &Frames) -> Done<Output> {
        let values = run.by(&self.by, &all).await?;
        // What is assigned last stays: all that came, or within another traversal all of its last traverser.
        let last = all.rows.last().filter(|_| run.assigns(&self.name)).map(|row| row.frame);
        let rows = values.into_iter().zip(&all.rows).filter(|(_, row)| last.is_none_or(|last| row.frame == last));
        let values: Vec<_> = rows.filter_map(|(value, row)| Some((value?, row.bulk))).collect();
        run.aggregate(&self.name, values.into_iter())?;
        Ok(Output::Same(all))
    }
}

impl Operator for AggregateEach {
    nested!(by);

    fn name(&self) -> &'static str {
        "Aggregate"
    }

    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " {} as {}", self.by, self.name)
    }

    fn collects(&self) -> Option<(&Name, Collects)> {
        Some((&self.name, Collects::Values))
    }

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        reach.by(&self.by, input.clone());
        input
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for AggregateEach {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let values = run.by(&self.by, &batch).await?;
        let bulks: Vec<u64> = batch.rows.iter().map(|row| row.bulk).collect();
        let values = values.into_iter().zip(bulks).filter_map(|(value, bulk)| Some((value?, bulk)));
        let mut values: Vec<_> = values.collect();
        if run.assigns(&self.name) {
            values.drain(..values.len().saturating_sub(1));
        }
        run.aggregate(&self.name, values.into_iter())?;
        Ok(Output::Same(batch))
    }
}
