//! Numbers in texts, by the rules of `NumberUtils.createNumber` of commons-lang, which `asNumber` of TinkerPop follows: the least type that
//! holds all digits, from 32 bits on; a letter at the end for a type; `0x` and `#` before hexadecimal digits, and `0` before octal ones.

use num_bigint::BigInt;

use crate::{literal::Number, text::big_decimal, value::to_big_decimal};

/// Digits of a number, at most: to read them takes time with the square of their number.
const DIGITS_MAX: usize = 12_000;

/// The number that a text is.
pub(super) fn parse(text: &str) -> Option<Number> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let sign = if text.starts_with('-') { "-" } else { "" };
    if unsigned.len() > 2 * DIGITS_MAX {
        return None;
    }
    if let Some(digits) = ["0x", "0X", "#"].iter().find_map(|prefix| unsigned.strip_prefix(prefix)) {
        return integer(sign, digits, 16);
    }
    let last = unsigned.chars().last()?;
    let suffix = Some(last.to_ascii_lowercase()).filter(|last| !last.is_ascii_digit() && *last != '.');
    let body = if suffix.is_some() { unsigned.strip_suffix(last)? } else { unsigned };
    let (mantissa, exponent) = match body.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (body, None),
    };
    let digits = mantissa.replacen('.', "", 1);
    let exponent_digits = exponent.map(|it| it.strip_prefix(['-', '+']).unwrap_or(it));
    if !are_digits(&digits) || !exponent_digits.is_none_or(are_digits) || digits.len() > DIGITS_MAX {
        return None;
    }
    let is_integer = exponent.is_none() && !mantissa.contains('.');
    match suffix {
        None | Some('l') if is_integer => {
            let number = match mantissa.strip_prefix('0').filter(|octal| !octal.is_empty()) {
                Some(octal) => integer(sign, octal, 8)?,
                None => integer(sign, mantissa, 10)?,
            };
            match (suffix, number) {
                (Some(_), Number::Int(number)) => Some(Number::Long(number.into())),
                (_, number) => Some(number),
            }
        }
        None | Some('f' | 'd') => decimal(&format!("{sign}{body}"), exponent, suffix),
        Some(_) => None,
    }
}

fn are_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit())
}

/// The least of three types that holds an integer.
fn integer(sign: &str, digits: &str, radix: u32) -> Option<Number> {
    // A sign and `_` are none.
    if digits.len() > DIGITS_MAX || !digits.chars().all(|it| it.is_digit(radix)) {
        return None;
    }
    let number = BigInt::parse_bytes(format!("{sign}{digits}").as_bytes(), radix)?;
    Some(match (i32::try_from(&number), i64::try_from(&number)) {
        (Ok(number), _) => Number::Int(number),
        (_, Ok(number)) => Number::Long(number),
        _ => Number::BigInteger(number),
    })
}

/// The type that a letter names, or the least that has all digits; a larger one for what is too large or too small for it.
fn decimal(text: &str, exponent: Option<&str>, suffix: Option<char>) -> Option<Number> {
    let float: f32 = text.parse().ok()?;
    let double: f64 = text.parse().ok()?;
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let is_zero = !mantissa.contains(|it: char| ('1'..='9').contains(&it));
    let has_all = match suffix {
        Some('f') => true,
        Some(_) => false,
        None => float.to_string() == double.to_string(),
    };
    if has_all && float.is_finite() && (float != 0.0 || is_zero) {
        return Some(Number::Float(float));
    }
    let fits = double.is_finite() && (double != 0.0 || is_zero);
    if fits && suffix.is_some() {
        return Some(Number::Double(double));
    }
    let exact = big_decimal(text, exponent).ok()?;
    let is_exact =
        fits && matches!(&exact, Number::BigDecimal(exact) if *exact == to_big_decimal(&Number::Double(double)));
    Some(if is_exact { Number::Double(double) } else { exact })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What TinkerPop's server 3.8.1 answers.
    #[test]
    fn texts_are_the_numbers_that_they_are_in_java() {
        for (text, expected) in [
            ("3.5", "Float(3.5)"),
            ("1.0", "Float(1.0)"),
            ("1.", "Float(1.0)"),
            (".5", "Float(0.5)"),
            ("1e3", "Float(1000.0)"),
            ("-0.1", "Float(-0.1)"),
            ("0.00", "Float(0.0)"),
            ("1.23456789", "Double(1.23456789)"),
            ("123456789.5", "Double(123456789.5)"),
            ("16777217.0", "Double(16777217.0)"),
            ("1e39", "Double(1e39)"),
            ("1e-50", "Double(1e-50)"),
            ("1.5f", "Float(1.5)"),
            ("1.5d", "Double(1.5)"),
            ("1D", "Double(1.0)"),
            ("1l", "Long(1)"),
            ("1", "Int(1)"),
            ("+7", "Int(7)"),
            ("-2147483649", "Long(-2147483649)"),
            ("3000000000", "Long(3000000000)"),
            ("010", "Int(8)"),
            ("-017l", "Long(-15)"),
            ("0", "Int(0)"),
            ("0x10", "Int(16)"),
            ("#ff", "Int(255)"),
            ("-0X1", "Int(-1)"),
        ] {
            assert_eq!(format!("{:?}", parse(text).unwrap()), expected, "{text}");
        }
        for (text, expected) in [
            ("0.12345678901234567890123", "0.12345678901234567890123"),
            ("1e400", "1E+400"),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
        ] {
            let number = parse(text).unwrap();
            assert!(matches!(number, Number::BigDecimal(_) | Number::BigInteger(_)), "{number:?}");
            assert_eq!(number.to_string(), expected);
        }
        for text in [
            "",
            "-",
            "+",
            ".",
            "e",
            "1e",
            "e1",
            "1.5m",
            "1.5l",
            "1e3l",
            "NaN",
            "inf",
            "Infinity",
            "1_000",
            "1.2.3",
            "09",
            "0x",
            "0x-1",
            "--1",
            "1ö",
            "٣",
            "1e99999999",
            "f",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse(&"9".repeat(1_000_000)), None);
    }
}
