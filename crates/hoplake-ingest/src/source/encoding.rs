//! Whether text is UTF-8, by its first bytes: all readers take it to be.
//!
//! Text of 16 or 32 bits has zeros between the letters of a header. Read as UTF-8, its columns would have names that nobody sees to be
//! wrong, or no layout would be recognised; so it is rejected by name, with or without a byte order mark.

use std::{error::Error, fmt, io};

/// So many bytes tell.
pub(super) const HEAD_BYTES: usize = 4;

/// What text is written in, if not in UTF-8.
#[derive(Debug)]
pub(super) struct OtherEncoding(&'static str);

impl fmt::Display for OtherEncoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(name) = self;
        write!(f, "is {name} text; convert it to UTF-8, for example with iconv -f {name} -t UTF-8")
    }
}

impl Error for OtherEncoding {}

impl OtherEncoding {
    /// Rejects text that begins with these bytes, if it is in another encoding.
    pub(super) fn reject(head: &[u8]) -> io::Result<()> {
        let name = match *head {
            [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => "UTF-32",
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "UTF-16",
            [_, 0, 0, 0, ..] => "UTF-32LE",
            [0, 0, 0, _, ..] => "UTF-32BE",
            // Two letters: a zero alone may be damage, which other messages show better.
            [one, 0, two, 0, ..] if one > 0 && two > 0 => "UTF-16LE",
            [0, one, 0, two, ..] if one > 0 && two > 0 => "UTF-16BE",
            _ => return Ok(()),
        };
        Err(io::Error::new(io::ErrorKind::InvalidData, Self(name)))
    }

    /// The error, if it is why reading failed.
    pub(super) fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_not_utf_8_is_named() {
        let utf_16 =
            |to_bytes: fn(u16) -> [u8; 2], text: &str| -> Vec<u8> { text.encode_utf16().flat_map(to_bytes).collect() };
        let utf_32 = |to_bytes: fn(u32) -> [u8; 4], text: &str| -> Vec<u8> {
            text.chars().flat_map(|it| to_bytes(it.into())).collect()
        };
        for (name, text) in [
            ("UTF-16 ", utf_16(u16::to_le_bytes, "\u{feff}id,name")),
            ("UTF-16 ", utf_16(u16::to_be_bytes, "\u{feff}id,name")),
            ("UTF-16LE ", utf_16(u16::to_le_bytes, "id,name")),
            ("UTF-16BE ", utf_16(u16::to_be_bytes, "id,name")),
            ("UTF-32 ", utf_32(u32::to_le_bytes, "\u{feff}id,name")),
            ("UTF-32 ", utf_32(u32::to_be_bytes, "\u{feff}id,name")),
            ("UTF-32LE ", utf_32(u32::to_le_bytes, "id,name")),
            ("UTF-32BE ", utf_32(u32::to_be_bytes, "id,name")),
        ] {
            let error = OtherEncoding::reject(&text).expect_err(name);
            assert!(OtherEncoding::of(&error).is_some_and(|it| it.to_string().contains(name)), "{name} {error}");
        }
        for text in ["", "i", "id,name", "\u{feff}id", "a\0", "1,\0\0"] {
            assert!(OtherEncoding::reject(text.as_bytes()).is_ok(), "{text:?}");
        }
    }
}
