//! The keys or values of maps.

use crate::{operators::prelude::*, run::by::column_of, tokens::Column};

/// The keys or values of a map, an entry or a path.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectColumn {
    /// Which of them.
    pub column: Column,
}

impl Operator for SelectColumn {
    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for SelectColumn {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let growth = run.growth.clone();
        run.each_value(batch, |value| column_of(self.column, value, &growth).map(Some)).await
    }
}
