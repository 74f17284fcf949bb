//! Folds signals into what each vertex of a part receives.

use std::ops::Range;

use hoplake_engine::{EngineError, Held};
use hoplake_storage::{MemoryHold, QueryContext};
use rayon::prelude::*;

use super::{Part, tile::Tile};
use crate::columns::{
    Along, Column, Combination, Combine,
    combine::{Signal, most_frequent, nothing},
};

/// Rows whose most frequent signals a thread finds at a time.
const ROWS_AT_ONCE: usize = 1 << 12;

/// The signals of some vertices, wherever they are.
#[derive(Debug, Clone, Copy)]
pub struct SignalSlice<'a> {
    /// The signals. NaN is none.
    pub values: ColumnSlice<'a>,
    /// Which are sent: all that are not 0, or all without it.
    pub is_sent: Option<&'a [u8]>,
}

/// Numbers of either type, wherever they are.
#[derive(Debug, Clone, Copy)]
pub enum ColumnSlice<'a> {
    /// int64.
    Integers(&'a [i64]),
    /// float64.
    Floats(&'a [f64]),
}

impl ColumnSlice<'_> {
    /// How many numbers it has.
    pub fn len(&self) -> usize {
        match self {
            Self::Integers(values) => values.len(),
            Self::Floats(values) => values.len(),
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn to_column(self) -> Column {
        match self {
            Self::Integers(values) => Column::Integers(values.to_vec()),
            Self::Floats(values) => Column::Floats(values.to_vec()),
        }
    }
}

/// The signals of some rows, ascending; as floats if weights are to change them. A float that is not sent is NaN then, and integers have a column of bytes
/// that says which are sent. Parallel, on the current threads.
///
/// # Errors
/// [`EngineError::Invalid`] if there is no signal for such a row.
pub fn gather(
    signals: &SignalSlice<'_>,
    rows: &[u32],
    as_floats: bool,
) -> Result<(Column, Option<Vec<u8>>), EngineError> {
    let SignalSlice { values, is_sent } = *signals;
    let count = is_sent.map_or(values.len(), <[u8]>::len);
    if count != values.len() || rows.iter().any(|row| *row as usize >= count) {
        return Err(EngineError::Invalid(format!("a part needs other signals than the {count} that there are")));
    }
    let is_sent_at = |row: &u32| is_sent.is_none_or(|sent| sent[*row as usize] != 0);
    let float = |row: &u32, value: f64| if is_sent_at(row) { value } else { f64::NAN };
    let rows = rows.par_iter();
    Ok(match values {
        ColumnSlice::Floats(values) => {
            (Column::Floats(rows.map(|row| float(row, values[*row as usize])).collect()), None)
        }
        ColumnSlice::Integers(values) if as_floats => {
            (Column::Floats(rows.map(|row| float(row, values[*row as usize] as f64)).collect()), None)
        }
        ColumnSlice::Integers(values) => {
            let sent = is_sent.map(|_| rows.clone().map(|row| is_sent_at(row).into()).collect());
            (Column::Integers(rows.map(|row| values[*row as usize]).collect()), sent)
        }
    })
}

/// What the vertices of a part have received so far.
#[derive(Debug)]
pub struct Fold {
    how: Combination,
    sums: Sums,
    /// How many signals each has received, if that is needed.
    counts: Option<Vec<u64>>,
    /// Parts whose signals are folded, and how many of the first are not needed.
    folded: usize,
    unneeded: usize,
    _memory: MemoryHold,
}

/// The signals of a part; `None` if none of them are needed.
type Kept = Option<(Column, Option<Vec<u8>>)>;

#[derive(Debug)]
enum Sums {
    /// No part is folded yet, and the type of signals is not known.
    Begun,
    /// Sums of integers, which may be beyond int64 on the way.
    Wide(Vec<i128>),
    Integers(Vec<i64>),
    Floats(Vec<f64>),
    /// Signals are counted, and nothing else.
    Counted,
    /// All signals are kept: the most frequent is known at the end.
    Kept(Vec<Kept>),
}

impl Fold {
    /// Begins to fold the signals that vertices of a part receive. 24 bytes a vertex.
    ///
    /// # Errors
    /// [`EngineError::Limit`] if the memory of the query has no room.
    pub fn new(part: &Part, how: &Combination, context: &QueryContext) -> Result<Self, EngineError> {
        let needs_counts = matches!(how.combine, Combine::Mean | Combine::Count) || how.default.is_some();
        let needs_counts = needs_counts && how.combine != Combine::Mode;
        let kept = if how.combine == Combine::Mode { part.tiles.iter().map(|tile| tile.needed.len()).sum() } else { 0 };
        // The widest sums, counts, and the result; or all signals and the result.
        let bytes = part.len() as u64 * if needs_counts { 32 } else { 24 } + kept as u64 * 9;
        let memory = context.hold(bytes)?;
        let counts = needs_counts.then(|| vec![0; part.len()]);
        Ok(Self { how: *how, sums: Sums::Begun, counts, folded: 0, unneeded: 0, _memory: memory })
    }

    /// Folds the signals of the next part: those that this one [needs](Part::needed), in that order. Parallel, on the current threads.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] if they are not as many, or not of the type of those before; [`EngineError::Limit`] at a limit of time.
    pub fn add(&mut self, part: &Part, signals: &SignalSlice<'_>, context: &QueryContext) -> Result<(), EngineError> {
        let none = || EngineError::Invalid("all parts are folded".into());
        let tile = part.tiles.get(self.folded).ok_or_else(none)?;
        let (count, sent) = (signals.values.len(), signals.is_sent.map_or(tile.needed.len(), <[u8]>::len));
        if (count, sent) != (tile.needed.len(), tile.needed.len()) {
            let message = format!("part {} sent {count} signals for {} sources", self.folded, tile.needed.len());
            return Err(EngineError::Invalid(message));
        }
        let folded = self.folded;
        if count == 0 {
            // What it would signal may have any type.
            self.folded += 1;
            self.unneeded += usize::from(matches!(self.sums, Sums::Begun));
            if let Sums::Kept(kept) = &mut self.sums {
                kept.push(None);
            }
            return Ok(());
        }
        if matches!(self.sums, Sums::Begun) {
            self.sums = self.begun(part.len(), signals.values);
        }
        let mixed = || {
            let message = format!(
                "signals of part {folded} and of those before it are integers here and floats there; have the program make floats of all"
            );
            EngineError::Invalid(message)
        };
        let pass = Pass { tile, is_sent: signals.is_sent, context };
        let (along, counts) = (self.how.along, self.counts.as_deref_mut());
        match (&mut self.sums, signals.values) {
            (Sums::Kept(kept), values) => {
                let is_float = matches!(values, ColumnSlice::Floats(_));
                if kept.iter().flatten().next().is_some_and(|(first, _)| matches!(first, Column::Floats(_)) != is_float)
                {
                    return Err(mixed());
                }
                kept.push(Some((values.to_column(), signals.is_sent.map(<[u8]>::to_vec))));
            }
            (Sums::Counted, ColumnSlice::Integers(values)) => pass.count(values, counts)?,
            (Sums::Counted, ColumnSlice::Floats(values)) => pass.count(values, counts)?,
            (Sums::Wide(sums), ColumnSlice::Integers(values)) => {
                pass.fold(values, sums, counts, |sum, value| *sum += i128::from(value))?;
            }
            (Sums::Integers(sums), ColumnSlice::Integers(values)) => match self.how.combine {
                Combine::Max => pass.fold(values, sums, counts, |most, value| *most = value.max(*most))?,
                _ => pass.fold(values, sums, counts, |least, value| *least = value.min(*least))?,
            },
            (Sums::Floats(sums), ColumnSlice::Floats(values)) => {
                let combine = self.how.combine;
                match (along, combine) {
                    (None, Combine::Min) => {
                        pass.fold(values, sums, counts, |least, value| *least = value.min(*least))?
                    }
                    (None, Combine::Max) => pass.fold(values, sums, counts, |most, value| *most = value.max(*most))?,
                    (None, _) => pass.fold(values, sums, counts, |sum, value| *sum += value)?,
                    (Some(Along::Times), _) => {
                        pass.weighted(values, sums, counts, combine, |value, weight| value * weight)?
                    }
                    (Some(Along::Plus), _) => {
                        pass.weighted(values, sums, counts, combine, |value, weight| value + weight)?
                    }
                }
            }
            _ => return Err(mixed()),
        }
        self.folded += 1;
        Ok(())
    }

    fn begun(&self, rows: usize, first: ColumnSlice<'_>) -> Sums {
        let is_float = matches!(first, ColumnSlice::Floats(_)) || self.how.along.is_some();
        match self.how.combine {
            Combine::Count => Sums::Counted,
            Combine::Mode => Sums::Kept((0..self.unneeded).map(|_| None).collect()),
            Combine::Sum | Combine::Mean if is_float => Sums::Floats(vec![0.0; rows]),
            Combine::Sum | Combine::Mean => Sums::Wide(vec![0; rows]),
            combine @ (Combine::Min | Combine::Max) if is_float => Sums::Floats(vec![nothing(combine); rows]),
            Combine::Min => Sums::Integers(vec![i64::MAX; rows]),
            Combine::Max => Sums::Integers(vec![i64::MIN; rows]),
        }
    }

    /// What each vertex has received. `own` are the signals of the part itself: the most frequent signal of a vertex that receives none is its own.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] unless all parts are folded, if a sum is beyond int64, or if the default is not of the type of the result.
    pub fn finish(
        mut self,
        part: &Part,
        own: ColumnSlice<'_>,
        context: &QueryContext,
    ) -> Result<Held<Column>, EngineError> {
        if matches!(self.sums, Sums::Begun) {
            self.sums = self.begun(part.len(), own);
        }
        let Self { how, sums, counts, folded, unneeded: _, _memory: memory } = self;
        if folded != part.tiles.len() {
            let message = format!("signals of {folded} of {} parts are folded", part.tiles.len());
            return Err(EngineError::Invalid(message));
        }
        let column = match (sums, counts, how.combine) {
            (Sums::Counted, Some(counts), _) => {
                let default = how.default.map(i64::of).transpose()?.unwrap_or(0);
                let count = |count: u64| if count == 0 { default } else { count as i64 };
                Column::Integers(counts.into_iter().map(count).collect())
            }
            (Sums::Wide(sums), Some(counts), Combine::Mean) => {
                let sums = sums.into_iter().map(|sum| sum as f64);
                means(sums, counts, how)?
            }
            (Sums::Floats(sums), Some(counts), Combine::Mean) => means(sums.into_iter(), counts, how)?,
            (Sums::Wide(sums), counts, _) => {
                let narrow = |sum: i128| {
                    let message = || format!("signals of a vertex add up to {sum}, beyond int64; signal floats");
                    i64::try_from(sum).map_err(|_| EngineError::Invalid(message()))
                };
                let sums = sums.into_iter().map(narrow).collect::<Result<Vec<_>, _>>()?;
                Column::Integers(defaulted(sums, counts, how)?)
            }
            (Sums::Integers(found), counts, _) => Column::Integers(defaulted(found, counts, how)?),
            (Sums::Floats(found), counts, _) => Column::Floats(defaulted(found, counts, how)?),
            (Sums::Kept(kept), ..) => match own {
                ColumnSlice::Integers(own) => Column::Integers(modes(part, &kept, own, how, context)?),
                ColumnSlice::Floats(own) => Column::Floats(modes(part, &kept, own, how, context)?),
            },
            (Sums::Begun, ..) | (Sums::Counted, None, _) => {
                return Err(EngineError::Internal("a fold without parts".into()));
            }
        };
        drop(memory);
        Ok(Held::counted(column, part.len() as u64 * 8, context)?)
    }
}

fn means(sums: impl Iterator<Item = f64>, counts: Vec<u64>, how: Combination) -> Result<Column, EngineError> {
    let default = how.default.map(f64::of).transpose()?.unwrap_or(f64::NAN);
    let mean = |(sum, count)| if count == 0 { default } else { sum / count as f64 };
    Ok(Column::Floats(sums.zip(counts).map(mean).collect()))
}

fn defaulted<T: Signal>(mut found: Vec<T>, counts: Option<Vec<u64>>, how: Combination) -> Result<Vec<T>, EngineError> {
    if let (Some(default), Some(counts)) = (how.default.map(T::of).transpose()?, counts) {
        found.iter_mut().zip(counts).filter(|(_, count)| *count == 0).for_each(|(value, _)| *value = default);
    }
    Ok(found)
}

/// Signals that were kept, and which are sent; none if they are not of this type.
fn signals<T: Signal>(kept: &Kept) -> Option<(&[T], Option<&[u8]>)> {
    match kept {
        None => Some((&[], None)),
        Some((values, is_sent)) => Some((T::slice(values)?, is_sent.as_deref())),
    }
}

/// The most frequent signal of each row.
fn modes<T: Signal>(
    part: &Part,
    kept: &[Kept],
    own: &[T],
    how: Combination,
    context: &QueryContext,
) -> Result<Vec<T>, EngineError> {
    let wrong = || EngineError::Invalid("signals of a part are not of the type of its own".into());
    let default = how.default.map(T::of).transpose()?;
    let columns = kept.iter().map(signals::<T>);
    let columns = columns.collect::<Option<Vec<_>>>().ok_or_else(wrong)?;
    if own.len() != part.len() {
        return Err(EngineError::Invalid(format!("{} signals for {} vertices of a part", own.len(), part.len())));
    }
    let piece = |first: usize| {
        context.check_time()?;
        let rows = first as u32..own.len().min(first + ROWS_AT_ONCE) as u32;
        let edges: usize = part.tiles.iter().flat_map(|tile| tile.lists_of(&rows)).map(|list| list.sources.len()).sum();
        let _memory = context.hold((edges * size_of::<(u32, T)>() * 2) as u64)?;
        let mut signals: Vec<(u32, T)> = Vec::with_capacity(edges);
        for (tile, (values, is_sent)) in part.tiles.iter().zip(&columns) {
            for list in tile.lists_of(&rows) {
                let sent = list.sources.iter().map(|at| *at as usize);
                let sent = sent.filter(|at| is_sent.is_none_or(|sent| sent[*at] != 0) && !values[*at].is_none());
                signals.extend(sent.map(|at| (list.target, values[at])));
            }
        }
        signals.sort_unstable_by(|(a, x), (b, y)| a.cmp(b).then_with(|| x.order(y)));
        let mut found: Vec<T> = own[rows.start as usize..rows.end as usize].to_vec();
        if let Some(default) = default {
            found.fill(default);
        }
        let mut same: Vec<T> = Vec::new();
        for of_row in signals.chunk_by(|(a, _), (b, _)| a == b) {
            same.clear();
            same.extend(of_row.iter().map(|(_, value)| *value));
            if let Some(mode) = most_frequent(&same) {
                found[(of_row[0].0 - rows.start) as usize] = mode;
            }
        }
        Ok(found)
    };
    let pieces = (0..own.len()).into_par_iter().step_by(ROWS_AT_ONCE).map(piece);
    Ok(pieces.collect::<Result<Vec<Vec<T>>, EngineError>>()?.concat())
}

/// One pass over a tile.
struct Pass<'a> {
    tile: &'a Tile,
    is_sent: Option<&'a [u8]>,
    context: &'a QueryContext,
}

impl Pass<'_> {
    fn count<T: Signal>(&self, values: &[T], counts: Option<&mut [u64]>) -> Result<(), EngineError> {
        let mut nothing = vec![(); counts.as_ref().map_or(0, |counts| counts.len())];
        self.fold(values, &mut nothing, counts, |(), _| ())
    }

    fn weighted(
        &self,
        values: &[f64],
        sums: &mut [f64],
        counts: Option<&mut [u64]>,
        combine: Combine,
        along: impl Fn(f64, f64) -> f64 + Sync,
    ) -> Result<(), EngineError> {
        // What NaN and a weight make may be no signal, too: infinity times 0.
        match combine {
            Combine::Min => self.fold_with(values, sums, counts, along, |least, value| *least = value.min(*least)),
            Combine::Max => self.fold_with(values, sums, counts, along, |most, value| *most = value.max(*most)),
            _ => self.fold_with(values, sums, counts, along, |sum, value| *sum += value),
        }
    }

    fn fold_with(
        &self,
        values: &[f64],
        sums: &mut [f64],
        counts: Option<&mut [u64]>,
        along: impl Fn(f64, f64) -> f64 + Sync,
        with: impl Fn(&mut f64, f64) + Sync,
    ) -> Result<(), EngineError> {
        self.each(sums, counts, |list, sum| {
            let signals = list.sources.iter().zip(list.weights);
            let signals = signals.map(|(at, weight)| along(values[*at as usize], *weight)).filter(|it| !it.is_nan());
            signals.fold(0, |count, signal| {
                with(sum, signal);
                count + 1
            })
        })
    }

    /// Folds signals of the tile's sources into those of its targets.
    fn fold<T: Signal, S: Copy + Send>(
        &self,
        values: &[T],
        sums: &mut [S],
        counts: Option<&mut [u64]>,
        with: impl Fn(&mut S, T) + Sync,
    ) -> Result<(), EngineError> {
        self.each(sums, counts, |list, sum| {
            let mut own = *sum;
            let mut count = 0;
            for at in list.sources {
                let at = *at as usize;
                let value = values[at];
                if !value.is_none() && self.is_sent.is_none_or(|sent| sent[at] != 0) {
                    with(&mut own, value);
                    count += 1;
                }
            }
            *sum = own;
            count
        })
    }

    /// Calls with each list of the tile and what its target has so far; adds up how many signals that were.
    fn each<S: Send>(
        &self,
        sums: &mut [S],
        counts: Option<&mut [u64]>,
        of: impl Fn(&super::tile::TileList<'_>, &mut S) -> u64 + Sync,
    ) -> Result<(), EngineError> {
        let tile = self.tile;
        // Targets ascend, so that each piece has rows of its own.
        let rows = |piece: usize| {
            let targets = tile.targets_of(piece);
            let first = targets.first().copied().unwrap_or(0) as usize;
            first..targets.last().map_or(first, |last| *last as usize + 1)
        };
        let mut rest = (sums, counts.unwrap_or_default(), 0);
        let mut pieces = Vec::with_capacity(tile.pieces());
        for piece in 0..tile.pieces() {
            let Range { start, end } = rows(piece);
            let (sums, counts, begin) = rest;
            let (_, sums) = sums.split_at_mut(start - begin);
            let (own, sums) = sums.split_at_mut(end - start);
            let (own_counts, counts) = match counts.is_empty() {
                true => (Default::default(), counts),
                false => counts[start - begin..].split_at_mut(end - start),
            };
            pieces.push((piece, start, own, own_counts));
            rest = (sums, counts, end);
        }
        pieces.into_par_iter().try_for_each(|(piece, start, sums, counts)| {
            self.context.check_time()?;
            for list in tile.lists(piece) {
                let at = list.target as usize - start;
                let count = of(&list, &mut sums[at]);
                if let Some(known) = counts.get_mut(at) {
                    *known += count;
                }
            }
            Ok(())
        })
    }
}
