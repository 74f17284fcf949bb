//! Arithmetic on numbers of any types: what `sum`, `min`, `max`, `mean`, `sack` and the operators of `math` compute with.
//!
//! Both operands are promoted to their common type. An integer that overflows goes to the next wider type, up to long: beyond it
//! is [`ArithmeticError::Overflow`], as in the reference. A float that becomes infinite goes to double, and a double stays infinite.
//!
//! Two differences from the reference's code, neither of which its documentation has. It leaves `NaN` out when it looks for the common
//! type, so that `1 + NaN` is computed as integers, where `NaN` is 0: here it is `NaN`. And a big decimal divided by zero is
//! the integer 0 there: here it is [`ArithmeticError::DivisionByZero`].

use std::{
    cmp::Ordering,
    num::NonZeroU64,
    ops::{Add, Div, Mul, Sub},
};

use bigdecimal::{BigDecimal, RoundingMode, Zero};
use num_bigint::BigInt;

use super::number::{Common, is_nan, promoted, to_big_decimal, to_big_int, to_f32, to_f64, to_i64};
use crate::literal::{DIGITS_MAX, Number, SCALE_MAX};

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArithmeticError {
    /// No integer type up to 64 bits has it.
    #[error("the result is beyond the range of a long")]
    Overflow,
    /// An integer or a big decimal was divided by zero.
    #[error("a number was divided by zero")]
    DivisionByZero,
    /// `NaN` or an infinity met a number without a bound, whose types have neither.
    #[error("{0} is not a big decimal")]
    NotFinite(String),
    /// A big number would fill the memory.
    #[error("the result has more than {DIGITS_MAX} digits, or an exponent beyond {SCALE_MAX}")]
    TooLong,
}

type Computed = Result<Number, ArithmeticError>;

/// What is done with two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// `left + right`.
///
/// # Errors
/// [`ArithmeticError`] beyond a long, or if an infinity meets a big number.
pub fn add(left: &Number, right: &Number) -> Computed {
    compute(Operation::Add, left, right, false)
}

/// `left - right`.
///
/// # Errors
/// As [`add`].
pub fn subtract(left: &Number, right: &Number) -> Computed {
    compute(Operation::Subtract, left, right, false)
}

/// `left * right`.
///
/// # Errors
/// As [`add`].
pub fn multiply(left: &Number, right: &Number) -> Computed {
    compute(Operation::Multiply, left, right, false)
}

/// `left / right`: of integers without a remainder.
///
/// # Errors
/// As [`add`], and for a division of integers by zero.
pub fn divide(left: &Number, right: &Number) -> Computed {
    compute(Operation::Divide, left, right, false)
}

/// The lesser one in their common type; the number if the other one is `NaN`.
pub fn min(left: &Number, right: &Number) -> Number {
    choose(left, right, Ordering::is_le)
}

/// The greater one in their common type; the number if the other one is `NaN`.
pub fn max(left: &Number, right: &Number) -> Number {
    choose(left, right, Ordering::is_ge)
}

fn choose(left: &Number, right: &Number, takes_left: impl FnOnce(Ordering) -> bool) -> Number {
    match promoted(left, right) {
        None if is_nan(left) => right.clone(),
        None => left.clone(),
        Some(order) => {
            let chosen = if takes_left(order) { left } else { right };
            // An infinity cannot become a big decimal: it stays what it is.
            promote(chosen, Common::both(left, right)).unwrap_or_else(|_| chosen.clone())
        }
    }
}

/// The sum of numbers, each of them several times: of the widest of their types, or the next that has it.
#[derive(Debug, Clone, Default)]
pub struct Sum {
    sum: Option<Number>,
}

impl Sum {
    /// Adds a number `bulk` times.
    ///
    /// # Errors
    /// As [`add`](fn@add).
    pub fn add(&mut self, number: &Number, bulk: u64) -> Result<(), ArithmeticError> {
        self.add_product(times(number, bulk)?)
    }

    fn add_product(&mut self, product: Number) -> Result<(), ArithmeticError> {
        self.sum = Some(match self.sum.take() {
            Some(sum) => add(&sum, &product)?,
            None => product,
        });
        Ok(())
    }

    /// The sum; `None` if there was no number.
    pub fn finish(self) -> Option<Number> {
        self.sum
    }
}

/// The mean of numbers, each of them several times: a double, or a big decimal.
#[derive(Debug, Clone, Default)]
pub struct Mean {
    sum: Sum,
    count: u64,
}

impl Mean {
    /// Adds a number `bulk` times.
    ///
    /// # Errors
    /// As [`add`](fn@add).
    pub fn add(&mut self, number: &Number, bulk: u64) -> Result<(), ArithmeticError> {
        // In the type of the count, a long: so a mean of floats is one of doubles.
        self.sum.add_product(multiply(number, &long(bulk)?)?)?;
        self.counted(bulk)
    }

    /// As [`add`](Self::add) for the items of one collection, which `mean(local)` sums in their own types.
    ///
    /// # Errors
    /// As [`add`](fn@add).
    pub fn add_item(&mut self, number: &Number, bulk: u64) -> Result<(), ArithmeticError> {
        self.sum.add(number, bulk)?;
        self.counted(bulk)
    }

    fn counted(&mut self, bulk: u64) -> Result<(), ArithmeticError> {
        self.count = self.count.checked_add(bulk).ok_or(ArithmeticError::Overflow)?;
        Ok(())
    }

    /// The mean; `None` if there was no number.
    ///
    /// # Errors
    /// As [`add`](fn@add).
    pub fn finish(self) -> Result<Option<Number>, ArithmeticError> {
        let Some(sum) = self.sum.finish() else { return Ok(None) };
        compute(Operation::Divide, &sum, &long(self.count)?, true).map(Some)
    }
}

fn long(count: u64) -> Result<Number, ArithmeticError> {
    i64::try_from(count).map(Number::Long).map_err(|_| ArithmeticError::Overflow)
}

/// A number `bulk` times: of its own type, or the next that has it, as if it were added that often. The type of a sum must not depend
/// on which traversers a barrier has merged.
fn times(number: &Number, bulk: u64) -> Computed {
    let product = multiply(number, &long(bulk)?)?;
    let narrow = match (Common::of(number), &product) {
        (Common { bits, fraction: false }, Number::Long(long)) => {
            let widths = [8, 16, 32].into_iter().filter(|width| *width >= bits);
            widths.filter_map(|width| fitting(width, *long).ok()).next()
        }
        (Common { bits: 32, fraction: true }, Number::Double(double)) => {
            let narrow = *double as f32;
            (narrow.is_infinite() <= double.is_infinite()).then_some(Number::Float(narrow))
        }
        _ => None,
    };
    Ok(narrow.unwrap_or(product))
}

fn compute(operation: Operation, left: &Number, right: &Number, fraction: bool) -> Computed {
    let mut common = Common::both(left, right);
    common.fraction |= fraction;
    loop {
        let result = compute_as(common, operation, left, right);
        let wider = match &result {
            Err(ArithmeticError::Overflow) => common.bits < 64,
            Ok(Number::Float(number)) => number.is_infinite(),
            _ => false,
        };
        if !wider {
            return result;
        }
        common.bits *= 2;
    }
}

fn compute_as(common: Common, operation: Operation, left: &Number, right: &Number) -> Computed {
    let computed = match (common.bits, common.fraction) {
        (..=32, true) => Ok(Number::Float(floating(operation, to_f32(left), to_f32(right)))),
        (..=64, true) => Ok(Number::Double(floating(operation, to_f64(left), to_f64(right)))),
        (_, true) => big_decimal(operation, &finite(left)?, &finite(right)?).map(Number::BigDecimal),
        (bits @ ..=64, false) => fitting(bits, integer(operation, to_i64(left), to_i64(right))?),
        (_, false) => big_integer(operation, &to_big_int(left), &to_big_int(right)).map(Number::BigInteger),
    }?;
    // What is made here can be read again.
    if computed.beyond().is_some() { Err(ArithmeticError::TooLong) } else { Ok(computed) }
}

fn promote(number: &Number, common: Common) -> Computed {
    Ok(match (common.bits, common.fraction) {
        (..=32, true) => Number::Float(to_f32(number)),
        (..=64, true) => Number::Double(to_f64(number)),
        (_, true) => Number::BigDecimal(finite(number)?),
        (bits @ ..=64, false) => fitting(bits, to_i64(number))?,
        (_, false) => Number::BigInteger(to_big_int(number)),
    })
}

fn finite(number: &Number) -> Result<BigDecimal, ArithmeticError> {
    match number {
        Number::Float(float) if !float.is_finite() => Err(ArithmeticError::NotFinite(number.to_string())),
        Number::Double(double) if !double.is_finite() => Err(ArithmeticError::NotFinite(number.to_string())),
        _ => Ok(to_big_decimal(number)),
    }
}

fn fitting(bits: u8, number: i64) -> Computed {
    match bits {
        8 => i8::try_from(number).map(Number::Byte).map_err(|_| ArithmeticError::Overflow),
        16 => i16::try_from(number).map(Number::Short).map_err(|_| ArithmeticError::Overflow),
        32 => i32::try_from(number).map(Number::Int).map_err(|_| ArithmeticError::Overflow),
        _ => Ok(Number::Long(number)),
    }
}

fn integer(operation: Operation, left: i64, right: i64) -> Result<i64, ArithmeticError> {
    let result = match operation {
        Operation::Add => left.checked_add(right),
        Operation::Subtract => left.checked_sub(right),
        Operation::Multiply => left.checked_mul(right),
        Operation::Divide if right == 0 => return Err(ArithmeticError::DivisionByZero),
        Operation::Divide => left.checked_div(right),
    };
    result.ok_or(ArithmeticError::Overflow)
}

fn floating<N>(operation: Operation, left: N, right: N) -> N
where
    N: Add<Output = N> + Sub<Output = N> + Mul<Output = N> + Div<Output = N>,
{
    match operation {
        Operation::Add => left + right,
        Operation::Subtract => left - right,
        Operation::Multiply => left * right,
        Operation::Divide => left / right,
    }
}

fn big_integer(operation: Operation, left: &BigInt, right: &BigInt) -> Result<BigInt, ArithmeticError> {
    // Three bits and a third are a digit.
    if operation == Operation::Multiply && left.bits() + right.bits() > DIGITS_MAX as u64 * 10 / 3 {
        return Err(ArithmeticError::TooLong);
    }
    match operation {
        Operation::Add => Ok(left + right),
        Operation::Subtract => Ok(left - right),
        Operation::Multiply => Ok(left * right),
        Operation::Divide if right.is_zero() => Err(ArithmeticError::DivisionByZero),
        Operation::Divide => Ok(left / right),
    }
}

fn big_decimal(operation: Operation, left: &BigDecimal, right: &BigDecimal) -> Result<BigDecimal, ArithmeticError> {
    // Sums of numbers of very different size have all digits between them.
    let span = left.fractional_digit_count().abs_diff(right.fractional_digit_count());
    let most = DIGITS_MAX as u64;
    if left.digits() + right.digits() > most || operation != Operation::Multiply && span > most {
        return Err(ArithmeticError::TooLong);
    }
    match operation {
        Operation::Add => Ok(left + right),
        Operation::Subtract => Ok(left - right),
        Operation::Multiply => product(left, right),
        Operation::Divide if right.is_zero() => Err(ArithmeticError::DivisionByZero),
        Operation::Divide => Ok(quotient(left, right)),
    }
}

/// With the digits after the point of both, as in Java: `1.0 * 1.00` is `1.000`.
fn product(left: &BigDecimal, right: &BigDecimal) -> Result<BigDecimal, ArithmeticError> {
    let (left_digits, left_scale) = left.as_bigint_and_exponent();
    let (right_digits, right_scale) = right.as_bigint_and_exponent();
    let scale = left_scale.checked_add(right_scale).ok_or(ArithmeticError::TooLong)?;
    Ok(BigDecimal::new(left_digits * right_digits, scale))
}

/// Exact if it has a last digit; otherwise rounded to ten digits more than the operands have, and to at least ten after the
/// point. As many zeros are kept at its end as Java keeps.
fn quotient(left: &BigDecimal, right: &BigDecimal) -> BigDecimal {
    let (numerator, left_scale) = left.as_bigint_and_exponent();
    let (denominator, right_scale) = right.as_bigint_and_exponent();
    let preferred = left_scale - right_scale;
    // A fraction ends if its denominator divides a power of ten times its numerator; more than the factors of two and five that
    // the denominator has do not help.
    let shift = twos_and_fives(&denominator);
    let shifted = &numerator * ten_to(shift);
    if (&shifted % &denominator).is_zero() {
        return without_zeros(shifted / denominator, preferred + i64::try_from(shift).unwrap_or(i64::MAX), preferred);
    }
    let precision = left.digits().max(right.digits()) + 10;
    let shift = (precision + right.digits() + 1).saturating_sub(left.digits());
    let digits = &numerator * ten_to(shift) / denominator;
    let quotient = BigDecimal::new(digits, preferred + i64::try_from(shift).unwrap_or(i64::MAX));
    let precision = NonZeroU64::new(precision).unwrap_or(NonZeroU64::MIN);
    let rounded = quotient.with_precision_round(precision, RoundingMode::HalfUp);
    let scale = left_scale.max(right_scale).max(10);
    match rounded.fractional_digit_count() > scale {
        true => rounded.with_scale_round(scale, RoundingMode::HalfUp),
        false => rounded,
    }
}

/// How often two or five, whichever is more, divides a number.
fn twos_and_fives(number: &BigInt) -> u64 {
    let twos = number.trailing_zeros().unwrap_or_default();
    let five = BigInt::from(5);
    let mut rest = number.clone();
    let mut fives = 0;
    while !rest.is_zero() && (&rest % &five).is_zero() {
        rest /= &five;
        fives += 1;
    }
    twos.max(fives)
}

fn ten_to(exponent: u64) -> BigInt {
    BigInt::from(10).pow(u32::try_from(exponent).unwrap_or(u32::MAX))
}

/// Takes zeros from the end, down to a scale.
fn without_zeros(mut digits: BigInt, mut scale: i64, least: i64) -> BigDecimal {
    let ten = BigInt::from(10);
    while scale > least && (&digits % &ten).is_zero() {
        digits /= &ten;
        scale -= 1;
    }
    BigDecimal::new(digits, scale)
}
