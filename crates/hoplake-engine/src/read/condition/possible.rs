//! What a condition may say of rows of which only bounds are known, such as those of a row group.
//!
//! For each group a test has two answers: whether it may be true for a row, and whether it may be false for one. They join as
//! [`Verdicts`] of single rows do, so a group that is in both sets may have rows of both kinds. A group in which a condition can be
//! true for no row need not be read.

use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array,
    cast::AsArray,
    types::{Float64Type, GenericStringType},
};
use arrow_buffer::BooleanBuffer;
use arrow_ord::{cmp, ord::make_comparator};
use arrow_schema::{ArrowError, SortOptions};
use std::sync::Arc;

use super::{Comparison, TypedTest, Verdicts, test::search};
use crate::{EngineError, float::canonical};

/// Bounds of the values of a property in groups of rows.
#[derive(Debug)]
pub(crate) struct Bounds {
    /// The rows of each group.
    pub(crate) rows: Vec<u64>,
    /// How many of them are null, if that is known.
    pub(crate) nulls: Vec<Option<u64>>,
    /// A value that is not greater than any of a group, and one that is not less; null where that is not known.
    pub(crate) values: Option<[ArrayRef; 2]>,
}

impl Bounds {
    /// Of a property that no row has.
    pub(crate) fn absent(rows: Vec<u64>) -> Self {
        Self { nulls: rows.iter().copied().map(Some).collect(), rows, values: None }
    }

    fn each(&self, may: impl Fn(usize) -> bool) -> BooleanBuffer {
        BooleanBuffer::collect_bool(self.rows.len(), may)
    }
}

impl TypedTest {
    /// What it may say of each group.
    ///
    /// # Errors
    /// [`EngineError::Arrow`] if the types differ.
    pub(crate) fn possible(&self, bounds: &Bounds) -> Result<Verdicts, EngineError> {
        let is_null = |group: usize| bounds.nulls[group] != Some(0);
        let is_value = |group: usize| bounds.nulls[group] != Some(bounds.rows[group]);
        if matches!(self, Self::IsNull) {
            return Ok(Verdicts { yes: bounds.each(is_null), no: bounds.each(is_value) });
        }
        let [yes, no] = match &bounds.values {
            Some([least, greatest]) => self.within(bounds, &canonical(least), &without_end(greatest))?,
            None => [bounds.each(|_| true), bounds.each(|_| true)],
        };
        let valued = bounds.each(is_value);
        Ok(Verdicts { yes: &yes & &valued, no: &no & &valued })
    }

    /// Whether it may be true, and whether it may be false, for values between these.
    fn within(
        &self,
        bounds: &Bounds,
        least: &ArrayRef,
        greatest: &ArrayRef,
    ) -> Result<[BooleanBuffer; 2], EngineError> {
        let any = || bounds.each(|_| true);
        Ok(match self {
            Self::Compare(comparison, value) => match comparison {
                Comparison::Equal => [&may(cmp::lt_eq(least, value))? & &may(cmp::gt_eq(greatest, value))?, any()],
                Comparison::NotEqual => [any(), &may(cmp::lt_eq(least, value))? & &may(cmp::gt_eq(greatest, value))?],
                Comparison::Less => [may(cmp::lt(least, value))?, may(cmp::gt_eq(greatest, value))?],
                Comparison::LessOrEqual => [may(cmp::lt_eq(least, value))?, may(cmp::gt(greatest, value))?],
                Comparison::Greater => [may(cmp::gt(greatest, value))?, may(cmp::lt_eq(least, value))?],
                Comparison::GreaterOrEqual => [may(cmp::gt_eq(greatest, value))?, may(cmp::lt(least, value))?],
            },
            Self::Between(from, to) => {
                let inside = &may(cmp::lt_eq(least, to))? & &may(cmp::gt_eq(greatest, from))?;
                [inside, &may(cmp::lt(least, from))? | &may(cmp::gt(greatest, to))?]
            }
            Self::OneOf(values) => {
                let [from, to] = [least, greatest].map(|bound| make_comparator(values, bound, SortOptions::default()));
                let from = from?;
                let to = to?;
                let known = |group: usize| least.is_valid(group) && greatest.is_valid(group);
                let has = |group: usize| {
                    let first = search(values.len(), |at| from(at, group).reverse()).unwrap_or_else(|first| first);
                    first < values.len() && to(first, group).is_le()
                };
                [bounds.each(|group| !known(group) || has(group)), any()]
            }
            Self::StartsWith(start) => {
                let [least, greatest] = [least, greatest].map(|bound| bound.as_bytes::<GenericStringType<i32>>());
                let known = |group: usize| least.is_valid(group) && greatest.is_valid(group);
                let has = |group: usize| {
                    let before = least.value(group) <= start.as_str() || least.value(group).starts_with(start);
                    before && greatest.value(group) >= start.as_str()
                };
                [bounds.each(|group| !known(group) || has(group)), any()]
            }
            Self::EndsWith(_) | Self::ContainsText(_) | Self::ContainsItem(_) | Self::IsNull => [any(), any()],
        })
    }
}

/// What is not known may be.
fn may(mask: Result<BooleanArray, ArrowError>) -> Result<BooleanBuffer, EngineError> {
    let mask = mask?;
    Ok(match mask.nulls() {
        Some(known) => mask.values() | &!known.inner(),
        None => mask.values().clone(),
    })
}

/// Parquet's bounds leave NaN out, which is the greatest.
fn without_end(greatest: &ArrayRef) -> ArrayRef {
    match greatest.as_primitive_opt::<Float64Type>() {
        Some(floats) => Arc::new(Float64Array::from(vec![f64::NAN; floats.len()])),
        None => greatest.clone(),
    }
}
