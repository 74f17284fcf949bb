//! Rows by what is computed of them.

use std::{cmp::Ordering, ops::Range};

use hoplake_storage::PIECE_UNITS;

use super::{Batch, Run, by::is_element};
use crate::{
    deep::block_in_place_if,
    error::Done,
    growth::{Growth, units_of},
    plan::{By, Sorting},
    tokens::Order,
    value::{Value, order, value_bytes},
};

/// Units of work from which on a sort may take milliseconds, and must not hold up other queries.
pub(crate) const LONG: u64 = 1 << 16;

impl Run {
    /// What rows are sorted by, a column for each `by`, and the rows that have all of it.
    pub(crate) async fn sort_keys(&mut self, all: &Batch, sortings: &[Sorting]) -> Done<(Vec<Vec<Value>>, Vec<u32>)> {
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
}

/// Sorts places by their frame, and within each by columns of keys.
///
/// Column after column, those alone that are the same by all before: a query that sorts by thousands of columns ends at its deadline, which
/// a comparison of all of them cannot look at.
pub(crate) fn sort(
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
                let a = *a as usize;
                let b = *b as usize;
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
