//! Some items of a collection at random.

use crate::operators::prelude::*;

/// Some items of a collection at random.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleWithin {
    /// How many.
    pub count: u64,
    /// Their weight, which is not looked at.
    pub by: By,
}

impl Operator for SampleWithin {
    nested!(by);

    fn name(&self) -> &'static str {
        "Sample"
    }

    fn acts(&self) -> bool {
        true
    }

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        reach.by(&self.by, input.clone());
        input.others()
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for SampleWithin {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let mut sampled = run.growth.column(batch.len())?;
        for at in 0..batch.len() {
            let value = batch.items.copy(at, &run.growth)?;
            sampled.push(Some(sample(value, self.count as usize, &mut run.random)));
        }
        run.mapped_if(&batch, sampled)
    }
}

fn sample(value: Value, count: usize, random: &mut fastrand::Rng) -> Value {
    fn some<T>(mut items: Vec<T>, count: usize, random: &mut fastrand::Rng) -> Vec<T> {
        while items.len() > count {
            items.swap_remove(random.usize(..items.len()));
        }
        items
    }
    match value {
        Value::List(items) => Value::List(some(items, count, random)),
        Value::Set(items) => Value::List(some(items, count, random)),
        Value::Map(entries) => Value::Map(some(entries, count, random)),
        other => other,
    }
}
