//! Trees of paths.

use crate::{
    operators::{of_frames, prelude::*, slots},
    run::reduce::plant,
    value,
};

/// A tree of paths; under a name as a side effect.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    /// The name of the side effect.
    pub name: Option<Name>,
    /// What of each item of a path, in turn.
    pub by: Vec<By>,
}

impl Operator for Tree {
    nested!(by);

    fn is_barrier(&self) -> bool {
        true
    }

    fn collects(&self) -> Option<(&Name, Collects)> {
        self.name.as_ref().map(|name| (name, Collects::Tree))
    }

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        let all = reach.all.clone();
        reach.each_by(&self.by, &all);
        match self.name {
            Some(_) => input,
            None if self.by.is_empty() => all,
            None => Elements::default(),
        }
    }

    fn start(self: Arc<Self>) -> Running {
        AllInput::running(self)
    }
}

impl All for Tree {
    async fn all(&self, run: &mut Run, all: Batch, frames: &Frames) -> Done<Output> {
        let paths = run.productive_paths(&all, &self.by).await?;
        if let Some(name) = &self.name {
            run.grow_tree(name, paths)?;
            return Ok(Output::Same(all));
        }
        let mut trees = run.growth.copies(&value::Tree::default(), 0, slots(frames))?;
        for (row, path) in all.rows.iter().zip(paths) {
            run.pace.rest(1 + path.len() as u64).await?;
            plant(&mut trees[row.frame as usize], path, &run.growth)?;
        }
        run.begun(of_frames(trees, frames).map(|(frame, tree)| (frame, Value::Tree(tree))).collect())
    }
}
