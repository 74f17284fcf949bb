//! All rows as one list, or joined.

use crate::{
    operators::{of_frames, prelude::*, slots},
    run::reduce::{copies, operate},
    tokens::BinaryOperator,
    value::value_bytes,
};

/// All rows in a list, or joined.
#[derive(Debug, Clone, PartialEq)]
pub struct Fold {
    /// What it begins with, and how a row is joined with it; a list without.
    pub join: Option<(Value, BinaryOperator)>,
}

impl Operator for Fold {
    fn is_barrier(&self) -> bool {
        true
    }

    fn start(self: Arc<Self>) -> Running {
        AllInput::running(self)
    }
}

impl All for Fold {
    async fn all(&self, run: &mut Run, all: Batch, frames: &Frames) -> Done<Output> {
        run.fold(all, frames, self.join.as_ref()).await
    }
}

impl Run {
    async fn fold(
        &mut self,
        mut all: Batch,
        frames: &Frames,
        fold: Option<&(Value, crate::tokens::BinaryOperator)>,
    ) -> Done<Output> {
        let initial = match fold {
            Some((seed, _)) => seed.clone(),
            None => Value::List(Vec::new()),
        };
        let growth = self.growth.clone();
        growth.absorb(all.hold.take());
        let mut bulks: Vec<(u32, u64)> = growth.column(all.len())?;
        bulks.extend(all.rows.iter().map(|row| (row.frame, row.bulk)));
        let mut folded = growth.copies(&initial, value_bytes(&initial), slots(frames))?;
        for (value, (frame, bulk)) in all.items.into_values(&growth)?.into_iter().zip(bulks) {
            let into = &mut folded[frame as usize];
            let copies = copies(bulk)?;
            match (&mut *into, fold) {
                (Value::List(items), None) => {
                    // The first one is there already.
                    growth.take(size_of::<Value>() + (copies - copies.min(1)).saturating_mul(value_bytes(&value)))?;
                    items.extend(std::iter::repeat_n(value, copies));
                }
                (into, Some((_, operator))) => {
                    for _ in 0..copies {
                        let made = operate(*operator, std::mem::take(into), growth.copy(&value)?, &growth)?;
                        *into = made;
                    }
                }
                _ => {}
            }
            self.pace.rest(copies as u64).await?;
        }
        self.begun(of_frames(folded, frames).collect())
    }
}
