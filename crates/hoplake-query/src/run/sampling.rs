//! Rows at random by weight, without putting any back.
//!
//! Sums of weights are in a binary tree: node `n` holds the sum of nodes `2n` and `2n + 1`. A draw goes down from the root, and its weight is
//! taken out on the way up, where sums are made again from both halves: subtraction would accumulate rounding errors. So `count` draws
//! of `n` rows take `count * log n`; a scan for each would take their product.

use crate::{error::Done, growth::Growth};

/// Larger weights count as this one.
const WEIGHT_MAX: f64 = 1e200;

/// A row to choose from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    pub(crate) place: u32,
    /// How many there are.
    pub(crate) bulk: u64,
    /// The weight of each. One that is not above 0 is never drawn.
    pub(crate) weight: f64,
}

/// The places of `count` draws, in their order, and how many of each; all, if there are no more.
pub(crate) fn sample(
    mut left: Vec<Candidate>,
    count: u64,
    random: &mut fastrand::Rng,
    growth: &Growth,
) -> Done<Vec<(u32, u64)>> {
    let total = left.iter().map(|it| it.bulk).fold(0, u64::saturating_add);
    if total <= count {
        let mut all = growth.column(left.len())?;
        all.extend(left.into_iter().map(|it| (it.place, it.bulk)));
        return Ok(all);
    }
    let width = left.len().next_power_of_two();
    let mut sums: Vec<f64> = growth.column(2 * width)?;
    sums.resize(2 * width, 0.0);
    // NaN counts as 0, and no sum is infinite.
    let weight_of = |it: &Candidate| if it.weight > 0.0 { it.weight.min(WEIGHT_MAX) } else { 0.0 };
    let sum_of = |it: &Candidate| it.bulk as f64 * weight_of(it);
    growth.work(2 * width as u64)?;
    for (sum, it) in sums[width..].iter_mut().zip(&left) {
        *sum = sum_of(it);
    }
    for node in (1..width).rev() {
        sums[node] = sums[2 * node] + sums[2 * node + 1];
    }
    let mut drawn: Vec<u64> = growth.column(left.len())?;
    drawn.resize(left.len(), 0);
    for _ in 0..count {
        growth.work(2 * u64::from(width.ilog2() + 1))?;
        if sums[1] <= 0.0 {
            break;
        }
        let mut at = random.f64() * sums[1];
        let mut node = 1;
        while node < width {
            let first = sums[2 * node];
            let second = sums[2 * node + 1];
            // By rounding, it may be at the end of both; only a half with something in it has what is drawn.
            let is_first = second <= 0.0 || (first > 0.0 && at < first);
            node = 2 * node + usize::from(!is_first);
            at -= if is_first { 0.0 } else { first };
        }
        let row = node - width;
        drawn[row] += 1;
        left[row].bulk -= 1;
        sums[node] = sum_of(&left[row]);
        while node > 1 {
            node /= 2;
            sums[node] = sums[2 * node] + sums[2 * node + 1];
        }
    }
    let mut picked = growth.column(left.len())?;
    picked.extend(left.iter().zip(drawn).filter(|(_, drawn)| *drawn > 0).map(|(it, drawn)| (it.place, drawn)));
    Ok(picked)
}

/// The work of [`sample`].
pub(crate) fn units(candidates: &[Candidate], count: u64) -> u64 {
    let rows = candidates.len() as u64;
    rows + count.min(candidates.iter().map(|it| it.bulk).fold(0, u64::saturating_add))
        * u64::from(1 + rows.max(1).ilog2())
}

#[cfg(test)]
mod tests {
    use hoplake_storage::QueryContext;

    use super::*;

    fn of(candidates: &[(u64, f64)], count: u64, seed: u64) -> Vec<(u32, u64)> {
        let growth = Growth::new(&QueryContext::new()).unwrap();
        let candidates = candidates.iter().zip(0..).map(|((bulk, weight), place)| {
            let bulk = *bulk;
            let weight = *weight;
            Candidate { place, bulk, weight }
        });
        sample(candidates.collect(), count, &mut fastrand::Rng::with_seed(seed), &growth).unwrap()
    }

    #[test]
    fn draws_are_by_weight_and_take_each_once() {
        assert_eq!(of(&[], 3, 0), []);
        assert_eq!(of(&[(2, 1.0), (1, 0.0)], 3, 0), [(0, 2), (1, 1)]);
        let rows = [(3, 1.0), (4, 0.0), (2, f64::NAN), (5, 2.0), (1, -1.0)];
        let mut firsts = [0_u64; 5];
        for seed in 0..2_000 {
            // What has weight runs out before there are 10.
            assert_eq!(of(&rows, 10, seed), [(0, 3), (3, 5)]);
            firsts[of(&rows, 1, seed)[0].0 as usize] += 1;
        }
        // 3 of 13.
        assert!((400..530).contains(&firsts[0]), "{firsts:?}");
        assert_eq!(firsts[0] + firsts[3], 2_000);
        // An infinite weight goes first.
        assert_eq!(of(&[(1, 1.0), (2, f64::INFINITY), (1, 1.0)], 2, 7), [(1, 2)]);
    }

    #[test]
    fn large_samples_take_work_that_is_linear_but_for_a_logarithm() {
        let growth = Growth::new(&QueryContext::new()).unwrap();
        let candidates = (0..100_000).map(|place| Candidate { place, bulk: 2, weight: f64::from(place) }).collect();
        let drawn = sample(candidates, 100_000, &mut fastrand::Rng::with_seed(1), &growth).unwrap();
        assert_eq!(drawn.iter().map(|(_, drawn)| drawn).sum::<u64>(), 100_000);
        assert!(growth.done() < 5_000_000, "{}", growth.done());
    }
}
