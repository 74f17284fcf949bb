//! Steps that take all before they give anything.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, HashMap},
    ops::Range,
};

use hoplake_storage::PIECE_UNITS;

use super::{
    Done, Run,
    batch::{Batch, value_bytes},
    by::is_element,
    growth::{Growth, units_of},
    paths::Labels,
    pipe::{Frames, of_frames, slots},
    reduce::{OwnedKey, copies, operate, plant},
    sampling::{self, Candidate},
};
use crate::{
    deep::block_in_place_if,
    error::QueryError,
    plan::{By, Name, Sorting, StepKind},
    tokens::{Operator, Order},
    value::{Tree, Value, order},
};

/// Units of work from which on a sort may take milliseconds, and must not hold up other queries.
const LONG: u64 = 1 << 16;

/// A place in a table of frames, and the list that it has.
const FRAME_BYTES: usize = 64;

/// Traversers at the same place become one, with one sack made of theirs.
fn with_sacks(batch: Batch, operator: Operator, growth: &Growth) -> Done<Batch> {
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

/// Sacks divided by the sum of those in their frame, each as often as there are traversers with it.
fn normed(mut batch: Batch, growth: &Growth) -> Done<Batch> {
    let times = |sack: &Value, bulk: u64| operate(Operator::Mult, growth.copy(sack)?, (bulk as i64).into(), growth);
    let Some(sacks) = &mut batch.sacks else { return Ok(batch) };
    let mut sums: HashMap<u32, Value> = HashMap::new();
    for (row, sack) in batch.rows.iter().zip(&*sacks) {
        let sum = sums.entry(row.frame).or_insert_with(|| 0.0.into());
        *sum = operate(Operator::Sum, std::mem::take(sum), times(sack, row.bulk)?, growth)?;
    }
    for (row, sack) in batch.rows.iter().zip(sacks) {
        *sack =
            operate(Operator::Div, times(sack, row.bulk)?, sums.get(&row.frame).cloned().unwrap_or_default(), growth)?;
    }
    Ok(batch)
}

impl Run {
    /// What a step makes of all that came.
    pub(super) async fn barrier(
        &mut self,
        kind: &StepKind,
        labels: &Labels,
        all: Batch,
        frames: &Frames,
    ) -> Done<Batch> {
        match kind {
            StepKind::Barrier => {
                let merged = match self.settings.sack_merge {
                    Some(operator) => with_sacks(all, operator, &self.growth)?,
                    None => all.merged(&self.growth)?,
                };
                let mut merged = self.relabelled(merged, labels)?;
                if self.settings.without_bulk {
                    merged.rows.iter_mut().for_each(|row| row.bulk = 1);
                }
                Ok(merged)
            }
            StepKind::NormSack => {
                let normed = normed(all, &self.growth)?;
                self.relabelled(normed, labels)
            }
            StepKind::Order(_, sortings) => {
                let sorted = self.sorted(all, sortings).await?;
                self.relabelled(sorted, labels)
            }
            StepKind::Tail(_, count) => {
                let tail = tail(all, *count);
                self.relabelled(tail, labels)
            }
            StepKind::Sample(_, count, by) => {
                let sample = self.sample(all, *count, by).await?;
                self.relabelled(sample, labels)
            }
            StepKind::Aggregate(_, name, by) => {
                let values = self.by(by, &all).await?;
                // What is assigned last stays: all that came, or within another traversal all of its last traverser.
                let last = all.rows.last().filter(|_| self.assigns(name)).map(|row| row.frame);
                let rows =
                    values.into_iter().zip(&all.rows).filter(|(_, row)| last.is_none_or(|last| row.frame == last));
                let values: Vec<_> = rows.filter_map(|(value, row)| Some((value?, row.bulk))).collect();
                self.aggregate(name, values.into_iter())?;
                self.relabelled(all, labels)
            }
            StepKind::Fold(fold) => self.fold(all, frames, fold.as_ref(), labels).await,
            StepKind::Group(Some(_), ..) | StepKind::GroupCount(Some(_), _) | StepKind::Tree(Some(_), _) => {
                self.each(kind, labels, all).await
            }
            StepKind::Group(_, key, value) => {
                let maps = self.group_by_frame(all, slots(frames), key, value).await?;
                self.begun(of_frames(maps, frames).collect(), labels)
            }
            StepKind::GroupCount(_, by) => {
                let maps = self.counts_by_frame(all, slots(frames), by).await?;
                self.begun(of_frames(maps, frames).collect(), labels)
            }
            StepKind::Tree(_, by) => {
                let paths = self.productive_paths(&all, by).await?;
                let mut trees = self.growth.copies(&Tree::default(), 0, slots(frames))?;
                for (row, path) in all.rows.iter().zip(paths) {
                    self.pace.rest(1 + path.len() as u64).await?;
                    plant(&mut trees[row.frame as usize], path, &self.growth)?;
                }
                self.begun(of_frames(trees, frames).map(|(frame, tree)| (frame, Value::Tree(tree))).collect(), labels)
            }
            StepKind::Cap(names) => {
                let value = self.capped(names).await?;
                let values = self.growth.copies(&value, value_bytes(&value), frames.len())?;
                self.begun(frames.iter().copied().zip(values).collect(), labels)
            }
            kind if kind.writes() && !all.is_empty() => self.change(kind, labels, all).await,
            StepKind::Compute(computation) => {
                self.compute(computation, &all).await?;
                self.relabelled(all, labels)
            }
            StepKind::ShortestPaths(search) => self.shortest_paths(search, all, labels).await,
            _ => self.relabelled(all, labels),
        }
    }

    async fn capped(&mut self, names: &[Name]) -> Done<Value> {
        if let [name] = names {
            let value = self.side_effect(name).await?;
            return value.ok_or_else(|| {
                QueryError::wrong_type(format!(
                    "The side-effect key does not exist in the side-effects: {name}; a step before collects under it, as \
                     `aggregate({name:?})` does, or `withSideEffect({name:?}, …)` begins with it"
                ))
            });
        }
        // Of several, those that there are.
        let mut entries = Vec::with_capacity(names.len());
        for name in names {
            if let Some(value) = self.side_effect(name).await? {
                entries.push((Value::from(&**name), value));
            }
        }
        Ok(Value::Map(entries))
    }

    async fn fold(
        &mut self,
        mut all: Batch,
        frames: &Frames,
        fold: Option<&(Value, crate::tokens::Operator)>,
        labels: &Labels,
    ) -> Done<Batch> {
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
        self.begun(of_frames(folded, frames).collect(), labels)
    }

    /// Sorted within each frame; rows without a value to sort by go.
    pub(super) async fn sorted(&mut self, all: Batch, sortings: &[Sorting]) -> Done<Batch> {
        let (keys, mut places) = self.sort_keys(&all, sortings).await?;
        sort(&mut places, |place| all.rows[place as usize].frame, &keys, sortings, &self.growth)?;
        all.take(&places, &self.growth)
    }

    /// What rows are sorted by, a column for each `by`, and the rows that have all of it.
    pub(super) async fn sort_keys(&mut self, all: &Batch, sortings: &[Sorting]) -> Done<(Vec<Vec<Value>>, Vec<u32>)> {
        let mut keys = Vec::with_capacity(sortings.len());
        let mut productive = vec![true; all.len()];
        let by: Vec<&By> = sortings.iter().filter(|(_, order)| *order != Order::Shuffle).map(|(by, _)| by).collect();
        let columns = match self.by_all(&by, all).await {
            Err(error) if self.may_ask_again(&error) => self.by_in_turn(&by, all).await?,
            columns => columns?,
        };
        let mut columns = columns.into_iter();
        for (_, order) in sortings {
            if *order == Order::Shuffle {
                let mut random = self.growth.column(all.len())?;
                random.extend((0..all.len()).map(|_| Value::from(self.random.i64(..))));
                keys.push(random);
                continue;
            }
            let values = columns.next().unwrap_or_default();
            productive.iter_mut().zip(&values).for_each(|(productive, value)| *productive &= value.is_some());
            let mut values: Vec<Value> = values.into_iter().map(Option::unwrap_or_default).collect();
            // Elements are ordered by their ids.
            if values.iter().any(is_element) {
                values = self.finished(values, false).await?;
            }
            // T.id sorts among texts as `id`.
            for value in &mut values {
                if let Value::Token(crate::tokens::Token::T(token)) = value {
                    *value = token.name().into();
                }
            }
            keys.push(values);
        }
        let kept = (0..all.len() as u32).filter(|at| productive[*at as usize]).collect();
        Ok((keys, kept))
    }

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

/// The last rows of each frame.
fn tail(mut all: Batch, count: u64) -> Batch {
    let mut left: std::collections::HashMap<u32, u64> = std::collections::HashMap::new();
    let mut is_kept = vec![false; all.len()];
    for at in (0..all.len()).rev() {
        let row = &mut all.rows[at];
        let left = left.entry(row.frame).or_insert(count);
        let kept = row.bulk.min(*left);
        *left -= kept;
        if kept > 0 {
            row.bulk = kept;
            is_kept[at] = true;
        }
    }
    all.keep(|at| is_kept[at])
}

/// Sorts places by their frame, and within each by columns of keys.
///
/// Column after column, those alone that are the same by all before: a query that sorts by thousands of columns ends at its deadline, which
/// a comparison of all of them cannot look at.
pub(super) fn sort(
    places: &mut [u32],
    frame: impl Fn(u32) -> u32,
    keys: &[Vec<Value>],
    sortings: &[Sorting],
    growth: &Growth,
) -> Done<()> {
    places.sort_by_key(|place| frame(*place));
    let mut same = runs(places, 0, |a, b| frame(a) == frame(b));
    for (keys, (_, order)) in keys.iter().zip(sortings) {
        let compare = |a: u32, b: u32| compare_keys(&keys[a as usize], &keys[b as usize], *order);
        let mut next = Vec::new();
        for run in same {
            let begin = run.start;
            let run = &mut places[run];
            let bytes: usize = run.iter().map(|place| value_bytes(&keys[*place as usize])).sum();
            // What a comparison takes on average.
            let each = units_of(bytes / run.len());
            block_in_place_if(each * run.len() as u64 > LONG, || sort_in_parts(run, each, compare, growth))?;
            next.extend(runs(run, begin, |a, b| compare(a, b).is_eq()));
        }
        same = next;
    }
    Ok(())
}

/// Sorts parts, and then larger ones, of which it finds that they consist of some that are sorted: between them it looks at the deadline.
fn sort_in_parts(places: &mut [u32], each: u64, compare: impl Fn(u32, u32) -> Ordering, growth: &Growth) -> Done<()> {
    let mut length = usize::try_from(PIECE_UNITS / each).unwrap_or(0).max(2);
    let mut sorted = 1;
    loop {
        for part in places.chunks_mut(length) {
            if sorted > 1 && part.get(sorted).is_none_or(|next| compare(part[sorted - 1], *next).is_le()) {
                continue;
            }
            growth.work(each * part.len() as u64 * u64::from(length.min(1 << 11).ilog2()))?;
            part.sort_by(|a, b| compare(*a, *b));
        }
        if length >= places.len() {
            return Ok(());
        }
        (sorted, length) = (length, 2 * length);
    }
}

/// Where several neighbours are the same; the first place has a number.
fn runs(places: &[u32], first: usize, is_same: impl Fn(u32, u32) -> bool) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut begin = first;
    for run in places.chunk_by(|a, b| is_same(*a, *b)) {
        if run.len() > 1 {
            runs.push(begin..begin + run.len());
        }
        begin += run.len();
    }
    runs
}

fn compare_keys(left: &Value, right: &Value, order_of: Order) -> Ordering {
    let ascending = match (left, right) {
        (left @ Value::Token(_), right) | (left, right @ Value::Token(_)) => order(&by_name(left), &by_name(right)),
        (left, right) => order(left, right),
    };
    if order_of == Order::Desc { ascending.reverse() } else { ascending }
}

/// A token as its name: `order` sorts `T.id` with the names of properties.
fn by_name(value: &Value) -> Value {
    match value {
        Value::Token(token) => token.name().into(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use hoplake_storage::QueryContext;

    use super::*;

    #[test]
    fn columns_sort_as_all_keys_together() {
        let mut random = fastrand::Rng::with_seed(7);
        let growth = Growth::new(&QueryContext::new()).unwrap();
        for _ in 0..200 {
            let rows = random.usize(0..40);
            let sortings: Vec<Sorting> = (0..random.usize(0..4))
                .map(|_| (By::Identity, if random.bool() { Order::Asc } else { Order::Desc }))
                .collect();
            let keys: Vec<Vec<Value>> =
                sortings.iter().map(|_| (0..rows).map(|_| random.i64(0..3).into()).collect()).collect();
            let frames: Vec<u32> = (0..rows).map(|_| random.u32(0..3)).collect();
            let mut places: Vec<u32> = (0..rows as u32).collect();
            let mut expected = places.clone();
            expected.sort_by(|a, b| {
                let (a, b) = (*a as usize, *b as usize);
                let columns =
                    keys.iter().zip(&sortings).map(|(keys, (_, order))| compare_keys(&keys[a], &keys[b], *order));
                columns.fold(frames[a].cmp(&frames[b]), Ordering::then)
            });
            sort(&mut places, |place| frames[place as usize], &keys, &sortings, &growth).unwrap();
            assert_eq!(places, expected);
        }
    }

    /// Many rows, which are sorted in parts, and large keys.
    #[test]
    fn many_rows_are_sorted_in_parts() {
        let mut random = fastrand::Rng::with_seed(8);
        let growth = Growth::new(&QueryContext::new()).unwrap();
        for (rows, items) in [(5_000, 0), (9_001, 1), (300, 400), (3, 100_000)] {
            let mut key = || match items {
                0 => random.i64(0..1_000).into(),
                items => Value::List((0..items).map(|_| random.i64(0..2).into()).collect()),
            };
            let keys: Vec<Value> = (0..rows).map(|_| key()).collect();
            let mut places: Vec<u32> = (0..rows as u32).collect();
            let mut expected = places.clone();
            expected.sort_by(|a, b| order(&keys[*a as usize], &keys[*b as usize]));
            sort(&mut places, |_| 0, &[keys], &[(By::Identity, Order::Asc)], &growth).unwrap();
            assert_eq!(places, expected, "{rows} of {items}");
        }
    }

    /// Thousands of columns in which all is the same.
    #[test]
    fn sorting_ends_at_the_deadline() {
        let context = QueryContext::new();
        context.give_time(Some(0));
        let keys: Vec<Vec<Value>> = vec![vec![1.into(); 8]; 2_000];
        let sortings: Vec<Sorting> = vec![(By::Identity, Order::Asc); 2_000];
        let mut places: Vec<u32> = (0..8).collect();
        let sorted = |places: &mut [u32]| sort(places, |_| 0, &keys, &sortings, &Growth::new(&context).unwrap());
        assert!(sorted(&mut places).unwrap_err().to_string().contains("0 ms"));
    }
}
