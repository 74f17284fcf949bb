//! Collections whose items match a predicate.

use super::keep;
use crate::{operators::prelude::*, plan::Quantifier};

/// Collections of whose items all, some or none match a predicate.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantified {
    /// How many of the items.
    pub quantifier: Quantifier,
    /// The predicate.
    pub predicate: Predicate,
}

impl Operator for Quantified {
    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Quantified {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let mut kept = Vec::with_capacity(batch.len());
        for at in 0..batch.len() {
            kept.push(run.quantified(self.quantifier, &self.predicate, &batch.items.get(at)).await?);
        }
        Ok(keep(batch, |at| kept[at]))
    }
}

impl Run {
    /// Whether all, some or none of the items of a collection match a predicate.
    async fn quantified(&mut self, quantifier: Quantifier, predicate: &Predicate, value: &Value) -> Done<bool> {
        let items: Box<dyn Iterator<Item = &Value> + Send> = match value {
            Value::List(items) | Value::Set(items) => Box::new(items.iter()),
            Value::BulkSet(items) => Box::new(items.iter().map(|(item, _)| item)),
            Value::Path(path) => Box::new(path.steps.iter().map(|(item, _)| item)),
            _ => return Ok(false),
        };
        let sought = quantifier != Quantifier::All;
        for item in items {
            let before = self.growth.done();
            let is_sought = predicate.test(item, &self.growth)? == sought;
            self.rest_since(before).await?;
            if is_sought {
                return Ok(quantifier == Quantifier::Any);
            }
        }
        Ok(quantifier != Quantifier::Any)
    }
}
