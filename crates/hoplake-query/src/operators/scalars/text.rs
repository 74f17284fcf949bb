//! Changes of text.

use super::scoped;
use crate::{
    operators::prelude::*,
    tokens::Scope,
    value::{ALLOCATION_BYTES, kind_of},
};

/// A text, or each text of a list, changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Text {
    /// Whether each of a list is changed.
    pub scope: Scope,
    /// How.
    pub step: TextStep,
}

/// What is done with text.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each is the step that it is called after")]
pub enum TextStep {
    Split(Option<Box<str>>),
    Trim,
    LTrim,
    RTrim,
    ToUpper,
    ToLower,
    Reverse,
    Replace(Option<Box<str>>, Option<Box<str>>),
    Substring(i64, Option<i64>),
    Length,
}

impl Operator for Text {
    fn reach(&self, _: &mut Reach<'_>, _: Elements) -> Elements {
        Elements::default()
    }

    fn start(self: Arc<Self>) -> Running {
        PerBatch::running(self)
    }
}

impl Each for Text {
    async fn each(&self, run: &mut Run, batch: Batch) -> Done<Output> {
        let growth = run.growth.clone();
        let change = |value: &Value| scoped(self.scope, value, &growth, |it| text(self.scope, &self.step, it, &growth));
        run.each_value(batch, change).await
    }
}

fn text(scope: Scope, step: &TextStep, value: &Value, growth: &Growth) -> Done<Option<Value>> {
    let text = match (step, value) {
        (_, Value::Null) => return Ok(Some(Value::Null)),
        (_, Value::Text(text)) => text,
        (TextStep::Reverse, Value::Path(path)) => {
            return growth.copy_all(path.steps.iter().rev().map(|(item, _)| item)).map(|it| Some(Value::List(it)));
        }
        (TextStep::Reverse, Value::List(items) | Value::Set(items)) => {
            return growth.copy_all(items.iter().rev()).map(|items| Some(Value::List(items)));
        }
        (TextStep::Reverse, other) => return growth.copy(other).map(Some),
        (step, _) if scope == Scope::Local => {
            let name = name(step);
            return Err(QueryError::wrong_type(format!(
                "The {name}(local) step can only take string or list of strings"
            )));
        }
        (step, other) => return Err(not_a_text(name(step), other)),
    };
    if let TextStep::Split(separator) = step {
        // Counted first: each piece is a text of its own.
        let count = match separator {
            Some(empty) if empty.is_empty() => text.chars().count(),
            Some(separator) => text.matches(&**separator).count(),
            None => text.split(is_space).count(),
        };
        growth.take((count + 1).saturating_mul(PIECE_BYTES))?;
    }
    // Upper case has up to three bytes for one, and a text that grows is there twice.
    growth.take(text.len().saturating_mul(match step {
        TextStep::ToUpper | TextStep::ToLower => 6,
        _ => 2,
    }))?;
    let changed: String = match step {
        TextStep::Split(None) => {
            let words = text.split(is_space).filter(|word| !word.is_empty());
            return Ok(Some(Value::List(words.map(Value::from).collect())));
        }
        TextStep::Split(Some(separator)) if separator.is_empty() => {
            if text.is_empty() {
                return Ok(Some(Value::List(vec!["".into()])));
            }
            let characters = text.chars().map(|character| Value::Text(character.to_string().into()));
            return Ok(Some(Value::List(characters.collect())));
        }
        TextStep::Split(Some(separator)) => {
            return Ok(Some(Value::List(pieces(text, separator).into_iter().map(Value::from).collect())));
        }
        TextStep::Length => return Ok(Some(i32::try_from(text.encode_utf16().count()).unwrap_or(i32::MAX).into())),
        TextStep::Trim => text.trim_matches(is_space).into(),
        TextStep::LTrim => text.trim_start_matches(is_space).into(),
        TextStep::RTrim => text.trim_end_matches(is_space).into(),
        TextStep::ToUpper => text.to_uppercase(),
        TextStep::ToLower => text.to_lowercase(),
        TextStep::Reverse => text.chars().rev().collect(),
        TextStep::Replace(Some(old), Some(new)) if !old.is_empty() => {
            return replaced(text, old, new, growth).map(Some);
        }
        TextStep::Replace(..) => text.to_string(),
        TextStep::Substring(start, end) => substring(text, *start, *end)?.into(),
    };
    Ok(Some(Value::Text(changed.into())))
}

fn name(step: &TextStep) -> &'static str {
    match step {
        TextStep::Split(_) => "split",
        TextStep::Trim => "trim",
        TextStep::LTrim => "lTrim",
        TextStep::RTrim => "rTrim",
        TextStep::ToUpper => "toUpper",
        TextStep::ToLower => "toLower",
        TextStep::Reverse => "reverse",
        TextStep::Replace(..) => "replace",
        TextStep::Substring(..) => "substring",
        TextStep::Length => "length",
    }
}

fn not_a_text(step: &str, value: &Value) -> QueryError {
    QueryError::wrong_type(format!(
        "The {step}() step can only take string as argument, and this is {}",
        kind_of(value)
    ))
}

/// White space as Java's `Character.isWhitespace` has it: without the spaces at which no line breaks (U+00A0, U+2007, U+202F), and with
/// the separators U+001C to U+001F.
fn is_space(character: char) -> bool {
    match character {
        '\u{a0}' | '\u{85}' | '\u{2007}' | '\u{202f}' => false,
        '\u{1c}'..='\u{1f}' => true,
        other => other.is_whitespace(),
    }
}

/// A part of a text, by the UTF-16 units that `length` counts; a number below zero counts from the end.
fn substring(text: &str, start: i64, end: Option<i64>) -> Done<&str> {
    let length = text.encode_utf16().count() as i64;
    let at = |number: i64| if number < 0 { length.saturating_add(number).max(0) } else { number.min(length) };
    let start = at(start);
    let end = end.map_or(length, at);
    if end <= start {
        return Ok("");
    }
    let start = byte_of(text, start)?;
    let end = byte_of(text, end)?;
    Ok(&text[start..end])
}

/// Where a UTF-16 unit begins.
fn byte_of(text: &str, unit: i64) -> Done<usize> {
    let mut units = 0;
    for (byte, character) in text.char_indices() {
        if units >= unit {
            return whole(units == unit, byte);
        }
        units += character.len_utf16() as i64;
    }
    whole(units == unit, text.len())
}

fn whole(is_whole: bool, byte: usize) -> Done<usize> {
    match is_whole {
        true => Ok(byte),
        false => Err(QueryError::wrong_type(
            "`substring` would cut a character in half: its numbers count UTF-16 units, of which some characters have two",
        )),
    }
}

/// What a piece of a text takes: a value, an allocation of at least 16 bytes, and its place in two lists that may grow by halves.
const PIECE_BYTES: usize = 2 * size_of::<Value>() + 2 * ALLOCATION_BYTES + 2 * size_of::<&str>();

/// A text in which each of some pieces is another.
fn replaced(text: &str, old: &str, new: &str, growth: &Growth) -> Done<Value> {
    let mut replaced = growth.text();
    let mut end = 0;
    for (begin, piece) in text.match_indices(old) {
        replaced.push(&text[end..begin])?;
        replaced.push(new)?;
        end = begin + piece.len();
        growth.work(1)?;
    }
    replaced.push(&text[end..])?;
    Ok(replaced.finish())
}

/// The pieces between separators, as the reference has them: separators next to each other are one, one at the beginning is
/// none, and behind one at the end is an empty piece.
fn pieces<'a>(text: &'a str, separator: &str) -> Vec<&'a str> {
    if text.is_empty() {
        return Vec::new();
    }
    let mut pieces: Vec<&str> = text.split(separator).collect();
    let last = pieces.pop();
    pieces.retain(|piece| !piece.is_empty());
    pieces.extend(last);
    pieces
}
