//! Combines the signals of a superstep.

use std::{cmp::Ordering, sync::Arc};

use hoplake_engine::{EngineError, Held};
use hoplake_storage::{Branch, QueryContext};
use rayon::prelude::*;

use super::{Along, COMBINE_BYTES, Column, Combination, Combine, Number, SignalColumn, each, held};
use crate::{Lists, Workers, kernels::pulled};

/// Combines, for each vertex, the signals of the vertices that have an edge to it, once for each edge. With weights, signals are floats. Integers
/// are added up exactly, and floats in the order of the list, as the kernel of PageRank adds them.
///
/// Takes [`COMBINE_BYTES`] a vertex, and on each thread 8 bytes an edge of the vertex with the most if [`Combine::Mode`] sorts them.
///
/// # Errors
/// [`EngineError::Invalid`] if there is not one signal for each vertex, if weights or the type of the default do not fit the combinator, or if a
/// sum is beyond int64; [`EngineError::Limit`] at a limit of time or memory; the store's.
pub async fn combine(
    lists: &Lists,
    signals: SignalColumn,
    combination: &Combination,
    workers: &Workers,
    branch: &mut Branch,
) -> Result<Held<Column>, EngineError> {
    let vertices = lists.vertices() as usize;
    let Combination { combine, along, default } = *combination;
    if signals.values.len() != vertices || signals.is_sent.as_ref().is_some_and(|sent| sent.len() != vertices) {
        let message = format!("{} signals for {vertices} vertices; there has to be one for each", signals.values.len());
        return Err(EngineError::Invalid(message));
    }
    if along.is_some() && !combine.has_weights() {
        let message = "weights of edges have no effect on the count and the mode of signals; select edges without them";
        return Err(EngineError::Invalid(message.into()));
    }
    let context = branch.context().clone();
    let memory = context.hold(vertices as u64 * COMBINE_BYTES)?;
    let SignalColumn { values, is_sent } = signals;
    let column = match (values, along) {
        (values, Some(along)) => {
            let prepared = Prepared::weighted(values, is_sent, workers, &context).await?;
            weighted(lists, prepared, along, combine, float(default)?, workers, branch).await?
        }
        (Column::Integers(values), None) => {
            let prepared = Prepared::new(values, is_sent, combine, workers, &context).await?;
            unweighted(lists, prepared, combine, default, workers, branch).await?
        }
        (Column::Floats(values), None) => {
            let prepared = Prepared::new(values, is_sent, combine, workers, &context).await?;
            unweighted(lists, prepared, combine, default, workers, branch).await?
        }
    };
    drop(memory);
    held(column, &context)
}

fn float(default: Option<Number>) -> Result<Option<f64>, EngineError> {
    default.map(f64::of).transpose()
}

/// A number that signals may be.
pub(crate) trait Signal: Copy + Default + Send + Sync + 'static {
    const LEAST: Self;
    const GREATEST: Self;

    /// As a default, if it is of this type.
    fn of(number: Number) -> Result<Self, EngineError>;

    fn column(values: Vec<Self>) -> Column;

    /// The numbers of a column, if they are of this type.
    fn slice(column: &Column) -> Option<&[Self]>;

    /// Whether it stands for no signal.
    fn is_none(self) -> bool;

    /// Whether it is before another one.
    fn is_below(self, other: Self) -> bool;

    fn order(&self, other: &Self) -> Ordering;

    /// The sum of the signals of a list.
    fn sum(list: &[u32], values: &[Self]) -> Result<Self, EngineError>;

    /// The sum of the signals of a list, divided.
    fn mean(list: &[u32], values: &[Self], count: usize) -> f64;
}

impl Signal for i64 {
    const LEAST: Self = Self::MIN;
    const GREATEST: Self = Self::MAX;

    fn of(number: Number) -> Result<Self, EngineError> {
        match number {
            Number::Integer(value) => Ok(value),
            Number::Float(_) => {
                Err(EngineError::Invalid("the default has to be an integer, as combined signals are".into()))
            }
        }
    }

    fn column(values: Vec<Self>) -> Column {
        Column::Integers(values)
    }

    fn slice(column: &Column) -> Option<&[Self]> {
        match column {
            Column::Integers(values) => Some(values),
            Column::Floats(_) => None,
        }
    }

    fn is_none(self) -> bool {
        false
    }

    fn is_below(self, other: Self) -> bool {
        self < other
    }

    fn order(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }

    fn sum(list: &[u32], values: &[Self]) -> Result<Self, EngineError> {
        // What overflows on the way may fit at the end.
        let sum = wide_sum(list, values);
        let message = || format!("signals of a vertex add up to {sum}, beyond int64; signal floats");
        Self::try_from(sum).map_err(|_| EngineError::Invalid(message()))
    }

    fn mean(list: &[u32], values: &[Self], count: usize) -> f64 {
        wide_sum(list, values) as f64 / count as f64
    }
}

fn wide_sum(list: &[u32], values: &[i64]) -> i128 {
    list.iter().map(|from| i128::from(values[*from as usize])).sum()
}

impl Signal for f64 {
    const LEAST: Self = Self::NEG_INFINITY;
    const GREATEST: Self = Self::INFINITY;

    fn of(number: Number) -> Result<Self, EngineError> {
        match number {
            Number::Integer(value) => Ok(value as Self),
            Number::Float(value) => Ok(value),
        }
    }

    fn column(values: Vec<Self>) -> Column {
        Column::Floats(values)
    }

    fn slice(column: &Column) -> Option<&[Self]> {
        match column {
            Column::Floats(values) => Some(values),
            Column::Integers(_) => None,
        }
    }

    fn is_none(self) -> bool {
        self.is_nan()
    }

    fn is_below(self, other: Self) -> bool {
        self < other
    }

    fn order(&self, other: &Self) -> Ordering {
        // Zeros are equal, whatever their sign.
        (self + 0.0).total_cmp(&(other + 0.0))
    }

    fn sum(list: &[u32], values: &[Self]) -> Result<Self, EngineError> {
        Ok(pulled(list, values))
    }

    fn mean(list: &[u32], values: &[Self], count: usize) -> f64 {
        pulled(list, values) / count as Self
    }
}

/// Signals as a pass reads them.
struct Prepared<T> {
    /// A signal that is not sent has a value that changes no sum, minimum or maximum.
    values: Vec<T>,
    /// `None` if all are sent.
    is_sent: Option<Vec<bool>>,
}

impl<T: Signal> Prepared<T> {
    async fn new(
        mut values: Vec<T>,
        mut is_sent: Option<Vec<bool>>,
        combine: Combine,
        workers: &Workers,
        context: &QueryContext,
    ) -> Result<Arc<Self>, EngineError> {
        let neutral = match combine {
            Combine::Sum | Combine::Mean | Combine::Count => Some(T::default()),
            Combine::Min => Some(T::GREATEST),
            Combine::Max => Some(T::LEAST),
            // One that receives nothing has its own.
            Combine::Mode => None,
        };
        let prepare = move |_: &QueryContext| {
            if values.par_iter().any(|value| value.is_none()) {
                let is_there = values.par_iter().map(|value| !value.is_none());
                is_sent = Some(match is_sent {
                    None => is_there.collect(),
                    Some(sent) => sent.into_par_iter().zip(is_there).map(|(sent, there)| sent && there).collect(),
                });
            }
            if let (Some(is_sent), Some(neutral)) = (&is_sent, neutral) {
                let unsent = values.par_iter_mut().zip(is_sent).filter(|(_, is_sent)| !**is_sent);
                unsent.for_each(|(value, _)| *value = neutral);
            }
            Arc::new(Self { values, is_sent })
        };
        workers.run(context, prepare).await
    }

    /// How many signals of a list are sent.
    fn count(&self, list: &[u32]) -> usize {
        let Some(is_sent) = &self.is_sent else { return list.len() };
        list.iter().filter(|from| is_sent[**from as usize]).count()
    }

    /// Whether no signal of a list is sent.
    fn is_silent(&self, list: &[u32]) -> bool {
        let Some(is_sent) = &self.is_sent else { return list.is_empty() };
        !list.iter().any(|from| is_sent[*from as usize])
    }

    fn mode(&self, list: &[u32], found: &mut Vec<T>) -> Option<T> {
        found.clear();
        // Exactly what was counted for: room that grows by itself may be twice that.
        found.reserve_exact(list.len());
        match &self.is_sent {
            None => found.extend(list.iter().map(|from| self.values[*from as usize])),
            Some(is_sent) => {
                let sent = list.iter().filter(|from| is_sent[**from as usize]);
                found.extend(sent.map(|from| self.values[*from as usize]));
            }
        }
        found.sort_unstable_by(T::order);
        most_frequent(found)
    }
}

/// The first of the longest run of equal values.
pub(crate) fn most_frequent<T: Signal>(sorted: &[T]) -> Option<T> {
    let runs = sorted.chunk_by(|a, b| a.order(b) == Ordering::Equal);
    // The first of the longest, where the standard library's maximum would be the last.
    runs.reduce(|best, run| if run.len() > best.len() { run } else { best }).map(|run| run[0])
}

impl Prepared<f64> {
    /// With weights, a signal that is not sent is NaN, as is its product with any weight.
    async fn weighted(
        values: Column,
        is_sent: Option<Vec<bool>>,
        workers: &Workers,
        context: &QueryContext,
    ) -> Result<Arc<Self>, EngineError> {
        let prepare = move |_: &QueryContext| {
            let mut values = match values {
                Column::Integers(values) => values.into_par_iter().map(|value| value as f64).collect(),
                Column::Floats(values) => values,
            };
            if let Some(is_sent) = &is_sent {
                let unsent = values.par_iter_mut().zip(is_sent).filter(|(_, is_sent)| !**is_sent);
                unsent.for_each(|(value, _)| *value = f64::NAN);
            }
            Arc::new(Self { values, is_sent: None })
        };
        workers.run(context, prepare).await
    }
}

async fn unweighted<T: Signal>(
    lists: &Lists,
    prepared: Arc<Prepared<T>>,
    combine: Combine,
    default: Option<Number>,
    workers: &Workers,
    branch: &mut Branch,
) -> Result<Column, EngineError> {
    let no_room = |_| 0;
    match combine {
        Combine::Count => {
            let default = default.map(i64::of).transpose()?;
            let of = move |_, list: &[u32], _: &[f64], (): &mut ()| {
                let count = prepared.count(list) as i64;
                Ok(if count == 0 { default.unwrap_or(0) } else { count })
            };
            each(lists, workers, branch, of, no_room).await.map(Column::Integers)
        }
        Combine::Mean => {
            let default = float(default)?.unwrap_or(f64::NAN);
            let of = move |_, list: &[u32], _: &[f64], (): &mut ()| match prepared.count(list) {
                0 => Ok(default),
                count => Ok(T::mean(list, &prepared.values, count)),
            };
            each(lists, workers, branch, of, no_room).await.map(Column::Floats)
        }
        Combine::Mode => {
            let default = default.map(T::of).transpose()?;
            let of = move |vertex, list: &[u32], _: &[f64], found: &mut Vec<T>| {
                let own = || default.unwrap_or(prepared.values[vertex as usize]);
                Ok(prepared.mode(list, found).unwrap_or_else(own))
            };
            let room = |widest: usize| (widest * size_of::<T>()) as u64;
            each(lists, workers, branch, of, room).await.map(T::column)
        }
        Combine::Sum => {
            let of = move |list: &[u32], values: &[T]| T::sum(list, values);
            silent_or(lists, prepared, default, of, workers, branch).await
        }
        Combine::Min => {
            let least = |least: T, value: T| if value.is_below(least) { value } else { least };
            let of = move |list: &[u32], values: &[T]| Ok(fold(list, values, T::GREATEST, least));
            silent_or(lists, prepared, default, of, workers, branch).await
        }
        Combine::Max => {
            let greatest = |greatest: T, value: T| if greatest.is_below(value) { value } else { greatest };
            let of = move |list: &[u32], values: &[T]| Ok(fold(list, values, T::LEAST, greatest));
            silent_or(lists, prepared, default, of, workers, branch).await
        }
    }
}

fn fold<T: Signal>(list: &[u32], values: &[T], first: T, with: impl Fn(T, T) -> T) -> T {
    list.iter().fold(first, |found, from| with(found, values[*from as usize]))
}

/// What `of` makes of each list, or the default where no signal of a list is sent.
async fn silent_or<T: Signal>(
    lists: &Lists,
    prepared: Arc<Prepared<T>>,
    default: Option<Number>,
    of: impl Fn(&[u32], &[T]) -> Result<T, EngineError> + Send + Sync + 'static,
    workers: &Workers,
    branch: &mut Branch,
) -> Result<Column, EngineError> {
    let default = default.map(T::of).transpose()?;
    let of = move |_, list: &[u32], _: &[f64], (): &mut ()| match default {
        Some(default) if prepared.is_silent(list) => Ok(default),
        _ => of(list, &prepared.values),
    };
    each(lists, workers, branch, of, |_| 0).await.map(T::column)
}

async fn weighted(
    lists: &Lists,
    prepared: Arc<Prepared<f64>>,
    along: Along,
    combine: Combine,
    default: Option<f64>,
    workers: &Workers,
    branch: &mut Branch,
) -> Result<Column, EngineError> {
    let with: fn(f64, f64) -> f64 = match along {
        Along::Times => |signal, weight| signal * weight,
        Along::Plus => |signal, weight| signal + weight,
    };
    let of = move |_, list: &[u32], weights: &[f64], (): &mut ()| {
        let signals = list.iter().zip(weights).map(|(from, weight)| with(prepared.values[*from as usize], *weight));
        let mut signals = signals.filter(|signal| !signal.is_nan());
        let Some(first) = signals.next() else { return Ok(default.unwrap_or_else(|| nothing(combine))) };
        Ok(match combine {
            Combine::Min => signals.fold(first, f64::min),
            Combine::Max => signals.fold(first, f64::max),
            Combine::Sum | Combine::Mean | Combine::Count | Combine::Mode => {
                let (sum, count) = signals.fold((first, 1u64), |(sum, count), signal| (sum + signal, count + 1));
                if combine == Combine::Mean { sum / count as f64 } else { sum }
            }
        })
    };
    each(lists, workers, branch, of, |_| 0).await.map(Column::Floats)
}

/// The value of a vertex that receives no signal.
pub(crate) fn nothing(combine: Combine) -> f64 {
    match combine {
        Combine::Sum | Combine::Count => 0.0,
        Combine::Min => f64::INFINITY,
        Combine::Max => f64::NEG_INFINITY,
        Combine::Mean | Combine::Mode => f64::NAN,
    }
}
