//! The type in which two numbers meet, and how they compare in it.
//!
//! The reference compares and computes in the widest type of both operands: without a fraction the wider integer; with one, float if
//! both have 32 bits or fewer, double up to 64, and a big decimal beyond. `0.1d` equals `0.1m` there, since a double becomes the
//! shortest decimal that reads back as it.
//!
//! That comparison rounds: 2^53 and 2^53 + 1 as longs are both equal to 2^53 as a double, and not to each other. A sort needs a
//! total order, so [`exact`] compares the numbers themselves. Both agree wherever promotion does not round.

use std::cmp::Ordering;

use bigdecimal::{BigDecimal, FromPrimitive, ToPrimitive};
use num_bigint::BigInt;

use crate::literal::Number;

/// The type in which two numbers are compared or computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Common {
    /// 8, 16, 32, 64, or 128 for the types without a bound.
    pub bits: u8,
    /// Whether it has fractions.
    pub fraction: bool,
}

impl Common {
    pub fn of(number: &Number) -> Self {
        let (bits, fraction) = match number {
            Number::Byte(_) => (8, false),
            Number::Short(_) => (16, false),
            Number::Int(_) => (32, false),
            Number::Long(_) => (64, false),
            Number::BigInteger(_) => (128, false),
            Number::Float(_) => (32, true),
            Number::Double(_) => (64, true),
            Number::BigDecimal(_) => (128, true),
        };
        Self { bits, fraction }
    }

    pub fn both(left: &Number, right: &Number) -> Self {
        let left = Self::of(left);
        let right = Self::of(right);
        Self { bits: left.bits.max(right.bits), fraction: left.fraction || right.fraction }
    }
}

pub fn is_nan(number: &Number) -> bool {
    match number {
        Number::Float(number) => number.is_nan(),
        Number::Double(number) => number.is_nan(),
        _ => false,
    }
}

/// Which infinity a number is, if it is one.
pub fn infinity(number: &Number) -> Option<Ordering> {
    let infinite = match number {
        Number::Float(number) => f64::from(*number),
        Number::Double(number) => *number,
        _ => return None,
    };
    match infinite.is_infinite() {
        true => Some(if infinite > 0.0 { Ordering::Greater } else { Ordering::Less }),
        false => None,
    }
}

/// Compares in the common type; `None` if one of them is `NaN`.
pub fn promoted(left: &Number, right: &Number) -> Option<Ordering> {
    if is_nan(left) || is_nan(right) {
        return None;
    }
    match Common::both(left, right) {
        Common { bits, fraction: true } if bits <= 32 => to_f32(left).partial_cmp(&to_f32(right)),
        Common { bits, fraction: true } if bits <= 64 => to_f64(left).partial_cmp(&to_f64(right)),
        Common { bits, fraction: false } if bits <= 64 => Some(to_i64(left).cmp(&to_i64(right))),
        Common { fraction: false, .. } => Some(to_big_int(left).cmp(&to_big_int(right))),
        Common { .. } => Some(match (infinity(left), infinity(right)) {
            (None, None) => to_big_decimal(left).cmp(&to_big_decimal(right)),
            (left, right) => rank(left).cmp(&rank(right)),
        }),
    }
}

/// Compares the numbers themselves: a total order, with `NaN` after everything and equal to itself.
pub fn exact(left: &Number, right: &Number) -> Ordering {
    match (is_nan(left), is_nan(right)) {
        (false, false) => {}
        (left, right) => return left.cmp(&right),
    }
    match (infinity(left), infinity(right)) {
        (None, None) => {}
        (left, right) => return rank(left).cmp(&rank(right)),
    }
    match Common::both(left, right) {
        // A double has all floats and all integers of 32 bits.
        Common { bits, fraction: true } if bits <= 32 => to_f64(left).partial_cmp(&to_f64(right)),
        Common { bits, fraction: false } if bits <= 64 => Some(to_i64(left).cmp(&to_i64(right))),
        _ => match (left, right) {
            (Number::Double(_) | Number::Float(_), Number::Double(_) | Number::Float(_)) => {
                to_f64(left).partial_cmp(&to_f64(right))
            }
            // A decimal of a small double has hundreds of digits.
            (integer, Number::Double(float)) if Common::of(integer).bits <= 64 => {
                Some(integer_with_float(to_i64(integer), *float))
            }
            (Number::Double(float), integer) if Common::of(integer).bits <= 64 => {
                Some(integer_with_float(to_i64(integer), *float).reverse())
            }
            (integer, Number::Float(float)) if Common::of(integer).bits <= 64 => {
                Some(integer_with_float(to_i64(integer), f64::from(*float)))
            }
            (Number::Float(float), integer) if Common::of(integer).bits <= 64 => {
                Some(integer_with_float(to_i64(integer), f64::from(*float)).reverse())
            }
            _ => Some(to_exact_decimal(left).cmp(&to_exact_decimal(right))),
        },
    }
    .expect("no operand is NaN")
}

/// Compares an integer with a finite float, neither of them rounded.
fn integer_with_float(integer: i64, float: f64) -> Ordering {
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    if float >= BEYOND {
        return Ordering::Less;
    }
    if float < -BEYOND {
        return Ordering::Greater;
    }
    let whole = float.trunc();
    let fraction = float - whole;
    let by_fraction = if fraction > 0.0 {
        Ordering::Less
    } else if fraction < 0.0 {
        Ordering::Greater
    } else {
        Ordering::Equal
    };
    integer.cmp(&(whole as i64)).then(by_fraction)
}

fn rank(infinity: Option<Ordering>) -> Ordering {
    infinity.unwrap_or(Ordering::Equal)
}

/// As `Number.longValue()` of Java, for integers of up to 64 bits.
pub fn to_i64(number: &Number) -> i64 {
    match number {
        Number::Byte(number) => i64::from(*number),
        Number::Short(number) => i64::from(*number),
        Number::Int(number) => i64::from(*number),
        Number::Long(number) => *number,
        Number::BigInteger(number) => number.to_i64().unwrap_or_default(),
        Number::Float(number) => *number as i64,
        Number::Double(number) => *number as i64,
        Number::BigDecimal(number) => number.to_i64().unwrap_or_default(),
    }
}

pub fn to_f32(number: &Number) -> f32 {
    match number {
        Number::Float(number) => *number,
        // Rounded once, and not through a double.
        Number::Byte(number) => f32::from(*number),
        Number::Short(number) => f32::from(*number),
        Number::Int(number) => *number as f32,
        Number::Long(number) => *number as f32,
        other => to_f64(other) as f32,
    }
}

/// The nearest double.
pub fn to_f64(number: &Number) -> f64 {
    match number {
        Number::Byte(number) => f64::from(*number),
        Number::Short(number) => f64::from(*number),
        Number::Int(number) => f64::from(*number),
        Number::Long(number) => *number as f64,
        Number::BigInteger(number) => number.to_f64().unwrap_or(f64::NAN),
        Number::Float(number) => f64::from(*number),
        Number::Double(number) => *number,
        Number::BigDecimal(number) => number.to_f64().unwrap_or(f64::NAN),
    }
}

/// An integer; the whole part of other numbers, and 0 for what is not finite.
pub fn to_big_int(number: &Number) -> BigInt {
    match number {
        Number::BigInteger(number) => number.clone(),
        Number::BigDecimal(number) => number.with_scale(0).into_bigint_and_exponent().0,
        Number::Float(_) | Number::Double(_) => to_big_decimal(number).with_scale(0).into_bigint_and_exponent().0,
        other => to_i64(other).into(),
    }
}

/// A decimal: floats and doubles become the shortest one that reads back as them, as in Java, and 0 if they are not finite.
pub fn to_big_decimal(number: &Number) -> BigDecimal {
    match number {
        Number::BigDecimal(number) => number.clone(),
        Number::BigInteger(number) => number.clone().into(),
        Number::Float(number) => shortest(f64::from(number.abs()), &format!("{number:?}"), &format!("{number:e}")),
        Number::Double(number) => shortest(number.abs(), &format!("{number:?}"), &format!("{number:e}")),
        other => to_i64(other).into(),
    }
}

/// The digits as Java writes them: plain from 0.001 to 10 million, else with an exponent, and one after the point at least.
fn shortest(size: f64, plain: &str, exponential: &str) -> BigDecimal {
    let digits = match size == 0.0 || (1e-3..1e7).contains(&size) {
        true => plain.to_owned(),
        false if exponential.contains('.') => exponential.to_owned(),
        false => exponential.replace('e', ".0e"),
    };
    digits.parse().unwrap_or_default()
}

/// A decimal of exactly the same value; of finite numbers only.
fn to_exact_decimal(number: &Number) -> BigDecimal {
    match number {
        Number::Float(number) => BigDecimal::from_f64(f64::from(*number)).unwrap_or_default(),
        Number::Double(number) => BigDecimal::from_f64(*number).unwrap_or_default(),
        other => to_big_decimal(other),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn integers_and_floats_compare_as_decimals(integer in prop_oneof![any::<i64>(), -9..9_i64, Just(1 << 53), Just(i64::MAX)], near in any::<bool>(), other: f64, by in -2..3_i64) {
            let float = if near { integer.wrapping_add(by) as f64 + by as f64 / 4.0 } else { other };
            prop_assume!(float.is_finite());
            let left = Number::Long(integer);
            let right = Number::Double(float);
            let expected = to_exact_decimal(&left).cmp(&to_exact_decimal(&right));
            prop_assert_eq!(exact(&left, &right), expected);
            prop_assert_eq!(exact(&right, &left), expected.reverse());
            let narrow = Number::Float(float as f32);
            prop_assume!((float as f32).is_finite());
            prop_assert_eq!(exact(&left, &narrow), to_exact_decimal(&left).cmp(&to_exact_decimal(&narrow)));
        }
    }
}
