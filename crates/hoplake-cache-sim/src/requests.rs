//! From misses to requests: what one wave of one query asks of one object is joined where the gaps are small.

use std::ops::Range;

use crate::{Fetched, Plan, workload::Use};

/// The ranges that a replay had to fetch.
#[derive(Debug, Default)]
pub(crate) struct Misses(Vec<Miss>);

#[derive(Debug)]
struct Miss {
    query: u64,
    wave: u32,
    object: u32,
    start: u64,
    end: u64,
}

impl Misses {
    /// A range that this access needs from the store.
    pub fn add(&mut self, access: Use, object: u32, range: Range<u64>) {
        let Use { query, wave, .. } = access;
        self.0.push(Miss { query, wave, object, start: range.start, end: range.end });
    }

    /// The requests they become.
    pub fn join(mut self, plan: &Plan) -> Fetched {
        self.0.sort_unstable_by_key(|miss| (miss.query, miss.wave, miss.object, miss.start));
        let mut fetched = Fetched::default();
        let mut last: Option<Miss> = None;
        for miss in self.0 {
            match &mut last {
                Some(last) if last.takes(&miss, plan) => last.end = last.end.max(miss.end),
                last => {
                    fetched.count(last.replace(miss));
                }
            }
        }
        fetched.count(last);
        fetched
    }
}

impl Miss {
    fn takes(&self, next: &Self, plan: &Plan) -> bool {
        let near = next.start <= self.end.saturating_add(plan.coalesce_gap_bytes_max);
        let short = next.end <= self.end || next.end - self.start <= plan.request_bytes_max;
        (self.query, self.wave, self.object) == (next.query, next.wave, next.object) && near && short
    }
}

impl Fetched {
    fn count(&mut self, request: Option<Miss>) {
        if let Some(request) = request {
            self.requests += 1;
            self.bytes += request.end - request.start;
        }
    }
}
