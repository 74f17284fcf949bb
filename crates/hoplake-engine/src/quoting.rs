//! Names and values in hops, conditions and names of vertices: plain where they can be, in quotes where they have to be.
//!
//! Text in `"…"` or `'…'` is taken as it stands; the quote itself is doubled within. Without quotes, a piece ends at the next
//! sign that means something in its place, and white space around it is left out. `docs/text-forms.md` has the rule for users.

use std::{borrow::Cow, fmt::Write};

/// A piece of text without its quotes, and the rest after it.
pub(crate) type ParsedText<'a> = (Cow<'a, str>, &'a str);

/// Takes a piece from the beginning of a text. A plain one ends where `ends` says so of what is left.
///
/// # Errors
/// As the end of a sentence, if a quote is not closed, or something else than an end follows one.
pub(crate) fn take<'a>(text: &'a str, ends: impl Fn(&str) -> bool) -> Result<ParsedText<'a>, String> {
    let text = text.trim_start();
    let Some(quote) = text.chars().next().filter(|first| matches!(first, '"' | '\'')) else {
        let end = text.char_indices().map(|(at, _)| at).find(|at| ends(&text[*at..])).unwrap_or(text.len());
        return Ok((text[..end].trim_end().into(), &text[end..]));
    };
    let (inside, rest) = unquote(&text[1..], quote).ok_or_else(|| format!("has a {quote} that is not closed"))?;
    let rest = rest.trim_start();
    match rest.is_empty() || ends(rest) {
        true => Ok((inside, rest)),
        false => Err(format!("has {rest:?} after a closing {quote}")),
    }
}

/// What stands before the closing quote, and what behind it.
pub(crate) fn unquote(text: &str, quote: char) -> Option<ParsedText<'_>> {
    let mut inside = Cow::Borrowed("");
    let mut rest = text;
    loop {
        let (before, behind) = rest.split_once(quote)?;
        inside += before;
        match behind.strip_prefix(quote) {
            Some(behind) => {
                inside.to_mut().push(quote);
                rest = behind;
            }
            None => return Some((inside, behind)),
        }
    }
}

/// Writes a piece, in quotes if it would be read as something else without them: if it begins with one, has one of `signs`, or
/// white space at its ends.
pub(crate) fn write(piece: &str, signs: &[char], to: &mut impl Write) -> std::fmt::Result {
    match piece.starts_with(['"', '\'']) || piece.contains(signs) || piece.trim() != piece {
        true => write_quoted(piece, to),
        false => to.write_str(piece),
    }
}

/// Writes a piece in quotes.
pub(crate) fn write_quoted(piece: &str, to: &mut impl Write) -> std::fmt::Result {
    write!(to, "\"{}\"", piece.replace('"', "\"\""))
}

/// What ends the label in the name of a vertex: its key, or a condition in brackets.
const LABEL_ENDS: [char; 2] = [':', '['];

/// Reads the name of a vertex: `Person:933`. The label may stand in quotes, `"a:b":7`; the key is all that comes behind the
/// colon, as it stands.
///
/// # Errors
/// As the end of a sentence.
pub fn split_vertex(text: &str) -> Result<(Cow<'_, str>, &str), String> {
    let (label, rest) = split_label(text)?;
    match rest.strip_prefix(':').filter(|_| !label.is_empty()) {
        Some(key) => Ok((label, key)),
        None => Err("does not name a vertex; write LABEL:KEY, as in Person:933".into()),
    }
}

/// Reads a label, which may stand in quotes, from the beginning of a text, and returns what is behind it: `:` and a key, `[` and a
/// condition, or nothing.
///
/// # Errors
/// As the end of a sentence.
pub fn split_label(text: &str) -> Result<(Cow<'_, str>, &str), String> {
    take(text, |rest| rest.starts_with(LABEL_ENDS))
}

/// The name of a vertex, as [`split_vertex`] reads it.
pub fn vertex_text(label: &str, key: &impl std::fmt::Display) -> String {
    format!("{}:{key}", label_text(label))
}

/// A label, as [`split_label`] reads it.
pub fn label_text(label: &str) -> String {
    let mut text = String::new();
    // A string takes all that is written to it.
    let _ = write(label, &LABEL_ENDS, &mut text);
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn labels_with_colons_are_quoted() {
        for (text, label, key) in [
            ("Person:933", "Person", "933"),
            ("Url:https://a.b/c", "Url", "https://a.b/c"),
            ("\"a:b\":7", "a:b", "7"),
            ("'say \"hi\"':\"x\"", "say \"hi\"", "\"x\""),
            ("\"a\"\"b\":", "a\"b", ""),
        ] {
            assert_eq!(split_vertex(text).unwrap(), (label.into(), key));
        }
        for text in ["", "Person", ":7", "\"a:7", "\"a\"b:7", "\"\":7", "a[b:7"] {
            assert!(split_vertex(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_vertex_that_is_written_is_read(label in "[ab:\\[\"' ,\u{e9}]{1,6}", key in "[ab:\"' ]{0,6}") {
            prop_assume!(!label.is_empty());
            let text = vertex_text(&label, &key);
            prop_assert_eq!(split_vertex(&text).unwrap(), (Cow::from(&label), key.as_str()));
        }
    }
}
