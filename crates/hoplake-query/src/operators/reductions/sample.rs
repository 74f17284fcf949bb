//! Some rows at random.

use std::collections::BTreeMap;

use crate::{
    deep::block_in_place_if,
    operators::prelude::*,
    run::{
        reduce::copies,
        sampling::{self, Candidate},
        sort::LONG,
    },
};

/// Some rows at random.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// How many.
    pub count: u64,
    /// Their weight.
    pub by: By,
}

impl Operator for Sample {
    nested!(by);

    fn is_barrier(&self) -> bool {
        true
    }

    fn acts(&self) -> bool {
        true
    }

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        reach.by(&self.by, input.clone());
        input
    }

    fn start(self: Arc<Self>) -> Running {
        AllInput::running(self)
    }
}

impl All for Sample {
    async fn all(&self, run: &mut Run, all: Batch, _: &Frames) -> Done<Output> {
        Ok(Output::Same(run.sample(all, self.count, &self.by).await?))
    }
}

/// A place in a table of frames, and the list that it has.
const FRAME_BYTES: usize = 64;

impl Run {
    async fn sample(&mut self, all: Batch, count: u64, by: &By) -> Done<Batch> {
        let growth = self.growth.clone();
        let (all, weights): (Batch, Vec<f64>) = match by {
            By::Identity => {
                let weights = growth.copies(&1.0, size_of::<f64>(), all.len())?;
                (all, weights)
            }
            by => {
                let weight = |value: Option<Value>| match value {
                    Some(Value::Number(number)) => Ok(Some(crate::value::to_f64(&number))),
                    None => Ok(None),
                    Some(_) => Err(QueryError::wrong_type("`sample` weighs by numbers")),
                };
                let values = self.by(by, &all).await?;
                let mut weights: Vec<Option<f64>> = growth.column(values.len())?;
                for value in values {
                    weights.push(weight(value)?);
                }
                let mut known: Vec<f64> = growth.column(weights.len())?;
                known.extend(weights.iter().flatten());
                // What has no weight is not in the sample.
                (all.keep(|at| weights[at].is_some()), known)
            }
        };
        copies(count.min(all.rows.iter().map(|row| row.bulk).fold(0, u64::saturating_add)))?;
        let mut by_frame: BTreeMap<u32, Vec<Candidate>> = BTreeMap::new();
        for ((row, weight), place) in all.rows.iter().zip(weights).zip(0u32..) {
            let candidates = by_frame.entry(row.frame).or_default();
            if candidates.len() == candidates.capacity() {
                let more = candidates.len().max(1);
                growth.take(more * size_of::<Candidate>() + FRAME_BYTES)?;
                candidates.reserve_exact(more);
            }
            candidates.push(Candidate { place, bulk: row.bulk, weight });
            self.pace.rest(1).await?;
        }
        let mut picked: Vec<(u32, u64)> = growth.column(all.len())?;
        for candidates in by_frame.into_values() {
            let units = sampling::units(&candidates, count);
            let random = &mut self.random;
            let drawn = block_in_place_if(units > LONG, || sampling::sample(candidates, count, random, &growth))?;
            picked.extend(drawn);
            self.pace.rest(units).await?;
        }
        picked.sort_unstable();
        let mut places: Vec<u32> = growth.column(picked.len())?;
        places.extend(picked.iter().map(|(place, _)| *place));
        let mut sample = all.take(&places, &growth)?;
        sample.rows.iter_mut().zip(picked).for_each(|(row, (_, bulk))| row.bulk = bulk);
        Ok(sample)
    }
}
