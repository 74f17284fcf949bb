//! Which edges of a list are chosen: positions in the list, ascending.

use hoplake_engine::EngineError;
use rand::{Rng, RngExt, distr::weighted::WeightedIndex, seq::index};

/// How edges are chosen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Choice {
    /// `None` takes all.
    pub(crate) count: Option<u32>,
    pub(crate) replace: bool,
}

impl Choice {
    /// How many edges of a list it chooses, at most.
    pub(crate) fn most(self, length: usize) -> usize {
        match self.count {
            None => length,
            Some(count) if self.replace && length > 0 => count as usize,
            Some(count) => length.min(count as usize),
        }
    }

    /// Puts the chosen positions of a list of this length into `chosen`, in place of what is there. With weights, chances are proportional
    /// to them, and edges with weight 0 are not chosen.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] if a weight is negative, infinite or NaN.
    #[inline]
    pub(crate) fn choose(
        self,
        length: usize,
        weights: Option<&[f64]>,
        random: impl FnOnce() -> Xoshiro,
        chosen: &mut Vec<usize>,
    ) -> Result<(), EngineError> {
        chosen.clear();
        match (self.count, weights) {
            (_, _) if length == 0 => {}
            (None, None) => chosen.extend(0..length),
            (None, Some(weights)) => chosen.extend((0..length).filter(|at| weights[*at] > 0.0)),
            (Some(count), None) if self.replace => {
                let mut random = random();
                chosen.extend((0..count).map(|_| random.random_range(0..length)));
                chosen.sort_unstable();
            }
            (Some(count), None) if length <= count as usize => chosen.extend(0..length),
            (Some(count), None) if count <= FEW => few(length, count as usize, &mut random(), chosen),
            (Some(count), None) => {
                chosen.extend(index::sample(&mut random(), length, count as usize));
                chosen.sort_unstable();
            }
            (Some(count), Some(weights)) => {
                by_weight(weights, count as usize, self.replace, &mut random(), chosen)?;
                chosen.sort_unstable();
            }
        }
        Ok(())
    }
}

/// The positions of edges that are not later than a seed, and their weights.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    positions: Vec<usize>,
    weights: Vec<f64>,
}

impl Choice {
    /// As [`Self::choose`], among the edges that are not later than `now`; or the latest of them.
    pub(crate) fn choose_seen(
        self,
        (length, time, now): (usize, impl Fn(usize) -> i64, i64),
        is_last: bool,
        weights: Option<&[f64]>,
        random: impl FnOnce() -> Xoshiro,
        (seen, chosen): (&mut Seen, &mut Vec<usize>),
    ) -> Result<(), EngineError> {
        seen.positions.clear();
        seen.positions.extend((0..length).filter(|at| time(*at) <= now));
        match self.count {
            Some(count) if is_last && seen.positions.len() > count as usize => {
                // Of edges of one time those that come last in the list.
                let count = count as usize;
                seen.positions.select_nth_unstable_by_key(count, |at| std::cmp::Reverse((time(*at), *at)));
                chosen.clear();
                chosen.extend(&seen.positions[..count]);
                chosen.sort_unstable();
                return Ok(());
            }
            _ => {}
        }
        let weights = weights.map(|weights| {
            seen.weights.clear();
            seen.weights.extend(seen.positions.iter().map(|at| weights[*at]));
            &*seen.weights
        });
        self.choose(seen.positions.len(), weights, random, chosen)?;
        chosen.iter_mut().for_each(|at| *at = seen.positions[*at]);
        Ok(())
    }
}

pub(crate) use rand::rngs::Xoshiro256PlusPlus as Xoshiro;

/// As many positions as are chosen by looking at all that are chosen already.
const FEW: u32 = 16;

/// Chooses a few positions by Floyd's algorithm (Bentley, Floyd 1987), as `rand` does for long lists. For those that are little longer than
/// what is chosen, which are many with a fan-out near the mean degree, `rand` copies positions instead, and takes three times as long.
#[inline]
fn few(length: usize, count: usize, random: &mut impl Rng, chosen: &mut Vec<usize>) {
    for last in length - count..length {
        let drawn = random.random_range(0..=last);
        let is_chosen = chosen.iter().fold(false, |is, at| is | (*at == drawn));
        chosen.push(if is_chosen { last } else { drawn });
    }
    chosen.sort_unstable();
}

/// With replacement by a search in the sums of weights, and without by the keys of Efraimidis and Spirakis (2006).
fn by_weight(
    weights: &[f64],
    count: usize,
    replace: bool,
    random: &mut impl Rng,
    chosen: &mut Vec<usize>,
) -> Result<(), EngineError> {
    if let Some(wrong) = weights.iter().find(|weight| !weight.is_finite() || **weight < 0.0) {
        return Err(EngineError::Invalid(format!(
            "a weight of a sampled edge is {wrong}; weights are finite, and 0 or more"
        )));
    }
    if !weights.iter().any(|weight| *weight > 0.0) {
        return Ok(());
    }
    let failed = |error| EngineError::Internal(format!("could not choose by weight: {error}"));
    if replace {
        let by_weight = WeightedIndex::new(weights).map_err(failed)?;
        chosen.extend(random.sample_iter(by_weight).take(count));
    } else {
        chosen.extend(index::sample_weighted(random, weights.len(), |at| weights[at], count).map_err(failed)?);
    }
    Ok(())
}
