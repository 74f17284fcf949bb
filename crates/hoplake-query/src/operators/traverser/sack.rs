//! What a traverser carries.

use crate::{operators::prelude::*, run::reduce::operate, tokens::BinaryOperator};

/// What the traverser carries.
#[derive(Debug, Clone, PartialEq)]
pub struct Sack;

impl Operator for Sack {
    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Sack {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let sacks = match &batch.sacks {
            Some(sacks) => run.growth.copy_all(sacks)?,
            None => run.growth.copies(&Value::Null, 0, batch.len())?,
        };
        Ok(Output::Next(batch.on(Items::of_values(sacks))))
    }
}

/// Changes what the traverser carries.
#[derive(Debug, Clone, PartialEq)]
pub struct SackWith {
    /// What is done with it and the other value.
    pub operator: BinaryOperator,
    /// The other value.
    pub by: By,
}

impl Operator for SackWith {
    nested!(by);

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        reach.by(&self.by, input.clone());
        input
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for SackWith {
    async fn each(&self, run: &mut Run, mut batch: Batch) -> Done<Output> {
        let values = run.by(&self.by, &batch).await?;
        let growth = run.growth.clone();
        let rows = batch.len();
        let mut sacks = match batch.sacks.take() {
            Some(sacks) => sacks,
            None => growth.copies(&Value::Null, 0, rows)?,
        };
        let productive: Vec<bool> = values.iter().map(Option::is_some).collect();
        for (sack, value) in sacks.iter_mut().zip(values) {
            if let Some(value) = value {
                let made = operate(self.operator, std::mem::take(sack), value, &growth)?;
                *sack = growth.built(made)?;
                run.pace.rest(1).await?;
            }
        }
        batch.sacks = Some(sacks);
        Ok(Output::Same(batch.keep(|at| productive[at])))
    }
}
