//! Numbers in texts, by the rules of `NumberUtils.createNumber` of commons-lang, which `asNumber` of the reference follows: the least type that
//! holds all digits, from 32 bits on; a letter at the end for a type; `0x` and `#` before hexadecimal digits, and `0` before octal ones.

use std::{fmt::LowerExp, str::FromStr};

use bigdecimal::BigDecimal;
use num_bigint::BigInt;

use crate::{
    error::{Done, QueryError},
    growth::{Growth, units_of},
    literal::{DIGITS_MAX, Number, big_decimal},
};

/// Decimal digits that are a word of a big number. Each is multiplied with all words before it.
const WORD_DIGITS: u64 = 19;

/// The number that a text is; `None` if it is none.
///
/// # Errors
/// An invalid value beyond the limits of numbers, and a limit if the query's time is over.
pub(crate) fn parse(text: &str, growth: &Growth) -> Done<Option<Number>> {
    growth.work(units_of(text.len()))?;
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let sign = if text.starts_with('-') { "-" } else { "" };
    let has_plus = text.starts_with('+');
    if let Some(digits) = ["0x", "0X", "#"].iter().find_map(|prefix| unsigned.strip_prefix(prefix)) {
        return hexadecimal(sign, digits, has_plus);
    }
    let Some(last) = unsigned.chars().last() else { return Ok(None) };
    let suffix = Some(last.to_ascii_lowercase()).filter(|last| !last.is_ascii_digit() && *last != '.');
    let Some(body) = (if suffix.is_some() { unsigned.strip_suffix(last) } else { Some(unsigned) }) else {
        return Ok(None);
    };
    let (mantissa, exponent) = match body.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (body, None),
    };
    let digits = mantissa.replacen('.', "", 1);
    let exponent_digits = exponent.map(|it| it.strip_prefix(['-', '+']).unwrap_or(it));
    if !are_digits(&digits) || !exponent_digits.is_none_or(are_digits) {
        return Ok(None);
    }
    let is_integer = exponent.is_none() && !mantissa.contains('.');
    let is_long = suffix == Some('l');
    // Only a minus may precede the digits of a long.
    if is_long && (!is_integer || has_plus) || !matches!(suffix, None | Some('l' | 'f' | 'd')) {
        return Ok(None);
    }
    check_length(digits.len())?;
    let words = digits.len() as u64 / WORD_DIGITS;
    growth.work(words * words)?;
    if is_integer && matches!(suffix, None | Some('l')) {
        let (digits, radix) = match mantissa.strip_prefix('0').filter(|octal| !octal.is_empty()) {
            Some(octal) => (octal, 8),
            None => (mantissa, 10),
        };
        let Some(number) = integer(sign, digits, radix) else { return Ok(None) };
        return within_limits(match (i32::try_from(&number), i64::try_from(&number)) {
            (Ok(number), _) if !is_long => Number::Int(number),
            (_, Ok(number)) => Number::Long(number),
            _ => Number::BigInteger(number),
        });
    }
    // What Java takes for the digits before the point: of `0f` the letter, too.
    let whole = match (mantissa.split_once('.'), exponent) {
        (Some((whole, _)), _) => whole,
        (None, Some(_)) => mantissa,
        (None, None) => unsigned,
    };
    let is_zero = are_zeros(whole) && exponent.is_none_or(are_zeros);
    decimal(&format!("{sign}{body}"), exponent, suffix, is_zero)
}

fn are_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit())
}

fn are_zeros(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it == b'0')
}

fn check_length(digits: usize) -> Done<()> {
    match digits > DIGITS_MAX {
        true => Err(QueryError::wrong_type(format!("a number has {digits} digits, and {DIGITS_MAX} at most"))),
        false => Ok(()),
    }
}

fn within_limits(number: Number) -> Done<Option<Number>> {
    number.beyond().map_or(Ok(Some(number)), |limit| Err(QueryError::wrong_type(limit)))
}

fn integer(sign: &str, digits: &str, radix: u32) -> Option<BigInt> {
    // `BigInt` accepts a second sign and `_`; Java does not.
    let are_digits = digits.chars().all(|it| it.is_digit(radix));
    are_digits.then(|| BigInt::parse_bytes(format!("{sign}{digits}").as_bytes(), radix)).flatten()
}

/// A hexadecimal number. Its type follows from the number of digits, and the first of them, whatever the sign. After a plus, as in Java, it
/// is the smallest type that holds the number, or the one that a letter at the end names.
fn hexadecimal(sign: &str, digits: &str, has_plus: bool) -> Done<Option<Number>> {
    if digits.is_empty() || !digits.bytes().all(|it| it.is_ascii_hexdigit()) {
        return Ok(None);
    }
    let significant = digits.trim_start_matches('0');
    check_length(significant.len())?;
    let Some(number) = integer(sign, digits, 16) else { return Ok(None) };
    let least = match (i32::try_from(&number), i64::try_from(&number)) {
        (Ok(number), _) => Some(Number::Int(number)),
        (_, Ok(number)) => Some(Number::Long(number)),
        _ => None,
    };
    if has_plus {
        let is_decoded = digits.bytes().last().is_some_and(|it| it.is_ascii_digit()) && !digits.contains(['e', 'E']);
        return Ok(least.filter(|_| is_decoded));
    }
    let size = significant.len() + usize::from(significant.bytes().next().is_some_and(|first| first > b'7'));
    within_limits(match (size, least) {
        (..=8, Some(number)) => number,
        (..=16, Some(Number::Int(number))) => Number::Long(number.into()),
        (..=16, Some(number)) => number,
        _ => Number::BigInteger(number),
    })
}

/// The type that a letter names, or the least that has all digits; a larger one for what is too large or too small for it.
fn decimal(text: &str, exponent: Option<&str>, suffix: Option<char>, is_zero: bool) -> Done<Option<Number>> {
    let (Ok(float), Ok(double)) = (text.parse::<f32>(), text.parse::<f64>()) else { return Ok(None) };
    let has_all = match suffix {
        Some('f') => true,
        Some(_) => false,
        None => java_text(float) == java_text(double),
    };
    if has_all && float.is_finite() && (float != 0.0 || is_zero) {
        return Ok(Some(Number::Float(float)));
    }
    let fits = double.is_finite() && (double != 0.0 || is_zero);
    if fits && suffix.is_some() {
        return Ok(Some(Number::Double(double)));
    }
    let exact = big_decimal(text, exponent).map_err(QueryError::wrong_type)?;
    let is_double = |exact: &BigDecimal| BigDecimal::from_str(&java_text(double)).is_ok_and(|double| double == *exact);
    if fits && matches!(&exact, Number::BigDecimal(exact) if is_double(exact)) {
        return Ok(Some(Number::Double(double)));
    }
    within_limits(exact)
}

/// As `toString` of Java has it from version 19 on, in scientific notation: the shortest text that is this number, of two digits or more.
fn java_text<F: LowerExp>(number: F) -> String {
    let shortest = format!("{number:e}");
    if shortest.contains('.') { shortest } else { format!("{number:.1e}") }
}

#[cfg(test)]
mod tests {
    use hoplake_storage::QueryContext;

    use super::*;

    fn parsed(text: &str) -> Done<Option<Number>> {
        parse(text, &Growth::new(&QueryContext::new()).unwrap())
    }

    /// What the reference's server answers.
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
            ("-7l", "Long(-7)"),
            ("9223372036854775808l", "BigInteger(9223372036854775808)"),
            ("1.4e-45", "Float(1e-45)"),
            ("1e-45", "Double(1e-45)"),
            ("1e-38", "Float(1e-38)"),
            ("1e50f", "Double(1e50)"),
            ("0e0f", "Float(0.0)"),
            ("0x80000000", "Long(2147483648)"),
            ("-0x80000000", "Long(-2147483648)"),
            ("-0x7fffffff", "Int(-2147483647)"),
            ("0x00000000ff", "Int(255)"),
            ("0x0", "Int(0)"),
            ("+0x80000000", "Long(2147483648)"),
            ("-0x8000000000000000", "BigInteger(-9223372036854775808)"),
            ("0x7fffffffffffffff", "Long(9223372036854775807)"),
            ("-2147483649", "Long(-2147483649)"),
            ("3000000000", "Long(3000000000)"),
            ("010", "Int(8)"),
            ("-017l", "Long(-15)"),
            ("0", "Int(0)"),
            ("0x10", "Int(16)"),
            ("#ff", "Int(255)"),
            ("-0X1", "Int(-1)"),
        ] {
            assert_eq!(format!("{:?}", parsed(text).unwrap().unwrap()), expected, "{text}");
        }
        for (text, expected) in [
            ("0.12345678901234567890123", "0.12345678901234567890123"),
            ("1e400", "1E+400"),
            ("1e20000", "1E+20000"),
            ("0f", "0"),
            ("5e-324", "5E-324"),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
        ] {
            let number = parsed(text).unwrap().unwrap();
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
            "+7l",
            "+0xff",
            "+0x8000000000000000",
            "f",
        ] {
            assert_eq!(parsed(text).unwrap(), None, "{text}");
        }
    }

    #[test]
    fn what_is_beyond_the_limits_is_told() {
        let nines = "9".repeat(DIGITS_MAX);
        for text in
            [nines.clone(), format!("-{nines}"), format!("0.{}", &nines[1..]), format!("0x{}", "f".repeat(8_000))]
        {
            assert!(parsed(&text).unwrap().is_some(), "{}", &text[..10]);
        }
        for (text, why) in [
            (format!("{nines}9"), "a number has 10001 digits, and 10000 at most"),
            (format!("{nines}.9"), "a number has 10001 digits, and 10000 at most"),
            ("9".repeat(1_000_000), "a number has 1000000 digits, and 10000 at most"),
            (format!("0x{}", "f".repeat(DIGITS_MAX)), "a number has more than 10000 digits"),
            ("1e99999999".to_owned(), "the exponent of a decimal is beyond 20000"),
            (format!("1.{}e-15000", &nines[1..]), "the exponent of a decimal is beyond 20000"),
        ] {
            assert_eq!(parsed(&text).unwrap_err().to_string(), why);
        }
    }

    #[test]
    fn work_grows_with_the_square_of_the_digits() {
        let units = |text: &str| {
            let growth = Growth::new(&QueryContext::new()).unwrap();
            parse(text, &growth).unwrap().unwrap();
            growth.done()
        };
        assert!(units(&"7".repeat(9_500)) >= 500 * 500);
        assert!(units(&format!("0.{}", "7".repeat(9_500))) >= 500 * 500);
        assert!(units(&format!("0x{}", "7".repeat(8_000))) < 1_000);
        let context = QueryContext::new();
        context.give_time(Some(0));
        let late = parse(&"7".repeat(9_500), &Growth::new(&context).unwrap());
        assert!(late.unwrap_err().to_string().contains("0 ms"));
    }
}
