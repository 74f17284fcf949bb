//! Rows by their number.

use std::collections::HashMap;

use crate::operators::{Demand, prelude::*};

/// Rows from a number on, up to before another.
#[derive(Debug, Clone, PartialEq)]
pub struct Range {
    /// The first one, from 0.
    pub low: u64,
    /// The one behind the last; all without.
    pub high: Option<u64>,
}

/// A range, as `explain` shows it.
pub(crate) fn write_range(f: &mut Formatter<'_>, low: u64, high: Option<u64>) -> fmt::Result {
    match high {
        Some(high) => write!(f, " {low}..{high}"),
        None => write!(f, " {low}.."),
    }
}

impl Operator for Range {
    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_range(f, self.low, self.high)
    }

    fn is_stateful(&self) -> bool {
        true
    }

    fn reach(&self, _: &mut Reach<'_>, input: Elements) -> Elements {
        input
    }

    fn start(self: Arc<Self>) -> Running {
        Running::new(Counting { operator: self, counts: HashMap::new() })
    }
}

#[derive(Debug)]
struct Counting {
    operator: Arc<Range>,
    /// How many came, by frame.
    counts: HashMap<u32, u64>,
}

impl Stage for Counting {
    fn begin(&mut self, _: &Frames) {
        // Each round of a loop counts from 0.
        self.counts.clear();
    }

    fn input<'a>(&'a mut self, _: &'a mut Run, batch: Batch, out: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>> {
        out.push(Output::Same(within(batch, &mut self.counts, self.operator.low, self.operator.high)));
        Box::pin(std::future::ready(Ok(())))
    }

    fn is_done(&self, is_silent: bool) -> bool {
        match self.operator.high {
            Some(0) if is_silent => true,
            // Outside of other traversals there is one frame, and nothing is asked for that it does not want.
            Some(high) => self.counts.len() == 1 && self.counts.get(&0).is_some_and(|count| *count >= high),
            None => false,
        }
    }

    fn demand(&self) -> Demand {
        if self.operator.high.is_some() { Demand::First } else { Demand::All }
    }
}

/// The rows from a number on, up to before another, each in its frame.
fn within(mut batch: Batch, counts: &mut HashMap<u32, u64>, low: u64, high: Option<u64>) -> Batch {
    let mut is_kept = vec![false; batch.len()];
    for (at, row) in batch.rows.iter_mut().enumerate() {
        let count = counts.entry(row.frame).or_insert(0);
        let begin = *count;
        let end = count.saturating_add(row.bulk);
        let kept = end.min(high.unwrap_or(u64::MAX)).saturating_sub(begin.max(low));
        *count = end;
        if kept > 0 {
            row.bulk = kept;
            is_kept[at] = true;
        }
    }
    batch.keep(|at| is_kept[at])
}
