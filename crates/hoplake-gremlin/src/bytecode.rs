//! The language as drivers send it: instructions, each a name and arguments.
//!
//! A codec reads instructions; here they become the [`Script`] that the same traversal as text is. What differs:
//!
//! | bytecode | script |
//! | --- | --- |
//! | a binding | its value |
//! | `withStrategies(OptionsStrategy)` | `with(key, value)` for each option; text may leave out a value that is `true` |
//! | `CardinalityValueTraversal(set, x)` | `set(x)` |
//! | the class of a strategy or type, and a strategy in `withoutStrategies` | its simple name |
//! | the instruction `tx("commit")` | the transaction |
//! | `within` with its values one by one | the same; text may have them in one list |
//! | `eq` or another comparison with no value or several | the list of them: drivers take the brackets off |
//! | `discard()` as its last step | the same; text may have `iterate()` |
//!
//! The Java driver's methods do more than to note a call: `between(a, b)` is `gte(a).and(lt(b))`, `not` of joined predicates joins
//! their negations, `property` of a map is one call for each entry, and `shortestPath` follows an `identity`. Those scripts differ from
//! that of the text and mean the same.
//!
//! Lambdas are code, and rejected.

use hoplake_query::{
    error::QueryError,
    literal::Literal,
    plan::Test,
    tokens::{Cardinality, Token},
    value::{BULK_SET_TABLES, Hashed, Key, TABLES_MAX, Value, Vertex},
};

use crate::script::{Argument, Call, Predicate, Script, Statement, Strategy, Terminal, Transaction, Traversal};

/// Instructions as a codec has read them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bytecode {
    /// What configures the source.
    pub sources: Vec<Call>,
    /// The steps.
    pub steps: Vec<Call>,
}

impl Bytecode {
    /// The script that it is as a whole query.
    ///
    /// # Errors
    /// What is wrong with its transaction.
    pub fn into_script(self) -> Result<Script, String> {
        let statement = match (&self.sources[..], self.steps.is_empty()) {
            ([call], true) if &*call.name == "tx" => Statement::Transaction(transaction(call)?),
            (_, true) => Statement::Nothing,
            (_, false) => {
                let source = self.sources.into_iter().flat_map(source_calls).collect();
                Statement::Traversal(Traversal { source, steps: self.steps }, Terminal::All)
            }
        };
        Ok(Script { statements: vec![statement] })
    }

    /// The argument that it is within another traversal.
    ///
    /// # Errors
    /// That it has a source.
    pub fn into_argument(mut self) -> Result<Argument, String> {
        match (self.sources.pop(), self.sources.is_empty(), self.steps.is_empty()) {
            (None, ..) => Ok(Argument::Traversal(self.steps)),
            (Some(mut call), true, true) if &*call.name == "CardinalityValueTraversal" => {
                let value = call.arguments.pop();
                // Java sends its name as text.
                let cardinality = match &call.arguments[..] {
                    [Argument::Token(Token::Cardinality(cardinality))] => Some(*cardinality),
                    [Argument::Literal(Literal::Text(name))] => Cardinality::named(name),
                    _ => None,
                };
                match (cardinality, value) {
                    (Some(cardinality), Some(value)) => Ok(Argument::Cardinality(cardinality, Box::new(value))),
                    _ => Err("CardinalityValueTraversal takes a cardinality and a value".into()),
                }
            }
            (Some(call), ..) => Err(format!("a traversal in another has no source, and this one has `{}`", call.name)),
        }
    }
}

fn transaction(call: &Call) -> Result<Transaction, String> {
    match &call.arguments[..] {
        [Argument::Literal(Literal::Text(what))] => match &**what {
            "begin" => Ok(Transaction::Begin),
            "commit" => Ok(Transaction::Commit),
            "rollback" => Ok(Transaction::Rollback),
            other => Err(format!("`tx` takes begin, commit or rollback, and not {other:?}")),
        },
        _ => Err("`tx` takes begin, commit or rollback".into()),
    }
}

/// Options are a strategy in bytecode, and calls of `with` in text.
fn source_calls(mut call: Call) -> Vec<Call> {
    if &*call.name == "withoutStrategies" {
        for argument in &mut call.arguments {
            if let Argument::Strategy(Strategy { name, .. }) = argument {
                *argument = Argument::Name(std::mem::take(name));
            }
        }
    }
    let is_options = |argument: &Argument| matches!(argument, Argument::Strategy(it) if &*it.name == "OptionsStrategy");
    if &*call.name != "withStrategies" || !call.arguments.iter().any(is_options) {
        return vec![call];
    }
    let mut calls = Vec::new();
    let mut others = Vec::new();
    for argument in call.arguments {
        match argument {
            Argument::Strategy(strategy) if &*strategy.name == "OptionsStrategy" => {
                calls.extend(strategy.options.into_iter().map(|(key, value)| Call {
                    name: "with".into(),
                    arguments: vec![Argument::Literal(Literal::Text(key)), value],
                }));
            }
            other => others.push(other),
        }
    }
    if !others.is_empty() {
        call.arguments = others;
        calls.push(call);
        return calls;
    }
    calls
}

/// The predicate of a name and its values.
///
/// # Errors
/// That there is no such predicate, or what is wrong with the predicates that it joins.
pub fn predicate(name: &str, values: Vec<Argument>) -> Result<Predicate, String> {
    let joined = |values: Vec<Argument>| {
        let predicates = values.into_iter().map(|value| match value {
            Argument::Predicate(predicate) => Ok(predicate),
            _ => Err(format!("`{name}` joins predicates alone")),
        });
        predicates.collect::<Result<Vec<_>, _>>()
    };
    match name {
        "and" | "or" => {
            let mut predicates = joined(values)?.into_iter();
            let is_and = name == "and";
            let mut all = match (predicates.next(), is_and) {
                // One level for a row that is joined from the left, as of text.
                (Some(Predicate::And(all)), true) | (Some(Predicate::Or(all)), false) => all,
                (Some(first), _) => vec![first],
                (None, _) => return Err(format!("`{name}` joins no predicate")),
            };
            all.extend(predicates);
            Ok(if is_and { Predicate::And(all) } else { Predicate::Or(all) })
        }
        "not" => {
            let mut predicates = joined(values)?;
            match (predicates.pop(), predicates.is_empty()) {
                (Some(denied), true) => Ok(Predicate::Not(Box::new(denied))),
                _ => Err("`not` takes one predicate".into()),
            }
        }
        _ => {
            let test = Test::named(name).ok_or_else(|| format!("`{name}` is not a predicate"))?;
            let takes_one = matches!(test, Test::Eq | Test::Neq | Test::Lt | Test::Lte | Test::Gt | Test::Gte);
            match takes_one && values.len() != 1 {
                true => Ok(Predicate::Test(test, vec![Argument::List(values)])),
                false => Ok(Predicate::Test(test, values)),
            }
        }
    }
}

/// A strategy from the name of its class and its options.
pub fn strategy(class: &str, options: Vec<(Box<str>, Argument)>) -> Argument {
    Argument::Strategy(Strategy { name: simple_name(class).into(), options })
}

/// A class that is an argument, such as one of `withoutStrategies`.
pub fn class(class: &str) -> Argument {
    Argument::Name(simple_name(class).into())
}

fn simple_name(class: &str) -> &str {
    class.rsplit(['.', '$']).next().unwrap_or(class)
}

/// An argument cannot be a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAValue {
    /// It is something else, such as a traversal.
    #[error("{0} is not a value")]
    Other(&'static str),
    /// Finding repeats in it would take too long.
    #[error(
        "sets and keys of maps nest deeper than {TABLES_MAX} levels, of which a bulk set takes {BULK_SET_TABLES}: \
         pass inner sets as lists"
    )]
    TooDeep,
}

impl TryFrom<Argument> for Value {
    type Error = NotAValue;

    /// The value of an argument. Of equal items of a set, and of equal keys of a map, the last counts.
    fn try_from(argument: Argument) -> Result<Self, NotAValue> {
        let all = |arguments: Vec<Argument>| arguments.into_iter().map(Self::try_from).collect::<Result<Vec<_>, _>>();
        Ok(match argument {
            Argument::Literal(literal) => literal.into(),
            Argument::List(items) => Self::List(all(items)?),
            Argument::Set(items) => Self::Set(without_repeats(all(items)?, |item| item, |_| Ok::<_, NotAValue>(()))?),
            Argument::Map(entries) => {
                let entries = entries.into_iter().map(|(key, value)| Ok((key.try_into()?, value.try_into()?)));
                let entries = entries.collect::<Result<Vec<_>, NotAValue>>()?;
                Self::Map(without_repeats(entries, |(key, _)| key, |_| Ok::<_, NotAValue>(()))?)
            }
            Argument::Token(token) => Self::Token(token),
            Argument::Vertex(id, label) => {
                let Self::Text(label) = Self::try_from(*label)? else {
                    return Err(NotAValue::Other("a vertex without a label"));
                };
                Self::Vertex(Box::new(Vertex { id: (*id).try_into()?, label, properties: None }))
            }
            Argument::Value(value) => *value,
            Argument::Now => return Err(NotAValue::Other("`datetime()`")),
            Argument::RandomUuid => return Err(NotAValue::Other("`UUID()`")),
            Argument::Traversal(_) => return Err(NotAValue::Other("a traversal")),
            Argument::Predicate(_) => return Err(NotAValue::Other("a predicate")),
            Argument::Cardinality(..) => return Err(NotAValue::Other("a value with a cardinality")),
            Argument::Strategy(_) => return Err(NotAValue::Other("a strategy")),
            Argument::Name(_) => return Err(NotAValue::Other("a name")),
        })
    }
}

impl From<Value> for Argument {
    fn from(value: Value) -> Self {
        let all = |values: Vec<Value>| values.into_iter().map(Self::from).collect();
        Self::Literal(match value {
            Value::Null => Literal::Null,
            Value::Boolean(boolean) => Literal::Boolean(boolean),
            Value::Number(number) => Literal::Number(number),
            Value::Text(text) => Literal::Text(text),
            Value::Char(character) => Literal::Char(character),
            Value::DateTime(moment) => Literal::DateTime(moment),
            Value::Duration(duration) => Literal::Duration(duration),
            Value::Uuid(uuid) => Literal::Uuid(uuid),
            Value::Bytes(bytes) => Literal::Bytes(bytes),
            Value::List(items) => return Self::List(all(items)),
            Value::Set(items) => return Self::Set(all(items)),
            Value::Map(entries) => {
                return Self::Map(entries.into_iter().map(|(key, value)| (key.into(), value.into())).collect());
            }
            Value::Token(token) => return Self::Token(token),
            Value::Vertex(vertex) => {
                let label = Self::Literal(Literal::Text(vertex.label));
                return Self::Vertex(Box::new(vertex.id.into()), Box::new(label));
            }
            other => return Self::Value(Box::new(other)),
        })
    }
}

/// The bulk set of items and how many of each.
///
/// # Errors
/// [`NotAValue::TooDeep`].
pub(crate) fn bulk_set(items: Vec<(Value, u64)>) -> Result<Value, NotAValue> {
    match items.len() > 1 && Hashed::of(items.iter().map(|(item, _)| item)).tables + BULK_SET_TABLES > TABLES_MAX {
        true => Err(NotAValue::TooDeep),
        false => Ok(Value::BulkSet(items)),
    }
}

/// Keeps the place of the first and the entry of the last of those with one key. `work` gets the number of values first, before they are hashed.
///
/// # Errors
/// [`NotAValue::TooDeep`]; what `work` fails with.
pub(crate) fn without_repeats<T, E: From<NotAValue>>(
    entries: Vec<T>,
    key: impl Fn(&T) -> &Value,
    work: impl FnOnce(usize) -> Result<(), E>,
) -> Result<Vec<T>, E> {
    if entries.len() < 2 {
        return Ok(entries);
    }
    let hashed = Hashed::of(entries.iter().map(&key));
    if hashed.tables >= TABLES_MAX {
        return Err(NotAValue::TooDeep.into());
    }
    work(hashed.values)?;
    let mut places = std::collections::HashMap::with_capacity(entries.len());
    let mut kept = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let place = *places.entry(Key(key(entry))).or_insert(kept.len());
        match kept.get_mut(place) {
            Some(known) => *known = index,
            None => kept.push(index),
        }
    }
    if kept.len() == entries.len() {
        return Ok(entries);
    }
    let mut entries: Vec<Option<T>> = entries.into_iter().map(Some).collect();
    Ok(kept.into_iter().filter_map(|index| entries[index].take()).collect())
}

impl From<NotAValue> for QueryError {
    fn from(error: NotAValue) -> Self {
        Self::Invalid(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;

    fn text_of(text: &str) -> Argument {
        Argument::Literal(Literal::Text(text.into()))
    }

    fn call(name: &str, arguments: Vec<Argument>) -> Call {
        Call { name: name.into(), arguments }
    }

    #[test]
    fn options_are_calls_of_with() {
        let options = strategy("a.b.OptionsStrategy", vec![("x".into(), text_of("y")), ("z".into(), text_of("w"))]);
        let sources = vec![call("withStrategies", vec![options, strategy("a.ReadOnlyStrategy", vec![])])];
        let script = Bytecode { sources, steps: vec![call("V", vec![])] }.into_script().unwrap();
        let same = "g.with('x', 'y').with('z', 'w').withStrategies(ReadOnlyStrategy()).V()";
        assert_eq!(script, text::parse(same).unwrap());
    }

    #[test]
    fn predicates_are_those_of_text() {
        let gt = |number: i32| {
            predicate("gt", vec![Argument::Literal(Literal::Number(hoplake_query::literal::Number::Int(number)))])
        };
        let and = |left, right| predicate("and", vec![Argument::Predicate(left), Argument::Predicate(right)]);
        let joined = and(and(gt(1).unwrap(), gt(2).unwrap()).unwrap(), gt(3).unwrap()).unwrap();
        let script = text::parse("g.V().is(gt(1).and(gt(2)).and(gt(3)))").unwrap();
        let steps = vec![call("V", vec![]), call("is", vec![Argument::Predicate(joined)])];
        assert_eq!(Bytecode { sources: vec![], steps }.into_script(), Ok(script));
        assert!(
            matches!(predicate("eq", vec![]), Ok(Predicate::Test(Test::Eq, list)) if list == [Argument::List(vec![])])
        );
        assert_eq!(predicate("test", vec![]), Err("`test` is not a predicate".into()));
        assert_eq!(predicate("and", vec![text_of("a")]), Err("`and` joins predicates alone".into()));
        assert_eq!(predicate("and", vec![]), Err("`and` joins no predicate".into()));
    }

    #[test]
    fn a_source_has_no_place_within() {
        let within = |sources| Bytecode { sources, steps: vec![] }.into_argument();
        let why = "a traversal in another has no source, and this one has `withPath`";
        assert_eq!(within(vec![call("withPath", vec![])]), Err(why.into()));
        assert!(within(vec![call("CardinalityValueTraversal", vec![text_of("a")])]).is_err());
        let tx = |what| Bytecode { sources: vec![call("tx", vec![text_of(what)])], steps: vec![] }.into_script();
        assert_eq!(tx("commit"), Ok(text::parse("g.tx().commit()").unwrap()));
        assert!(tx("close").is_err());
    }

    /// Each level of sets hashes all below it again, in a call that nothing ends.
    #[test]
    fn tables_of_keys_nest_to_a_bound() {
        type Wrap = fn(Argument) -> Argument;
        let kinds: [(&str, Wrap); 3] = [
            ("sets", |inner| Argument::Set(vec![text_of("a"), inner])),
            ("keys of maps", |inner| Argument::Map(vec![(text_of("a"), text_of("b")), (inner, text_of("c"))])),
            ("lists in sets", |inner| Argument::Set(vec![text_of("a"), Argument::List(vec![inner])])),
        ];
        for (name, wrap) in kinds {
            let nested = |levels: usize| (0..levels).fold(text_of("b"), |inner, _| wrap(inner));
            assert!(Value::try_from(nested(TABLES_MAX)).is_ok(), "{name}");
            assert_eq!(Value::try_from(nested(TABLES_MAX + 1)), Err(NotAValue::TooDeep), "{name}");
        }
        // No table: one item, values of maps, lists.
        let free: [Wrap; 3] = [
            |inner| Argument::Set(vec![inner]),
            |inner| Argument::Map(vec![(text_of("a"), text_of("b")), (text_of("c"), inner)]),
            |inner| Argument::List(vec![text_of("a"), inner]),
        ];
        for wrap in free {
            assert!(Value::try_from((0..100).fold(text_of("b"), |inner, _| wrap(inner))).is_ok());
        }
    }

    #[test]
    fn of_equal_keys_the_last_counts() {
        let entries = vec![(text_of("a"), text_of("1")), (text_of("b"), text_of("2")), (text_of("a"), text_of("3"))];
        let expected = Value::Map(vec![("a".into(), "3".into()), ("b".into(), "2".into())]);
        assert_eq!(Value::try_from(Argument::Map(entries)), Ok(expected));
        assert_eq!(Value::try_from(Argument::Set(vec![text_of("a"); 3])), Ok(Value::Set(vec!["a".into()])));
        assert_eq!(Value::try_from(Argument::Now), Err(NotAValue::Other("`datetime()`")));
    }
}
