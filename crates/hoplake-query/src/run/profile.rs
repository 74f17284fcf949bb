//! What each step of a query takes.

use std::time::{Duration, Instant};

use hoplake_storage::{Branch, Cost, PriceList};

use super::{batch::Batch, pipe::Pipe};
use crate::value::{Metrics, TraversalMetrics, Value};

/// A profile that is under way.
#[derive(Debug)]
pub(crate) struct Profile {
    begun: Instant,
}

/// What a step has taken, traversals within it included.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    time: Duration,
    /// Requests, bytes and what the caches gave.
    cost: Cost,
    /// Traversers that it gave, and rows that they are in.
    traversers: u64,
    rows: u64,
    waves: u32,
}

/// The beginning of a step's turn.
pub(crate) struct Begun {
    at: Instant,
    cost: Cost,
    wave: u32,
}

impl Begun {
    pub(crate) fn now(branch: &Branch) -> Self {
        Self { at: Instant::now(), cost: branch.context().cost(), wave: branch.wave().0 }
    }
}

impl Taken {
    pub(crate) fn add(&mut self, begun: Begun, branch: &Branch, given: Option<&Batch>) {
        self.time += begun.at.elapsed();
        self.cost = self.cost + branch.context().cost().since(&begun.cost);
        self.waves += branch.wave().0 - begun.wave;
        if let Some(batch) = given {
            self.rows += batch.len() as u64;
            self.traversers += batch.rows.iter().map(|row| row.bulk).fold(0, u64::saturating_add);
        }
    }
}

impl Profile {
    pub(crate) fn begin(pipe: &mut Pipe) -> Self {
        pipe.note();
        Self { begun: Instant::now() }
    }

    /// Metrics by step, with waves, requests and bytes as annotations.
    pub(crate) fn end(self, pipe: &Pipe, branch: &Branch, prices: &PriceList) -> Value {
        let whole = self.begun.elapsed();
        let steps = pipe.taken().enumerate().map(|(number, (step, taken))| {
            let mut annotations: Vec<(Box<str>, Value)> = Vec::new();
            let percent = taken.time.as_secs_f64() / whole.as_secs_f64().max(f64::MIN_POSITIVE) * 100.0;
            annotations.push(("percentDur".into(), percent.into()));
            annotations.push(("waves".into(), i64::from(taken.waves).into()));
            annotations.extend(figures(&taken.cost, prices));
            Metrics {
                id: format!("{number}.0.0()").into(),
                name: step.to_string().into(),
                duration_nanos: nanos(taken.time),
                counts: vec![
                    ("traverserCount".into(), count(taken.rows)),
                    ("elementCount".into(), count(taken.traversers)),
                ],
                annotations,
                nested: Vec::new(),
            }
        });
        let mut steps: Vec<Metrics> = steps.collect();
        let cost = branch.context().cost();
        let mut annotations = vec![(Box::from("waves"), count(cost.waves).into())];
        annotations.extend(figures(&cost, prices));
        // Reading the ids and properties of results is no step of the query.
        steps.push(Metrics {
            id: "query".into(),
            name: "the query, with what its results have".into(),
            duration_nanos: nanos(whole),
            annotations,
            ..Metrics::default()
        });
        Value::Metrics(Box::new(TraversalMetrics { duration_nanos: nanos(whole), steps }))
    }
}

fn figures(cost: &Cost, prices: &PriceList) -> Vec<(Box<str>, Value)> {
    vec![
        ("requests".into(), count(cost.requests).into()),
        ("bytes".into(), count(cost.store_bytes).into()),
        ("dollars".into(), cost.usd(prices).into()),
        ("blocks from memory".into(), count(cost.memory.blocks).into()),
        ("blocks from disk".into(), count(cost.disk.blocks).into()),
    ]
}

fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

fn count(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
