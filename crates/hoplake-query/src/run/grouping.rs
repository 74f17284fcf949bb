//! What `group` and `groupCount` make of rows.

use std::{collections::HashMap, sync::Arc};

use futures::future::BoxFuture;

use super::{
    Batch, Items, Run, copies,
    groups::{GroupValue, Groups},
    reduce::{ENTRY_BYTES, OwnedKey},
};
use crate::{
    error::Done,
    plan::By,
    value::{Value, value_bytes},
};

impl GroupValue for By {
    fn of_groups<'a>(
        &'a self,
        run: &'a mut Run,
        rows: Batch,
        groups: usize,
    ) -> BoxFuture<'a, Done<Vec<Option<Value>>>> {
        Box::pin(async move {
            let growth = run.growth.clone();
            let mut values: Vec<Option<Value>> = growth.column(groups)?;
            values.resize_with(groups, || None);
            match self {
                By::Steps(steps) => {
                    let reduces = steps.iter().any(|step| step.operator.is_barrier());
                    let mut found = if reduces {
                        let mut pipe = super::Pipe::new(steps);
                        pipe.feed(rows);
                        run.drain(&mut pipe).await?
                    } else {
                        // Of a traversal that does not reduce, the last one counts.
                        let firsts = run.firsts(steps, &rows).await?;
                        let kept: Vec<u32> =
                            (0..rows.len() as u32).rev().filter(|at| firsts[*at as usize].is_some()).collect();
                        let mut kept_rows = rows.take_rows(&kept, &growth)?;
                        let mut firsts = firsts;
                        kept_rows.items =
                            Items::Values(kept.iter().filter_map(|at| firsts[*at as usize].take()).collect());
                        kept_rows
                    };
                    growth.absorb(found.hold.take());
                    for (row, value) in found.rows.iter().zip(found.items.into_values(&growth)?) {
                        values[row.frame as usize].get_or_insert(value);
                    }
                }
                by => {
                    let computed = run.by(by, &rows).await?;
                    values.iter_mut().for_each(|value| *value = Some(Value::List(Vec::new())));
                    for (row, computed) in rows.rows.iter().zip(computed) {
                        if let (Some(Value::List(items)), Some(computed)) = (&mut values[row.frame as usize], computed)
                        {
                            let copies = copies(row.bulk)?;
                            growth.take((value_bytes(&computed) + size_of::<Value>()).saturating_mul(copies))?;
                            items.extend(std::iter::repeat_n(computed, copies));
                        }
                    }
                }
            }
            Ok(values)
        })
    }
}

impl Run {
    /// All groups by frame.
    pub(crate) async fn group_by_frame(
        &mut self,
        batch: Batch,
        frames: usize,
        key: &By,
        value: &By,
    ) -> Done<Vec<Value>> {
        let mut keys = self.by(key, &batch).await?;
        let growth = self.growth.clone();
        let value = Arc::new(value.clone());
        let mut maps = Vec::with_capacity(frames);
        let mut by_frame: Vec<Vec<u32>> = vec![Vec::new(); frames];
        batch.rows.iter().zip(0u32..).for_each(|(row, at)| by_frame[row.frame as usize].push(at));
        for places in by_frame {
            let mut groups = Groups::new(value.clone());
            let of_frame = places.iter().map(|at| keys[*at as usize].take()).collect();
            groups.add(of_frame, &batch.take(&places, &growth)?, &growth)?;
            maps.push(groups.into_map(self).await?);
        }
        Ok(maps)
    }

    /// How many of each key, by frame.
    pub(crate) async fn counts_by_frame(&mut self, batch: Batch, frames: usize, by: &By) -> Done<Vec<Value>> {
        let keys = self.by(by, &batch).await?;
        let mut places: HashMap<(u32, OwnedKey), usize> = HashMap::new();
        let mut counts: Vec<Vec<(Value, u64)>> = vec![Vec::new(); frames];
        for (row, key) in batch.rows.iter().zip(keys) {
            let Some(key) = key else { continue };
            let of_frame = &mut counts[row.frame as usize];
            let copy = OwnedKey(self.growth.copy(&key)?);
            self.growth.take(ENTRY_BYTES)?;
            let place = *places.entry((row.frame, copy)).or_insert(of_frame.len());
            match of_frame.get_mut(place) {
                Some((_, count)) => *count = count.saturating_add(row.bulk),
                None => of_frame.push((key, row.bulk)),
            }
        }
        let map = |counts: Vec<(Value, u64)>| {
            Value::Map(counts.into_iter().map(|(key, count)| (key, (count as i64).into())).collect())
        };
        Ok(counts.into_iter().map(map).collect())
    }
}
