//! Several traversals from the same rows.

use super::Branch;
use crate::{operators::prelude::*, plan::is_stateful};

/// All of some traversals.
#[derive(Debug, Clone, PartialEq)]
pub struct Union {
    /// The traversals.
    pub branches: Vec<Steps>,
}

impl Operator for Union {
    nested!(branches);

    fn is_stateful(&self) -> bool {
        self.branches.iter().any(|steps| is_stateful(steps))
    }

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        reach.branches(self.branches.iter(), &input)
    }

    fn start(self: Arc<Self>) -> Running {
        let branches = self.branches.iter().map(Branch::new).collect();
        Running::new(Uniting { branches, is_collecting: self.is_stateful() })
    }
}

#[derive(Debug)]
struct Uniting {
    branches: Vec<Branch>,
    /// Whether all rows have to be there before a branch is run.
    is_collecting: bool,
}

impl Uniting {
    async fn unite(&mut self, run: &mut Run, batch: Batch, out: &mut Vec<Output>) -> Done<()> {
        let all: Vec<u32> = (0..batch.len() as u32).collect();
        let parts = run.growth.copies(&all, size_of_val(&all[..]), self.branches.len())?;
        let united = run.branches_with(&mut self.branches, &batch, parts, self.is_collecting, Vec::new()).await?;
        out.extend(Output::Same(united).parts(&run.growth)?);
        Ok(())
    }
}

impl Stage for Uniting {
    fn is_collecting(&self) -> bool {
        self.is_collecting
    }

    fn input<'a>(&'a mut self, run: &'a mut Run, batch: Batch, out: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>> {
        Box::pin(self.unite(run, batch, out))
    }

    fn finish<'a>(&'a mut self, run: &'a mut Run, all: Batch, out: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>> {
        Box::pin(async move { if all.is_empty() { Ok(()) } else { self.unite(run, all, out).await } })
    }
}
