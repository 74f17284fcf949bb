//! Whether paths meet something twice.

use std::collections::HashSet;

use crate::{
    operators::prelude::*,
    plan::PathPart,
    run::{Row, reduce::OwnedKey},
};

/// Rows of whose path no item comes twice, or one does.
#[derive(Debug, Clone, PartialEq)]
pub struct SimplePath {
    /// Whether none comes twice.
    pub simple: bool,
    /// The part of the path that is looked at.
    pub part: PathPart,
}

impl Operator for SimplePath {
    nested!(part);

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        let all = reach.all.clone();
        reach.each_by(&self.part.by, &all);
        input
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for SimplePath {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let kept = run.simple_paths(&batch, self.simple, &self.part).await?;
        Ok(Output::Same(batch.keep(|at| kept[at])))
    }
}

impl Run {
    async fn simple_paths(&mut self, batch: &Batch, simple: bool, part: &PathPart) -> Done<Vec<bool>> {
        // For whole paths without a `by`, the columns of paths are enough, and no value is copied.
        if part.from.is_none() && part.to.is_none() && part.by.is_empty() {
            let is_simple = |row: &Row| Ok(self.paths.is_simple(row.path, &self.growth)? == simple);
            return batch.rows.iter().map(is_simple).collect();
        }
        let paths = self.path_steps(batch, part).await?;
        let paths = paths.into_iter().map(|path| path.into_iter().map(|(value, _)| value).collect::<Option<Vec<_>>>());
        let is_simple = |path: Vec<Value>| {
            let mut seen = HashSet::with_capacity(path.len());
            path.into_iter().all(|value| seen.insert(OwnedKey(value)))
        };
        Ok(paths.map(|path| path.is_some_and(|path| is_simple(path) == simple)).collect())
    }
}
