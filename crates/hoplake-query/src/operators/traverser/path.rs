//! Where traversers have been.

use crate::{
    operators::prelude::*,
    plan::PathPart,
    run::paths::{Labels, PathTree},
};

/// Where the traverser has been.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Path {
    /// Which part of it.
    pub part: PathPart,
}

impl Operator for Path {
    nested!(part);

    fn reach(&self, reach: &mut Reach<'_>, _: Elements) -> Elements {
        let all = reach.all.clone();
        let mut after = if self.part.by.is_empty() { all.clone() } else { Elements::default() };
        self.part.by.iter().for_each(|by| after.join(reach.by(by, all.clone())));
        after
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Path {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let paths = run.paths_of(&batch, &self.part).await?;
        run.mapped_if(&batch, paths)
    }
}

impl Run {
    async fn paths_of(&mut self, batch: &Batch, part: &PathPart) -> Done<Vec<Option<Value>>> {
        let whole = |path: Vec<(Option<Value>, Labels)>| {
            path.into_iter().map(|(value, labels)| Some((value?, labels))).collect::<Option<Vec<_>>>()
        };
        let paths = match self.path_steps(batch, part).await {
            Err(error) if self.may_ask_again(&error) => self.path_steps_in_turn(batch, part).await?,
            paths => paths?,
        };
        let mut values = self.growth.column(paths.len())?;
        for path in paths {
            values.push(whole(path).map(|steps| PathTree::path(steps, &self.growth)).transpose()?);
        }
        Ok(values)
    }
}
