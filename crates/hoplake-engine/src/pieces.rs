//! Long work over slices in pieces: sorting and merging that end with their query.
//!
//! The sorts of the standard library cannot be left halfway: ten million edges take a second. These sort short runs
//! with them and merge the runs bottom up, resting on the way (see [`Pace`](hoplake_storage::Pace)). Input that is
//! sorted already, as the blocks of a section are, costs one look.

use hoplake_storage::{Pace, QueryContext, StorageError};

use crate::memory::bytes_of;

/// Items that are sorted at once: some 13 comparisons each, a quarter of a millisecond.
const RUN: usize = 1 << 13;
/// Items that are looked at, copied or merged between two rests.
pub(crate) const STEP: usize = 1 << 14;

/// Sorts by a key; items with equal keys keep no order.
///
/// # Errors
/// [`StorageError::Limit`] if the query's time is over, or its memory does not hold the items twice.
pub(crate) async fn sort_by_key<T: Copy, K: Ord>(
    items: &mut Vec<T>,
    key: impl Fn(&T) -> K,
    context: &QueryContext,
) -> Result<(), StorageError> {
    if items.len() <= RUN {
        items.sort_unstable_by_key(key);
        return Ok(());
    }
    let mut pace = context.pace();
    if is_sorted(items, &key, &mut pace).await? {
        return Ok(());
    }
    for run in items.chunks_mut(RUN) {
        run.sort_unstable_by_key(&key);
        pace.rest(run.len() as u64 * 4).await?;
    }
    let _merged = context.hold(bytes_of::<T>(items.len()))?;
    let mut to = Vec::with_capacity(items.len());
    let mut width = RUN;
    while width < items.len() {
        for pair in items.chunks(2 * width) {
            let (left, right) = pair.split_at(width.min(pair.len()));
            merge(left, right, &mut to, &key, &mut pace).await?;
        }
        std::mem::swap(items, &mut to);
        to.clear();
        width *= 2;
    }
    Ok(())
}

async fn is_sorted<T, K: Ord>(items: &[T], key: &impl Fn(&T) -> K, pace: &mut Pace) -> Result<bool, StorageError> {
    for start in (0..items.len()).step_by(STEP) {
        // One item more, so that the pair across the border of two steps is compared.
        let end = (start + STEP + 1).min(items.len());
        if !items[start..end].is_sorted_by_key(key) {
            return Ok(false);
        }
        pace.rest(STEP as u64).await?;
    }
    Ok(true)
}

/// Appends two sorted runs to `to` as one.
pub(crate) async fn merge<T: Copy, K: Ord>(
    left: &[T],
    right: &[T],
    to: &mut Vec<T>,
    key: &impl Fn(&T) -> K,
    pace: &mut Pace,
) -> Result<(), StorageError> {
    let mut left = left;
    let mut right = right;
    // In order already, as neighbouring runs of a nearly sorted input are: two copies, no further comparison.
    if left.last().zip(right.first()).is_none_or(|(last, first)| key(last) <= key(first)) {
        copy(left, to, pace).await?;
        return copy(right, to, pace).await;
    }
    while !left.is_empty() && !right.is_empty() {
        let end = to.len() + STEP.min(left.len().min(right.len()));
        while to.len() < end {
            // As long as neither can run out within the step.
            let side = if key(&right[0]) < key(&left[0]) { &mut right } else { &mut left };
            to.push(side[0]);
            *side = &side[1..];
        }
        pace.rest(STEP as u64 * 2).await?;
    }
    copy(left, to, pace).await?;
    copy(right, to, pace).await
}

async fn copy<T: Copy>(items: &[T], to: &mut Vec<T>, pace: &mut Pace) -> Result<(), StorageError> {
    for step in items.chunks(STEP) {
        to.extend_from_slice(step);
        pace.rest(step.len() as u64).await?;
    }
    Ok(())
}

/// From which position on a sorted list is not below `bound`, sought from `from` in growing steps: near ones are found at
/// once, and far ones without looking at all between.
pub(crate) fn position_of(sorted: &[u64], from: usize, bound: u64) -> usize {
    end_of(sorted, from, |it| *it < bound)
}

/// Where the items end that are so, likewise; all that are so come before all that are not.
pub(crate) fn end_of<T>(items: &[T], from: usize, is_so: impl Fn(&T) -> bool) -> usize {
    let mut begin = from;
    let mut step = 1;
    while items.get(begin + step - 1).is_some_and(&is_so) {
        begin += step;
        step *= 2;
    }
    let end = (begin + step).min(items.len());
    begin + items[begin..end].partition_point(is_so)
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

        #[test]
        fn sorted_in_pieces_is_sorted(count in 0usize..60_000, seed in any::<u64>(), values in 1u64..100_000) {
            let mix = |index: u64| index.wrapping_mul(seed | 1).rotate_left(31) % values;
            let mut items: Vec<_> = (0..count as u64).map(|index| (mix(index), index)).collect();
            let mut expected = items.clone();
            expected.sort_unstable();
            block_on(sort_by_key(&mut items, |item| *item, &QueryContext::new())).unwrap();
            prop_assert_eq!(items, expected);
        }

        #[test]
        fn positions_are_those_of_a_search(sorted in prop::collection::btree_set(0u64..500, 0..80), from in 0usize..80, bound in 0u64..510) {
            let sorted: Vec<_> = sorted.into_iter().collect();
            let from = from.min(sorted.partition_point(|it| *it < bound));
            prop_assert_eq!(position_of(&sorted, from, bound), sorted.partition_point(|it| *it < bound));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_sort_ends_at_the_deadline() {
        let context = QueryContext::new();
        let deadline = Some((tokio::time::Instant::now(), 5));
        context.limit(hoplake_storage::ReadLimits { deadline, ..Default::default() });
        let mut items: Vec<_> = (0..100_000u32).rev().collect();
        let ended = sort_by_key(&mut items, |item| *item, &context).await.unwrap_err();
        assert!(matches!(ended, StorageError::Limit { .. }), "{ended}");
    }
}
