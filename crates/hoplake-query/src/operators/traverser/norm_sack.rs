//! Sacks that are divided by their sum.

use std::collections::HashMap;

use crate::{operators::prelude::*, run::reduce::operate, tokens::BinaryOperator};

/// All rows, with their sacks divided by the sum of them.
#[derive(Debug, Clone, PartialEq)]
pub struct NormSack;

impl Operator for NormSack {
    fn is_barrier(&self) -> bool {
        true
    }

    fn start(self: Arc<Self>) -> Running {
        AllInput::running(self)
    }
}

impl All for NormSack {
    async fn all(&self, run: &mut Run, all: Batch, _: &Frames) -> Done<Output> {
        Ok(Output::Same(normed(all, &run.growth)?))
    }
}

/// Sacks divided by the sum of those in their frame, each as often as there are traversers with it.
fn normed(mut batch: Batch, growth: &Growth) -> Done<Batch> {
    let times =
        |sack: &Value, bulk: u64| operate(BinaryOperator::Mult, growth.copy(sack)?, (bulk as i64).into(), growth);
    let Some(sacks) = &mut batch.sacks else { return Ok(batch) };
    let mut sums: HashMap<u32, Value> = HashMap::new();
    for (row, sack) in batch.rows.iter().zip(&*sacks) {
        let sum = sums.entry(row.frame).or_insert_with(|| 0.0.into());
        *sum = operate(BinaryOperator::Sum, std::mem::take(sum), times(sack, row.bulk)?, growth)?;
    }
    for (row, sack) in batch.rows.iter().zip(sacks) {
        *sack = operate(
            BinaryOperator::Div,
            times(sack, row.bulk)?,
            sums.get(&row.frame).cloned().unwrap_or_default(),
            growth,
        )?;
    }
    Ok(batch)
}
