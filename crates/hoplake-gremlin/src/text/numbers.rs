//! Numbers from their digits: `1`, `0x1FL`, `017`, `1_000n`, `1.5e3f`.

use hoplake_query::literal::{CHARACTERS_MAX, Number, big_decimal};
use num_bigint::BigInt;

/// A number; the error says what is wrong with it.
pub fn number(text: &str) -> Result<Number, String> {
    if text.len() > CHARACTERS_MAX {
        return Err(format!("a number has {} characters, and {CHARACTERS_MAX} at most", text.len()));
    }
    let number = of_any_length(text)?;
    number.beyond().map_or(Ok(number), Err)
}

fn of_any_length(text: &str) -> Result<Number, String> {
    let (sign, digits) = match text.strip_prefix(['+', '-']) {
        Some(digits) => (&text[..1], digits),
        None => ("", text),
    };
    if digits == "Infinity" {
        return Ok(Number::Double(if sign == "-" { f64::NEG_INFINITY } else { f64::INFINITY }));
    }
    let wrong = || format!("`{text}` is not a number");
    let hexadecimal = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    if let Some(hexadecimal) = hexadecimal {
        // `b` is a digit, too.
        let (digits, suffix) = split_suffix(hexadecimal, "snil");
        return integer(sign, digits, 16, suffix).ok_or_else(wrong)?;
    }
    if digits.contains('.') || digits.contains(['e', 'E']) || digits.ends_with(['f', 'F', 'd', 'D', 'm', 'M']) {
        return decimal(sign, digits).ok_or_else(wrong)?;
    }
    let (digits, suffix) = split_suffix(digits, "bsnil");
    match digits.len() > 1 && digits.starts_with('0') {
        true => integer(sign, &digits[1..], 8, suffix).ok_or_else(wrong)?,
        false => integer(sign, digits, 10, suffix).ok_or_else(wrong)?,
    }
}

fn split_suffix<'a>(digits: &'a str, suffixes: &str) -> (&'a str, Option<char>) {
    match digits.chars().next_back().map(|last| last.to_ascii_lowercase()) {
        Some(last) if suffixes.contains(last) => (&digits[..digits.len() - 1], Some(last)),
        _ => (digits, None),
    }
}

/// `None` if these are no digits.
fn integer(sign: &str, digits: &str, radix: u32, suffix: Option<char>) -> Option<Result<Number, String>> {
    // Underscores stand between digits.
    if digits.starts_with('_') && radix != 8 || digits.ends_with('_') {
        return None;
    }
    let plain = digits.replace('_', "");
    if plain.is_empty() || !plain.chars().all(|it| it.is_digit(radix)) {
        return None;
    }
    let sign = if sign == "-" { "-" } else { "" };
    let number = BigInt::parse_bytes(format!("{sign}{plain}").as_bytes(), radix)?;
    let fitting = match suffix {
        Some('b') => i8::try_from(&number).ok().map(Number::Byte),
        Some('s') => i16::try_from(&number).ok().map(Number::Short),
        Some('i') => i32::try_from(&number).ok().map(Number::Int),
        Some('l') => i64::try_from(&number).ok().map(Number::Long),
        Some(_) => Some(Number::BigInteger(number.clone())),
        // The first type that has it.
        None => Some(match (i32::try_from(&number), i64::try_from(&number)) {
            (Ok(number), _) => Number::Int(number),
            (_, Ok(number)) => Number::Long(number),
            _ => Number::BigInteger(number.clone()),
        }),
    };
    let type_name = match suffix {
        Some('b') => "byte",
        Some('s') => "short",
        Some('i') => "int",
        _ => "long",
    };
    Some(fitting.ok_or_else(|| format!("{number} is not in the range of a {type_name}")))
}

/// `None` if it is not written as a decimal number.
fn decimal(sign: &str, digits: &str) -> Option<Result<Number, String>> {
    let (digits, suffix) = split_suffix(digits, "fdm");
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (digits, None),
    };
    let (whole, fraction) = mantissa.split_once('.').map_or((mantissa, "0"), |(whole, fraction)| (whole, fraction));
    let are_digits = |digits: &str| {
        let inner = !digits.starts_with('_') && !digits.ends_with('_');
        inner && !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit() || it == b'_')
    };
    let exponent_digits = exponent.map(|it| it.strip_prefix(['+', '-']).unwrap_or(it));
    if !are_digits(whole) || !are_digits(fraction) || !exponent_digits.is_none_or(are_digits) {
        return None;
    }
    let sign = if sign == "-" { "-" } else { "" };
    let plain = format!("{sign}{digits}").replace('_', "");
    Some(match suffix {
        Some('f') => plain.parse().map(Number::Float).map_err(|error| error.to_string()),
        Some('m') => big_decimal(&plain, exponent),
        _ => plain.parse().map(Number::Double).map_err(|error| error.to_string()),
    })
}
