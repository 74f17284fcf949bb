//! Parsers of numbers, sizes and amounts on the command line, and their errors.

use std::{ops::RangeInclusive, str::FromStr};

use bytesize::ByteSize;
use clap::error::{ContextKind, ContextValue};

use crate::output::tables::printable;

/// A whole number, 0 or more.
pub fn count<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "write a whole number, 0 or more".into())
}

/// A size, as in 512MiB.
pub fn size(text: &str) -> Result<ByteSize, String> {
    text.parse().map_err(|_| "write a size such as 64KiB, 512MiB or 4GiB".into())
}

/// A size of at least a byte.
pub fn size_from_1(text: &str) -> Result<ByteSize, String> {
    size(text).and_then(|size| match size.as_u64() {
        0 => Err("it must be at least one byte".into()),
        _ => Ok(size),
    })
}

/// US dollars.
pub fn dollars(text: &str) -> Result<f64, String> {
    let amount = text.parse().ok().filter(|amount: &f64| amount.is_finite() && *amount >= 0.0);
    amount.ok_or_else(|| "write an amount of US dollars, 0 or more, as in 0.05".into())
}

/// How far a query may go.
// Each hop is an element of a list: a number of any size would be all memory.
const HOPS: RangeInclusive<usize> = 1..=100_000;

/// A number of hops.
pub fn hops(text: &str) -> Result<usize, String> {
    let hops = text.parse().ok().filter(|hops| HOPS.contains(hops));
    hops.ok_or_else(|| "write a number of hops from 1 to 100000".into())
}

/// Characters of a wrong argument that are shown.
const SHOWN_CHARS: usize = 200;

/// An error that does not repeat the whole of a long argument, nor control characters in it.
pub fn shortened(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) {
        let mut shown = printable(value.clone());
        if let Some((end, _)) = shown.char_indices().nth(SHOWN_CHARS) {
            shown.truncate(end);
            shown.push('…');
        }
        error.insert(ContextKind::InvalidValue, ContextValue::String(shown));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_argument_is_not_repeated() {
        let size = clap::Arg::new("size").value_parser(size);
        let long = format!("\u{1b}{}", "é".repeat(3_000));
        let error = clap::Command::new("hoplake").arg(size).try_get_matches_from(["hoplake", &long]).unwrap_err();
        let shown = shortened(error).to_string();
        assert!(shown.contains("'\\u{1b}é") && shown.contains("é…'") && shown.contains("write a size"), "{shown}");
        assert!(shown.len() < 1_000, "{shown}");
    }

    #[test]
    fn what_is_none_is_told_what_to_write() {
        for text in ["-1", "abc", "1.5", "", "99999999999999999999999"] {
            assert_eq!(count::<u64>(text).unwrap_err(), "write a whole number, 0 or more");
        }
        for text in ["12XB", "lots", ""] {
            assert_eq!(size(text).unwrap_err(), "write a size such as 64KiB, 512MiB or 4GiB");
        }
        assert!(
            size_from_1("0").is_err() && dollars("NaN").is_err() && dollars("-1").is_err() && dollars("inf").is_err()
        );
        assert!(hops("0").is_err() && hops("99999999999").is_err() && hops("1000").is_ok());
        assert_eq!(
            (count::<u64>("7").unwrap(), size("1KiB").unwrap(), dollars("0.5").unwrap()),
            (7, ByteSize::kib(1), 0.5)
        );
    }
}
