//! All rows before the first goes on.

use std::collections::HashMap;

use crate::{
    operators::prelude::*,
    run::reduce::{OwnedKey, operate},
    tokens::BinaryOperator,
};

/// All rows before the first goes on; equal ones become one.
#[derive(Debug, Clone, PartialEq)]
pub struct Barrier;

impl Operator for Barrier {
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

impl All for Barrier {
    async fn all(&self, run: &mut Run, all: Batch, _: &Frames) -> Done<Output> {
        let mut merged = match run.settings.sack_merge {
            Some(operator) => with_sacks(all, operator, &run.growth)?,
            None => all.merged(&run.growth)?,
        };
        if run.settings.without_bulk {
            merged.rows.iter_mut().for_each(|row| row.bulk = 1);
        }
        Ok(Output::Same(merged))
    }
}

/// Traversers at the same place become one, with one sack made of theirs.
fn with_sacks(batch: Batch, operator: BinaryOperator, growth: &Growth) -> Done<Batch> {
    let Some(sacks) = &batch.sacks else { return Ok(batch) };
    let mut places: HashMap<(OwnedKey, u32, u32), usize> = HashMap::new();
    let mut kept: Vec<u32> = Vec::new();
    let mut merged: Vec<(u64, Value)> = Vec::new();
    for (at, (row, sack)) in batch.rows.iter().zip(sacks).enumerate() {
        let key = OwnedKey(batch.items.copy(at, growth)?);
        let place = *places.entry((key, row.frame, row.path)).or_insert(kept.len());
        match merged.get_mut(place) {
            Some((bulk, before)) => {
                *bulk = bulk.saturating_add(row.bulk);
                let made = operate(operator, std::mem::take(before), growth.copy(sack)?, growth)?;
                *before = growth.built(made)?;
            }
            None => {
                kept.push(at as u32);
                merged.push((row.bulk, growth.copy(sack)?));
            }
        }
    }
    let mut batch = batch.take(&kept, growth)?;
    for (row, (bulk, _)) in batch.rows.iter_mut().zip(&merged) {
        row.bulk = *bulk;
    }
    batch.sacks = Some(merged.into_iter().map(|(_, sack)| sack).collect());
    Ok(batch)
}
