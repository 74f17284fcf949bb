//! Text, dates, conversions and lists.

use std::{
    collections::HashSet,
    fmt::{self, Write},
};

use bigdecimal::{BigDecimal, FromPrimitive, ToPrimitive};
use jiff::SignedDuration;
use num_bigint::BigInt;

use super::{
    Done, Run,
    batch::{Batch, Items, value_bytes},
    by::kind_of,
    each::elements,
    elements::Wanted,
    growth::{ALLOCATION_BYTES, Growth, TextBuilder},
    numbers_of_texts,
    paths::Labels,
    reduce::{OwnedKey, distinct, items_of},
};
use crate::{
    error::QueryError,
    literal::Number,
    moment::Moment,
    plan::{By, Conversion, Given, ListStep, Name, StepKind, TextStep},
    tokens::{Dt, GType, Pop, Scope},
    value::{Value, to_big_decimal, to_f64, to_i64},
};

impl Run {
    pub(super) async fn scalar(&mut self, kind: &StepKind, labels: &Labels, batch: Batch) -> Done<Batch> {
        match kind {
            StepKind::Text(_, TextStep::Concat(given)) => self.concat(batch, given, labels).await,
            StepKind::Text(_, TextStep::Format(format, by)) => self.format(batch, format, by, labels).await,
            StepKind::Text(scope, step) => {
                let growth = self.growth.clone();
                let change = |value: &Value| scoped(*scope, value, &growth, |it| text(*scope, step, it, &growth));
                self.each_value(batch, labels, change).await
            }
            StepKind::List(step, given) => {
                let others = self.given(given, &batch).await?;
                let growth = self.growth.clone();
                let mut values = growth.column(batch.len())?;
                for (at, other) in others.into_iter().enumerate() {
                    let by_traversal = matches!(given, Given::Steps(_));
                    let own = batch.items.copy(at, &growth)?;
                    values.push(Some(lists(*step, own, other.unwrap_or_default(), by_traversal, &growth)?));
                    self.pace.rest(1).await?;
                }
                self.mapped_if(&batch, values, labels)
            }
            StepKind::Conjoin(delimiter) => {
                let growth = self.growth.clone();
                let values = self.finished(batch.items.copies(&growth)?, false).await?;
                let mut joined = growth.column(values.len())?;
                for value in values {
                    let items = collection("conjoin", value, &growth)?;
                    let mut text = growth.text();
                    for (number, item) in items.iter().filter(|item| **item != Value::Null).enumerate() {
                        if number > 0 {
                            text.push(delimiter)?;
                        }
                        text.push_value(item)?;
                    }
                    let has_items = items.is_empty() || items.iter().any(|item| *item != Value::Null);
                    joined.push(if has_items { text.finish() } else { Value::Null });
                    self.pace.rest(1 + items.len() as u64).await?;
                }
                self.mapped(batch, Items::Values(joined), labels)
            }
            StepKind::As(scope, Conversion::String) => {
                let growth = self.growth.clone();
                let finished = self.finished(batch.items.copies(&growth)?, false).await?;
                let as_text = |value: &Value| match value {
                    Value::Null => Err(QueryError::wrong_type("Can't parse null as String.")),
                    value => shown(value, &growth).map(Some),
                };
                let mut values = growth.column(finished.len())?;
                for value in &finished {
                    values.push(scoped(*scope, value, &growth, as_text)?);
                    self.pace.rest(1).await?;
                }
                self.mapped_if(&batch, values, labels)
            }
            StepKind::As(_, conversion) => {
                let growth = self.growth.clone();
                self.each_value(batch, labels, |value| converted(conversion, value, &growth).map(Some)).await
            }
            StepKind::Math(formula, by) => {
                let mut columns = Vec::with_capacity(formula.variables().len());
                for (number, name) in formula.variables().iter().enumerate() {
                    let identity = By::Identity;
                    let by = if by.is_empty() { &identity } else { &by[number % by.len()] };
                    columns.push(match &**name {
                        "_" => self.by(by, &batch).await?,
                        _ => {
                            let met = self.needed(name, "math", &batch).await?.into_iter().map(Some).collect();
                            self.by_of(by, &batch, met).await?
                        }
                    });
                }
                let computed = |at: usize| -> Done<Option<Value>> {
                    let mut values = Vec::with_capacity(columns.len());
                    for (column, name) in columns.iter().zip(formula.variables()) {
                        match &column[at] {
                            Some(Value::Number(number)) => values.push(to_f64(number)),
                            None => return Ok(None),
                            Some(other) => {
                                return Err(QueryError::wrong_type(format!(
                                    "The variable {name} for math() step must resolve to a Number - it is instead {}",
                                    kind_of(other)
                                )));
                            }
                        }
                    }
                    formula.value(&values).map(|value| Some(value.into()))
                };
                let values = (0..batch.len()).map(computed).collect::<Done<Vec<_>>>()?;
                self.mapped_if(&batch, values, labels)
            }
            StepKind::DateAdd(unit, count) => {
                self.each_value(batch, labels, |value| later(value, *unit, *count).map(Some)).await
            }
            StepKind::DateDiff(given) => {
                let others = self.given(given, &batch).await?;
                let mut values = Vec::with_capacity(batch.len());
                for (at, other) in others.into_iter().enumerate() {
                    values.push(Some(match (&*batch.items.get(at), other) {
                        (Value::DateTime(moment), Some(Value::DateTime(other))) => {
                            let between = moment.duration_since_epoch() - other.duration_since_epoch();
                            i64::try_from(between.as_millis()).unwrap_or(i64::MAX).into()
                        }
                        (Value::DateTime(moment), Some(Value::Null)) => moment.millis().into(),
                        (value, _) => {
                            return Err(QueryError::wrong_type(format!(
                                "`dateDiff` is between two points in time, and this is {}",
                                kind_of(value)
                            )));
                        }
                    }));
                }
                self.mapped_if(&batch, values, labels)
            }
            _ => Ok(batch),
        }
    }

    async fn concat(&mut self, batch: Batch, given: &[Given], labels: &Labels) -> Done<Batch> {
        let growth = self.growth.clone();
        let mut columns: Vec<Vec<Option<Value>>> = vec![self.own_values(&batch)?];
        for given in given {
            columns.push(self.given(given, &batch).await?);
        }
        let joined = |at: usize| -> Done<Value> {
            let mut text = None;
            for column in &columns {
                match &column[at] {
                    Some(Value::Text(more)) => text.get_or_insert_with(|| growth.text()).push(more)?,
                    Some(Value::Null) => {}
                    None => {
                        return Err(QueryError::wrong_type("a traversal of concat() has no result for a traverser"));
                    }
                    Some(_) => {
                        return Err(QueryError::wrong_type("String concat() can only take string as argument"));
                    }
                }
            }
            Ok(text.map_or(Value::Null, TextBuilder::finish))
        };
        let values = (0..batch.len()).map(joined).collect::<Done<Vec<_>>>()?;
        self.mapped(batch, Items::Values(values), labels)
    }

    /// `format("%{name} is %{_}")`
    async fn format(&mut self, batch: Batch, format: &Name, by: &[By], labels: &Labels) -> Done<Batch> {
        let mut pieces: Vec<(String, Option<Name>)> = Vec::new();
        let mut rest: &str = format;
        let mut literal = String::new();
        while let Some((before, behind)) = rest.split_once("%{") {
            literal.push_str(before);
            // Behind another `%` it is no name.
            if literal.ends_with('%') {
                literal.push_str("%{");
                rest = behind;
                continue;
            }
            let Some((name, after)) = behind.split_once('}') else {
                literal.push_str("%{");
                rest = behind;
                break;
            };
            pieces.push((std::mem::take(&mut literal), Some(name.into())));
            rest = after;
        }
        literal.push_str(rest);
        pieces.push((literal, None));
        let growth = self.growth.clone();
        let mut texts: Vec<Option<TextBuilder<'_>>> = growth.column(batch.len())?;
        texts.extend((0..batch.len()).map(|_| Some(growth.text())));
        let mut number = 0;
        for (before, name) in pieces {
            texts.iter_mut().flatten().try_for_each(|text| text.push(&before))?;
            let Some(name) = name else { continue };
            let values = if &*name == "_" {
                let identity = By::Identity;
                let one = if by.is_empty() { &identity } else { &by[number % by.len()] };
                number += 1;
                self.by(one, &batch).await?
            } else {
                let read = self.read(elements(&batch), Wanted::Named(std::slice::from_ref(&name))).await?;
                let met = self.met(&name, Pop::Last, &batch).await?;
                let value = |(at, met): (usize, Option<Value>)| {
                    let own = batch.items.element(at).and_then(|element| read.first(element, &name));
                    own.map(|value| growth.built(value)).transpose().map(|own| own.or(met))
                };
                met.into_iter().enumerate().map(value).collect::<Done<Vec<_>>>()?
            };
            let values =
                self.finished(values.into_iter().map(|it| it.unwrap_or(Value::Token(ABSENT))).collect(), false).await?;
            for (text, value) in texts.iter_mut().zip(values) {
                match (value, text.as_mut()) {
                    (Value::Token(ABSENT), _) => *text = None,
                    (value, Some(text)) => text.push_value(&value)?,
                    _ => {}
                }
            }
        }
        let values = texts.into_iter().map(|text| text.map(TextBuilder::finish)).collect();
        self.mapped_if(&batch, values, labels)
    }
}

/// What a pair takes besides its values.
const PAIR_BYTES: usize = size_of::<Value>() + ALLOCATION_BYTES;

/// Stands for a value that is not there, among values.
const ABSENT: crate::tokens::Token = crate::tokens::Token::Pick(crate::tokens::Pick::Unproductive);

/// A change of a value, or of each item of it.
fn scoped(
    scope: Scope,
    value: &Value,
    growth: &Growth,
    change: impl Fn(&Value) -> Done<Option<Value>>,
) -> Done<Option<Value>> {
    match (scope, value) {
        (Scope::Local, Value::List(items) | Value::Set(items)) => {
            let mut changed = growth.column(items.len())?;
            for item in items {
                let before = growth.taken();
                let value = change(item)?.unwrap_or_default();
                growth.at_least(before, value_bytes(&value))?;
                changed.push(value);
            }
            Ok(Some(Value::List(changed)))
        }
        (Scope::Local, Value::BulkSet(_)) => {
            let items = items_of(growth.copy(value)?, growth)?;
            scoped(scope, &Value::List(items), growth, change)
        }
        _ => change(value),
    }
}

fn not_a_text(step: &str, value: &Value) -> QueryError {
    QueryError::wrong_type(format!(
        "The {step}() step can only take string as argument, and this is {}",
        kind_of(value)
    ))
}

fn name(step: &TextStep) -> &'static str {
    match step {
        TextStep::Concat(_) => "concat",
        TextStep::Format(..) => "format",
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
        TextStep::Concat(_) | TextStep::Format(..) => text.to_string(),
    };
    Ok(Some(Value::Text(changed.into())))
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
    let (start, end) = (at(start), end.map_or(length, at));
    if end <= start {
        return Ok("");
    }
    let (start, end) = (byte_of(text, start)?, byte_of(text, end)?);
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

/// The pieces between separators, as TinkerPop has them: separators next to each other are one, one at the beginning is
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

/// A value as text.
fn shown(value: &Value, growth: &Growth) -> Done<Value> {
    let mut text = growth.text();
    text.push_value(value)?;
    Ok(text.finish())
}

/// Bytes of a value that a message has.
const MESSAGE_BYTES: usize = 200;

/// The beginning of a value as text, for a message: it may have gigabytes.
fn briefly(value: &Value) -> String {
    struct Beginning(String);
    impl Write for Beginning {
        fn write_str(&mut self, more: &str) -> fmt::Result {
            let left = MESSAGE_BYTES.saturating_sub(self.0.len());
            if more.len() <= left {
                self.0.push_str(more);
                return Ok(());
            }
            self.0.push_str(&more[..more.floor_char_boundary(left)]);
            self.0.push('…');
            Err(fmt::Error)
        }
    }
    let mut beginning = Beginning(String::new());
    // It ends with an error where the text is cut.
    let _ = write!(beginning, "{value}");
    beginning.0
}

fn converted(conversion: &Conversion, value: &Value, growth: &Growth) -> Done<Value> {
    let cannot = |to: &str| QueryError::wrong_type(format!("Can't parse {} as {to}.", briefly(value)));
    match conversion {
        Conversion::String => shown(value, growth),
        Conversion::Boolean => match value {
            Value::Boolean(_) => Ok(value.clone()),
            Value::Number(number) => {
                let number = to_f64(number);
                Ok((number != 0.0 && !number.is_nan()).into())
            }
            Value::Text(text) if trimmed(text).eq_ignore_ascii_case("true") => Ok(true.into()),
            Value::Text(text) if trimmed(text).eq_ignore_ascii_case("false") => Ok(false.into()),
            _ => Err(cannot("Boolean")),
        },
        Conversion::Date => match value {
            Value::DateTime(..) => Ok(value.clone()),
            Value::Number(Number::Byte(_) | Number::Short(_) | Number::Int(_) | Number::Long(_)) => {
                let Value::Number(number) = value else { return Err(cannot("date")) };
                let since = SignedDuration::from_millis(to_i64(number));
                Ok(Value::DateTime(Moment::since_epoch(since).ok_or_else(|| cannot("date"))?))
            }
            Value::Text(text) => Moment::parse(text).map(Value::DateTime).ok_or_else(|| cannot("date")),
            _ => Err(cannot("date")),
        },
        Conversion::Number(kind) => {
            let number = match value {
                Value::Number(number) => number.clone(),
                Value::Null => return Ok(Value::Null),
                Value::Text(text) => numbers_of_texts::parse(trimmed(text), growth)?.ok_or_else(|| {
                    QueryError::wrong_type(format!("Can't parse string '{}' as number.", briefly(value)))
                })?,
                Value::DateTime(moment) => Number::Long(moment.millis()),
                Value::List(_) => return Err(QueryError::wrong_type("Can't parse type ArrayList as number.")),
                other => {
                    return Err(QueryError::wrong_type(format!("Can't parse type {} as number.", kind_of(other))));
                }
            };
            let Some(kind) = kind else { return Ok(number.into()) };
            let number = cast(&number, *kind)?;
            number.beyond().map_or(Ok(number.into()), |limit| Err(QueryError::wrong_type(limit)))
        }
    }
}

/// As `String.trim` of Java: without what is not above a space.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|character| character <= ' ')
}

fn cast(number: &Number, kind: GType) -> Done<Number> {
    let overflow = || {
        QueryError::wrong_type(format!(
            "Can't convert number of type {} to {} due to overflow.",
            type_name(number),
            target(kind)
        ))
    };
    let whole = || -> Done<i64> {
        match number {
            Number::BigInteger(big) => big.to_i64().ok_or_else(overflow),
            Number::BigDecimal(big) => big.to_i64().ok_or_else(overflow),
            Number::Float(_) | Number::Double(_) => {
                let number = to_f64(number);
                // Both bounds are powers of two, and so exact.
                let fits = (i64::MIN as f64..-(i64::MIN as f64)).contains(&number);
                if fits { Ok(number as i64) } else { Err(overflow()) }
            }
            other => Ok(to_i64(other)),
        }
    };
    Ok(match kind {
        GType::Byte => Number::Byte(i8::try_from(whole()?).map_err(|_| overflow())?),
        GType::Short => Number::Short(i16::try_from(whole()?).map_err(|_| overflow())?),
        GType::Int => Number::Int(i32::try_from(whole()?).map_err(|_| overflow())?),
        GType::Long => Number::Long(whole()?),
        GType::Float => {
            let (wide, narrow) = (to_f64(number), to_f64(number) as f32);
            if narrow.is_infinite() && !wide.is_infinite() {
                return Err(overflow());
            }
            Number::Float(narrow)
        }
        GType::Double => {
            let wide = match number {
                // As its text has it: 0.1 does not become 0.10000000149011612.
                Number::Float(float) => float.to_string().parse().unwrap_or(f64::from(*float)),
                number => to_f64(number),
            };
            let finite = !matches!(number, Number::Float(_) | Number::Double(_));
            if wide.is_infinite() && finite {
                return Err(overflow());
            }
            Number::Double(wide)
        }
        GType::BigInt => match number {
            Number::BigInteger(_) => number.clone(),
            Number::BigDecimal(big) => Number::BigInteger(big.with_scale(0).into_bigint_and_exponent().0),
            Number::Float(_) | Number::Double(_) if !to_f64(number).is_finite() => return Err(overflow()),
            Number::Float(float) => {
                Number::BigInteger(BigInt::from_f64(f64::from(*float).trunc()).ok_or_else(overflow)?)
            }
            // As its text has it.
            Number::Double(_) => Number::BigInteger(to_big_decimal(number).with_scale(0).into_bigint_and_exponent().0),
            other => Number::BigInteger(to_i64(other).into()),
        },
        GType::BigDecimal => match number {
            Number::BigDecimal(_) => number.clone(),
            Number::BigInteger(big) => Number::BigDecimal(BigDecimal::from(big.clone())),
            Number::Float(_) | Number::Double(_) if !to_f64(number).is_finite() => return Err(overflow()),
            Number::Float(_) | Number::Double(_) => Number::BigDecimal(to_big_decimal(number)),
            other => Number::BigDecimal(BigDecimal::from(to_i64(other))),
        },
        GType::Number => number.clone(),
        other => {
            return Err(QueryError::wrong_type(format!(
                "asNumber() requires a numeric type token, got {}",
                other.name()
            )));
        }
    })
}

fn type_name(number: &Number) -> &'static str {
    match number {
        Number::Byte(_) => "Byte",
        Number::Short(_) => "Short",
        Number::Int(_) => "Integer",
        Number::Long(_) => "Long",
        Number::BigInteger(_) => "BigInteger",
        Number::Float(_) => "Float",
        Number::Double(_) => "Double",
        Number::BigDecimal(_) => "BigDecimal",
    }
}

fn target(kind: GType) -> &'static str {
    match kind {
        GType::Byte => "Byte",
        GType::Short => "Short",
        GType::Int => "Integer",
        GType::Long => "Long",
        GType::Float => "Float",
        GType::Double => "Double",
        other => other.name(),
    }
}

fn later(value: &Value, unit: Dt, count: i64) -> Done<Value> {
    let Value::DateTime(moment) = value else {
        return Err(QueryError::wrong_type(format!("`dateAdd` is of a point in time, and this is {}", kind_of(value))));
    };
    let seconds = match unit {
        Dt::Second => 1,
        Dt::Minute => 60,
        Dt::Hour => 3_600,
        Dt::Day => 86_400,
    };
    let added = count.checked_mul(seconds).map(SignedDuration::from_secs).and_then(|it| moment.checked_add(it));
    let added = added.ok_or_else(|| QueryError::wrong_type("`dateAdd` goes beyond the years that there are"))?;
    Ok(Value::DateTime(added))
}

fn collection(step: &str, value: Value, growth: &Growth) -> Done<Vec<Value>> {
    match value {
        Value::Path(path) => Ok(path.steps.into_iter().map(|(item, _)| item).collect()),
        Value::List(_) | Value::Set(_) | Value::BulkSet(_) => items_of(value, growth),
        Value::Null => Err(QueryError::wrong_type(format!("Incoming traverser for {step} step can't be null"))),
        other => Err(QueryError::wrong_type(format!(
            "{step} step can only take an array or an Iterable type for incoming traversers, encountered {}",
            kind_of(&other)
        ))),
    }
}

fn lists(step: ListStep, left: Value, right: Value, by_traversal: bool, growth: &Growth) -> Done<Value> {
    let name = match step {
        ListStep::Combine => "combine",
        ListStep::Merge => "merge",
        ListStep::Difference => "difference",
        ListStep::Disjunct => "disjunct",
        ListStep::Intersect => "intersect",
        ListStep::Product => "product",
    };
    if let (ListStep::Merge, Value::Map(_), Value::Map(_)) = (step, &left, &right) {
        return super::reduce::operate(crate::tokens::Operator::AddAll, left, right, growth);
    }
    if let (ListStep::Merge, Value::Map(_)) = (step, &left) {
        return Err(QueryError::wrong_type(format!(
            "{name} step expected provided argument to evaluate to a Map, encountered {}",
            kind_of(&right)
        )));
    }
    let left = collection(name, left, growth)?;
    let right = match right {
        Value::Path(path) => path.steps.into_iter().map(|(item, _)| item).collect(),
        right @ (Value::List(_) | Value::Set(_) | Value::BulkSet(_)) => items_of(right, growth)?,
        other => {
            let kind = kind_of(&other);
            return Err(QueryError::wrong_type(match (&other, by_traversal) {
                (Value::Null, true) => {
                    format!("traversal argument for {name} step must yield an iterable type, not null")
                }
                (_, true) => {
                    format!("traversal argument for {name} step must yield an iterable type, encountered {kind}")
                }
                (Value::Null, false) => format!("Argument provided for {name} step can't be null"),
                (Value::Map(_), false) if step == ListStep::Merge => {
                    format!("{name} step type mismatch: expected argument to be Iterable but got Map")
                }
                _ => format!("{name} step can only take an array or an Iterable as an argument, encountered {kind}"),
            }));
        }
    };
    // For lists and sets of both: values move into them, or are copied as they are counted.
    growth.take((left.len() + right.len()).saturating_mul(4 * size_of::<Value>()))?;
    let keys = |values: &[Value]| Ok::<_, QueryError>(growth.copy_all(values)?.into_iter().map(OwnedKey).collect());
    let without = |values: Vec<Value>, others: &HashSet<OwnedKey>| {
        distinct(values.into_iter().filter(|value| !others.contains(&OwnedKey(value.clone()))), growth)
    };
    Ok(match step {
        ListStep::Combine => Value::List(left.into_iter().chain(right).collect()),
        ListStep::Merge => Value::Set(distinct(left.into_iter().chain(right), growth)?),
        ListStep::Difference => Value::Set(without(left, &keys(&right)?)?),
        ListStep::Disjunct => {
            let of_left: HashSet<OwnedKey> = keys(&left)?;
            let of_right: HashSet<OwnedKey> = keys(&right)?;
            let mut all = without(left, &of_right)?;
            all.extend(without(right, &of_left)?);
            Value::Set(all)
        }
        ListStep::Intersect => {
            let others: HashSet<OwnedKey> = keys(&right)?;
            let common = left.into_iter().filter(|value| others.contains(&OwnedKey(value.clone())));
            Value::Set(distinct(common, growth)?)
        }
        ListStep::Product => {
            // Every value is in as many pairs as the other list has values.
            let bytes = |values: &[Value]| values.iter().map(value_bytes).sum::<usize>();
            let pairs = left.len().saturating_mul(right.len()).saturating_mul(PAIR_BYTES);
            let copies =
                bytes(&left).saturating_mul(right.len()).saturating_add(bytes(&right).saturating_mul(left.len()));
            growth.take(pairs.saturating_add(copies))?;
            let mut pairs = Vec::with_capacity(left.len() * right.len());
            for a in &left {
                for b in &right {
                    growth.work(2)?;
                    pairs.push(Value::List(vec![a.clone(), b.clone()]));
                }
            }
            Value::List(pairs)
        }
    })
}
