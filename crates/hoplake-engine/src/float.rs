//! Floating-point numbers: their one order, their one text, and which integers they are exactly.
//!
//! They are stored bit for bit. Where two are compared, in conditions, as keys of edges and by [`Value`](crate::value::Value)'s
//! equality, this is the order:
//!
//! ```text
//! -Infinity < … < -1.0 < … < -0.0 = 0.0 < … < Infinity < NaN = NaN
//! ```
//! So equality is an equivalence, as a key needs it, `x = 0` finds a zero that a computation gave a sign, and a NaN can be
//! found. Databases order like this; the total order of IEEE 754 would tell zeros apart, and its comparison has no equal NaN.

use std::{cmp::Ordering, sync::Arc};

use arrow_array::{ArrayRef, cast::AsArray, types::Float64Type};

/// Compares two numbers in the order above.
pub fn compare(a: f64, b: f64) -> Ordering {
    // Only a NaN has no order by itself.
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// The same numbers, as Arrow's total order has to see them to be this order: it would have −0.0 below 0.0, and order NaN by its
/// sign. A column of another type stays as it is.
pub fn canonical(values: &ArrayRef) -> ArrayRef {
    let Some(floats) = values.as_primitive_opt::<Float64Type>() else { return values.clone() };
    let canonical = floats.unary::<_, Float64Type>(|value| match value {
        0.0 => 0.0,
        value if value.is_nan() => f64::NAN,
        value => value,
    });
    Arc::new(canonical)
}

/// A number of 32 bits as it is stored: the one of its shortest decimal form, so that 0.1 is 0.1.
pub fn of_single(single: f32) -> f64 {
    single.to_string().parse().unwrap_or(f64::from(single))
}

/// The number that an integer is, if float64 has it.
pub fn exactly(integer: i64) -> Option<f64> {
    let float = integer as f64;
    // Back by way of i128: i64 would saturate at 2^63.
    (float as i128 == i128::from(integer)).then_some(float)
}

/// The shortest text that reads as the same number: `3.0`, `1e300`, `-0.0`; `NaN`, `Infinity` and `-Infinity`.
pub fn text(number: f64) -> String {
    match number {
        f64::INFINITY => "Infinity".into(),
        f64::NEG_INFINITY => "-Infinity".into(),
        number => format!("{number:?}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn zeros_are_equal_and_nan_is_the_greatest() {
        let ascending = [f64::NEG_INFINITY, -1.0, -0.0, 1.0, f64::INFINITY, f64::NAN];
        for (at, a) in ascending.iter().enumerate() {
            for (other, b) in ascending.iter().enumerate() {
                assert_eq!(compare(*a, *b), at.cmp(&other), "{a} and {b}");
            }
        }
        assert!(compare(0.0, -0.0).is_eq() && compare(f64::NAN, -f64::NAN).is_eq());
    }

    proptest! {
        #[test]
        fn a_text_is_the_number_bit_for_bit(bits: u64) {
            let number = f64::from_bits(bits);
            let read: f64 = text(number).parse().unwrap();
            prop_assert!(read.to_bits() == bits || number.is_nan() && read.is_nan());
        }

        #[test]
        fn an_integer_is_exact_or_rejected(integer: i64) {
            prop_assert!(exactly(integer).is_none_or(|float| float as i128 == i128::from(integer)));
        }
    }
}
