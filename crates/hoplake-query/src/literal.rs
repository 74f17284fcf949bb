//! Scalars that stand in a query, with their types.
//!
//! The types of numbers are those of Java: what a number is decides what a sum of it is, and which type a driver gets back.

use std::{fmt, str::FromStr, sync::LazyLock};

use bigdecimal::BigDecimal;
use jiff::SignedDuration;
use num_bigint::{BigInt, BigUint, Sign};
use uuid::Uuid;

use crate::moment::Moment;

/// Digits of a big number, at most, wherever it comes from: reading them takes time by the square of their number, and a number that is
/// multiplied with itself has twice as many.
pub const DIGITS_MAX: usize = 10_000;

/// Characters of such a number, at most: its digits, a sign, zeros, a point, an exponent and the letter of its type.
pub const CHARACTERS_MAX: usize = DIGITS_MAX + 16;

/// Digits after the point of a big decimal, at most, and zeros before it. Written out, one number could fill the memory.
pub const SCALE_MAX: u64 = 2 * DIGITS_MAX as u64;

/// The least integer of too many digits.
static TOO_LONG: LazyLock<BigUint> = LazyLock::new(|| BigUint::from(10_u8).pow(DIGITS_MAX as u32));

/// A scalar.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean(bool),
    /// A number of any type.
    Number(Number),
    /// A text.
    Text(Box<str>),
    /// A point in time, and the offset from UTC in which it was written.
    DateTime(Moment),
    /// A UUID.
    Uuid(Uuid),
    /// A character. Text has no form for it; bytecode has.
    Char(char),
    /// A length of time, in bytecode alone.
    Duration(SignedDuration),
    /// Bytes, in bytecode alone.
    Bytes(Box<[u8]>),
}

/// A number with its type.
#[derive(Debug, Clone, PartialEq)]
pub enum Number {
    /// `1b`
    Byte(i8),
    /// `1s`
    Short(i16),
    /// `1` or `1i`
    Int(i32),
    /// `1l`, or an integer that an [`Int`](Self::Int) lacks.
    Long(i64),
    /// `1n`, or an integer that a [`Long`](Self::Long) lacks.
    BigInteger(BigInt),
    /// `1.0f`
    Float(f32),
    /// `1.0` or `1.0d`, `NaN` and `Infinity`
    Double(f64),
    /// `1.0m`
    BigDecimal(BigDecimal),
}

impl Number {
    /// The limit that a big number is beyond.
    pub fn beyond(&self) -> Option<String> {
        let is_too_long = |digits: &BigInt| digits.magnitude() >= &*TOO_LONG;
        let (is_too_long, scale) = match self {
            Self::BigInteger(number) => (is_too_long(number), 0),
            Self::BigDecimal(number) => {
                let (digits, scale) = number.as_bigint_and_exponent();
                (is_too_long(&digits), scale.unsigned_abs())
            }
            _ => return None,
        };
        if is_too_long {
            return Some(format!("a number has more than {DIGITS_MAX} digits"));
        }
        (scale > SCALE_MAX).then(|| format!("the exponent of a decimal is beyond {SCALE_MAX}"))
    }
}

/// As `BigDecimal.toString` of Java. Plain if the scale is not negative and the exponent is at least −6; else in scientific notation.
fn write_decimal(number: &BigDecimal, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (digits, scale) = number.as_bigint_and_exponent();
    let sign = if digits.sign() == Sign::Minus { "-" } else { "" };
    let digits = digits.magnitude().to_string();
    let exponent = digits.len() as i64 - 1 - scale;
    if scale == 0 {
        return write!(f, "{sign}{digits}");
    }
    if scale > 0 && exponent >= -6 {
        // One digit before the point at least.
        let width = usize::try_from(scale).unwrap_or_default() + 1;
        let digits = format!("{digits:0>width$}");
        let (whole, fraction) = digits.split_at(digits.len() + 1 - width);
        return write!(f, "{sign}{whole}.{fraction}");
    }
    let (first, others) = digits.split_at(1);
    let point = if others.is_empty() { "" } else { "." };
    write!(f, "{sign}{first}{point}{others}E{exponent:+}")
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Byte(number) => number.fmt(f),
            Self::Short(number) => number.fmt(f),
            Self::Int(number) => number.fmt(f),
            Self::Long(number) => number.fmt(f),
            Self::BigInteger(number) => number.fmt(f),
            Self::Float(number) => number.fmt(f),
            Self::Double(number) => number.fmt(f),
            Self::BigDecimal(number) => write_decimal(number, f),
        }
    }
}

/// The big decimal that a text is, whose exponent is also passed on its own, so that it is checked first.
///
/// # Errors
/// What is wrong with the text.
pub fn big_decimal(plain: &str, exponent: Option<&str>) -> Result<Number, String> {
    let exponent = exponent.map_or(Ok(0), |it| it.replace('_', "").parse::<i64>());
    if !exponent.is_ok_and(|it| it.unsigned_abs() <= SCALE_MAX) {
        return Err(format!("the exponent of a decimal is beyond {SCALE_MAX}"));
    }
    BigDecimal::from_str(plain).map(Number::BigDecimal).map_err(|error| error.to_string())
}
