//! The last rows.

use crate::operators::prelude::*;

/// The last rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Tail {
    /// How many.
    pub count: u64,
}

impl Operator for Tail {
    fn is_barrier(&self) -> bool {
        true
    }

    fn reach(&self, _: &mut Reach<'_>, input: Elements) -> Elements {
        input
    }

    fn start(self: Arc<Self>) -> Running {
        AllInput::running(self)
    }
}

impl All for Tail {
    async fn all(&self, _: &mut Run, all: Batch, _: &Frames) -> Done<Output> {
        Ok(Output::Same(tail(all, self.count)))
    }
}

/// The last rows of each frame.
fn tail(mut all: Batch, count: u64) -> Batch {
    let mut left: std::collections::HashMap<u32, u64> = std::collections::HashMap::new();
    let mut is_kept = vec![false; all.len()];
    for at in (0..all.len()).rev() {
        let row = &mut all.rows[at];
        let left = left.entry(row.frame).or_insert(count);
        let kept = row.bulk.min(*left);
        *left -= kept;
        if kept > 0 {
            row.bulk = kept;
            is_kept[at] = true;
        }
    }
    all.keep(|at| is_kept[at])
}
