//! The ends of a traversal within another, which are what was met under a name.

use hoplake_engine::EngineError;

use crate::operators::prelude::*;

/// On what was met under a name, at the beginning of a traversal within another.
#[derive(Debug, Clone, PartialEq)]
pub struct StartAt {
    /// The name.
    pub name: Name,
}

impl Operator for StartAt {
    fn reach(&self, reach: &mut Reach<'_>, _: Elements) -> Elements {
        reach.met(&self.name)
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for StartAt {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let met = run.needed(&self.name, "where", &batch).await?;
        Ok(Output::Next(batch.on(Items::of_values(met))))
    }
}

/// The last step of a traversal within another: rows that are on what the row that they come from met under a name. `Run::child` does it.
#[derive(Debug, Clone, PartialEq)]
pub struct EndAt {
    /// The name.
    pub name: Name,
}

impl Operator for EndAt {
    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for EndAt {
    async fn each(&self, _: &mut Run, _: Batch) -> Done<Output> {
        Err(EngineError::Internal("the end of a traversal within another is not its last step".into()).into())
    }
}
