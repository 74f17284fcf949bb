//! Arguments of calls, read as the types that steps take.

use std::cell::RefCell;

use bigdecimal::ToPrimitive;
use hoplake_query::{
    error::QueryError,
    literal::{Literal, Number},
    moment::Moment,
    plan::{Given, Name, Predicate, Steps, Test, Work},
    tokens::{GType, Scope, Token},
    value::{Value, Vertex},
};
use hoplake_storage::QueryContext;
use uuid::Uuid;

use super::lowering::{Lowered, Lowering, Names};
use crate::{
    bytecode::without_repeats,
    prepared::Named,
    script::{self, Argument, Call, Statement, Terminal},
};

/// Names, labels or `by` of one step, at most: a step may look at all of them for each of its traversers. Names that values are passed for are
/// bounded by [`Work::copies`].
const STEP_NAMES_MAX: usize = 10_000;

/// Rejects a step that has more of something than a step may have.
pub(super) fn reject_many(step: &str, count: usize, what: &str) -> Lowered<()> {
    if count <= STEP_NAMES_MAX {
        return Ok(());
    }
    Err(QueryError::invalid(format!(
        "`{step}` has {count} {what}, and {STEP_NAMES_MAX} is the most: split them among several steps or queries"
    )))
}

/// A call whose arguments are taken one after another.
pub(super) struct Arguments<'a> {
    pub(super) call: &'a Call,
    left: &'a [Argument],
}

impl<'a> Arguments<'a> {
    pub(super) fn new(call: &'a Call) -> Self {
        Self { call, left: &call.arguments }
    }

    pub(super) fn wrong(&self, why: &str) -> QueryError {
        QueryError::invalid(format!("`{}` {why}", self.call.name))
    }

    pub(super) fn len(&self) -> usize {
        self.left.len()
    }

    pub(super) fn first(&self) -> Option<&'a Argument> {
        self.left.first()
    }

    pub(super) fn take(&mut self) -> Option<&'a Argument> {
        let (first, rest) = self.left.split_first()?;
        self.left = rest;
        Some(first)
    }

    pub(super) fn rest(&mut self) -> &'a [Argument] {
        std::mem::take(&mut self.left)
    }

    pub(super) fn need(&mut self, what: &str) -> Lowered<&'a Argument> {
        self.take().ok_or_else(|| self.wrong(&format!("needs {what}")))
    }

    /// That nothing is left.
    pub(super) fn end(&self) -> Lowered<()> {
        match self.left.is_empty() {
            true => Ok(()),
            false => Err(self.wrong("has more arguments than it takes")),
        }
    }

    /// A scope, if one comes first.
    pub(super) fn scope(&mut self) -> Scope {
        match self.first() {
            Some(Argument::Token(Token::Scope(scope))) => {
                self.take();
                *scope
            }
            _ => Scope::Global,
        }
    }

    pub(super) fn text(&mut self, names: &Bindings<'_>, what: &str) -> Lowered<Name> {
        let argument = self.need(what)?;
        match names.value(argument)? {
            Value::Text(text) => Ok(text.into()),
            _ => Err(self.wrong(&format!("takes a text as {what}"))),
        }
    }

    /// A text, or `null`.
    pub(super) fn text_or_null(&mut self, names: &Bindings<'_>, what: &str) -> Lowered<Option<Box<str>>> {
        let argument = self.need(what)?;
        match names.value(argument)? {
            Value::Text(text) => Ok(Some(text)),
            Value::Null => Ok(None),
            _ => Err(self.wrong(&format!("takes a text as {what}"))),
        }
    }

    /// All that are left, as names.
    pub(super) fn texts(&mut self, names: &Bindings<'_>, what: &str) -> Lowered<Vec<Name>> {
        reject_many(&self.call.name, self.left.len(), "names")?;
        let mut all = Vec::with_capacity(self.left.len());
        while self.first().is_some() {
            all.push(self.text(names, what)?);
        }
        Ok(all)
    }

    /// All that are left, as names of properties: `null` is none.
    pub(super) fn properties(&mut self, names: &Bindings<'_>) -> Lowered<Vec<Name>> {
        reject_many(&self.call.name, self.left.len(), "names")?;
        let mut all = Vec::with_capacity(self.left.len());
        while self.first().is_some() {
            // A name that no property has: without any name, all are meant.
            let name = self.text_or_null(names, "the name of a property")?;
            all.push(name.map_or_else(|| "".into(), Name::from));
        }
        Ok(all)
    }

    pub(super) fn integer(&mut self, names: &Bindings<'_>, what: &str) -> Lowered<i64> {
        let argument = self.need(what)?;
        match names.value(argument)? {
            Value::Number(number) => match &number {
                Number::Byte(number) => Ok(i64::from(*number)),
                Number::Short(number) => Ok(i64::from(*number)),
                Number::Int(number) => Ok(i64::from(*number)),
                Number::Long(number) => Ok(*number),
                Number::BigInteger(big) => {
                    big.to_i64().ok_or_else(|| self.wrong(&format!("takes a long as {what}, and {big} is beyond it")))
                }
                _ => Err(self.wrong(&format!("takes an integer as {what}"))),
            },
            _ => Err(self.wrong(&format!("takes an integer as {what}"))),
        }
    }

    /// All that are left as values, those of lists one by one.
    pub(super) fn flat_values(&mut self, names: &Bindings<'_>) -> Lowered<Vec<Value>> {
        let mut all = Vec::new();
        for argument in self.rest() {
            match names.value(argument)? {
                Value::List(items) | Value::Set(items) => all.extend(items),
                value => all.push(value),
            }
        }
        Ok(all)
    }
}

/// The values of names as drivers of TinkerPop 4 write them: a map in the language itself, as in `[code: 'AUS', most: 3]`.
///
/// # Errors
/// [`QueryError::Invalid`] if it is not a map of names to values; the query's limit at its deadline.
pub fn parameters(text: &str, context: &QueryContext) -> Result<Vec<Named>, QueryError> {
    let wrong = |why: &str| QueryError::invalid(format!("the parameters are not a map of names to values: {why}"));
    // Whatever else the text is, it is no single argument of a step then.
    let script = crate::text::parse_within(&format!("g.inject({text})"), context).map_err(|error| match error {
        QueryError::Syntax(why) => wrong(&why),
        other => other,
    })?;
    let [Statement::Traversal(traversal, Terminal::All)] = &script.statements[..] else {
        return Err(wrong("it has steps"));
    };
    let [Call { arguments, .. }] = &traversal.steps[..] else { return Err(wrong("it has steps")) };
    let [argument @ Argument::Map(_)] = &arguments[..] else { return Err(wrong("write [name: 'Ann']")) };
    let work = RefCell::new(Work::new(context)?);
    let bindings = Bindings::new(Names::default(), &work);
    let Value::Map(entries) = bindings.value(argument)? else { return Err(wrong("write [name: 'Ann']")) };
    let named = |(key, value)| match key {
        Value::Text(name) => Ok((name, value)),
        other => Err(wrong(&format!("{other} is not a name"))),
    };
    entries.into_iter().map(named).collect()
}

/// The values of names, and the work that it is to make values of arguments: a text of a megabyte has half a million of them.
#[derive(Clone, Copy)]
pub(super) struct Bindings<'a> {
    names: Names<'a>,
    work: &'a RefCell<Work>,
}

impl<'a> Bindings<'a> {
    pub(super) fn new(names: Names<'a>, work: &'a RefCell<Work>) -> Self {
        Self { names, work }
    }

    /// The value of an argument, with the values of names in it.
    pub(super) fn value(&self, argument: &Argument) -> Lowered<Value> {
        self.work.borrow_mut().converts(1)?;
        let all = |arguments: &[Argument]| arguments.iter().map(|it| self.value(it)).collect::<Lowered<Vec<_>>>();
        Ok(match argument {
            Argument::Literal(literal) => literal.clone().into(),
            Argument::Now => Value::DateTime(Moment::now()),
            Argument::RandomUuid => Value::Uuid(Uuid::new_v4()),
            Argument::List(items) => Value::List(all(items)?),
            Argument::Name(name) => match self.names.get(name) {
                Some(value) => value.clone(),
                None => {
                    return Err(QueryError::invalid(format!(
                        "`{name}` has no value: pass one of that name with the query (a binding)"
                    )));
                }
            },
            Argument::Set(items) => {
                let work = |hashed| self.work.borrow_mut().converts(hashed);
                Value::Set(without_repeats(all(items)?, |item| item, work)?)
            }
            Argument::Map(entries) => {
                let entries = entries.iter().map(|(key, value)| Ok((self.value(key)?, self.value(value)?)));
                let entries = entries.collect::<Lowered<Vec<_>>>()?;
                let work = |hashed| self.work.borrow_mut().converts(hashed);
                Value::Map(without_repeats(entries, |(key, _)| key, work)?)
            }
            Argument::Vertex(id, label) => {
                let Value::Text(label) = self.value(label)? else {
                    return Err(QueryError::invalid("a vertex without a label is not a value"));
                };
                Value::Vertex(Box::new(Vertex { id: self.value(id)?, label, properties: None }))
            }
            other => Value::try_from(other.clone())?,
        })
    }

    /// A predicate, or equality with a value.
    pub(super) fn predicate(&self, argument: &Argument) -> Lowered<Predicate> {
        match argument {
            Argument::Predicate(predicate) => self.predicate_of(predicate),
            value => Ok(Predicate::Test(Test::Eq, vec![self.value(value)?])),
        }
    }

    fn predicate_of(&self, predicate: &script::Predicate) -> Lowered<Predicate> {
        let all = |all: &[script::Predicate]| all.iter().map(|it| self.predicate_of(it)).collect::<Lowered<Vec<_>>>();
        Ok(match predicate {
            script::Predicate::And(predicates) => Predicate::And(all(predicates)?),
            script::Predicate::Or(predicates) => Predicate::Or(all(predicates)?),
            script::Predicate::Not(predicate) => Predicate::Not(Box::new(self.predicate_of(predicate)?)),
            script::Predicate::Test(test, arguments) => self.test(*test, arguments)?,
        })
    }

    fn test(&self, test: Test, arguments: &[Argument]) -> Lowered<Predicate> {
        let mut values = arguments.iter().map(|it| self.value(it)).collect::<Lowered<Vec<_>>>()?;
        match test {
            Test::Within | Test::Without => {
                // A list and its items one by one are the same.
                if let [Value::List(items) | Value::Set(items)] = &mut values[..] {
                    values = std::mem::take(items);
                }
            }
            Test::Inside | Test::Outside | Test::Between if values.len() != 2 => {
                return Err(QueryError::invalid(format!("{test:?} takes two values")));
            }
            Test::Inside | Test::Outside | Test::Between => {}
            Test::Regex | Test::NotRegex => {
                let [Value::Text(text)] = &values[..] else {
                    return Err(QueryError::invalid("a regular expression is a text"));
                };
                return Ok(Predicate::Regex(test == Test::Regex, self.work.borrow_mut().compiles(text)?));
            }
            Test::TypeOf => {
                if let [Value::Text(name)] = &values[..]
                    && let Some(kind) = type_named(name)
                {
                    values = vec![Value::Token(Token::GType(kind))];
                }
                if !matches!(&values[..], [Value::Token(Token::GType(_))]) {
                    return Err(QueryError::invalid("`typeOf` takes a type such as GType.INT, or the name of one"));
                }
            }
            _ if values.len() != 1 => return Err(QueryError::invalid(format!("{test:?} takes one value"))),
            _ => {}
        }
        Ok(Predicate::Test(test, values))
    }
}

impl Lowering<'_> {
    /// A traversal that is an argument.
    pub(super) fn steps_of(&mut self, arguments: &Arguments<'_>, argument: &Argument) -> Lowered<Steps> {
        match argument {
            Argument::Traversal(calls) => self.steps(calls),
            _ => Err(arguments.wrong("takes a traversal here")),
        }
    }

    /// All arguments that are left, as traversals.
    pub(super) fn all_steps(&mut self, arguments: &mut Arguments<'_>) -> Lowered<Vec<Steps>> {
        let rest = arguments.rest();
        rest.iter().map(|argument| self.steps_of(arguments, argument)).collect()
    }

    /// A value, or a traversal that gives it.
    pub(super) fn given(&mut self, argument: &Argument) -> Lowered<Given> {
        match argument {
            Argument::Traversal(calls) => Ok(Given::Steps(self.steps(calls)?)),
            value => Ok(Given::Value(self.names.value(value)?)),
        }
    }
}

/// A type by the name of its class in Java.
fn type_named(name: &str) -> Option<GType> {
    Some(match name {
        "Boolean" => GType::Boolean,
        "Byte" => GType::Byte,
        "Short" => GType::Short,
        "Integer" => GType::Int,
        "Long" => GType::Long,
        "BigInteger" => GType::BigInt,
        "Float" => GType::Float,
        "Double" => GType::Double,
        "BigDecimal" => GType::BigDecimal,
        "Number" => GType::Number,
        "String" => GType::String,
        "Character" => GType::Char,
        "UUID" => GType::Uuid,
        "OffsetDateTime" => GType::DateTime,
        "Duration" => GType::Duration,
        "List" => GType::List,
        "Set" => GType::Set,
        "Map" => GType::Map,
        "Vertex" => GType::Vertex,
        "Edge" => GType::Edge,
        "VertexProperty" => GType::VertexProperty,
        "Property" => GType::Property,
        "Path" => GType::Path,
        "Tree" => GType::Tree,
        _ => return None,
    })
}

/// The text of a literal.
pub(super) fn literal_text(argument: &Argument) -> Option<&str> {
    match argument {
        Argument::Literal(Literal::Text(text)) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::lower;

    fn planned(query: &str) -> Result<(), String> {
        let script = crate::text::parse(query).unwrap();
        let Statement::Traversal(traversal, _) = &script.statements[0] else { panic!("{query}") };
        lower(traversal, Names::default()).map(drop).map_err(|error| error.to_string())
    }

    /// All steps that take names, and what else may come as often as one likes.
    #[test]
    fn a_step_has_names_up_to_a_bound() {
        let names = |count: usize| (0..count).map(|number| format!("'n{number}'")).collect::<Vec<_>>().join(", ");
        let by = |count: usize| ".by('x')".repeat(count);
        let of_names = |before: &'static str| move |count| format!("{before}({})", names(count));
        let of_by = |before: &'static str| move |count| format!("{before}{}", by(count));
        type Query<'a> = Box<dyn Fn(usize) -> String + 'a>;
        let queries: [(&str, Query<'_>); 29] = [
            ("out", Box::new(of_names("g.V().out"))),
            ("in", Box::new(of_names("g.V().in"))),
            ("both", Box::new(of_names("g.V().both"))),
            ("outE", Box::new(of_names("g.V().outE"))),
            ("inE", Box::new(of_names("g.V().inE"))),
            ("bothE", Box::new(of_names("g.V().bothE"))),
            ("to", Box::new(|count| format!("g.V().to(Direction.OUT, {})", names(count)))),
            ("toE", Box::new(|count| format!("g.V().toE(Direction.OUT, {})", names(count)))),
            ("values", Box::new(of_names("g.V().values"))),
            ("properties", Box::new(of_names("g.V().properties"))),
            ("propertyMap", Box::new(of_names("g.V().propertyMap"))),
            ("elementMap", Box::new(of_names("g.V().elementMap"))),
            ("valueMap", Box::new(of_names("g.V().valueMap"))),
            ("select", Box::new(of_names("g.V().select"))),
            ("project", Box::new(of_names("g.V().project"))),
            ("dedup", Box::new(of_names("g.V().dedup"))),
            ("cap", Box::new(of_names("g.V().cap"))),
            ("as", Box::new(of_names("g.V().as"))),
            (
                "as",
                Box::new(|count| format!("g.V(){}", (0..count).map(|n| format!(".as('n{n}')")).collect::<String>())),
            ),
            (
                "math",
                Box::new(|count| {
                    format!("g.V().math('{}1')", (0..count).map(|n| format!("n{n} + ")).collect::<String>())
                }),
            ),
            ("order", Box::new(of_by("g.V().order()"))),
            ("project", Box::new(of_by("g.V().project('a')"))),
            ("select", Box::new(of_by("g.V().select('a', 'b')"))),
            ("path", Box::new(of_by("g.V().path()"))),
            ("simplePath", Box::new(of_by("g.V().simplePath()"))),
            ("tree", Box::new(of_by("g.V().tree()"))),
            ("where", Box::new(of_by("g.V().where(eq('a'))"))),
            ("dedup", Box::new(of_by("g.V().dedup('a')"))),
            ("format", Box::new(of_by("g.V().format('%{_}')"))),
        ];
        for (step, query) in queries {
            planned(&query(STEP_NAMES_MAX)).unwrap_or_else(|error| panic!("{step}: {error}"));
            let error = planned(&query(STEP_NAMES_MAX + 1)).expect_err(step);
            let begin = format!("`{step}` has 10001 ");
            assert!(error.starts_with(&begin) && error.contains("10000 is the most: split"), "{step}: {error}");
        }
        // Properties are looked up in a table, so they need no bound.
        planned(&format!("g.addV('a'){}", ".property('x', 1)".repeat(STEP_NAMES_MAX + 1))).unwrap();
    }
}
