//! The grammar of conditions.
//!
//! ```text
//! list    = any ("," any)*                         a comma binds weakest, and means `and`
//! any     = all ("or" all)*
//! all     = single ("and" single)*
//! single  = "not" single | "(" list ")" | test
//! test    = property (sign value | "is" ["not"] "null" | ["not"] member)
//! member  = "in" values | "between" value "and" value | ("starts" | "ends") "with" value | "contains" value
//! values  = "(" [value ("," value)*] ")"
//! property = ["edge." | "vertex."] name
//! ```
//! Words of the grammar may be written in capitals. Names and values are plain or in quotes, see [`quoting`](crate::quoting); a plain
//! one ends at white space. Where a value is expected any word is one, so `state = or` finds Oregon.

use winnow::{
    Parser,
    combinator::{alt, cut_err, opt, preceded, repeat},
    error::{ErrMode, ParserError},
    stream::{Stateful, Stream},
    token::{literal, take_while},
};

use super::{Comparison, Condition, Formula, Operand, PropertyName, PropertyOf, Requirement, Test, logic};
use crate::{EngineError, quoting};

/// Parentheses and `not` within each other: the parser, the evaluation and the text of a condition recurse as deep.
const DEPTH_MAX: u32 = 64;

/// The longest text of a condition.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// The most tests of a condition: each has a verdict on every row.
pub(super) const TESTS_MAX: usize = 1_000;

/// Words that mean something where a property is expected, or behind a complete test.
const WORDS: [&str; 10] = ["and", "or", "not", "in", "between", "is", "null", "starts", "with", "contains"];

const TEST: &str = "a comparison (=, !=, <, <=, >, >=, in, between, is null, starts with, ends with or contains)";
const MEMBER: &str = "in, between, starts with, ends with or contains";
const VALUE: &str = "a value";

/// Longer signs first, so that `>=` is not read as `>`.
const SIGNS: [Comparison; 6] = [
    Comparison::NotEqual,
    Comparison::LessOrEqual,
    Comparison::GreaterOrEqual,
    Comparison::Equal,
    Comparison::Less,
    Comparison::Greater,
];

type Node = logic::Node<Test>;
type Input<'t> = Stateful<&'t str, u32>;
type Parsed<T> = Result<T, ErrMode<Wrong>>;

/// Why a text is not a condition, as the end of a sentence.
#[derive(Debug, Default)]
struct Wrong(String);

impl<'t> ParserError<Input<'t>> for Wrong {
    type Inner = Self;

    fn from_input(_: &Input<'t>) -> Self {
        Self::default()
    }

    fn into_inner(self) -> Result<Self, Self> {
        Ok(self)
    }
}

impl std::str::FromStr for Condition {
    type Err = EngineError;

    fn from_str(text: &str) -> Result<Self, EngineError> {
        let wrong = |why: &str| {
            let shown = if text.len() > 200 { "the text".to_owned() } else { format!("{text:?}") };
            EngineError::Invalid(format!("{shown} is not a valid condition: it {why}"))
        };
        let (condition, rest) = take(text).map_err(|why| wrong(&why))?;
        match rest.is_empty() {
            true => Ok(condition),
            false => Err(wrong(&behind(rest))),
        }
    }
}

/// Reads a condition from the beginning of a text, and returns what is left.
///
/// # Errors
/// As the end of a sentence.
fn take(text: &str) -> Result<(Condition, &str), String> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(format!("has {} bytes; a condition has at most {TEXT_BYTES_MAX}", text.len()));
    }
    let mut input = Input { input: text, state: 0 };
    let node = list(&mut input).map_err(|error| match error {
        ErrMode::Backtrack(Wrong(why)) | ErrMode::Cut(Wrong(why)) => why,
        ErrMode::Incomplete(_) => "is incomplete".to_owned(),
    })?;
    let condition = Condition(Formula(node));
    condition.check_size().map_err(|_| format!("has more than {TESTS_MAX} tests"))?;
    Ok((condition, input.input.trim_start()))
}

impl Condition {
    /// Reads conditions in brackets up to the end of a text, as behind a hop or a label: `[age > 30][name = Ann]`. With several, all have to
    /// match; `None` without any.
    ///
    /// # Errors
    /// As the end of a sentence.
    pub fn in_brackets(text: &str) -> Result<Option<Self>, String> {
        let mut rest = text;
        let mut all: Option<Self> = None;
        while !rest.trim().is_empty() {
            let inside = rest.trim_start().strip_prefix('[').ok_or_else(|| format!("has {rest:?} at its end"))?;
            let (condition, behind_it) = take(inside)?;
            rest = match behind_it.strip_prefix(']') {
                Some(rest) => rest,
                None if behind_it.is_empty() => return Err("has a [ that is not closed".into()),
                None => return Err(behind(behind_it)),
            };
            all = Some(match all {
                Some(before) => before.and(condition),
                None => condition,
            });
        }
        // Each was small enough; together they may not be.
        all.iter().try_for_each(Self::check_size).map_err(|_| format!("has more than {TESTS_MAX} tests"))?;
        Ok(all)
    }
}

/// What is wrong with something behind a complete condition.
fn behind(rest: &str) -> String {
    format!(
        "has {} behind a complete test; write `and` or `or` between two, and a value with white space in quotes",
        shown(rest)
    )
}

fn list(input: &mut Input<'_>) -> Parsed<Node> {
    joined(any, ",", Node::all).parse_next(input)
}

fn any(input: &mut Input<'_>) -> Parsed<Node> {
    joined(all, "or", Node::any).parse_next(input)
}

fn all(input: &mut Input<'_>) -> Parsed<Node> {
    joined(single, "and", Node::all).parse_next(input)
}

/// One or more, with a word or sign between them. What follows that has to be one more.
fn joined<'t>(
    part: fn(&mut Input<'t>) -> Parsed<Node>,
    between: &'static str,
    join: fn(Vec<Node>) -> Node,
) -> impl Parser<Input<'t>, Node, ErrMode<Wrong>> {
    move |input: &mut Input<'t>| {
        let first = part(input)?;
        let more: Vec<Node> = repeat(0.., preceded(word(between), cut_err(part))).parse_next(input)?;
        Ok(join(std::iter::once(first).chain(more).collect()))
    }
}

fn single(input: &mut Input<'_>) -> Parsed<Node> {
    // The test within is a level of its own.
    if input.state > DEPTH_MAX {
        return Err(ErrMode::Cut(Wrong(format!("nests more than {DEPTH_MAX} parentheses and `not`"))));
    }
    input.state += 1;
    let node = if opt(word("not")).parse_next(input)?.is_some() {
        Node::Not(Box::new(single(input)?))
    } else if opt(word("(")).parse_next(input)?.is_some() {
        let node = list(input)?;
        required(word(")"), "`)`, `and` or `or`").parse_next(input)?;
        node
    } else {
        test(input)?
    };
    input.state -= 1;
    Ok(node)
}

fn test(input: &mut Input<'_>) -> Parsed<Node> {
    let property = required(property, "a property").parse_next(input)?;
    let is = |requirement| (false, requirement);
    let mut requirement = alt((
        compared.map(is),
        member.map(is),
        preceded(word("not"), required(member, MEMBER)).map(|requirement| (true, requirement)),
        preceded(word("is"), cut_err(null)),
    ));
    let (negated, requirement) = required(requirement.by_ref(), TEST).parse_next(input)?;
    let node = Node::Test(Test::Property(property, requirement));
    Ok(if negated { Node::Not(Box::new(node)) } else { node })
}

/// A requirement that may stand behind `not`.
fn member(input: &mut Input<'_>) -> Parsed<Requirement> {
    let starts = (word("starts"), required(word("with"), "`with`"));
    let ends = (word("ends"), required(word("with"), "`with`"));
    alt((
        preceded(word("in"), cut_err(values)).map(Requirement::OneOf),
        preceded(word("between"), cut_err(between)),
        preceded(starts, cut_err(value)).map(Requirement::StartsWith),
        preceded(ends, cut_err(value)).map(Requirement::EndsWith),
        preceded(word("contains"), cut_err(value)).map(|value| Requirement::Contains(value.into())),
    ))
    .parse_next(input)
}

/// What follows `is`, and whether it is negated.
fn null(input: &mut Input<'_>) -> Parsed<(bool, Requirement)> {
    let negated = opt(word("not")).parse_next(input)?.is_some();
    required(word("null"), "`null` or `not null`").parse_next(input)?;
    Ok((negated, Requirement::IsNull))
}

fn compared(input: &mut Input<'_>) -> Parsed<Requirement> {
    space(input);
    let sign = SIGNS.into_iter().find(|comparison| input.input.starts_with(comparison.sign()));
    let sign = sign.ok_or_else(|| ErrMode::Backtrack(Wrong::default()))?;
    literal(sign.sign()).parse_next(input)?;
    cut_err(value).map(|value| Requirement::Compare(sign, value.into())).parse_next(input)
}

fn between(input: &mut Input<'_>) -> Parsed<Requirement> {
    let least = value(input)?.into();
    required(word("and"), "`and` and the greatest value").parse_next(input)?;
    Ok(Requirement::Between(least, value(input)?.into()))
}

fn values(input: &mut Input<'_>) -> Parsed<Vec<Operand>> {
    required(word("("), "`(`").parse_next(input)?;
    if opt(word(")")).parse_next(input)?.is_some() {
        return Ok(Vec::new());
    }
    let mut all = vec![value(input)?.into()];
    loop {
        match required(alt((word(","), word(")"))), "`,` or `)`").parse_next(input)? {
            ")" => return Ok(all),
            _ => all.push(value(input)?.into()),
        }
    }
}

fn property(input: &mut Input<'_>) -> Parsed<PropertyName> {
    space(input);
    let owners = [("edge.", PropertyOf::Edge), ("vertex.", PropertyOf::Vertex)];
    let owner = owners.into_iter().find(|(prefix, _)| input.input.starts_with(prefix));
    let (prefix, of) = owner.unwrap_or(("", PropertyOf::Either));
    literal(prefix).parse_next(input)?;
    if let Some(name) = quoted(input)? {
        return Ok(PropertyName { of, name });
    }
    let name = take_while(1.., is_of_property).parse_next(input)?;
    // A word of the grammar here is a slip, such as `and and`; a property of that name stands in quotes.
    match is_word(name) {
        true => Err(ErrMode::Backtrack(Wrong::default())),
        false => Ok(PropertyName { of, name: name.to_owned() }),
    }
}

fn value(input: &mut Input<'_>) -> Parsed<String> {
    space(input);
    if let Some(text) = quoted(input)? {
        return Ok(text);
    }
    let begin = input.checkpoint();
    let text: &str = required(take_while(1.., is_of_value), VALUE).parse_next(input)?;
    let why = if text.starts_with(['=', '<', '>']) {
        format!("has {text:?} behind a comparison; write a value that begins with =, < or > in quotes")
    } else if text.eq_ignore_ascii_case("null") {
        "compares with null; write `is null` or `is not null`, or the text \"null\" in quotes".to_owned()
    } else {
        return Ok(text.to_owned());
    };
    input.reset(&begin);
    Err(ErrMode::Cut(Wrong(why)))
}

/// Text in quotes, if there is a quote.
fn quoted(input: &mut Input<'_>) -> Parsed<Option<String>> {
    let Some(quote) = input.input.chars().next().filter(|first| matches!(first, '"' | '\'')) else { return Ok(None) };
    let Some((inside, rest)) = quoting::unquote(&input.input[1..], quote) else {
        return Err(ErrMode::Cut(Wrong(format!("has a {quote} that is not closed"))));
    };
    if rest.starts_with(|next| !ends_plain(next)) && !rest.starts_with(['=', '<', '>', '!']) {
        return Err(ErrMode::Cut(Wrong(format!("has {} after a closing {quote}", shown(rest)))));
    }
    let inside = inside.into_owned();
    input.input = rest;
    Ok(Some(inside))
}

/// A word of the grammar, or a sign, with white space before it.
fn word<'t>(wanted: &'static str) -> impl Parser<Input<'t>, &'static str, ErrMode<Wrong>> {
    move |input: &mut Input<'t>| {
        let begin = input.checkpoint();
        space(input);
        let is_sign = !wanted.starts_with(|first: char| first.is_ascii_alphabetic());
        let there = input.input.get(..wanted.len()).is_some_and(|text| text.eq_ignore_ascii_case(wanted));
        let ends =
            || input.input[wanted.len()..].chars().next().is_none_or(|next| ends_plain(next) || "(\"'".contains(next));
        if there && (is_sign || ends()) {
            input.next_slice(wanted.len());
            return Ok(wanted);
        }
        input.reset(&begin);
        Err(ErrMode::Backtrack(Wrong::default()))
    }
}

/// A parser that has to succeed; if it does not, the text lacks what is `expected`.
fn required<'t, T>(
    mut parser: impl Parser<Input<'t>, T, ErrMode<Wrong>>,
    expected: &'static str,
) -> impl Parser<Input<'t>, T, ErrMode<Wrong>> {
    move |input: &mut Input<'t>| {
        let begin = input.checkpoint();
        parser.parse_next(input).map_err(|error| match error {
            ErrMode::Backtrack(_) => {
                input.reset(&begin);
                space(input);
                ErrMode::Cut(Wrong(match input.input.is_empty() {
                    true => format!("ends where {expected} is needed"),
                    false => format!("has {} where {expected} is needed", shown(input.input)),
                }))
            }
            cut => cut,
        })
    }
}

fn space(input: &mut Input<'_>) {
    input.input = input.input.trim_start();
}

/// The beginning of a text, as a message shows it.
fn shown(text: &str) -> String {
    let end = text.char_indices().nth(20).map_or(text.len(), |(at, _)| at);
    if end == text.len() { format!("{text:?}") } else { format!("{:?}…", &text[..end]) }
}

/// Whether a plain name or value ends before it.
fn ends_plain(next: char) -> bool {
    next.is_whitespace() || matches!(next, ',' | ')' | ']')
}

fn is_of_value(next: char) -> bool {
    !ends_plain(next)
}

fn is_of_property(next: char) -> bool {
    !ends_plain(next) && !matches!(next, '=' | '<' | '>' | '!' | '(' | '[' | '"' | '\'')
}

fn is_word(text: &str) -> bool {
    WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Whether a property of this name is read as itself without quotes.
pub(super) fn is_plain_property(name: &str) -> bool {
    let qualified = name.starts_with("edge.") || name.starts_with("vertex.");
    !name.is_empty() && name.chars().all(is_of_property) && !is_word(name) && !qualified
}

/// Whether a value is read as itself without quotes.
pub(super) fn is_plain_value(value: &str) -> bool {
    let begins = value.starts_with(['=', '<', '>', '"', '\'', '(']);
    !value.is_empty() && value.chars().all(is_of_value) && !is_word(value) && !begins
}
